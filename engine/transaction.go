package engine

import (
	"fmt"

	"github.com/letomq/leto/engine/queue"
)

// Transaction is work that holds as a whole or not at all: messages posted and deliveries retired [4.4]. Nothing of it
// is seen before Commit. It is used by one goroutine at a time, and ends with Commit or Rollback, of which one is called
// once.
type Transaction struct {
	broker   *Broker
	posts    []post
	work     []retirement
	verdicts []verdict            // of work; neighbours share one
	index    map[*queue.Entry]int // in work, of deliveries that may be spoken of once more

	bytes  int64  // what the discharge has to bring into the store, as far as is known
	held   int64  // taken from the memory budget: for work, and for posts that aren't on their way yet
	doomed string // why it can't commit; empty: it can
}

// post is a message that is published by the commit.
type post struct {
	producer *Producer
	message  *Message
	id       DuplicateID // zero: none
}

// retirement is a delivery with an outcome that the commit carries out.
type retirement struct {
	queue.Settlement
	verdict int
}

// verdict is what deliveries of one consumer have in common.
type verdict struct {
	consumer *Consumer
	outcome  Outcome // no kind: acquired under the transaction, and the consumer has said nothing of it yet
	fallback Outcome // of one that is settled, after a rollback
	settled  bool    // the consumer can't speak of it again
	acquired bool    // acquired under the transaction
}

const (
	// maxWork is how many messages and deliveries one transaction may have: as many as a session may leave unsettled.
	maxWork = 65_536
	// maxDischarge is how many bytes a discharge may bring into the store: it is written at once, and a segment of the
	// journal has 64 MiB.
	maxDischarge = 32 << 20
	// maxInline is how much of a message counts towards that: longer ones are written ahead, in parts.
	maxInline = 256 << 10
	// recordBytes is what a record takes in the store beside payload and annotations, or more.
	recordBytes = 64
	// retirementCost is what a retirement takes in memory.
	retirementCost = 96
)

// Begin begins a transaction.
func (b *Broker) Begin() *Transaction { return &Transaction{broker: b} }

// Doom has Commit fail, for a reason in words. The first one counts.
func (t *Transaction) Doom(why string) {
	if t.doomed == "" {
		t.doomed = why
	}
}

// Post takes a message over that the commit is to publish. The result is what becomes of it if the transaction commits.
// One that isn't accepted dooms the transaction.
func (t *Transaction) Post(p *Producer, m *Message) Result { return t.PostOnce(p, m, DuplicateID{}) }

// PostOnce is Post of a message with an id, as Producer.PublishOnce: the commit takes the id, and doesn't publish a message
// whose id is taken by then.
func (t *Transaction) PostOnce(p *Producer, m *Message, id DuplicateID) Result {
	r := t.post(p, m, id)
	if r.Verdict != Accepted {
		t.Doom(fmt.Sprintf("a message to %s was refused: %s", r.Queue, r.Description))
	}
	return r
}

func (t *Transaction) post(p *Producer, m *Message, id DuplicateID) Result {
	if t.broker.closed.Load() {
		return Result{Verdict: Released, Description: ErrClosed.Error()}
	}
	n, a, err := p.resolve(m)
	if err == nil && !a.reaches(n.queue) && (a.routing != Multicast || n.queue != "" || a.gone.Load()) {
		err = p.renew(&a, n)
	}
	if err != nil {
		return p.refuse(n.address, err)
	}
	if !t.grow(1, recordBytes+int64(min(m.Size(), maxInline))) {
		return rejected(n.address, reasonTransaction, nil)
	}
	if !t.hold(cost(m, 1)) {
		return rejected(n.address, reasonMemory, nil)
	}
	t.posts = append(t.posts, post{p, m, id})
	return Result{Verdict: Accepted}
}

// grow notes what n more messages or deliveries bring into the store; false when that is too much.
func (t *Transaction) grow(n int, bytes int64) bool {
	if len(t.posts)+len(t.work)+n > maxWork || t.bytes+bytes > maxDischarge {
		return false
	}
	t.bytes += bytes
	return true
}

// hold takes bytes from the memory budget: all transactions together may have a quarter of it, for nothing of it can be
// written to make room.
func (t *Transaction) hold(bytes int64) bool {
	m := t.broker.memory
	if staged := t.broker.staged.Add(bytes); m.hard > 0 && staged > m.hard/4 || !m.take(bytes) {
		t.broker.staged.Add(-bytes)
		return false
	}
	t.held += bytes
	return true
}

// yield gives bytes of those that are held into other hands.
func (t *Transaction) yield(bytes int64) {
	t.held -= bytes
	t.broker.staged.Add(-bytes)
}

// letGo gives back what is held of the memory budget.
func (t *Transaction) letGo() {
	t.broker.memory.free(t.held)
	t.yield(t.held)
}

// Acquire takes a delivery into the transaction that was acquired under it: after a rollback it is back in its queue,
// with one more failed attempt. False: the transaction is too large.
func (t *Transaction) Acquire(c *Consumer, s Settlement) bool {
	return t.retire(c, []Settlement{s}, verdict{consumer: c, acquired: true})
}

