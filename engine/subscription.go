package engine

import (
	"fmt"
	"sync"

	"github.com/letomq/leto/engine/queue"
)

// Subscription is a subscriber's wish for a queue of its own on a multicast address.
type Subscription struct {
	Name    string // the link's name
	Durable bool   // keep the queue while the link is detached; known by By.Container and Name
	Steal   bool   // take it over from an active consumer; otherwise that is ErrLocked
}

// subscription is what the queue of a subscriber is beside a queue.
type subscription struct {
	container, link string // of a durable one: its identity
	durable         bool
}

// subscriptions finds the queues of durable subscriptions.
type subscriptions struct {
	// attaching is held while a durable subscription is looked for, moved or made: one at a time. It is taken before
	// any address's mu.
	attaching sync.Mutex

	mu     sync.Mutex
	queues map[subscription]*boundQueue
}

func (s *subscriptions) find(container, link string) *boundQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[subscription{container, link, true}]
}

func (s *subscriptions) add(q *boundQueue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues == nil {
		s.queues = map[subscription]*boundQueue{}
	}
	s.queues[*q.subscription] = q
}

func (s *subscriptions) remove(q *boundQueue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[*q.subscription] == q {
		delete(s.queues, *q.subscription)
	}
}

// leave deletes the subscription of that identity if it is at another address than a: a subscriber that comes back
// for another topic means to replace it.
func (s *subscriptions) leave(a *address, spec ConsumerSpec) error {
	q := s.find(spec.By.Container, spec.Subscription.Name)
	if q == nil || q.address == a {
		return nil
	}
	old := q.address
	if old.enter() != nil {
		return nil
	}
	defer old.mu.Unlock()
	if q.active() && !spec.Subscription.Steal {
		return q.locked()
	}
	old.delete(q, ErrStolen, false)
	return nil
}

// subscribe returns the queue of a subscriber, made if need be. Under mu.
func (a *address) subscribe(spec ConsumerSpec) (q *boundQueue, evicted eviction, err error) {
	b := a.broker
	if !spec.Subscription.Durable || a.temporary != nil {
		queueName, err := b.unguessable("subscription.")
		if err != nil {
			return nil, evicted, err
		}
		q, err = a.make(&boundQueue{name: queueName, auto: true, temporary: true, subscription: &subscription{}})
		return q, evicted, err
	}
	id := subscription{spec.By.Container, spec.Subscription.Name, true}
	queueName := subscriptionName(id.container, id.link)
	if id.link == "" || len(queueName) > maxName {
		return nil, evicted, fmt.Errorf("subscription %.80q: name is empty or too long: %w", id.link, ErrInvalid)
	}
	if q = a.find(queueName); q != nil {
		evicted, err = q.vacate(spec.Subscription.Steal)
		return q, evicted, err
	}
	q, err = a.make(&boundQueue{name: queueName, auto: true, subscription: &id})
	if err == nil {
		b.subscriptions.add(q)
	}
	return q, evicted, err
}

// active reports whether somebody takes from the queue.
func (q *boundQueue) active() bool {
	q.guard.enter()
	defer q.guard.leave()
	return len(q.core.Takers()) > 0
}

func (q *boundQueue) locked() error {
	return fmt.Errorf("subscription %s at %s: it has an active consumer: %w", q.name, q.address.name, ErrLocked)
}

// vacate ends the active consumer of a durable subscription, or refuses. Under the address's mu, so that what is left
// to do is left to the caller.
func (q *boundQueue) vacate(steal bool) (evicted eviction, err error) {
	q.guard.enter()
	defer q.guard.leave()
	active := q.core.Takers()
	if len(active) == 0 {
		return evicted, nil
	}
	if !steal {
		return evicted, q.locked()
	}
	var fx []queue.Effect
	for _, t := range active { // what one gives back must not go to the next
		fx = q.core.SetLimit(t, 0, q.clock(), fx)
	}
	for _, t := range active {
		fx = q.core.Detach(t, false, q.clock(), fx)
		t.Tag.(*Consumer).end(ErrStolen)
	}
	return eviction{q, q.carryOut(fx, nil)}, nil
}
