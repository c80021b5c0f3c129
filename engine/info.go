package engine

// QueueInfo is a queue as it was at one moment.
type QueueInfo struct {
	Name, Address string
	Routing       Routing
	Messages      int // waiting
	Delivering    int // with consumers, or on their way to another queue
	Bytes         int64
	Consumers     int
	Added         uint64 // since the queue was made, as are the next three
	Acknowledged  uint64
	Expired       uint64
	Killed        uint64 // dead-lettered, or dropped for want of a dead-letter address
	Durable       bool   // it and its durable messages survive a restart
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
	Memory, MemoryLimit  int64 // bytes; limit 0 = none
	Added, Acknowledged  uint64
	Expired, Killed      uint64
	Dropped              uint64 // left a queue for nowhere: no dead-letter or expiry address, or no queue there
	Unrouted             uint64
}

// Queues returns all queues, ordered by address and name.
func (b *Broker) Queues() []QueueInfo { return nil }

// Addresses returns all addresses, ordered by name.
func (b *Broker) Addresses() []AddressInfo { return nil }

// Totals returns the broker's sums.
func (b *Broker) Totals() Totals { return Totals{} }
