package queue

// Entry is one message in one queue: the unit of ownership. It belongs to its queue and is read and changed under
// whatever guards that; everybody else may only hand the pointer back in a Settlement.
type Entry struct {
	number      uint64
	message     *Message // nil once gone
	owner       *Consumer
	prev, next  *Entry // in the owner's list
	more        *more  // what few entries have
	count       uint32 // failed attempts
	base        uint32 // of which these happened before it came to this queue
	acquisition uint32 // ownerships so far, here and where it came from
	state       state
	priority    uint8
	timed       bool // it stands in the expiry heap
	tried       bool // a transaction that had retired it was rolled back, and its owner has it still
}

// more is what few entries have, so that the others needn't pay for it.
type more struct {
	annotations []Annotation
	barred      []*Consumer // consumers that must not have it
	load        *Load       // no entry, but what an effect is about
	due         int64       // before that it isn't to be given, as its home knows; 0: it may be
	wait        wait
	returned    returns
}

// state is where an entry is.
type state uint8

const (
	stateReady    state = iota // in its level, for anybody
	stateBarred                // waiting in the barred list: not for everybody
	stateDelayed               // in memory until its time has come
	stateAcquired              // owned by a consumer
	stateEnlisted              // taken from its consumer by a transaction that hasn't ended
	stateLeaving               // on its way to another queue; owned by whoever moves it, until Finish
	stateGone
)

// Number returns the entry's number, which never changes.
func (e *Entry) Number() uint64 { return e.number }

// Message returns the message, nil once the entry is gone.
func (e *Entry) Message() *Message { return e.message }

// Priority returns the priority that the entry waits with: 0..9.
func (e *Entry) Priority() uint8 { return e.priority }

// Count returns how many attempts have failed.
func (e *Entry) Count() uint32 { return e.count }

// Base returns how many of those happened before the entry came to this queue.
func (e *Entry) Base() uint32 { return e.base }

// Had reports whether some consumer has had the entry.
func (e *Entry) Had() bool { return e.acquisition > 0 }

// Due returns the unix millisecond before which the entry isn't to be given, 0 for none, as it is to be kept at home.
func (e *Entry) Due() int64 {
	if e.more == nil {
		return 0
	}
	return e.more.due
}

// Annotations returns what is to be written over the message's annotations. Immutable.
func (e *Entry) Annotations() []Annotation {
	if e.more == nil {
		return nil
	}
	return e.more.annotations
}

// key orders entries as they are delivered: by priority, the higher first, then by number.
func (e *Entry) key() uint64 { return keyOf(e.priority, e.number) }

// keyOf is key for a priority and a number below 2^60.
func keyOf(priority uint8, number uint64) uint64 { return uint64(9-priority)<<60 | number }

// endKey is above every key.
const endKey = ^uint64(0)

// waiting reports whether the entry may be given to somebody.
func (e *Entry) waiting() bool { return e.state == stateReady || e.state == stateBarred }

// bars reports whether c must not have the entry.
func (e *Entry) bars(c *Consumer) bool {
	if e.more == nil {
		return false
	}
	for _, b := range e.more.barred {
		if b == c {
			return true
		}
	}
	return false
}

// bar keeps c from ever having the entry again.
func (e *Entry) bar(c *Consumer) {
	if e.bars(c) {
		return
	}
	if e.more == nil {
		e.more = &more{}
	}
	e.prune()
	e.more.barred = append(e.more.barred, c)
	c.bars = true
}

// prune forgets barred consumers that are gone and reports whether any are left.
func (e *Entry) prune() bool {
	if e.more == nil {
		return false
	}
	left := e.more.barred[:0]
	for _, b := range e.more.barred {
		if !b.gone {
			left = append(left, b)
		}
	}
	clear(e.more.barred[len(left):])
	e.more.barred = left
	return len(left) > 0
}

// annotate merges annotations in. What was handed out before stays as it was.
func (e *Entry) annotate(add []Annotation) {
	if e.more == nil {
		e.more = &more{}
	}
	e.more.annotations = mergeAnnotations(e.more.annotations, add)
}
