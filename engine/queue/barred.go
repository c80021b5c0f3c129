package queue

// Entries that some present consumer must not have wait apart, in order, so that they are in nobody's way. Each
// consumer remembers up to which key it has found nothing for it there, and never looks at that part again unless an
// entry comes back to it.

// putBarred places an entry that bars somebody.
func (q *Queue) putBarred(e *Entry) {
	if q.barred == nil {
		q.barred = &ring{}
	}
	e.state = stateBarred
	q.barred.insert(e)
	for _, c := range q.takers {
		c.seek = min(c.seek, e.key())
	}
}

// nextBarred returns the place of the first barred entry that c may have, the ring's length when there is none.
func (q *Queue) nextBarred(c *Consumer, now int64, fx []Effect) (uint32, []Effect) {
	if c.seek == endKey {
		return q.barred.n, fx
	}
	i := q.barred.search(c.seek)
	for i < q.barred.n {
		e := q.barred.at(i)
		if expiry := e.message.Expiry; expiry != 0 && expiry <= now {
			q.barred.remove(i)
			q.waiting--
			fx = q.expire(e, fx)
			continue
		}
		if !e.bars(c) {
			c.seek = e.key()
			return i, fx
		}
		i++
	}
	c.seek = endKey
	return i, fx
}

// unbar moves entries that bar nobody any more, since a consumer left, back among the others.
func (q *Queue) unbar() {
	if q.barred == nil {
		return
	}
	q.barred.keep(func(e *Entry) bool {
		if e.prune() {
			return true
		}
		q.ready.put(e)
		return false
	})
}
