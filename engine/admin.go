package engine

import "fmt"

// QueueSpec names a queue to be made by an administrator or the configuration.
type QueueSpec struct {
	Address string
	Queue   string  // empty: only the address, and for anycast the queue of the same name
	Routing Routing // RoutingUnset: that of the address, or the default of its settings
}

// Check reports a name that no address or queue may have.
func (s QueueSpec) Check() error {
	switch {
	case !validName(s.Address):
		return fmt.Errorf("address %.80q: name is empty or too long, or has control characters: %w", s.Address, ErrInvalid)
	case s.Queue != "" && !validName(s.Queue):
		return fmt.Errorf("queue %s::%.80q: name is too long or has control characters: %w", s.Address, s.Queue, ErrInvalid)
	case reserved(s.Address):
		return fmt.Errorf("address %s: name is reserved: %w", s.Address, ErrNotAllowed)
	}
	return nil
}

// Declare is Create that takes what is there already.
func (b *Broker) Declare(spec QueueSpec) error {
	_, err := b.Create(spec)
	return err
}

// Create makes an address and a queue, whatever auto-create says, unless they exist, and reports whether it has made
// something. An address of another routing type is ErrNotAllowed. They are not deleted automatically. What it has made
// survives a restart when Sync returns; so does an address without queues.
func (b *Broker) Create(spec QueueSpec) (made bool, err error) {
	n := name{spec.Address, spec.Queue, spec.Routing}
	if err := spec.Check(); err != nil {
		return false, fmt.Errorf("declare: %w", err)
	}
	for {
		made = b.names.get(n.address) == nil
		a, err := b.ensure(n, RoutingUnset, true)
		if err != nil {
			return false, fmt.Errorf("declare: %w", err)
		}
		if a.enter() != nil {
			continue // deleted meanwhile
		}
		defer a.mu.Unlock()
		a.auto = false
		if n.queue == "" && a.routing == Multicast {
			return made, a.keep()
		}
		if n.queue == "" {
			n.queue = a.name
		}
		q := a.find(n.queue)
		if q == nil {
			_, err = a.make(&boundQueue{name: n.queue})
			return true, err
		}
		q.guard.enter()
		q.auto, q.reapable = false, a.temporary != nil
		q.guard.leave()
		return made, nil
	}
}

// Sync returns when what has been made, deleted or changed up to now survives a restart.
func (b *Broker) Sync() error { return b.committer.sync() }

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

// Condition is what must hold for something to be deleted; else it is ErrInUse.
type Condition struct {
	Empty  bool // no message waits in it, or is with a consumer
	Unused bool // nobody consumes from it and, of an address, nobody sends to it
}

// Delete deletes a queue with its messages; its consumers end with ErrDeleted. An empty queue name deletes the
// address with all its queues.
func (b *Broker) Delete(address, queueName string) error {
	return b.DeleteIf(address, queueName, Condition{})
}

// DeleteIf is Delete on a condition. Messages that are on their way there may come too late for it.
func (b *Broker) DeleteIf(address, queueName string, only Condition) error {
	a := b.names.get(address)
	if a == nil || a.enter() != nil {
		return fmt.Errorf("address %s: %w", address, ErrNotFound)
	}
	defer a.mu.Unlock()
	if queueName == "" {
		for _, q := range a.queues() {
			if err := q.meets(only); err != nil {
				return err
			}
		}
		if only.Unused && a.producers > 0 {
			return fmt.Errorf("address %s: it has %d producers: %w", address, a.producers, ErrInUse)
		}
		a.deleteAll(ErrDeleted)
		return nil
	}
	q := a.find(queueName)
	if q == nil {
		return fmt.Errorf("queue %s::%s: %w", address, queueName, ErrNotFound)
	}
	if err := q.meets(only); err != nil {
		return err
	}
	if !a.delete(q, ErrDeleted, false) {
		return fmt.Errorf("queue %s::%s: %w", address, queueName, ErrNotFound)
	}
	return nil
}

// meets reports whether a queue may be deleted on a condition.
func (q *boundQueue) meets(only Condition) error {
	q.guard.enter()
	consumers, empty := q.core.Consumers(), q.core.Empty() && q.inflight == 0
	q.guard.leave()
	switch {
	case only.Unused && consumers > 0:
		return fmt.Errorf("queue %s::%s: it has %d consumers: %w", q.address.name, q.name, consumers, ErrInUse)
	case only.Empty && !empty:
		return fmt.Errorf("queue %s::%s: it isn't empty: %w", q.address.name, q.name, ErrInUse)
	}
	return nil
}

// keep has an address survive a restart for which no queue speaks. Under mu.
func (a *address) keep() error {
	b := a.broker
	if a.id != 0 {
		return nil
	}
	id := QueueID(b.lastQueue.Add(1))
	d := Definition{ID: id, Address: a.name, Routing: a.routing}
	if err := b.committer.enter([]Record{{Kind: RecordDefine, Queue: id, Definition: &d}}, nil); err != nil {
		return fmt.Errorf("address %s: %w", a.name, err)
	}
	a.id = id
	return nil
}
