package engine

import "github.com/letomq/leto/engine/queue"

// boundQueue is a queue at an address: the pure queue, its guard, and what connects it to the rest of the broker.
// There may be 100,000 of them idle, so what few need isn't here.
type boundQueue struct {
	guard guard
	core  queue.Queue // under guard, as are:

	armed    int64 // when the keeper calls, 0 for never
	inflight int32 // messages in the commit window that will arrive
	deleted  bool

	asking       [2]bool // whether the sweepers of store and spill have been asked for what waits there for its time
	auto         bool    // made on first use
	temporary    bool    // ends with its link or its dynamic address
	reapable     bool    // may have to be deleted when it runs empty; changed under the guard and the address's mu
	address      *address
	name         string
	id           QueueID       // 0: it isn't durable
	subscription *subscription // that it is the queue of; nil for others

	due   int64 // the keeper's
	place int   // the keeper's
}

// aftermath is what is left to do once the guard has been left.
type aftermath struct {
	departures []departure
	entered    bool // something has entered the commit window
	empty      bool // the queue has run empty and may have to be deleted
	spilled    bool // something has entered the spill
}

func (q *boundQueue) broker() *Broker { return q.address.broker }

// holds reports whether the store has, or will have, this message's entry in the queue.
func (q *boundQueue) holds(m *Message) bool { return q.id != 0 && m.Durable }

// clock returns the time if the queue needs it: it costs as much as the rest of a delivery.
func (q *boundQueue) clock() int64 {
	if !q.core.Expiring() {
		return 0
	}
	return q.broker().now()
}

// carryOut does what the core asks for, under the guard. What can't be done there is in the aftermath.
func (q *boundQueue) carryOut(fx []queue.Effect, o *Outcome) aftermath {
	var few [1]Record
	records := few[:0]
	var after aftermath
	for i := range fx {
		f := &fx[i]
		switch f.Kind {
		case queue.EffectDeliver:
			f.Consumer.Tag.(*Consumer).sink.Deliver(f.Delivery())
		case queue.EffectDrained:
			f.Consumer.Tag.(*Consumer).sink.Drained()
		case queue.EffectCounted:
			if q.holds(f.Message) {
				records = append(records, q.counted(f.Entry))
			}
		case queue.EffectDue:
			if q.holds(f.Message) {
				records = append(records, Record{
					Kind: RecordDue, Queue: q.id, Number: f.Entry.Number(), Priority: f.Entry.Priority(), Due: f.Entry.Due(),
				})
			}
		case queue.EffectGone:
			if f.Cause != queue.CauseFinished && !q.deleted && q.holds(f.Message) {
				records = append(records, q.removed(f.Entry))
			}
			q.broker().memory.release(f.Message)
		case queue.EffectDead:
			after.departures = append(after.departures, departure{
				entry: f.Entry, message: f.Message, cause: f.Cause, reason: deathReason(f.Cause, o, f.Entry.Count()-f.Entry.Base()),
			})
		case queue.EffectExpired:
			after.departures = append(after.departures, departure{entry: f.Entry, message: f.Message, expired: true})
		case queue.EffectStored:
			if at := f.Message.Expiry; at != 0 && f.Cause == queue.CausePaged {
				q.broker().sweeper.expect(at)
			}
			q.broker().memory.release(f.Message)
		case queue.EffectSpill:
			q.broker().spiller.enter(q, f.Entry, f.Message)
			after.spilled = true
			if at := f.Message.Expiry; at != 0 {
				q.broker().spiller.sweeper.expect(at)
			}
		case queue.EffectLoad:
			q.broker().loader.enter(loadJob{queue: q, load: f.Load()})
		case queue.EffectHeld:
			q.broker().loader.hold(q)
		case queue.EffectPurged:
			switch l := f.Load(); {
			case l.Spilled:
				q.broker().spiller.purge(q, l)
				q.broker().totals.lost.Add(uint64(l.Lost))
			case q.deleted:
			case l.From == l.Last:
				records = append(records, Record{Kind: RecordRemove, Queue: q.id, Number: l.From, Priority: l.Priority})
			default:
				records = append(records, Record{
					Kind: RecordPurge, Queue: q.id, Priority: l.Priority, FromNumber: l.From, Number: l.Last,
				})
			}
		}
	}
	if len(records) > 0 {
		q.broker().committer.enter(records, nil)
		after.entered = true
	}
	if q.core.Expiring() || q.armed != 0 || q.core.Delayed() > 0 {
		q.arm()
	}
	after.empty = q.reapable && q.core.Empty()
	return after
}

// counted returns the record of an entry's count, due time and annotations.
func (q *boundQueue) counted(e *queue.Entry) Record {
	return Record{
		Kind: RecordCount, Queue: q.id, Number: e.Number(), Priority: e.Priority(),
		Count: e.Count(), Base: e.Base(), Due: e.Due(), Annotations: e.Annotations(),
	}
}

