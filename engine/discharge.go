package engine

import (
	"errors"
	"fmt"

	"github.com/letomq/leto/engine/queue"
)

// discharge is a transaction that commits: one step of the committer, whose records hold together or not at all.
type discharge struct {
	transaction *Transaction // nil: it has been rolled back, and what that has entered is waited for
	records     []Record
	parts       []step // what becomes visible; of each the records that belong to it
	decided     []decided
	bytes       int64 // what the records take in the store, about
	brings      bool  // new messages, which a full store refuses
	pinned      []*addressIDs
	claims      map[claimKey]*claim
	confirmer   Confirmer
	ticket      uint64
}

// decided is what one queue's deliveries have come to, before anybody sees it.
type decided struct {
	queue     *boundQueue
	decisions []queue.Decision
	back      []queue.Settlement // of them, those that go back to their places
	unspoken  []retirement       // acquired, and without an outcome
	dead      []departure
}

// ConditionRollback is what a refused Commit says.
const ConditionRollback = "amqp:transaction:rollback"

// Commit commits the transaction. True: the result is final now. False: Confirmed follows with this ticket. Anything but
// Accepted: it has been rolled back, but for the reason "store", with which that isn't known. It waits while the commit
// window is full.
func (t *Transaction) Commit(confirm Confirmer, ticket uint64) (Result, bool) {
	d := &discharge{transaction: t, confirmer: confirm, ticket: ticket}
	if t.doomed != "" {
		return d.refuse(t.doomed), true
	}
	defer d.unpin()
	t.broker.committer.await()
	for i := range t.posts {
		if r := d.publish(&t.posts[i]); r.Verdict != Accepted {
			return d.refuse(fmt.Sprintf("a message to %s is refused by now: %s", r.Queue, r.Description)), true
		}
	}
	for _, s := range t.shares() {
		d.decide(&s)
	}
	for i := range d.decided {
		d.bury(&d.decided[i])
	}
	if d.size() > maxDischarge {
		return d.refuse("it brings too much into the store at once"), true
	}
	if err := d.enter(); err != nil {
		r := d.refuse(err.Error())
		if !errors.Is(err, ErrClosed) && !errors.Is(err, errClaimed) {
			r = rejected("", reasonStore, nil)
		}
		return r, true
	}
	return Result{}, false
}

// publish routes a message that was posted, as Producer.Publish does, and reserves its place.
func (d *discharge) publish(p *post) Result {
	t, m := d.transaction, p.message
	n, a, err := p.producer.resolve(m)
	for range 3 { // queues may be deleted between finding and reaching them
		if err != nil {
			return p.producer.refuse(n.address, err)
		}
		picked := a.pick(n.queue)
		if len(picked) == 0 {
			if a.routing == Multicast && n.queue == "" && !a.gone.Load() {
				a.unrouted.Add(1)
				t.broker.totals.unrouted.Add(1)
				return Result{Verdict: Accepted}
			}
			if p.producer.closed {
				a, err = t.broker.destination(n)
			} else {
				err = p.producer.renew(&a, n)
			}
			continue
		}
		c, fresh, failure := d.claim(a, p.id)
		switch {
		case errors.Is(failure, ErrDeleted):
			if a, err = t.broker.destination(n); err == nil && !p.producer.closed {
				err = p.producer.renew(&a, n)
			}
			continue
		case failure != nil:
			return p.producer.refuse(n.address, failure)
		case !fresh:
			return Result{Verdict: Accepted}
		}
		if !t.broker.memory.take(cost(m, len(picked)) - cost(m, 1)) {
			return rejected(picked[0].name, reasonMemory, nil)
		}
		t.yield(cost(m, 1))
		targets := reserve(picked, m)
		if len(targets) == 0 {
			d.disclaim(c)
			if !t.hold(cost(m, 1)) {
				return rejected(picked[0].name, reasonMemory, nil)
			}
			continue
		}
		s := step{kind: stepPublish, producer: p.producer, message: m, targets: targets, claim: c}
		p.producer.pending.Add(1) // what it publishes outside of the transaction from now on comes behind
		d.add(s, Record{})
		return Result{Verdict: Accepted}
	}
	return rejected(n.address, reasonDeleted, nil)
}

