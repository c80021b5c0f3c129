package codec

import "strconv"

// Code is the numeric descriptor of a type of the specification: domain 0 in
// the upper 32 bits, the type in the lower.
type Code uint64

// Descriptor codes of transport [2.7, 2.8], messaging [3.2, 3.4, 3.5],
// transactions [4.5] and security [5.3].
const (
	CodeOpen        Code = 0x10
	CodeBegin       Code = 0x11
	CodeAttach      Code = 0x12
	CodeFlow        Code = 0x13
	CodeTransfer    Code = 0x14
	CodeDisposition Code = 0x15
	CodeDetach      Code = 0x16
	CodeEnd         Code = 0x17
	CodeClose       Code = 0x18

	CodeError Code = 0x1d

	CodeReceived Code = 0x23
	CodeAccepted Code = 0x24
	CodeRejected Code = 0x25
	CodeReleased Code = 0x26
	CodeModified Code = 0x27

	CodeSource Code = 0x28
	CodeTarget Code = 0x29

	CodeDeleteOnClose             Code = 0x2b
	CodeDeleteOnNoLinks           Code = 0x2c
	CodeDeleteOnNoMessages        Code = 0x2d
	CodeDeleteOnNoLinksOrMessages Code = 0x2e

	CodeCoordinator        Code = 0x30
	CodeDeclare            Code = 0x31
	CodeDischarge          Code = 0x32
	CodeDeclared           Code = 0x33
	CodeTransactionalState Code = 0x34

	CodeSASLMechanisms Code = 0x40
	CodeSASLInit       Code = 0x41
	CodeSASLChallenge  Code = 0x42
	CodeSASLResponse   Code = 0x43
	CodeSASLOutcome    Code = 0x44

	CodeHeader                Code = 0x70
	CodeDeliveryAnnotations   Code = 0x71
	CodeMessageAnnotations    Code = 0x72
	CodeProperties            Code = 0x73
	CodeApplicationProperties Code = 0x74
	CodeData                  Code = 0x75
	CodeAmqpSequence          Code = 0x76
	CodeAmqpValue             Code = 0x77
	CodeFooter                Code = 0x78
)

// codeNames holds the symbolic descriptors; an empty string is no type.
var codeNames = [...]string{
	CodeOpen:                      "amqp:open:list",
	CodeBegin:                     "amqp:begin:list",
	CodeAttach:                    "amqp:attach:list",
	CodeFlow:                      "amqp:flow:list",
	CodeTransfer:                  "amqp:transfer:list",
	CodeDisposition:               "amqp:disposition:list",
	CodeDetach:                    "amqp:detach:list",
	CodeEnd:                       "amqp:end:list",
	CodeClose:                     "amqp:close:list",
	CodeError:                     "amqp:error:list",
	CodeReceived:                  "amqp:received:list",
	CodeAccepted:                  "amqp:accepted:list",
	CodeRejected:                  "amqp:rejected:list",
	CodeReleased:                  "amqp:released:list",
	CodeModified:                  "amqp:modified:list",
	CodeSource:                    "amqp:source:list",
	CodeTarget:                    "amqp:target:list",
	CodeDeleteOnClose:             "amqp:delete-on-close:list",
	CodeDeleteOnNoLinks:           "amqp:delete-on-no-links:list",
	CodeDeleteOnNoMessages:        "amqp:delete-on-no-messages:list",
	CodeDeleteOnNoLinksOrMessages: "amqp:delete-on-no-links-or-messages:list",
	CodeCoordinator:               "amqp:coordinator:list",
	CodeDeclare:                   "amqp:declare:list",
	CodeDischarge:                 "amqp:discharge:list",
	CodeDeclared:                  "amqp:declared:list",
	CodeTransactionalState:        "amqp:transactional-state:list",
	CodeSASLMechanisms:            "amqp:sasl-mechanisms:list",
	CodeSASLInit:                  "amqp:sasl-init:list",
	CodeSASLChallenge:             "amqp:sasl-challenge:list",
	CodeSASLResponse:              "amqp:sasl-response:list",
	CodeSASLOutcome:               "amqp:sasl-outcome:list",
	CodeHeader:                    "amqp:header:list",
	CodeDeliveryAnnotations:       "amqp:delivery-annotations:map",
	CodeMessageAnnotations:        "amqp:message-annotations:map",
	CodeProperties:                "amqp:properties:list",
	CodeApplicationProperties:     "amqp:application-properties:map",
	CodeData:                      "amqp:data:binary",
	CodeAmqpSequence:              "amqp:amqp-sequence:list",
	CodeAmqpValue:                 "amqp:amqp-value:*",
	CodeFooter:                    "amqp:footer:map",
}

