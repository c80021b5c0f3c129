package engine

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// address is a name that messages are sent to, with the queues behind it.
type address struct {
	broker    *Broker
	name      string
	rules     atomic.Pointer[Settings]      // in force; see settings
	routes    atomic.Pointer[[]*boundQueue] // what is behind it; replaced, never changed, under mu
	turn      atomic.Uint32                 // anycast: whose turn it is among several queues
	unrouted  atomic.Uint64
	ids       *addressIDs // in memory; the mu of duplicates guards it, and:
	remembers bool        // the store may have ids of it
	routing   Routing     // never changes

	// mu is held to attach and detach, and to make and delete queues: never for a message. It is taken before the
	// guards of the address's queues, and never inside one.
	mu        sync.Mutex
	gone      atomic.Bool // changed under mu
	auto      bool        // made on first use
	producers int
	id        QueueID    // of the record that keeps it without a queue; 0: there is none
	temporary *temporary // what a dynamic address is beside; nil for others
}

// settings returns the settings in force. Nobody may change them; others may replace them.
func (a *address) settings() *Settings { return a.rules.Load() }

// Routing returns how the address routes.
func (a *address) Routing() Routing { return a.routing }

// queues returns the queues behind the address. The slice must not be changed.
func (a *address) queues() []*boundQueue {
	if r := a.routes.Load(); r != nil {
		return *r
	}
	return nil
}

// find returns the queue of that name, or nil.
func (a *address) find(name string) *boundQueue {
	for _, q := range a.queues() {
		if q.name == name {
			return q
		}
	}
	return nil
}

// pick returns where a message goes: to the named queue if one is named, for anycast to one in turn, else to all.
// The slice must not be changed.
func (a *address) pick(named string) []*boundQueue {
	all := a.queues()
	switch {
	case named != "":
		for i, q := range all {
			if q.name == named {
				return all[i : i+1 : i+1]
			}
		}
		return nil
	case a.routing == Multicast || len(all) < 2:
		return all
	}
	i := int(a.turn.Add(1) % uint32(len(all)))
	return all[i : i+1 : i+1]
}

// reaches reports whether a message has a queue to go to, without taking anybody's turn.
func (a *address) reaches(named string) bool {
	all := a.queues()
	if named == "" {
		return len(all) > 0
	}
	return slices.ContainsFunc(all, func(q *boundQueue) bool { return q.name == named })
}

// ensure returns an address, made on first use. Forced, it is made whatever auto-create says. fallback is the routing
// of a new one when the name doesn't say.
func (b *Broker) ensure(n name, fallback Routing, force bool) (*address, error) {
	a := b.names.get(n.address)
	if a == nil {
		settings := b.settings.Load().find(n.address)
		if reserved(n.address) || !force && !settings.AutoCreateAddresses {
			return nil, fmt.Errorf("address %s: %w", n.address, ErrNotFound)
		}
		routing := n.routing
		if routing == RoutingUnset {
			routing = fallback
		}
		if routing == RoutingUnset {
			routing = settings.DefaultAddressRouting
		}
		made := &address{broker: b, name: n.address, routing: routing, auto: true}
		var err error
		if a, err = b.add(made); err != nil {
			return nil, err
		}
	}
	if n.routing != RoutingUnset && n.routing != a.routing {
		return nil, fmt.Errorf("address %s: it is %s, not %s: %w", n.address, a.routing, n.routing, ErrNotAllowed)
	}
	return a, nil
}

// add puts a new address into the table, unless there is one of its name, and returns the one that is there.
func (b *Broker) add(made *address) (*address, error) {
	return b.names.getOrMake(made.name, func() (*address, error) {
		if count := b.totals.addresses.Add(1); b.limits.Queues > 0 && count > int64(b.limits.Queues) {
			b.totals.addresses.Add(-1)
			return nil, fmt.Errorf("address %s: %d addresses: %w", made.name, count-1, ErrLimit)
		}
		made.rules.Store(b.settings.Load().find(made.name)) // here, so that Reload either finds it or has set what it gets
		return made, nil
	})
}

// enter takes mu of an address that still is; ErrDeleted, without it, when it isn't any more.
func (a *address) enter() error {
	a.mu.Lock()
	if a.gone.Load() {
		a.mu.Unlock()
		return fmt.Errorf("address %s: %w", a.name, ErrDeleted)
	}
	return nil
}

// ensureQueue returns a queue of the address, made on first use. Forced, whatever auto-create says. Under mu.
func (a *address) ensureQueue(queueName string, force bool) (*boundQueue, error) {
	if q := a.find(queueName); q != nil {
		return q, nil
	}
	if !force && !a.settings().AutoCreateQueues {
		return nil, fmt.Errorf("queue %s::%s: %w", a.name, queueName, ErrNotFound)
	}
	return a.make(&boundQueue{name: queueName, auto: true, temporary: a.temporary != nil})
}

