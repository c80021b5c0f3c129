package engine

import (
	"fmt"

	"github.com/letomq/leto/engine/queue"
)

// ConsumerSpec says what a consumer takes from.
type ConsumerSpec struct {
	// Address is address, queue://address, topic://address or address::queue. It may be empty for a durable
	// subscription, which is then one that exists already.
	Address      string
	Routing      Routing  // from the terminus's capabilities; must not contradict a prefix
	Dynamic      bool     // make a new node and take from it
	Lifetime     Lifetime // of the dynamic node
	Browse       bool     // look only: distribution-mode copy. For a subscription it says nothing
	Settled      bool     // deliveries are settled when they are sent: retired at dispatch
	Subscription Subscription
	By           Principal
}

// Closing says how a consumer went away.
type Closing uint8

const (
	ClosingClean Closing = iota // detached or ended: what it had goes back to its place, uncounted
	ClosingLost                 // its connection was lost: what it had goes back, one attempt counted (count-on-loss)
)

// Consumer takes from one queue. Its methods may be called from any goroutine; one at a time for SetLimit and Drain.
type Consumer struct {
	queue   *boundQueue
	core    *queue.Consumer
	sink    Sink
	browse  bool
	creator bool // of the dynamic node
	closed  bool // under the queue's guard
}

// Consumer attaches a consumer. It has no credit until SetLimit. A new durable subscription holds when Consumer returns.
func (b *Broker) Consumer(spec ConsumerSpec, sink Sink) (*Consumer, error) {
	c := &Consumer{sink: sink}
	known := true
	if spec.Subscription.Durable {
		b.subscriptions.attaching.Lock()
		known = b.subscriptions.find(spec.By.Container, spec.Subscription.Name) != nil
	}
	evicted, err := b.attach(c, spec)
	if evicted.queue != nil {
		evicted.queue.after(&evicted.aftermath, nil)
	}
	if spec.Subscription.Durable {
		b.subscriptions.attaching.Unlock()
	}
	if err != nil {
		return nil, err
	}
	if b.closed.Load() {
		c.Close(ClosingClean)
		return nil, ErrClosed
	}
	if s := c.queue.subscription; !known && s != nil && s.durable {
		if err := b.committer.sync(); err != nil {
			c.Close(ClosingClean)
			return nil, fmt.Errorf("subscription %s: %w", c.queue.name, err)
		}
	}
	return c, nil
}

// eviction is what is left to do for a queue whose consumer had to go.
type eviction struct {
	queue *boundQueue
	aftermath
}

// attach finds where c takes from, and attaches it.
func (b *Broker) attach(c *Consumer, spec ConsumerSpec) (evicted eviction, err error) {
	if spec.Dynamic {
		a, err := b.makeTemporary(spec.Routing, spec.Lifetime, spec.By)
		if err != nil {
			return evicted, err
		}
		defer a.mu.Unlock()
		c.creator = true
		if evicted, err = a.attach(c, name{address: a.name, routing: a.routing}, spec); err != nil {
			a.deleteAll(err)
		}
		return evicted, err
	}
	if spec.Address == "" && spec.Subscription.Durable {
		q := b.subscriptions.find(spec.By.Container, spec.Subscription.Name)
		if q == nil {
			return evicted, fmt.Errorf("subscription %s of %s: %w", spec.Subscription.Name, spec.By.Container, ErrNotFound)
		}
		spec.Address = q.address.name
	}
	n, err := parseName(spec.Address, spec.Routing)
	if err != nil {
		return evicted, err
	}
	for {
		a, err := b.ensure(n, b.settings.Load().find(n.address).DefaultQueueRouting, false)
		if err != nil {
			return evicted, err
		}
		if spec.Subscription.Durable && a.routing == Multicast && n.queue == "" {
			if err := b.subscriptions.leave(a, spec); err != nil {
				return evicted, err
			}
		}
		if a.enter() != nil {
			continue // deleted meanwhile
		}
		defer a.mu.Unlock()
		return a.attach(c, n, spec)
	}
}

// attach attaches a consumer to the queue that the name and the specification mean. Under mu.
func (a *address) attach(c *Consumer, n name, spec ConsumerSpec) (evicted eviction, err error) {
	if t := a.temporary; t != nil && t.owner != spec.By.Connection {
		return evicted, fmt.Errorf("address %s: it is another connection's temporary one: %w", a.name, ErrNotAllowed)
	}
	c.browse = spec.Browse
	var q *boundQueue
	switch {
	case n.queue != "":
		q, err = a.ensureQueue(n.queue, false)
	case a.routing == Anycast:
		q, err = a.ensureOwnQueue(false)
	default:
		c.browse = false
		q, evicted, err = a.subscribe(spec)
	}
	if err != nil {
		return evicted, err
	}
	mode := queue.Take
	switch {
	case c.browse:
		mode = queue.Browse
	case spec.Settled:
		mode = queue.TakeSettled
	}
	c.queue = q
	q.guard.enter()
	c.core = q.core.Attach(mode, c)
	q.guard.leave()
	if a.temporary != nil {
		a.temporary.links++
	}
	return evicted, nil
}

