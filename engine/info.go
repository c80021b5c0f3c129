package engine

import (
	"cmp"
	"fmt"
	"slices"
)

// QueueInfo is a queue as it was at one moment.
type QueueInfo struct {
	Name, Address string
	Routing       Routing
	Messages      int // waiting
	Delayed       int // waiting for their time, not among Messages
	Stored        int // of those, in the store only, and
	Spilled       int // in the spill only
	Delivering    int // with consumers, or on their way to another queue
	Bytes         int64
	Consumers     int
	Added         uint64 // since the queue was made, as are the next three
	Acknowledged  uint64
	Expired       uint64
	Killed        uint64 // dead-lettered, or dropped for want of a dead-letter address
	Durable       bool   // it and its durable messages survive a restart
	Paused        bool   // gives nothing to consumers
	Temporary     bool   // dynamic node, or subscription that ends with its link
}

// AddressInfo is an address as it was at one moment.
type AddressInfo struct {
	Name      string
	Routing   Routing
	Queues    int
	Producers int
	Temporary bool
	Unrouted  uint64 // messages that found no queue
}

// Totals is the whole broker as it was at one moment. The counters include queues deleted since.
type Totals struct {
	Addresses, Queues    int
	Consumers            int
	Messages, Delivering int
	Delayed              int   // wait for their time, not among Messages
	Stored, Spilled      int   // of Messages, in the store only, and in the spill only
	Memory, MemoryLimit  int64 // bytes; limit 0 = none
	Added, Acknowledged  uint64
	Expired, Killed      uint64
	Lost                 uint64 // had been spilled and couldn't be read
	Dropped              uint64 // left a queue for nowhere: no dead-letter or expiry address, or no queue there
	Unrouted             uint64
	Duplicates           uint64 // accepted and dropped
}

// info returns what the queue is now.
func (q *boundQueue) info() QueueInfo {
	q.guard.enter()
	s, paused := q.core.Stats(), q.core.Paused()
	q.guard.leave()
	return QueueInfo{
		Name: q.name, Address: q.address.name, Routing: q.address.routing,
		Messages: s.Waiting, Delayed: s.Delayed, Stored: s.Stored, Spilled: s.Spilled, Delivering: s.Acquired + s.Leaving, Bytes: s.Bytes, Consumers: s.Consumers,
		Added: s.Added, Acknowledged: s.Acknowledged, Expired: s.Expired, Killed: s.Killed,
		Durable: q.id != 0, Paused: paused, Temporary: q.temporary,
	}
}

// Queues returns all queues, ordered by address and name.
func (b *Broker) Queues() []QueueInfo {
	var all []QueueInfo
	for _, a := range b.names.all() {
		for _, q := range a.queues() {
			all = append(all, q.info())
		}
	}
	slices.SortFunc(all, func(x, y QueueInfo) int {
		return cmp.Or(cmp.Compare(x.Address, y.Address), cmp.Compare(x.Name, y.Name))
	})
	return all
}

// Queue returns one queue, ErrNotFound if there is none.
func (b *Broker) Queue(address, queueName string) (QueueInfo, error) {
	q, err := b.lookup(address, queueName)
	if err != nil {
		return QueueInfo{}, err
	}
	return q.info(), nil
}

// Addresses returns all addresses, ordered by name.
func (b *Broker) Addresses() []AddressInfo {
	var all []AddressInfo
	for _, a := range b.names.all() {
		all = append(all, a.info())
	}
	slices.SortFunc(all, func(x, y AddressInfo) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

// Address returns one address with its queues, in order of making, ErrNotFound if there is none.
func (b *Broker) Address(address string) (AddressInfo, []QueueInfo, error) {
	a := b.names.get(address)
	if a == nil {
		return AddressInfo{}, nil, fmt.Errorf("address %s: %w", address, ErrNotFound)
	}
	var queues []QueueInfo
	for _, q := range a.queues() {
		queues = append(queues, q.info())
	}
	return a.info(), queues, nil
}

// info returns what the address is now.
func (a *address) info() AddressInfo {
	a.mu.Lock()
	producers := a.producers
	a.mu.Unlock()
	return AddressInfo{
		Name: a.name, Routing: a.routing, Queues: len(a.queues()), Producers: producers,
		Temporary: a.temporary != nil, Unrouted: a.unrouted.Load(),
	}
}

// Totals returns the broker's sums.
func (b *Broker) Totals() Totals {
	t := Totals{
		Addresses: int(b.totals.addresses.Load()), Queues: int(b.totals.queues.Load()),
		Memory: b.memory.used.Load(), MemoryLimit: b.memory.hard,
		Added: b.totals.added.Load(), Acknowledged: b.totals.acknowledged.Load(),
		Expired: b.totals.expired.Load(), Killed: b.totals.killed.Load(), Lost: b.totals.lost.Load(),
		Dropped: b.totals.dropped.Load(), Unrouted: b.totals.unrouted.Load(),
		Duplicates: b.totals.duplicates.Load(),
	}
	for _, a := range b.names.all() {
		for _, q := range a.queues() {
			i := q.info()
			t.Consumers += i.Consumers
			t.Messages += i.Messages
			t.Delayed += i.Delayed
			t.Stored += i.Stored
			t.Spilled += i.Spilled
			t.Delivering += i.Delivering
			t.Added += i.Added
			t.Acknowledged += i.Acknowledged
			t.Expired += i.Expired
			t.Killed += i.Killed
		}
	}
	return t
}
