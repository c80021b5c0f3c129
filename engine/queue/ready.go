package queue

import "math/bits"

// ready holds the entries that wait for any consumer: a ring per priority that has been used. An entry that is taken
// out of the middle (it expired) stays there as a blank until the blanks are half of its ring.
type ready struct {
	levels []level
	used   uint16 // bit p: levels has priority p
	filled uint16 // bit p: that level isn't empty
}

type level struct {
	ring
	blanks uint32
}

// level returns the level of a priority that is in used.
func (r *ready) level(priority uint8) *level {
	return &r.levels[bits.OnesCount16(r.used&(1<<priority-1))]
}

// open returns the level of a priority, making it when it is new.
func (r *ready) open(priority uint8) *level {
	if r.used&(1<<priority) == 0 {
		at := bits.OnesCount16(r.used & (1<<priority - 1))
		levels := make([]level, len(r.levels)+1)
		copy(levels, r.levels[:at])
		copy(levels[at+1:], r.levels[at:])
		r.levels = levels
		r.used |= 1 << priority
	}
	return r.level(priority)
}

// put places an entry, new or returned.
func (r *ready) put(e *Entry) {
	e.state = stateReady
	r.open(e.priority).insert(e)
	r.filled |= 1 << e.priority
}

// putAll places entries of one priority in ascending order.
func (r *ready) putAll(sorted []*Entry) {
	for _, e := range sorted {
		e.state = stateReady
	}
	r.open(sorted[0].priority).merge(sorted)
	r.filled |= 1 << sorted[0].priority
}

// head returns the first entry, nil when there is none.
func (r *ready) head() *Entry {
	for r.filled != 0 {
		p := uint8(15 - bits.LeadingZeros16(r.filled))
		l := r.level(p)
		for l.n > 0 {
			if e := l.at(0); e.state == stateReady {
				return e
			}
			l.popFront()
			l.blanks--
		}
		r.filled &^= 1 << p
	}
	return nil
}

// pop takes out the entry that head has just returned.
func (r *ready) pop(e *Entry) {
	l := r.level(e.priority)
	l.popFront()
	if l.n == 0 {
		r.filled &^= 1 << e.priority
	}
}

// blank says that an entry, whose state has been changed, has left its place.
func (r *ready) blank(e *Entry) {
	l := r.level(e.priority)
	l.blanks++
	if l.blanks > 32 && l.blanks > l.n/2 {
		l.keep(func(e *Entry) bool { return e.state == stateReady })
		l.blanks = 0
		if l.n == 0 {
			r.filled &^= 1 << e.priority
		}
	}
}

// after returns the first entry of a priority whose number is above number, nil when there is none.
func (r *ready) after(priority uint8, number uint64) *Entry {
	if r.filled&(1<<priority) == 0 {
		return nil
	}
	l := r.level(priority)
	for i := l.search(keyOf(priority, number) + 1); i < l.n; i++ {
		if e := l.at(i); e.state == stateReady {
			return e
		}
	}
	return nil
}

// each calls f with every entry in order, and leaves ready empty.
func (r *ready) drainAll(f func(*Entry)) {
	for e := r.head(); e != nil; e = r.head() {
		r.pop(e)
		f(e)
	}
}