// ensureOwnQueue returns the queue of an anycast address that plain use of it means: the one of its name, or else the
// first, or else a new one of its name. Under mu.
func (a *address) ensureOwnQueue(force bool) (*boundQueue, error) {
	if q := a.find(a.name); q != nil {
		return q, nil
	}
	if all := a.queues(); len(all) > 0 {
		return all[0], nil
	}
	return a.ensureQueue(a.name, force)
}

// make adds a new queue. Under mu.
func (a *address) make(q *boundQueue) (*boundQueue, error) {
	b := a.broker
	if count := b.totals.queues.Add(1); b.limits.Queues > 0 && count > int64(b.limits.Queues) {
		b.totals.queues.Add(-1)
		return nil, fmt.Errorf("queue %s::%s: %d queues: %w", a.name, q.name, count-1, ErrLimit)
	}
	q.address = a
	if !q.temporary {
		q.id = QueueID(b.lastQueue.Add(1))
		d := q.definition()
		if err := b.committer.enter([]Record{{Kind: RecordDefine, Queue: q.id, Definition: &d}}, nil); err != nil {
			b.totals.queues.Add(-1)
			return nil, fmt.Errorf("queue %s::%s: %w", a.name, q.name, err)
		}
	}
	a.place(q)
	if b.observer.QueueCreated != nil {
		b.observer.QueueCreated(a.name, q.name)
	}
	return q, nil
}

// place puts a queue behind the address. Under mu.
func (a *address) place(q *boundQueue) {
	q.govern(a.settings())
	budgets := a.broker.transient
	if q.id != 0 {
		budgets = a.broker.budgets
		a.broker.sweeper.add(q.id, q)
	}
	q.core.SetBudgets(budgets)
	routes := append(slices.Clip(a.queues()), q)
	a.routes.Store(&routes)
}

// govern has a queue go by settings. It has no guard yet, or the caller holds it.
func (q *boundQueue) govern(s *Settings) {
	a := q.address
	q.reapable = a.temporary != nil || q.auto && s.AutoDeleteQueues && q.subscription == nil
	q.core.SetPolicy(a.broker.settings.Load().policies.of(s, a.maxAttempts(s)))
}

// maxAttempts returns how many attempts a message has at the address. On the dead-letter address itself there is no
// limit: there is no better place for it to go, and it must not go in circles or be lost.
func (a *address) maxAttempts(s *Settings) int32 {
	if dead, err := parseName(s.DeadLetterAddress, RoutingUnset); err == nil && dead.address == a.name {
		return 0
	}
	return int32(min(max(s.MaxDeliveryAttempts, 0), 1<<30))
}

// delete deletes a queue with all that is in it, unless idle is asked for and it isn't: no consumer, no message, none
// on its way. Its consumers end with why. Under mu.
func (a *address) delete(q *boundQueue, why error, idle bool) bool {
	b := a.broker
	q.guard.enter()
	if q.deleted || idle && (q.core.Consumers() > 0 || !q.core.Empty() || q.inflight > 0) {
		q.guard.leave()
		return false
	}
	q.deleted = true
	consumers, fx := q.core.Clear(nil)
	q.carryOut(fx, nil)
	b.totals.retire(q.core.Stats().Counters)
	if q.id != 0 {
		b.committer.enter([]Record{{Kind: RecordDelete, Queue: q.id}}, nil)
		b.sweeper.remove(q.id)
	}
	b.spiller.drop(q)
	for _, c := range consumers {
		c.Tag.(*Consumer).end(why)
	}
	q.armed = 0
	b.keeper.arm(q, 0)
	q.guard.leave()

	routes := slices.DeleteFunc(slices.Clone(a.queues()), func(o *boundQueue) bool { return o == q })
	a.routes.Store(&routes)
	if q.subscription != nil {
		b.subscriptions.remove(q)
	}
	b.totals.queues.Add(-1)
	if b.observer.QueueDeleted != nil {
		b.observer.QueueDeleted(a.name, q.name)
	}
	return true
}

// deleteAll deletes the address with all its queues. Under mu.
func (a *address) deleteAll(why error) {
	for _, q := range a.queues() {
		a.delete(q, why, false)
	}
	if a.id != 0 {
		a.broker.committer.enter([]Record{{Kind: RecordDelete, Queue: a.id}}, nil)
	}
	a.gone.Store(true)
	a.broker.duplicates.forget(a)
	a.broker.names.remove(a)
	a.broker.totals.addresses.Add(-1)
	if a.temporary != nil {
		a.broker.temporaries.remove(a)
	}
}

// reap deletes what has become needless by a consumer's leaving q or by q's running empty.
func (a *address) reap(q *boundQueue) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone.Load() {
		return
	}
	if a.temporary != nil {
		if a.temporary.over(a) {
			a.deleteAll(ErrDeleted)
		}
		return
	}
	if q != nil && q.reapable {
		a.delete(q, ErrDeleted, true)
	}
	if a.auto && a.settings().AutoDeleteQueues && len(a.queues()) == 0 && a.producers == 0 {
		a.deleteAll(ErrDeleted)
	}
}