// Address returns the address without prefix; generated for a dynamic node.
func (c *Consumer) Address() string { return c.queue.address.name }

// Queue returns the name of the queue it takes from.
func (c *Consumer) Queue() string { return c.queue.name }

// Routing returns how the address routes.
func (c *Consumer) Routing() Routing { return c.queue.address.routing }

// Browsing reports whether it looks only; see ConsumerSpec.Browse.
func (c *Consumer) Browsing() bool { return c.browse }

// SetLimit sets how many deliveries it may have been given since it attached, all told. Lower withdraws credit.
func (c *Consumer) SetLimit(limit uint64) {
	var few [8]queue.Effect
	q := c.queue
	q.guard.enter()
	if c.closed {
		q.guard.leave()
		return
	}
	after := q.carryOut(q.core.SetLimit(c.core, limit, q.clock(), few[:0]), nil)
	q.guard.leave()
	q.after(&after, nil)
}

// Drain gives what there is up to limit and then calls Sink.Drained, once. The consumer then has no credit until the
// next SetLimit. Drained has been called when Drain returns, unless something must be loaded from the store first. The
// next SetLimit has Drained be called at the latest, with credit left.
func (c *Consumer) Drain(limit uint64) {
	var few [8]queue.Effect
	q := c.queue
	q.guard.enter()
	if c.closed {
		q.guard.leave()
		return
	}
	after := q.carryOut(q.core.Drain(c.core, limit, q.clock(), few[:0]), nil)
	q.guard.leave()
	q.after(&after, nil)
}

// Settle settles deliveries. True: it holds now. False: Sink.Settled follows with this ticket, or Unsettled,
// unless the broker closes first. Deliveries that are not this consumer's any more are passed over: all of them when
// it is Gone. The batch is not kept; o.Annotations are.
func (c *Consumer) Settle(batch []Settlement, o Outcome, ticket uint64) bool {
	if c.browse {
		return true
	}
	var few [8]queue.Effect
	q := c.queue
	q.guard.enter()
	if c.closed {
		q.guard.leave()
		return true
	}
	var now int64
	if o.Kind == Accepted {
		now = q.clock()
	} else {
		now = q.broker().now() // it may have to wait
	}
	after := q.carryOut(q.core.Settle(c.core, batch, &o, now, few[:0]), &o)
	q.guard.leave()
	if !after.entered && len(after.departures) == 0 && !after.empty {
		return true
	}
	return !q.after(&after, &step{kind: stepSettled, sink: c.sink, ticket: ticket})
}

// Gone reports whether the consumer has been closed or has ended: what it had went back.
func (c *Consumer) Gone() bool {
	c.queue.guard.enter()
	defer c.queue.guard.leave()
	return c.closed
}

// Available returns how many messages wait in the queue.
func (c *Consumer) Available() uint32 {
	q := c.queue
	q.guard.enter()
	defer q.guard.leave()
	return uint32(min(q.core.Waiting(), 1<<32-1))
}

// Close ends the consumer without closing its terminus: a durable subscription stays. A subscription that is not
// durable goes, a dynamic node as its lifetime says.
func (c *Consumer) Close(how Closing) { c.close(how, false) }

// CloseLink is Close(ClosingClean); with closed it also deletes the durable subscription [2.6.6], which is gone for good
// when it returns.
func (c *Consumer) CloseLink(closed bool) { c.close(ClosingClean, closed) }

func (c *Consumer) close(how Closing, closing bool) {
	q := c.queue
	q.guard.enter()
	if c.closed {
		q.guard.leave()
		return
	}
	c.closed = true
	after := q.carryOut(q.core.Detach(c.core, how == ClosingLost, q.broker().now(), nil), nil)
	q.guard.leave()
	q.after(&after, nil)
	c.left(closing)
	if s := q.subscription; closing && s != nil && s.durable {
		_ = q.broker().committer.sync() // of a store that fails everybody hears
	}
}

// left does what follows for queue and address from a consumer's having gone.
func (c *Consumer) left(closing bool) {
	q, a := c.queue, c.queue.address
	if t := a.temporary; t != nil {
		a.mu.Lock()
		t.links--
		t.orphan = t.orphan || c.creator
		a.mu.Unlock()
	}
	if s := q.subscription; s != nil && (closing || !s.durable) {
		a.mu.Lock()
		if !a.gone.Load() {
			a.delete(q, ErrDeleted, false)
		}
		a.mu.Unlock()
	}
	q.guard.enter()
	reapable := q.reapable || q.subscription != nil
	q.guard.leave()
	if reapable {
		a.reap(q)
	}
}

// end tells a consumer that it is gone, under the guard.
func (c *Consumer) end(why error) {
	c.closed = true
	c.sink.Ended(why)
}
