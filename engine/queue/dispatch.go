package queue

// dispatch gives waiting entries to those with credit until one of the two runs out: to consumers in turn, so that
// nobody with credit waits longer than one round, then to browsers. Then it asks for what has to be loaded, and answers
// drains.
func (q *Queue) dispatch(now int64, fx []Effect) []Effect {
	gave := false
	for passed := 0; !q.ready.paused && q.waiting > 0 && q.turn != nil && passed < int(q.hungry); {
		c := q.turn
		var e *Entry
		if e, fx = q.next(c, now, fx); e == nil {
			if q.barred == nil || q.barred.n == 0 {
				break // nothing is there for anybody
			}
			q.turn = c.right // only barred entries are left and none is for c; others may do better
			passed++
			continue
		}
		passed, gave = 0, true
		fx = q.give(c, e, fx)
	}
	for _, b := range q.browsers {
		fx = q.show(b, now, fx)
	}
	if q.ready.paged != 0 && !q.ready.paused && (gave || q.turn != nil) {
		fx = q.refill(fx)
	}
	if q.draining > 0 {
		fx = q.answer(fx)
	}
	return fx
}

// handsOver reports whether a new entry goes to a consumer at once: who has credit can have nothing that waits already.
func (q *Queue) handsOver() bool {
	return q.turn != nil && q.browsers == nil && q.ready.paged == 0 && !q.ready.paused
}

// next takes out the first entry that c may have now, nil when there is none. Expired ones in front of it leave.
func (q *Queue) next(c *Consumer, now int64, fx []Effect) (*Entry, []Effect) {
	var open *Entry
	for {
		open = q.ready.head()
		if open == nil || open.message.Expiry == 0 || open.message.Expiry > now {
			break
		}
		q.ready.pop(open)
		q.waiting--
		fx = q.expire(open, fx)
	}
	if q.barred != nil && q.barred.n > 0 {
		limit := q.ready.limit()
		if open != nil {
			limit = open.key()
		}
		var i uint32
		if i, fx = q.nextBarred(c, now, fx); i < q.barred.n {
			if e := q.barred.at(i); e.key() < limit {
				q.barred.remove(i)
				return e, fx
			}
		}
	}
	if open != nil {
		q.ready.pop(open)
	}
	return open, fx
}

// give hands a waiting entry, which has been taken out of its place, to c and ends c's turn.
func (q *Queue) give(c *Consumer, e *Entry, fx []Effect) []Effect {
	q.waiting--
	q.own(c, e)
	c.given++
	if c.given >= c.limit {
		q.enlist(c)
	} else {
		q.turn = c.right
	}
	fx = append(fx, Effect{Kind: EffectDeliver, Acquisition: e.acquisition, Consumer: c, Entry: e, Message: e.message})
	if c.settled {
		q.disown(e)
		q.counters.Acknowledged++
		fx = q.gone(e, CauseAccepted, fx)
	}
	return fx
}
