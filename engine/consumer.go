package engine

// ConsumerSpec says what a consumer takes from.
type ConsumerSpec struct {
	Address      string   // address, queue://address, topic://address or address::queue
	Routing      Routing  // from the terminus's capabilities; must not contradict a prefix
	Dynamic      bool     // make a new node and take from it
	Lifetime     Lifetime // of the dynamic node
	Browse       bool     // look only: distribution-mode copy. On a multicast address it says nothing
	Settled      bool     // deliveries are settled when they are sent: retired at dispatch
	Subscription Subscription
	By           Principal
}

// Subscription is a subscriber's wish for a queue of its own on a multicast address.
type Subscription struct {
	Name    string // the link's name
	Durable bool   // keep the queue while the link is detached; known by By.Container and Name
	Steal   bool   // take it over from an active consumer; otherwise that is ErrLocked
}

// Closing says how a consumer went away.
type Closing uint8

const (
	ClosingClean Closing = iota // detached or ended: what it had goes back to its place, uncounted
	ClosingLost                 // its connection was lost: what it had goes back, one attempt counted (count-on-loss)
)

// Consumer takes from one queue. Its methods may be called from any goroutine; one at a time for SetLimit and Drain.
type Consumer struct{}

// Address returns the address without prefix; generated for a dynamic node.
func (c *Consumer) Address() string { return "" }

// Queue returns the name of the queue it takes from.
func (c *Consumer) Queue() string { return "" }

// Routing returns how the address routes.
func (c *Consumer) Routing() Routing { return RoutingUnset }

// Browsing reports whether it looks only; see ConsumerSpec.Browse.
func (c *Consumer) Browsing() bool { return false }

// SetLimit sets how many deliveries it may have been given since it attached, all told. Lower withdraws credit.
func (c *Consumer) SetLimit(limit uint64) {}

// Drain gives what there is up to limit and then calls Sink.Drained, once. The consumer then has no credit until the
// next SetLimit. Drained has been called when Drain returns.
func (c *Consumer) Drain(limit uint64) {}

// Settle settles deliveries. True: it holds now. False: Sink.Settled follows with this ticket. Deliveries that are
// not this consumer's any more are passed over. The batch is not kept.
func (c *Consumer) Settle(batch []Settlement, o Outcome, ticket uint64) bool { return true }

// Available returns how many messages wait in the queue.
func (c *Consumer) Available() uint32 { return 0 }

// Close ends the consumer without closing its terminus: a durable subscription stays. A subscription that is not
// durable goes, a dynamic node as its lifetime says.
func (c *Consumer) Close(how Closing) {}

// CloseLink is Close(ClosingClean); with closed it also deletes the durable subscription [2.6.6].
func (c *Consumer) CloseLink(closed bool) {}
