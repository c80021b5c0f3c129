package engine

import (
	"fmt"

	"github.com/letomq/leto/engine/queue"
)

// QueueSpec names a queue to be made by an administrator or the configuration.
type QueueSpec struct {
	Address string
	Queue   string  // empty: only the address, and for anycast the queue of the same name
	Routing Routing // RoutingUnset: that of the address, or the default of its settings
}

// Declare makes an address and a queue, whatever auto-create says, unless they exist. An address of another routing
// type is ErrNotAllowed. They are not deleted automatically.
func (b *Broker) Declare(spec QueueSpec) error {
	n := name{spec.Address, spec.Queue, spec.Routing}
	if !validName(n.address) || n.queue != "" && !validName(n.queue) {
		return fmt.Errorf("declare %.80q::%.80q: name is too long or has control characters: %w", n.address, n.queue, ErrInvalid)
	}
	if reserved(n.address) {
		return fmt.Errorf("declare %s: name is reserved: %w", n.address, ErrNotAllowed)
	}
	for {
		a, err := b.ensure(n, RoutingUnset, true)
		if err != nil {
			return fmt.Errorf("declare: %w", err)
		}
		if a.enter() != nil {
			continue // deleted meanwhile
		}
		defer a.mu.Unlock()
		a.auto = false
		if n.queue == "" && a.routing == Multicast {
			return nil
		}
		if n.queue == "" {
			n.queue = a.name
		}
		q := a.find(n.queue)
		if q == nil {
			_, err = a.make(&boundQueue{name: n.queue})
			return err
		}
		q.guard.enter()
		q.auto, q.reapable = false, a.temporary != nil
		q.guard.leave()
		return nil
	}
}

// lookup returns a queue; an empty queue name means the one of the address's name.
func (b *Broker) lookup(address, queueName string) (*boundQueue, error) {
	if queueName == "" {
		queueName = address
	}
	if a := b.names.get(address); a != nil {
		if q := a.find(queueName); q != nil {
			return q, nil
		}
	}
	return nil, fmt.Errorf("queue %s::%s: %w", address, queueName, ErrNotFound)
}

// Delete deletes a queue with its messages; its consumers end with ErrDeleted. An empty queue name deletes the
// address with all its queues.
func (b *Broker) Delete(address, queueName string) error {
	a := b.names.get(address)
	if a == nil || a.enter() != nil {
		return fmt.Errorf("address %s: %w", address, ErrNotFound)
	}
	defer a.mu.Unlock()
	if queueName == "" {
		a.deleteAll(ErrDeleted)
		return nil
	}
	q := a.find(queueName)
	if q == nil || !a.delete(q, ErrDeleted, false) {
		return fmt.Errorf("queue %s::%s: %w", address, queueName, ErrNotFound)
	}
	return nil
}

// Purge removes the waiting messages of a queue and returns how many there were. An empty queue name means the queue
// of the address's name.
func (b *Broker) Purge(address, queueName string) (int, error) {
	q, err := b.lookup(address, queueName)
	if err != nil {
		return 0, err
	}
	q.guard.enter()
	n := q.core.Waiting()
	var fx []queue.Effect
	after := q.carryOut(q.core.Purge(fx), nil)
	q.guard.leave()
	q.after(&after, nil)
	return n, nil
}
