package engine

// ProducerSpec says where a producer sends to.
type ProducerSpec struct {
	Address   string   // address, queue://address, topic://address or address::queue
	Routing   Routing  // from the terminus's capabilities; must not contradict a prefix
	Anonymous bool     // every message names its own address [anonymous terminus]
	Dynamic   bool     // make a new node and send to it
	Lifetime  Lifetime // of the dynamic node
	By        Principal
}

// Producer publishes to one address, or anonymously to any. It is used by one goroutine at a time.
type Producer struct{}

// Address returns the address without prefix; generated for a dynamic node, empty for an anonymous producer.
func (p *Producer) Address() string { return "" }

// Routing returns how the address routes; RoutingUnset for an anonymous producer.
func (p *Producer) Routing() Routing { return RoutingUnset }

// Publish takes a message over. True: the result is final now. False: Confirmed follows with this ticket.
// It waits while the commit window is full.
func (p *Producer) Publish(m *Message, ticket uint64) (Result, bool) { return Result{}, true }

// Close ends the producer. What it has published stands, and is still confirmed.
func (p *Producer) Close() {}
