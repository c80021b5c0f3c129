package queue

// A level borrows from the budget in chunks, so that the counter that all queues share is seldom touched.

// admits reports whether a level may keep one more entry of this home and cost, and takes what it needs for that from
// the budget.
func (r *ready) admits(h Home, priority uint8, cost int64) bool {
	b := r.budget(h)
	s := &r.open(priority).sides[h]
	need := s.kept + cost - b.Floor
	switch {
	case need <= s.lease:
		return true
	case s.kept+cost > b.Ceiling:
		return false
	}
	more := b.chunks(need) - s.lease
	if !b.take(more) {
		return false
	}
	s.lease += more
	return true
}

// keep counts an entry that a level has in memory.
func (r *ready) keep(l *level, m *Message) {
	h := r.home(m)
	if r.budget(h) == nil {
		return
	}
	s := &l.sides[h]
	s.kept += costOf(m)
	r.grow(h, s)
}

// left notes that an entry has left its level.
func (r *ready) left(l *level, m *Message) {
	h := r.home(m)
	if r.budget(h) == nil {
		return
	}
	s := &l.sides[h]
	s.kept -= costOf(m)
	if s.lease > 0 {
		r.shrink(l, h)
	}
}

// grow takes from the budget what a side has more than it has borrowed for, whatever the limit: it is in memory
// already.
func (r *ready) grow(h Home, s *side) {
	b := r.budget(h)
	if s.kept-b.Floor <= s.lease {
		return
	}
	more := b.chunks(s.kept-b.Floor) - s.lease
	b.used.Add(more)
	s.lease += more
}

// shrink gives back what a side doesn't need any more, but for a little: it may be needed again soon.
func (r *ready) shrink(l *level, h Home) {
	s := &l.sides[h]
	b := r.budget(h)
	if f := l.frontier(h); f != nil && f.load != nil {
		return // what is on its way has its place
	}
	if s.kept > 0 && s.lease-s.kept < 2*b.Chunk {
		return
	}
	need := b.chunks(max(s.kept-b.Floor, 0))
	b.used.Add(need - s.lease)
	s.lease = need
}