// add adds a message that becomes visible, and for each of its targets that keeps it over a restart a record like r.
func (d *discharge) add(s step, r Record) {
	s.from = len(d.records)
	for _, q := range s.targets {
		if q.holds(s.message) {
			r.Kind, r.Queue, r.Due, r.Message = RecordEnqueue, q.id, s.message.Due, s.message
			d.records = append(d.records, r)
			d.brings = true
		}
	}
	if s.claim != nil && len(d.records) > s.from {
		d.records = append(d.records, Record{Kind: RecordRemember, Remembered: &s.claim.Remembered})
	}
	s.to = len(d.records)
	d.parts = append(d.parts, s)
}

// decide carries out the outcomes of one queue's deliveries as far as they can be taken back.
func (d *discharge) decide(s *share) {
	t, q := d.transaction, s.queue
	done := decided{queue: q}
	var few [1]queue.Effect
	q.guard.enter()
	defer q.guard.leave()
	for _, r := range s.work {
		v := &t.verdicts[r.verdict]
		if v.outcome.Kind == 0 {
			done.unspoken = append(done.unspoken, r)
			continue
		}
		decision, fx, ok := q.core.Decide(v.consumer.core, r.Settlement, &v.outcome, q.broker().now(), few[:0])
		if !ok {
			continue
		}
		done.decisions = append(done.decisions, decision)
		if len(fx) == 0 {
			done.back = append(done.back, r.Settlement)
			continue
		}
		switch f := &fx[0]; f.Kind {
		case queue.EffectRetired:
			if q.holds(f.Message) {
				d.records = append(d.records, q.removed(f.Entry))
			}
		case queue.EffectCounted:
			done.back = append(done.back, r.Settlement)
			if q.holds(f.Message) {
				d.records = append(d.records, q.counted(f.Entry))
			}
		case queue.EffectDead:
			done.dead = append(done.dead, departure{
				entry: f.Entry, message: f.Message, cause: f.Cause, reason: deathReason(f.Cause, &v.outcome, f.Entry.Count()-f.Entry.Base()),
			})
		}
	}
	d.decided = append(d.decided, done)
}

// bury finds where dead deliveries go. The record of the new entry doesn't name the old one, as that of a move does: the
// queue may be deleted before the records enter the window.
func (d *discharge) bury(done *decided) {
	q := done.queue
	for _, dead := range done.dead {
		moved, targets, why := q.bound(dead)
		if q.holds(dead.message) {
			d.records = append(d.records, q.removed(dead.entry))
		}
		s := step{kind: stepMove, message: moved, source: q, entry: dead.entry, targets: targets}
		if len(targets) == 0 {
			s.kind, s.reason = stepDrop, why
		} else {
			s.count, s.annotations = dead.entry.Count(), q.obituary(dead)
		}
		d.add(s, Record{Count: s.count, Base: s.count, Annotations: s.annotations})
	}
}

// size computes what the records take in the store, roughly.
func (d *discharge) size() int64 {
	d.bytes = 0
	for i := range d.records {
		d.bytes += recordBytes + int64(queue.AnnotationBytes(d.records[i].Annotations))
	}
	for i := range d.parts {
		if m := d.parts[i].message; m != nil {
			d.bytes += int64(min(m.Size(), maxInline))
		}
	}
	return d.bytes
}

// refuse takes all back that Commit has done, and rolls back.
func (d *discharge) refuse(why string) Result {
	for i := range d.parts {
		s := &d.parts[i]
		for _, q := range s.targets {
			q.forgo(s.message)
		}
		if s.kind == stepPublish {
			s.producer.pending.Add(-1)
		}
	}
	for i := range d.decided {
		done := &d.decided[i]
		done.queue.guard.enter()
		for j := range done.decisions {
			done.queue.core.Undecide(&done.decisions[j])
		}
		done.queue.guard.leave()
	}
	d.transaction.undo()
	return Result{Verdict: Rejected, Condition: ConditionRollback, Description: "transaction was rolled back: " + why}
}