// Retire adds an outcome of deliveries. After a rollback those that are settled get the fallback; of others the consumer
// may speak again, and they count as failed when they come back. An outcome may replace an earlier one, unless that was
// settled; none at all leaves it, and for one that has none stands for the fallback. Deliveries that are not the
// consumer's any more are passed over. False: the transaction is too large, and has taken nothing.
func (t *Transaction) Retire(c *Consumer, batch []Settlement, o Outcome, settled bool, fallback Outcome) bool {
	if c.browse {
		return true
	}
	fresh := batch[:0:0]
	for _, s := range batch {
		i, known := t.index[s.Handle]
		if !known || t.work[i].Acquisition != s.Acquisition {
			fresh = append(fresh, s)
			continue
		}
		v := t.verdicts[t.work[i].verdict]
		v.settled, v.fallback = settled, fallback
		switch {
		case o.Kind != 0:
			v.outcome = o
		case v.outcome.Kind == 0:
			v.outcome = fallback
		}
		t.work[i].verdict = t.verdict(v)
		if settled {
			delete(t.index, s.Handle)
		}
	}
	if o.Kind == 0 {
		o = fallback
	}
	return t.retire(c, fresh, verdict{consumer: c, outcome: o, fallback: fallback, settled: settled})
}

// retire enlists deliveries.
func (t *Transaction) retire(c *Consumer, batch []Settlement, v verdict) bool {
	if len(batch) == 0 {
		return true
	}
	n := len(batch)
	each := recordBytes + queue.AnnotationBytes(v.outcome.Annotations)
	if !t.grow(n, int64(n*each)) || !t.hold(int64(n)*retirementCost) {
		return false
	}
	at := t.verdict(v)
	q := c.queue
	q.guard.enter()
	defer q.guard.leave()
	for _, s := range batch {
		if !q.core.Enlist(c.core, s) {
			continue
		}
		if !v.settled {
			if t.index == nil {
				t.index = map[*queue.Entry]int{}
			}
			t.index[s.Handle] = len(t.work)
		}
		t.work = append(t.work, retirement{s, at})
	}
	return true
}

// verdict returns the place of v among the transaction's verdicts.
func (t *Transaction) verdict(v verdict) int {
	last := len(t.verdicts) - 1
	if last < 0 || !v.like(&t.verdicts[last]) {
		t.verdicts = append(t.verdicts, v)
		last++
	}
	return last
}

func (v *verdict) like(o *verdict) bool {
	same := func(a, b *Outcome) bool {
		return a.Kind == b.Kind && a.Failed == b.Failed && a.UndeliverableHere == b.UndeliverableHere &&
			len(a.Annotations)+len(b.Annotations) == 0 && a.HasDelay == b.HasDelay && a.Delay == b.Delay && a.DueAt == b.DueAt &&
			a.Condition == b.Condition && a.Description == b.Description
	}
	return v.consumer == o.consumer && v.settled == o.settled && v.acquired == o.acquired &&
		same(&v.outcome, &o.outcome) && same(&v.fallback, &o.fallback)
}

// share is the part of a transaction that one queue has.
type share struct {
	queue *boundQueue
	work  []retirement
}

// shares returns the work by queue, in order.
func (t *Transaction) shares() []share {
	var all []share
	at := map[*boundQueue]int{}
	for _, r := range t.work {
		q := t.verdicts[r.verdict].consumer.queue
		i, known := at[q]
		if !known {
			i = len(all)
			at[q] = i
			all = append(all, share{queue: q})
		}
		all[i].work = append(all[i].work, r)
	}
	return all
}

// Rollback undoes the transaction. True: that holds now. False: Confirmed follows with this ticket, when what is counted
// for it is stored.
func (t *Transaction) Rollback(confirm Confirmer, ticket uint64) bool {
	entered := t.undo()
	if !entered || confirm == nil {
		return true
	}
	d := &discharge{confirmer: confirm, ticket: ticket}
	return t.broker.committer.enterDischarge(d) != nil
}

// undo rolls back, and reports whether something has entered the commit window.
func (t *Transaction) undo() (entered bool) {
	t.posts = nil
	t.letGo()
	for _, s := range t.shares() {
		q := s.queue
		q.guard.enter()
		after := q.carryOut(t.revert(&s), nil)
		q.guard.leave()
		entered = entered || after.entered || len(after.departures) > 0
		q.after(&after, nil)
	}
	t.work, t.verdicts, t.index = nil, nil, nil
	return entered
}

// failedAttempt is what a rollback makes of deliveries that nobody else can speak of.
var failedAttempt = Outcome{Kind: Modified, Failed: true}

// revert ends the part of a queue's deliveries in a transaction that is rolled back, under the guard.
func (t *Transaction) revert(s *share) (fx []queue.Effect) {
	core := &s.queue.core
	back := make([]queue.Conclusion, 0, len(s.work))
	for _, r := range s.work {
		v := &t.verdicts[r.verdict]
		switch {
		case s.queue.deleted:
			fx = core.Discard(r.Settlement, fx)
		case !v.acquired && v.settled:
			back = append(back, queue.Conclusion{Settlement: r.Settlement, Consumer: v.consumer.core, Outcome: &v.fallback})
		case v.acquired || !core.Reinstate(v.consumer.core, r.Settlement, true):
			back = append(back, queue.Conclusion{Settlement: r.Settlement, Consumer: v.consumer.core, Outcome: &failedAttempt})
		}
	}
	if len(back) == 0 {
		return fx
	}
	return core.Conclude(back, s.queue.broker().now(), fx)
}
