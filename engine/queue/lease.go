package queue

// A level borrows from the budget in chunks, so that the counter that all queues share is seldom touched.

// admits reports whether a level may keep one more durable entry of this cost, and takes what it needs for that from
// the budget.
func (r *ready) admits(priority uint8, cost int64) bool {
	b := r.budget
	l := r.open(priority)
	need := l.kept + cost - b.Floor
	switch {
	case need <= l.lease:
		return true
	case l.kept+cost > b.Ceiling:
		return false
	}
	more := b.chunks(need) - l.lease
	if !b.take(more) {
		return false
	}
	l.lease += more
	return true
}

// grow takes from the budget what a level has more than it has borrowed for, whatever the limit: it is in memory
// already.
func (r *ready) grow(l *level) {
	b := r.budget
	if b == nil || l.kept-b.Floor <= l.lease {
		return
	}
	more := b.chunks(l.kept-b.Floor) - l.lease
	b.used.Add(more)
	l.lease += more
}

// shrink gives back what a level doesn't need any more, but for a little: it may be needed again soon.
func (r *ready) shrink(l *level) {
	b := r.budget
	if l.frontier != nil && l.frontier.load != nil {
		return // what is on its way has its place
	}
	if l.kept > 0 && l.lease-l.kept < 2*b.Chunk {
		return
	}
	need := b.chunks(max(l.kept-b.Floor, 0))
	b.used.Add(need - l.lease)
	l.lease = need
}
