// Package engine routes messages from producers to queues and from queues to consumers.
//
// It knows addresses, anycast and multicast, durable subscriptions, dynamic nodes, dead letters, expiry, limits and
// the settings of all that. It knows no wire: amqp/server turns links into Producers and Consumers, and deliveries into
// transfers. It knows no disk either: it declares the Store and the Spill that it needs. A Broker has no state outside itself, and
// can be closed and built again over the same store within a process.
//
// # A message
//
// Producer.Publish finds the queues behind the address. If one of them keeps the message over a restart, or if the
// producer still has such messages uncommitted, it enters the commit window and is decided later; otherwise it is in
// its queues when Publish returns. The committer writes the window to the store, then makes its messages visible and
// confirms them, in order. A queue hands a message to the consumer whose turn it is, through its Sink. Consumer.Settle
// tells what became of it; what that changes in the store enters the window too, and holds when Sink.Settled says so.
//
// A message that dies or expires is leaving its queue until the move to its new address is committed: it is always in
// one of the two places. On the dead-letter address itself attempts are without limit, and what is rejected there is
// dropped and counted, because it would come back for ever.
//
// # What is in memory
//
// All of a message is in memory while it is in the commit window and while a consumer has it. One that waits is in memory
// within a budget only. Beyond that a durable one is in the store, and a transient one in the spill: the queue counts it,
// and asks for a page of what comes next when a consumer gets near it. A queue that is brought back from the store is
// nothing but such counts. When what consumers hold takes most of the memory, queues load little, and those whose
// consumers hold something load nothing until it is settled.
//
// What the queue gives to the spill is written in batches, by the spiller. What is loaded from there is gone from there:
// attempts and annotations of a transient message are only ever in memory. A message that several queues have is spilled
// once for each. If the spill has no space, or fails, what comes next stays in memory, and in the end producers get no
// credit; what is in a spill that has failed is lost and counted.
//
// # Who owns what
//
//   - A boundQueue's guard protects the pure queue in it (package queue). Whoever is inside a guard goes into no other
//     one, and calls only sinks, which must not block or call back.
//   - An address's mu protects which queues are behind it. It is for attaching, detaching, making and deleting, never
//     for a message: publishers read the routes through an atomic pointer. It is taken before guards.
//   - The committer's mu protects the window, and is held for an append. Guards may be held around it.
//   - subscriptions.attaching serialises durable subscribers and is taken before any address's mu.
//   - The spiller's mu protects what is to be written to the spill. Guards may be held around it; it is held for moments.
//   - A few goroutines run while a broker is open: the committer, the keeper, which waits for the next expiry of any
//     queue in memory, and the sweepers, which do so for the store and the spill. The loader's run while there is
//     something to load, a few at a time, and the spiller's while there is something to write. Close waits for all. An
//     idle queue has no goroutine.
package engine
