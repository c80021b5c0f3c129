package codec

import (
	"errors"
	"strconv"
)

// ErrorKind says what is wrong with bytes that do not decode.
type ErrorKind uint8

const (
	// Truncated: the bytes end before the value does, or a declared size
	// reaches beyond the bytes that are present.
	Truncated ErrorKind = iota + 1
	// Malformed: the bytes break a rule of the encoding.
	Malformed
	// TooDeep: nesting beyond MaxDepth.
	TooDeep
	// TooMany: more elements than MaxElements, or than the bytes can hold.
	TooMany
	// WrongType: a field or section holds a value of another type than the
	// specification gives it.
	WrongType
	// MissingField: a mandatory field is null or left out.
	MissingField
	// UnknownDescriptor: a descriptor that this package has no type for.
	UnknownDescriptor
	// Framing: a frame header that contradicts itself [2.3.1].
	Framing
	// Unsupported: a Go value that has no AMQP encoding.
	Unsupported
)

// String returns the kind in words, as it ends an error's text.
func (k ErrorKind) String() string {
	switch k {
	case Truncated:
		return "truncated"
	case Malformed:
		return "malformed"
	case TooDeep:
		return "nested too deeply"
	case TooMany:
		return "too many elements"
	case WrongType:
		return "wrong type"
	case MissingField:
		return "mandatory field missing"
	case UnknownDescriptor:
		return "unknown descriptor"
	case Framing:
		return "framing error"
	case Unsupported:
		return "not encodable"
	}
	return "error kind " + strconv.Itoa(int(k))
}

// Error is what every function of this package returns when it fails.
type Error struct {
	Kind ErrorKind
	// Detail names what failed, for example "attach.handle 0xa1". It holds
	// nothing of the peer's strings, so it may go into a log or a close frame.
	Detail string
}

// Error returns one line, such as "attach.name: mandatory field missing".
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Kind.String()
	}
	return e.Detail + ": " + e.Kind.String()
}

// Is lets errors.Is match the sentinels below by kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Detail == ""
}

// Sentinels for errors.Is, one per kind.
var (
	ErrTruncated         error = &Error{Kind: Truncated}
	ErrMalformed         error = &Error{Kind: Malformed}
	ErrTooDeep           error = &Error{Kind: TooDeep}
	ErrTooMany           error = &Error{Kind: TooMany}
	ErrWrongType         error = &Error{Kind: WrongType}
	ErrMissingField      error = &Error{Kind: MissingField}
	ErrUnknownDescriptor error = &Error{Kind: UnknownDescriptor}
	ErrFraming           error = &Error{Kind: Framing}
	ErrUnsupported       error = &Error{Kind: Unsupported}
)

// within puts the name of a field in front of an error from its value.
func within(name string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		if e.Detail == "" {
			return &Error{Kind: e.Kind, Detail: name}
		}
		return &Error{Kind: e.Kind, Detail: name + ": " + e.Detail}
	}
	return err
}

func hexByte(c byte) string {
	const digits = "0123456789abcdef"
	return "0x" + string([]byte{digits[c>>4], digits[c&15]})
}
