package queue

import "slices"

// Consumer is somebody who takes from the queue, or looks into it. It belongs to its queue.
type Consumer struct {
	Tag any // the caller's own

	limit, given uint64 // deliveries since it attached: how many it may have been given, how many it has
	left, right  *Consumer
	first, last  *Entry // what it owns, in order of acquisition
	owned        int
	drains       int    // to be answered
	view         *view  // a browser's; nil for one that takes
	seek         uint64 // barred entries below this key are not for it
	id           uint32 // of the queue's consumers; not 0
	settled      bool   // takes for good
	bars         bool   // some entry may bar it
	gone         bool
}

// Mode is how a consumer consumes.
type Mode uint8

const (
	Take        Mode = iota // deliveries are to be settled
	TakeSettled             // deliveries leave the queue at once
	Browse                  // deliveries change nothing
)

// Attach adds a consumer, without credit.
func (q *Queue) Attach(mode Mode, tag any) *Consumer {
	q.attached++
	c := &Consumer{Tag: tag, id: q.attached, settled: mode == TakeSettled}
	if mode == Browse {
		c.view = &view{last: endKey}
		q.browsers = append(q.browsers, c)
	} else {
		q.takers = append(q.takers, c)
	}
	return c
}

// Takers returns the consumers that are not browsers, in order of attaching.
func (q *Queue) Takers() []*Consumer { return slices.Clone(q.takers) }

// Members returns all consumers and browsers.
func (q *Queue) Members() []*Consumer { return slices.Concat(q.takers, q.browsers) }

// Given returns how many deliveries the consumer has been given.
func (c *Consumer) Given() uint64 { return c.given }

// Owned returns how many deliveries the consumer holds unsettled.
func (c *Consumer) Owned() int { return c.owned }

// SetLimit sets how many deliveries a consumer may have been given since it attached.
func (q *Queue) SetLimit(c *Consumer, limit uint64, now int64, fx []Effect) []Effect {
	if c.gone {
		return fx
	}
	if c.drains > 0 {
		fx = q.drained(c, fx)
	}
	c.limit = limit
	q.enlist(c)
	return q.dispatch(now, fx)
}

// Drain gives what there is up to limit and then answers with EffectDrained: at once, or when what has to be loaded for
// that has been. Afterwards the consumer has no credit. Each Drain is answered once, those before a SetLimit at the
// latest by that.
func (q *Queue) Drain(c *Consumer, limit uint64, now int64, fx []Effect) []Effect {
	if c.gone {
		return fx
	}
	if c.drains == 0 {
		q.draining++
	}
	c.drains++
	c.limit = limit
	q.enlist(c)
	return q.dispatch(now, fx)
}

// answer answers the drains of those who have been given all there is for them, or all they wanted. Where nothing is
// loaded until something is settled, for want of memory, there is no more: who drains may wait for the answer first.
func (q *Queue) answer(fx []Effect) []Effect {
	r := &q.ready
	more := r.paged != 0 && !q.ready.paused && r.level(r.first()).loading()
	for _, c := range q.takers {
		if c.drains > 0 && (c.limit <= c.given || !more) {
			fx = q.exhausted(c, fx)
		}
	}
	for _, b := range q.browsers {
		if b.drains > 0 && (b.limit <= b.given || b.view.load == nil) {
			fx = q.exhausted(b, fx)
		}
	}
	return fx
}

// exhausted answers the drains of c, which then has no credit.
func (q *Queue) exhausted(c *Consumer, fx []Effect) []Effect {
	c.limit = c.given
	q.enlist(c)
	return q.drained(c, fx)
}

// drained answers the drains of c.
func (q *Queue) drained(c *Consumer, fx []Effect) []Effect {
	for ; c.drains > 0; c.drains-- {
		fx = append(fx, Effect{Kind: EffectDrained, Consumer: c})
	}
	q.draining--
	return fx
}

// rolledBack is what becomes of deliveries that their consumer still had after a rollback, when it leaves: the same as if it
// had left before.
var rolledBack = Outcome{Kind: Modified, Failed: true}

// Detach removes a consumer. What it owned goes back to its place; when its connection was lost and the policy counts
// that, with one more failed attempt.
func (q *Queue) Detach(c *Consumer, lost bool, now int64, fx []Effect) []Effect {
	if c.gone {
		return fx
	}
	c.limit = c.given
	q.enlist(c)
	c.gone = true
	if c.drains > 0 {
		c.drains = 0
		q.draining--
	}
	if c.view != nil {
		q.browsers = without(q.browsers, c)
		return fx
	}
	q.takers = without(q.takers, c)
	back := make([]*Entry, 0, c.owned)
	for e := c.first; e != nil; e = c.first {
		q.disown(e)
		switch {
		case e.tried:
			fx = q.fail(e, &rolledBack, now, fx)
		case lost && q.policy != nil && q.policy.CountOnLoss:
			fx = q.fail(e, nil, now, fx)
		}
		if e.state == stateAcquired {
			back = append(back, e)
		}
	}
	fx = q.giveBack(back, now, fx)
	if c.bars {
		q.unbar()
	}
	return q.dispatch(now, fx)
}

// without returns list without c, nil when nothing is left: an idle queue keeps nothing.
func without(list []*Consumer, c *Consumer) []*Consumer {
	i := slices.Index(list, c)
	if i < 0 {
		return list
	}
	if len(list) == 1 {
		return nil
	}
	return slices.Delete(list, i, i+1)
}

// enlist gives a consumer its place in the round while it has credit, and takes it away when it has none.
func (q *Queue) enlist(c *Consumer) {
	if c.view != nil {
		return
	}
	hungry := c.limit > c.given
	if hungry == (c.right != nil) {
		return
	}
	if hungry {
		if q.turn == nil {
			q.turn, c.left, c.right = c, c, c
		} else { // the last in the round: just before the one whose turn it is
			c.left, c.right = q.turn.left, q.turn
			c.left.right, c.right.left = c, c
		}
		q.hungry++
		return
	}
	if c.right == c {
		q.turn = nil
	} else {
		c.left.right, c.right.left = c.right, c.left
		if q.turn == c {
			q.turn = c.right
		}
	}
	c.left, c.right = nil, nil
	q.hungry--
}

// own makes c the owner of e.
func (q *Queue) own(c *Consumer, e *Entry) {
	e.state, e.owner, e.tried = stateAcquired, c, false
	e.acquisition++
	e.prev, e.next = c.last, nil
	if c.last == nil {
		c.first = e
	} else {
		c.last.next = e
	}
	c.last = e
	c.owned++
	q.acquired++
}

// disown takes e from its owner; its state is the caller's to set.
func (q *Queue) disown(e *Entry) {
	c := e.owner
	if e.prev == nil {
		c.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		c.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.owner, e.prev, e.next = nil, nil, nil
	c.owned--
	q.acquired--
}
