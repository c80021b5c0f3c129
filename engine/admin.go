package engine

// QueueSpec names a queue to be made by an administrator or the configuration.
type QueueSpec struct {
	Address string
	Queue   string  // empty: only the address, and for anycast the queue of the same name
	Routing Routing // RoutingUnset: the default of the address's settings
}

// Declare makes an address and a queue, whatever auto-create says, unless they exist. An address of another routing
// type is ErrNotAllowed. They are not deleted automatically.
func (b *Broker) Declare(spec QueueSpec) error { return nil }

// Delete deletes a queue with its messages; its consumers end with ErrDeleted. An empty queue name deletes the
// address with all its queues.
func (b *Broker) Delete(address, queue string) error { return nil }

// Purge removes the waiting messages of a queue and returns how many there were.
func (b *Broker) Purge(address, queue string) (int, error) { return 0, nil }
