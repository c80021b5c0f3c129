package engine

import (
	"context"
	"fmt"

	"github.com/letomq/leto/engine/queue"
)

// What an administrator does to messages that wait goes through a queue with a scan. A batch at a time leaves the queue
// and enters the commit window, and the next one follows when that holds: consumers and producers go on meanwhile, and
// memory holds a batch whatever the backlog. Each message is in one place at any moment, as when it dies.

// PurgeSome removes those of the messages that wait in a queue now that are selected, until ctx ends: after those that
// could be given at once, those that wait for their time.
func (b *Broker) PurgeSome(ctx context.Context, address, queueName string, sel Selection, report func(Progress)) (Progress, error) {
	if sel.all() && sel.Count == 0 {
		return b.PurgeAll(ctx, address, queueName, report)
	}
	later, err := b.rescheduling(address, queueName)
	if err != nil {
		return Progress{}, err
	}
	later.Progress, err = b.clear(ctx, address, queueName, sel, report, func(c *clearing, batch []Delivery) error {
		return c.purge(batch)
	})
	if err == nil {
		err = later.run(ctx, sel, report, later.cancel)
	}
	return later.Progress, err
}

// Move moves messages that wait in a queue now and are selected to an address, or to a queue of it, until ctx ends: not
// what waits for its time, which DeliverScheduled has come before. The
// address is one that there is, or may be made on first use. A message keeps what it has, with its failed attempts, which
// don't count towards the limit there. One that hasn't died yet is annotated with where it comes from, so that Retry
// brings it back.
func (b *Broker) Move(ctx context.Context, address, queueName, to string, sel Selection, report func(Progress)) (Progress, error) {
	n, err := parseName(to, RoutingUnset)
	if err != nil {
		return Progress{}, err
	}
	return b.clear(ctx, address, queueName, sel, report, func(c *clearing, batch []Delivery) error {
		a, err := b.destination(n)
		if err != nil {
			return err
		}
		return c.move(batch, a, n.queue, (*boundQueue).moved)
	})
}

// Retry sends messages that wait in a queue now and are selected back to the queues that they came from by dying,
// expiring or being moved, until ctx ends. They begin anew: without failed attempts, and without what had been written
// on them about their end. Those that don't say where they came from, or whose queue is gone and may not be made on
// first use, stay and are counted as skipped.
func (b *Broker) Retry(ctx context.Context, address, queueName string, sel Selection, report func(Progress)) (Progress, error) {
	return b.clear(ctx, address, queueName, sel, report, func(c *clearing, batch []Delivery) error {
		return c.retry(batch)
	})
}

// clearing is a command over the messages of a queue while it runs.
type clearing struct {
	Progress
	queue *boundQueue
	away  [2]bool // by queue.Home: some of this batch weren't in memory
	ends  []queue.Withdrawn
}

// clear goes through a queue, and has act see to what is selected. At most so many at once are done as are still to be.
func (b *Broker) clear(ctx context.Context, address, queueName string, sel Selection, report func(Progress),
	act func(*clearing, []Delivery) error,
) (Progress, error) {
	q, err := b.lookup(address, queueName)
	if err != nil {
		return Progress{}, err
	}
	s, err := q.scan(Place{})
	if err != nil {
		return Progress{}, err
	}
	defer s.close()
	c := &clearing{queue: q}
	for more := true; more && (sel.Count == 0 || c.Done < sel.Count); {
		if more, err = c.step(ctx, s, &sel, act); err != nil {
			return c.Progress, err
		}
		if report != nil {
			report(c.Progress)
		}
	}
	return c.Progress, nil
}

