package queue

// expiry is a heap of the entries that expire, the earliest first. Entries that left the queue are not taken out but
// dropped when they come up, or when they are most of the heap.
type expiry struct {
	heap []due
	live int // entries in the queue, whoever owns them, that expire
}

type due struct {
	at    int64
	entry *Entry
}

// put adds an entry, unless it stands in the heap already.
func (x *expiry) put(e *Entry) {
	if e.timed {
		return
	}
	e.timed = true
	x.heap = append(x.heap, due{e.message.Expiry, e})
	h := x.heap
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[up].at <= h[i].at {
			break
		}
		h[up], h[i] = h[i], h[up]
		i = up
	}
}

// pop takes the earliest entry out.
func (x *expiry) pop() *Entry {
	e := x.heap[0].entry
	e.timed = false
	last := len(x.heap) - 1
	x.heap[0], x.heap[last] = x.heap[last], due{}
	x.heap = x.heap[:last]
	if last == 0 {
		x.heap = nil
		return e
	}
	x.down(0)
	return e
}

func (x *expiry) down(i int) {
	h := x.heap
	for {
		least := 2*i + 1
		if least >= len(h) {
			return
		}
		if least+1 < len(h) && h[least+1].at < h[least].at {
			least++
		}
		if h[i].at <= h[least].at {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// drop notes that an entry that expires has left the queue.
func (x *expiry) drop() {
	x.live--
	if x.live == 0 {
		for _, d := range x.heap {
			d.entry.timed = false
		}
		x.heap = nil
		return
	}
	if len(x.heap) < 64 || len(x.heap) < 2*x.live {
		return
	}
	kept := x.heap[:0]
	for _, d := range x.heap {
		if d.entry.state == stateGone {
			continue
		}
		kept = append(kept, d)
	}
	clear(x.heap[len(kept):])
	x.heap = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		x.down(i)
	}
}

// Expiring reports whether some entry expires: whether Publish, SetLimit, Drain, Settle and Detach need the time.
func (q *Queue) Expiring() bool { return q.expiry.live > 0 }

// NextExpiry returns the unix millisecond at which Expire has something to do, 0 for none.
func (q *Queue) NextExpiry() int64 {
	x := &q.expiry
	if q.recalling() {
		return 0
	}
	for len(x.heap) > 0 && !x.heap[0].entry.waiting() && x.heap[0].entry.state != stateDelayed {
		x.pop() // it is put back when it returns
	}
	if len(x.heap) == 0 {
		return 0
	}
	return x.heap[0].at
}

// Expire makes waiting entries leave that are due, max of them at most; NextExpiry says whether there are more. One
// that is with a consumer is left alone until it comes back.
func (q *Queue) Expire(max int, now int64, fx []Effect) []Effect {
	x := &q.expiry
	if q.recalling() {
		return fx
	}
	for ; max > 0 && len(x.heap) > 0 && x.heap[0].at <= now; max-- {
		e := x.pop()
		switch e.state {
		case stateReady:
			q.waiting--
			fx = q.expire(e, fx)
			q.ready.blank(e)
		case stateBarred:
			q.barred.remove(q.barred.search(e.key()))
			q.waiting--
			fx = q.expire(e, fx)
		case stateDelayed:
			q.delays.remove(e)
			fx = q.expire(e, fx)
		}
	}
	return fx
}

// expire begins the way out of an entry whose time has come. It must have been taken out of wherever it was.
func (q *Queue) expire(e *Entry, fx []Effect) []Effect {
	q.counters.Expired++
	if e.Due() != 0 {
		q.departs(e.number)
	}
	return q.leave(e, EffectExpired, CauseNone, fx)
}
