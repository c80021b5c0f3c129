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