var codesByName = func() map[string]Code {
	m := make(map[string]Code, 40)
	for c, name := range codeNames {
		if name != "" {
			m[name] = Code(c)
		}
	}
	return m
}()

func (c Code) known() bool { return c < Code(len(codeNames)) && codeNames[c] != "" }

// Symbol returns the symbolic descriptor of a known code, else "".
func (c Code) Symbol() Symbol {
	if c.known() {
		return Symbol(codeNames[c])
	}
	return ""
}

// String returns the symbolic descriptor, or the number of an unknown code.
func (c Code) String() string {
	if c.known() {
		return codeNames[c]
	}
	return "0x" + strconv.FormatUint(uint64(c), 16)
}

// IsPerformative tells whether the type may be the body of an AMQP frame.
func (c Code) IsPerformative() bool { return c >= CodeOpen && c <= CodeClose }

// IsSASL tells whether the type may be the body of a SASL frame.
func (c Code) IsSASL() bool { return c >= CodeSASLMechanisms && c <= CodeSASLOutcome }

// IsSection tells whether the type is a section of a message.
func (c Code) IsSection() bool { return c >= CodeHeader && c <= CodeFooter }

// ReadDescriptor reads the descriptor at the start of a described value, in
// its symbolic form or as a ulong of any width, and returns what follows it.
// A descriptor of no type of this package is ErrUnknownDescriptor; rest is
// right even then, and code too if the descriptor is numeric. A descriptor
// that is itself described is ErrMalformed.
func ReadDescriptor(b []byte) (code Code, rest []byte, err error) {
	if len(b) > 2 && b[0] == formatDescribed && b[1] == formatSmallUlong {
		code, rest = Code(b[2]), b[3:]
	} else if code, rest, err = readDescriptorSlow(b); err != nil {
		return 0, nil, err
	}
	if !code.known() {
		return code, rest, unknownDescriptor(b, code)
	}
	return code, rest, nil
}

// unknownDescriptor names a number, but not a name, which is the peer's text.
func unknownDescriptor(b []byte, code Code) error {
	switch b[1] {
	case formatUlong0, formatSmallUlong, formatUlong:
		return &Error{UnknownDescriptor, "descriptor " + code.String()}
	}
	return &Error{UnknownDescriptor, "descriptor by name"}
}

// readDescriptorSlow returns code 0, which is no type, for descriptors that
// are neither a ulong nor a known symbol.
func readDescriptorSlow(b []byte) (code Code, rest []byte, err error) {
	if len(b) == 0 {
		return 0, nil, &Error{Truncated, "described value"}
	}
	if b[0] != formatDescribed {
		return 0, nil, &Error{WrongType, "described value " + hexByte(b[0])}
	}
	b = b[1:]
	if len(b) == 0 {
		return 0, nil, &Error{Truncated, "descriptor"}
	}
	if b[0] == formatDescribed {
		return 0, nil, &Error{Malformed, "descriptor of a descriptor"}
	}
	rest, err = Skip(b)
	if err != nil {
		return 0, nil, within("descriptor", err)
	}
	switch v := b[1 : len(b)-len(rest)]; b[0] {
	case formatUlong0:
		return 0, rest, nil
	case formatSmallUlong:
		return Code(v[0]), rest, nil
	case formatUlong:
		return Code(be64(v)), rest, nil
	case formatSymbol8:
		return codesByName[string(v[1:])], rest, nil
	case formatSymbol32:
		return codesByName[string(v[4:])], rest, nil
	}
	return 0, rest, nil
}
