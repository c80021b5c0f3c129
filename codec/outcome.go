package codec

import "bytes"

// StateKind says which delivery state or outcome a value is.
type StateKind uint8

const (
	// StateNone is null.
	StateNone StateKind = iota
	// StateReceived tells how far a partial delivery got [3.4.1]; it is the
	// only kind that is no outcome.
	StateReceived
	// StateAccepted [3.4.2].
	StateAccepted
	// StateRejected [3.4.3].
	StateRejected
	// StateReleased [3.4.4].
	StateReleased
	// StateModified [3.4.5].
	StateModified
	// StateDeclared answers a declare [4.5.5].
	StateDeclared
	// StateUnknown has a descriptor of no state of this package. It is kept as
	// a kind, so that its receiver can settle it, and written as null.
	StateUnknown
)

var stateNames = [...]string{"none", "received", "accepted", "rejected", "released", "modified", "declared", "unknown"}

// String returns the kind's name in the specification.
func (k StateKind) String() string {
	if int(k) < len(stateNames) {
		return stateNames[k]
	}
	return "invalid"
}

// Outcome is what became of a delivery [3.4]. Which fields mean anything
// depends on Kind.
type Outcome struct {
	Kind StateKind
	// Received.
	SectionNumber uint32
	SectionOffset uint64
	// Rejected; nil is null.
	Error *ErrorInfo
	// Modified. Annotations is the encoded map, nil when null, and aliases
	// what was decoded; ReadAnnotations reads it.
	DeliveryFailed    bool
	UndeliverableHere bool
	Annotations       []byte
	// Declared; aliases what was decoded.
	TxnID []byte
}

// own replaces the parts that alias the input by copies.
func (o *Outcome) own() {
	o.Annotations = bytes.Clone(o.Annotations)
	o.TxnID = bytes.Clone(o.TxnID)
}

// decodeAs reads the list behind the descriptor code. Annotations and TxnID
// alias b.
func (o *Outcome) decodeAs(code Code, b []byte) (rest []byte, err error) {
	*o = Outcome{}
	var f fields
	switch code {
	case CodeReceived:
		o.Kind = StateReceived
		rest = f.begin(b, "received", 2)
		o.SectionNumber = f.needUint("section-number")
		o.SectionOffset = f.needUlong("section-offset")
	case CodeAccepted:
		o.Kind = StateAccepted
		rest = f.begin(b, "accepted", 0)
	case CodeRejected:
		o.Kind = StateRejected
		rest = f.begin(b, "rejected", 1)
		o.Error = f.errorInfo("error")
	case CodeReleased:
		o.Kind = StateReleased
		rest = f.begin(b, "released", 0)
	case CodeModified:
		o.Kind = StateModified
		rest = f.begin(b, "modified", 3)
		o.DeliveryFailed = f.bool("delivery-failed")
		o.UndeliverableHere = f.bool("undeliverable-here")
		o.Annotations = f.rawMap("message-annotations")
	case CodeDeclared:
		o.Kind = StateDeclared
		rest = f.begin(b, "declared", 1)
		o.TxnID = f.needBinary("txn-id")
	default:
		o.Kind = StateUnknown
		return Skip(b)
	}
	return rest, f.end()
}

// Append writes the outcome with its descriptor, null for StateNone and
// StateUnknown.
func (o *Outcome) Append(dst []byte) []byte {
	switch o.Kind {
	case StateAccepted:
		return append(dst, formatDescribed, formatSmallUlong, byte(CodeAccepted), formatList0)
	case StateReleased:
		return append(dst, formatDescribed, formatSmallUlong, byte(CodeReleased), formatList0)
	case StateReceived, StateRejected, StateModified, StateDeclared:
		return o.appendFields(dst)
	}
	return append(dst, formatNull)
}

func (o *Outcome) appendFields(dst []byte) []byte {
	var at int
	switch o.Kind {
	case StateReceived:
		dst, at = beginComposite(dst, CodeReceived, 2)
		dst = appendUint(dst, o.SectionNumber)
		dst = appendUlong(dst, o.SectionOffset)
	case StateRejected:
		dst, at = beginComposite(dst, CodeRejected, 1)
		dst = appendErrorInfo(dst, o.Error)
	case StateModified:
		dst, at = beginComposite(dst, CodeModified, 3)
		dst = appendBool(dst, o.DeliveryFailed)
		dst = appendBool(dst, o.UndeliverableHere)
		dst = appendRaw(dst, o.Annotations)
	case StateDeclared:
		dst, at = beginComposite(dst, CodeDeclared, 1)
		dst = appendBinary(dst, o.TxnID)
	}
	return endComposite(dst, at)
}

// outcome reads a field that holds an outcome.
func (f *fields) outcome(field string, o *Outcome) {
	code, content, ok := f.described(field)
	if !ok {
		return
	}
	rest, err := o.decodeAs(code, content)
	if err != nil {
		f.failWith(field, err)
		return
	}
	f.skipTo(rest)
}
