package queue

// OutcomeKind is what became of a delivery. The zero value is no outcome.
type OutcomeKind uint8

// The outcomes of [3.4].
const (
	Accepted OutcomeKind = iota + 1
	Rejected
	Released
	Modified
)

// String returns the outcome's name in the specification.
func (k OutcomeKind) String() string {
	switch k {
	case Accepted:
		return "accepted"
	case Rejected:
		return "rejected"
	case Released:
		return "released"
	case Modified:
		return "modified"
	}
	return "none"
}

// Outcome is how a consumer settles deliveries. Annotations are kept: nobody may change them afterwards.
type Outcome struct {
	Kind                   OutcomeKind
	Failed                 bool         // modified: delivery-failed
	UndeliverableHere      bool         // modified: never again to this consumer
	Annotations            []Annotation // modified: merged into the message's annotations
	HasDelay               bool         // modified, failed: the message waits Delay milliseconds and not as the policy says
	Delay                  int64
	DueAt                  int64  // modified, failed: the message waits until that unix millisecond; 0: not said
	Condition, Description string // rejected: the consumer's error, empty when it gave none
}

// Settlement names one delivery. It has an effect only while that ownership lasts: one that comes after the message
// went back, to another consumer or out of the queue changes nothing.
type Settlement struct {
	Handle      *Entry
	Acquisition uint32
}

// Delivery is what a consumer is given.
type Delivery struct {
	Handle        *Entry
	Acquisition   uint32 // tells this ownership of Handle from all others; 0 for a browser, which owns nothing
	Message       *Message
	Number        uint64       // the broker's number of the message in this queue, ascending in order of arrival
	Count         uint32       // failed attempts before this one: header.delivery-count
	FirstAcquirer bool         // no consumer has had it before
	Annotations   []Annotation // immutable; to be written over the message's own
}
