package engine

// Routing is how an address hands messages to its queues.
type Routing uint8

const (
	RoutingUnset Routing = iota // not said: the address's own, or the default of its settings
	Anycast                     // to one queue, shared by all its consumers
	Multicast                   // to a queue per subscriber
)

// String returns the name used in the configuration.
func (r Routing) String() string {
	switch r {
	case Anycast:
		return "anycast"
	case Multicast:
		return "multicast"
	}
	return "unset"
}

// Lifetime says when a dynamic node is deleted [3.5.10-13]. A dynamic node never outlives the connection that
// created it: see Broker.Disconnected.
type Lifetime uint8

const (
	DeleteOnClose             Lifetime = iota // with the link that created it
	DeleteOnNoLinks                           // when no link refers to it any more
	DeleteOnNoMessages                        // once its creating link is gone: when it is empty
	DeleteOnNoLinksOrMessages                 // when no link refers to it and it is empty
)
