package engine

import "github.com/letomq/leto/engine/queue"

// The queue package's words, so that most callers need only this package.
type (
	Message     = queue.Message
	Annotation  = queue.Annotation
	Delivery    = queue.Delivery
	Settlement  = queue.Settlement
	Outcome     = queue.Outcome
	OutcomeKind = queue.OutcomeKind
)

// The outcomes of [3.4].
const (
	Accepted = queue.Accepted
	Rejected = queue.Rejected
	Released = queue.Released
	Modified = queue.Modified
)

// Sink receives what a queue has for one consumer. No method may block or call the engine. Deliver, Drained and Ended
// come under the queue's guard, in order; Settled and Unsettled come from the committer.
type Sink interface {
	// Deliver hands over one delivery. It was counted against the consumer's limit.
	Deliver(queue.Delivery)
	// Drained answers one Drain, after the last delivery that it led to.
	Drained()
	// Settled says that the Settle with this ticket, which had returned false, holds.
	Settled(ticket uint64)
	// Unsettled says that the store has failed before the Settle with this ticket could hold: whether it does isn't known.
	Unsettled(ticket uint64)
	// Ended says that the consumer is gone without having been closed: ErrDeleted, ErrStolen or ErrClosed.
	// Nothing follows it but Settled and Unsettled; Close is then harmless and not needed.
	Ended(error)
}

// Confirmer hears what became of the messages that Publish did not decide at once, in the order of publishing. It
// must not block or call the engine.
type Confirmer interface {
	Confirmed(ticket uint64, r Result)
}

// Result is the broker's verdict over a published message.
type Result struct {
	Verdict     OutcomeKind // Accepted, Rejected or Released
	Condition   string      // Rejected: the AMQP error condition, and in words:
	Description string
	Queue       string // Rejected: the queue or address that refused
	Reason      string // Rejected: why, as one word: not-found, not-allowed, invalid, memory, queues, deleted, store, store-full
}
