package queue

import "math/bits"

// ready holds the entries that wait for any consumer: a ring per priority that has been used. An entry that is taken
// out of the middle (it expired) stays there as a blank until the blanks are half of its ring.
type ready struct {
	levels  []level
	used    uint16   // bit p: levels has priority p
	filled  uint16   // bit p: that level's ring isn't empty
	paged   uint16   // bit p: that level has a frontier
	paused  bool     // nothing is given to those that take
	budgets *Budgets // nil: all is kept in memory
}

type level struct {
	ring
	blanks uint32
	sides  [homes]side
	away   *away
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
	l := r.open(e.priority)
	l.insert(e)
	r.filled |= 1 << e.priority
	r.keep(l, e.message)
}

// putAll places entries of one priority in ascending order.
func (r *ready) putAll(sorted []*Entry) {
	l := r.open(sorted[0].priority)
	for _, e := range sorted {
		e.state = stateReady
		r.keep(l, e.message)
	}
	l.merge(sorted)
	r.filled |= 1 << sorted[0].priority
}

// head returns the first entry, nil when there is none, or when the first one is in the store only.
func (r *ready) head() *Entry {
	for set := r.filled | r.paged; set != 0; {
		p := uint8(15 - bits.LeadingZeros16(set))
		l := r.level(p)
		for l.n > 0 {
			if e := l.at(0); e.state == stateReady {
				if r.paged&(1<<p) != 0 && e.number >= l.from() {
					return nil
				}
				return e
			}
			l.popFront()
			l.blanks--
		}
		if r.paged&(1<<p) != 0 {
			return nil
		}
		r.filled &^= 1 << p
		set &^= 1 << p
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
	r.left(l, e.message)
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
	r.left(l, e.message)
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

// drainAll calls f with every entry in order, and leaves ready empty. There must be no frontier.
func (r *ready) drainAll(f func(*Entry)) {
	for e := r.head(); e != nil; e = r.head() {
		r.pop(e)
		f(e)
	}
}