// step sees to the messages that the scan comes to next. Other commands and the sweepers, which have messages leave in the
// same way, wait from before it looks at them: what another one has taken away meanwhile can't be told, when its home has
// let go of it, from what is still there.
func (c *clearing) step(ctx context.Context, s *scan, sel *Selection, act func(*clearing, []Delivery) error) (more bool, err error) {
	b := c.queue.broker()
	b.sweeper.leaving.Lock()
	defer b.sweeper.leaving.Unlock()
	b.spiller.sweeper.leaving.Lock()
	defer b.spiller.sweeper.leaving.Unlock()
	batch, more, err := s.next(ctx, clearQuantum)
	if err != nil {
		return false, err
	}
	c.Looked += len(batch)
	selected := batch[:0]
	for i := range batch {
		if sel.matches(&batch[i]) {
			selected = append(selected, batch[i])
		}
	}
	for len(selected) > 0 && (sel.Count == 0 || c.Done < sel.Count) {
		n := len(selected)
		if sel.Count > 0 {
			n = min(n, sel.Count-c.Done)
		}
		if err := c.hold(func() error { return act(c, selected[:n]) }); err != nil {
			return false, err
		}
		selected = selected[n:]
	}
	return more, nil
}

// hold carries out one batch, and returns when what it changes holds and the store and the spill have let go of what has
// left.
func (c *clearing) hold(act func() error) error {
	b := c.queue.broker()
	b.committer.await()
	c.away = [2]bool{}
	err := act()
	if e := b.committer.sync(); e != nil {
		return e
	}
	if c.away[queue.InSpill] {
		if e := b.spiller.settled(); e != nil {
			return e
		}
	}
	c.queue.guard.enter()
	for h, away := range c.away {
		if away {
			c.queue.core.Released(queue.Home(h))
		}
	}
	c.queue.guard.leave()
	return err
}

// withdraw takes messages out of the queue that still wait there. They are leaving it then. With for good they are gone.
func (c *clearing) withdraw(batch []Delivery, forGood bool) ([]queue.Withdrawn, error) {
	q, b := c.queue, c.queue.broker()
	c.ends = c.ends[:0]
	var fx []queue.Effect
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		return nil, fmt.Errorf("queue %s::%s: %w", q.address.name, q.name, ErrDeleted)
	}
	for i := range batch {
		var w queue.Withdrawn
		var ok bool
		if w, ok, fx = q.core.Withdraw(batch[i].Handle, fx); !ok {
			continue
		}
		if w.Away {
			c.away[w.Home] = true
			b.memory.force(cost(w.Entry.Message(), 1))
			w.Entry.Message().Hold(1)
		}
		c.ends = append(c.ends, w)
	}
	if forGood {
		records := make([]Record, 0, len(c.ends))
		for _, w := range c.ends {
			if q.holds(w.Entry.Message()) {
				records = append(records, q.removed(w.Entry))
			}
			fx = q.core.Finish(w.Entry, fx)
		}
		if err := b.committer.enter(records, nil); err != nil {
			// They are gone from memory and not from the store, which has failed or closes: that says so.
			c.ends = c.ends[:0]
		}
	}
	after := q.carryOut(q.core.Resume(q.clock(), fx), nil)
	q.guard.leave()
	q.after(&after, nil)
	return c.ends, nil
}

func (c *clearing) purge(batch []Delivery) error {
	gone, err := c.withdraw(batch, true)
	c.Done += len(gone)
	return err
}

// past is what a message takes along when it is moved.
type past struct {
	count       uint32
	annotations []Annotation
}

// moved is the past of a message that is moved away from q.
func (q *boundQueue) moved(e *queue.Entry) past {
	all := e.Annotations()
	for _, a := range all {
		if a.Key == OrigQueue {
			return past{e.Count(), all}
		}
	}
	all = append(all[:len(all):len(all)],
		Annotation{Key: OrigAddress, Value: q.address.name},
		Annotation{Key: OrigQueue, Value: q.name},
		Annotation{Key: OrigMessageID, Value: int64(e.Number())})
	return past{e.Count(), all}
}

