package queue

import (
	"cmp"
	"math"
	"slices"
)

// Settle carries out one outcome for deliveries of c. Those that c doesn't own any more are passed over.
func (q *Queue) Settle(c *Consumer, batch []Settlement, o *Outcome, now int64, fx []Effect) []Effect {
	var few [8]*Entry
	back := few[:0]
	for _, s := range batch {
		e := s.Handle
		if e == nil || e.owner != c || e.acquisition != s.Acquisition {
			continue
		}
		q.disown(e)
		if fx = q.settle(c, e, o, now, fx); e.state == stateAcquired {
			back = append(back, e)
		}
	}
	if len(back) == 0 {
		if q.acquired == 0 && q.ready.paged != 0 && q.turn != nil {
			return q.dispatch(now, fx) // what was held for want of memory
		}
		return fx
	}
	return q.dispatch(now, q.giveBack(back, now, fx))
}

// settle carries out an outcome for one entry just taken from its owner. One that is to go back is left stateAcquired.
func (q *Queue) settle(c *Consumer, e *Entry, o *Outcome, now int64, fx []Effect) []Effect {
	switch o.Kind {
	case Accepted:
		q.counters.Acknowledged++
		return q.gone(e, CauseAccepted, fx)
	case Rejected:
		if q.policy != nil && q.policy.RejectRedelivers {
			return q.fail(e, o, now, fx)
		}
		e.attempted()
		q.counters.Killed++
		return q.leave(e, EffectDead, CauseRejected, fx)
	case Modified:
		if len(o.Annotations) > 0 {
			e.annotate(o.Annotations)
		}
		if o.UndeliverableHere {
			e.bar(c)
		}
		if o.Failed || e.tried {
			return q.fail(e, o, now, fx)
		}
		if len(o.Annotations) > 0 {
			fx = append(fx, Effect{Kind: EffectCounted, Entry: e, Message: e.message})
		}
	}
	if e.tried {
		return q.fail(e, o, now, fx)
	}
	if until := e.back(c, now); until != 0 { // released, or no outcome known
		e.more.wait.until = until
	}
	return fx
}

// attempted counts a failed attempt.
func (e *Entry) attempted() {
	if e.count < math.MaxUint32 {
		e.count++
	}
}

// fail counts a failed attempt of an entry just taken from its owner. When that was the last one allowed it leaves,
// otherwise it is left stateAcquired, with the time until which it waits. Without an outcome it doesn't wait.
func (q *Queue) fail(e *Entry, o *Outcome, now int64, fx []Effect) []Effect {
	e.attempted()
	if q.policy != nil {
		if limit := q.policy.MaxAttempts; limit > 0 && e.count-e.base >= uint32(limit) {
			q.counters.Killed++
			return q.leave(e, EffectDead, CauseAttempts, fx)
		}
	}
	if o != nil {
		if until := q.due(e, o, now); until != 0 {
			if e.more == nil {
				e.more = &more{}
			}
			e.more.due, e.more.wait.until = until, until
		}
	}
	return append(fx, Effect{Kind: EffectCounted, Entry: e, Message: e.message})
}

// giveBack puts entries that nobody owns back in their places, or has them wait for their time, and changes the order of the slice.
func (q *Queue) giveBack(back []*Entry, now int64, fx []Effect) []Effect {
	kept := back[:0]
	for _, e := range back {
		switch expiry := e.message.Expiry; {
		case expiry != 0 && expiry <= now:
			fx = q.expire(e, fx)
			continue
		case e.more != nil && e.more.wait.until > now:
			fx = q.hold(e, e.more.wait.until, now, fx)
			continue
		case expiry != 0:
			q.expiry.put(e)
		}
		if e.Due() != 0 { // its time came before it did: a commit has taken longer, and its home has it for waiting
			e.more.due = 0
			fx = append(fx, Effect{Kind: EffectDue, Entry: e, Message: e.message})
		}
		q.waiting++
		if e.more != nil && e.prune() {
			q.putBarred(e)
			continue
		}
		kept = append(kept, e)
	}
	byKey := func(a, b *Entry) int { return cmp.Compare(a.key(), b.key()) }
	if !slices.IsSortedFunc(kept, byKey) {
		slices.SortFunc(kept, byKey)
	}
	for len(kept) > 0 {
		n := 1
		for n < len(kept) && kept[n].priority == kept[0].priority {
			n++
		}
		q.ready.putAll(kept[:n])
		kept = kept[n:]
	}
	return fx
}
