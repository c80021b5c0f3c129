package queue

import "sync/atomic"

// EntryCost is what an entry takes in memory beside its payload: itself, the message's struct and its share of the
// structures that hold them.
const EntryCost = 192

// Budget is how much the queues of one broker keep in memory, waiting to be delivered, of what can also wait elsewhere:
// one for what the store holds, and one for what can be spilled. It may be used by many queues at once. The fields are
// set before it is used and don't change.
//
// Sizes are in bytes of payloads and EntryCost for each entry, where they don't say otherwise.
type Budget struct {
	Limit   int64 // of all queues together
	Ceiling int64 // of one queue and priority
	Floor   int64 // what each queue and priority may keep beside Limit
	Chunk   int64 // is taken from Limit and given back at once
	Low     int64 // a priority that has less in memory, and more elsewhere, is loaded; above 0

	Park int64 // milliseconds: who waits longer for its time does so at home

	PageEntries, PageBytes   int // what one load brings at most, in entries and payload bytes
	SmallEntries, SmallBytes int // the same when Limit is reached: what it takes to go on

	// Tight says that memory is short: a queue whose consumers hold deliveries then loads nothing, and EffectHeld says
	// that it would have. One whose consumers hold none loads small pages. It may change at any time; when it becomes
	// false, Resume is called for the queues that were held.
	Tight atomic.Bool

	// Closed says that nothing can be spilled at present: new entries are kept in memory, whatever the limit. It may
	// change at any time, and has no meaning for what the store holds.
	Closed atomic.Bool

	used atomic.Int64
}

// Budgets are those of a queue. They don't change.
type Budgets struct{ of [homes]*Budget }

// NewBudgets returns the budgets of durable entries and of others, either of which may be nil: there is no limit then.
// A queue that the store doesn't hold has none of durable ones; all of its entries are others.
func NewBudgets(store, spill *Budget) *Budgets {
	return &Budgets{[homes]*Budget{InStore: store, InSpill: spill}}
}

// Used returns what of Limit is taken. It may be above Limit by what had to be loaded or came back from consumers.
func (b *Budget) Used() int64 { return b.used.Load() }

// take takes n from Limit, if there is so much.
func (b *Budget) take(n int64) bool {
	if b.used.Add(n) <= b.Limit {
		return true
	}
	b.used.Add(-n)
	return false
}

// chunks returns n rounded up to whole chunks.
func (b *Budget) chunks(n int64) int64 { return (n + b.Chunk - 1) / b.Chunk * b.Chunk }

// costOf returns what a message takes as one entry.
func costOf(m *Message) int64 { return int64(m.Size()) + EntryCost }