// anew is the past of a message that begins anew.
func (q *boundQueue) anew(e *queue.Entry) past {
	var kept []Annotation
	for _, a := range e.Annotations() {
		if !Obituary(a.Key) {
			kept = append(kept, a)
		}
	}
	return past{0, kept}
}

// move moves messages to an address, or to a queue of it: all that still wait, in their order.
func (c *clearing) move(batch []Delivery, a *address, named string, told func(*boundQueue, *queue.Entry) past) error {
	b, q := c.queue.broker(), c.queue
	if !b.sweeper.store.Room() {
		return ErrStoreFull // a message that moves takes space before it gives back as much
	}
	if err := a.enter(); err != nil { // nothing of it is deleted until all are on their way
		return err
	}
	leaving, err := c.targeted(a, named, batch)
	for i, w := range leaving {
		e := w.Entry
		m := e.Message().Fresh()
		m.Address = a.name
		targets := a.pick(named)
		b.memory.force(cost(m, len(targets)))
		targets = reserve(targets, m)
		p := told(q, e)
		if q.enterMove(departure{entry: e, message: e.Message()}, m, targets, p) {
			c.Done++
			continue
		}
		for _, t := range targets { // the broker is closing, or its store has failed: the rest stays where it is stored
			t.forgo(m)
		}
		err = fmt.Errorf("%d messages: %w", len(leaving)-i, ErrClosed)
		break
	}
	a.mu.Unlock()
	return err
}

// targeted withdraws messages if there is where they can go. Under the address's mu.
func (c *clearing) targeted(a *address, named string, batch []Delivery) ([]queue.Withdrawn, error) {
	targets := a.pick(named)
	if len(targets) == 0 {
		return nil, fmt.Errorf("address %s: it has no queue to move messages to: %w", a.name, ErrNotAllowed)
	}
	for _, t := range a.queues() {
		if t == c.queue && (named == "" || named == t.name) {
			return nil, fmt.Errorf("queue %s::%s: messages can't be moved to where they are: %w", a.name, t.name, ErrNotAllowed)
		}
	}
	return c.withdraw(batch, false)
}

// retry sends messages back to where they came from, those of one queue at a time.
func (c *clearing) retry(batch []Delivery) error {
	type origin struct{ address, queue string }
	var order []origin
	groups := map[origin][]Delivery{}
	for i := range batch {
		var from origin
		for _, a := range batch[i].Annotations {
			switch text, _ := a.Value.(string); a.Key {
			case OrigAddress:
				from.address = text
			case OrigQueue:
				from.queue = text
			}
		}
		if groups[from] == nil {
			order = append(order, from)
		}
		groups[from] = append(groups[from], batch[i])
	}
	for _, from := range order {
		a := c.queue.broker().origin(from.address, from.queue)
		if a == nil || a == c.queue.address && from.queue == c.queue.name {
			c.Skipped += len(groups[from])
			continue
		}
		if err := c.move(groups[from], a, from.queue, (*boundQueue).anew); err != nil {
			return err
		}
	}
	return nil
}

// origin returns the address of a queue that messages go back to. The queue is made again where it may be made on first
// use: at an anycast address, since to make a subscription takes a subscriber. Nil: there is none.
func (b *Broker) origin(addressName, queueName string) *address {
	if addressName == "" || queueName == "" {
		return nil
	}
	a := b.names.get(addressName)
	if a != nil && a.find(queueName) != nil {
		return a
	}
	if s := b.Settings(addressName); !s.AutoCreateQueues || a == nil && (!s.AutoCreateAddresses || s.DefaultAddressRouting != Anycast) {
		return nil
	}
	a, err := b.ensure(name{address: addressName}, RoutingUnset, false)
	if err != nil || a.routing != Anycast || a.temporary != nil || a.enter() != nil {
		return nil
	}
	defer a.mu.Unlock()
	if _, err := a.ensureQueue(queueName, false); err != nil {
		return nil
	}
	return a
}