// removed returns the record of an entry that is gone.
func (q *boundQueue) removed(e *queue.Entry) Record {
	return Record{Kind: RecordRemove, Queue: q.id, Number: e.Number(), Priority: e.Priority()}
}

// arm has the keeper call when the next message expires, or has waited long enough. An earlier call than needed does no harm.
func (q *boundQueue) arm() {
	at := q.core.NextExpiry()
	sooner := func(next int64) {
		if next != 0 && (at == 0 || next < at) {
			at = next
		}
	}
	sooner(q.core.NextDue())
	for h, asking := range q.asking {
		if !asking {
			sooner(q.core.NextAsk(queue.Home(h)))
		}
	}
	if at != 0 && (q.armed == 0 || at < q.armed) {
		q.armed = at
		q.broker().keeper.arm(q, at)
	}
}

// after does what was left to do. With a last step it enters that behind all that has entered, if anything has, and
// reports whether.
func (q *boundQueue) after(after *aftermath, last *step) bool {
	for i := range after.departures {
		q.depart(after.departures[i])
	}
	if after.empty {
		q.address.reap(q)
	}
	if last == nil || !after.entered && len(after.departures) == 0 {
		return false
	}
	q.broker().committer.enter(nil, last)
	return true
}

// publish makes a message visible at once; false when the queue has been deleted.
func (q *boundQueue) publish(m *Message, number uint64) bool {
	var few [4]queue.Effect
	var now int64
	if m.Expiry != 0 || m.Due != 0 {
		now = q.broker().now()
	}
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		return false
	}
	if now == 0 {
		now = q.clock()
	}
	after := q.carryOut(q.core.Publish(m, number, now, few[:0]), nil)
	q.guard.leave()
	if len(after.departures) > 0 || after.empty {
		q.after(&after, nil)
	}
	if after.spilled && q.broker().spiller.crowded.Load() {
		q.broker().spiller.await()
	}
	return true
}

// reserve announces a message that will arrive after a commit; false when the queue has been deleted.
func (q *boundQueue) reserve() bool {
	q.guard.enter()
	defer q.guard.leave()
	if q.deleted {
		return false
	}
	q.inflight++
	return true
}

// forgo takes reserve back.
func (q *boundQueue) forgo(m *Message) {
	q.guard.enter()
	q.inflight--
	q.guard.leave()
	q.broker().memory.release(m)
}

// reserve reserves m at those of the queues that still are. The memory of all has been taken and is given back for
// the others.
func reserve(picked []*boundQueue, m *Message) []*boundQueue {
	m.Hold(len(picked))
	for i, q := range picked {
		if q.reserve() {
			continue
		}
		targets := append([]*boundQueue(nil), picked[:i]...)
		q.broker().memory.release(m)
		for _, q := range picked[i+1:] {
			if q.reserve() {
				targets = append(targets, q)
			} else {
				q.broker().memory.release(m)
			}
		}
		return targets
	}
	return picked
}

// arrive makes a reserved message visible.
func (q *boundQueue) arrive(a queue.Arrival) {
	var few [4]queue.Effect
	q.guard.enter()
	q.inflight--
	if q.deleted {
		q.guard.leave()
		q.broker().memory.release(a.Message)
		return
	}
	after := q.carryOut(q.core.Insert(a, q.broker().now(), few[:0]), nil)
	q.guard.leave()
	q.after(&after, nil)
}

// appear makes many reserved messages visible.
func (q *boundQueue) appear(steps []step) {
	var few [2 * batchMax]queue.Effect
	fx := few[:0]
	now := q.broker().now()
	q.guard.enter()
	q.inflight -= int32(len(steps))
	if q.deleted {
		q.guard.leave()
		for i := range steps {
			q.broker().memory.release(steps[i].message)
		}
		return
	}
	for i := range steps {
		fx = q.core.Publish(steps[i].message, steps[i].number, now, fx)
	}
	after := q.carryOut(fx, nil)
	q.guard.leave()
	q.after(&after, nil)
}

// finish ends the way out of an entry, under the guard.
func (q *boundQueue) finish(e *queue.Entry) aftermath {
	var few [1]queue.Effect
	return q.carryOut(q.core.Finish(e, few[:0]), nil)
}

// pass has messages leave that have expired, and others be given that have waited long enough; it is the keeper who calls.
func (q *boundQueue) pass() {
	q.guard.enter()
	q.armed = 0
	var after aftermath
	if !q.deleted {
		now := q.broker().now()
		fx := q.core.Expire(expireQuantum, now, nil)
		after = q.carryOut(q.core.Wake(expireQuantum, now, fx), nil)
		for h := range q.asking {
			if at := q.core.NextAsk(queue.Home(h)); at != 0 && at <= now && !q.asking[h] {
				q.asking[h] = true
				q.broker().sweeperOf(queue.Home(h)).recallLater(q)
			}
		}
		q.arm()
	}
	q.guard.leave()
	q.after(&after, nil)
}