// enterDischarge puts a discharge into the window, all at once. Its messages get their numbers. It never waits.
func (c *committer) enterDischarge(d *discharge) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if c.err != nil && len(d.records) > 0 {
		return c.err
	}
	for i := range d.parts {
		s := &d.parts[i]
		if s.message == nil {
			continue
		}
		s.number = c.numbers.Add(1)
		for j := s.from; j < s.to; j++ {
			d.records[j].Number = s.number
		}
	}
	w := c.window
	from := len(w.records)
	w.records = append(w.records, d.records...)
	w.steps = append(w.steps, step{kind: stepDischarge, discharge: d, from: from, to: len(w.records)})
	w.bytes += d.bytes
	c.wake.Signal()
	return nil
}

// carryOut makes visible what a discharge has brought, once its commit holds.
func (d *discharge) carryOut() {
	if t := d.transaction; t != nil {
		t.letGo()
	}
	for i := range d.parts {
		s := &d.parts[i]
		switch s.kind {
		case stepPublish:
			for _, q := range s.targets {
				q.arrive(queue.Arrival{Message: s.message, Number: s.number})
			}
			if s.claim != nil {
				d.transaction.broker.duplicates.held(s.claim)
			}
			s.producer.pending.Add(-1)
		case stepMove:
			s.move()
		case stepDrop:
			s.drop()
		}
	}
	for i := range d.decided {
		d.apply(&d.decided[i])
	}
	d.confirmer.Confirmed(d.ticket, Result{Verdict: Accepted})
}

// drop carries out that an entry has nowhere to go.
func (s *step) drop() {
	number := s.entry.Number()
	s.source.guard.enter()
	after := s.source.finish(s.entry)
	s.source.guard.leave()
	s.source.after(&after, nil)
	s.source.dropped(number, s.reason)
}

// apply has deliveries of one queue leave it or go back to their places.
func (d *discharge) apply(done *decided) {
	q := done.queue
	var fx []queue.Effect
	q.guard.enter()
	for i := range done.decisions {
		fx = q.core.Finish(done.decisions[i].Handle, fx) // a dead one has gone by now
	}
	var back []queue.Conclusion
	for _, r := range done.unspoken {
		c := d.transaction.verdicts[r.verdict].consumer.core
		if q.deleted {
			fx = q.core.Discard(r.Settlement, fx)
		} else if !q.core.Reinstate(c, r.Settlement, false) {
			back = append(back, queue.Conclusion{Settlement: r.Settlement, Consumer: c, Outcome: &unspoken})
		}
	}
	now := q.broker().now()
	if q.deleted {
		for _, s := range done.back {
			fx = q.core.Discard(s, fx)
		}
	} else {
		if len(back) > 0 {
			fx = q.core.Conclude(back, now, fx)
		}
		fx = q.core.Apply(done.back, now, fx)
	}
	after := q.carryOut(fx, nil)
	q.guard.leave()
	q.after(&after, nil)
}

// unspoken is what becomes of a delivery whose consumer has gone without an outcome: it goes back, uncounted.
var unspoken = Outcome{Kind: Released}

// giveUp ends a discharge whose commit failed, or that a full store refused. After a failure it isn't known whether it
// holds, and all stays as it is: the broker takes nothing durable any more.
func (d *discharge) giveUp(err error) {
	switch {
	case d.transaction == nil:
		d.confirmer.Confirmed(d.ticket, Result{Verdict: Accepted}) // it is rolled back whatever is stored of that
	case err != nil:
		d.free(rejected("", reasonStore, nil))
		d.confirmer.Confirmed(d.ticket, rejected("", reasonStore, nil))
	default:
		d.free(rejected("", reasonStoreFull, nil))
		d.confirmer.Confirmed(d.ticket, d.refuse("the store has no space"))
	}
}
