// Package queue is one message queue as a pure machine: commands and the time go in, effects come out.
//
// It knows the order in which messages wait (priority, then number), who may have them, who has them, and what each
// outcome does to them. It is not safe for concurrent use and has no goroutine, clock, randomness or disk: whoever
// guards a Queue calls one method at a time with the current unix millisecond, and carries out the effects that the
// method appended to the slice it was given. It doesn't know addresses, other queues or the store.
//
// With Budgets, entries beyond them are in the store or the spill only: see frontier.go. EffectLoad asks for a page of
// them, Loaded brings it, and between the two the queue goes on with all that may be given before them.
//
// An Entry is one message in one queue, and the unit of ownership. It is in one of these places:
//
//	Publish ──► ready ──► acquired by a consumer ──► gone (accepted)
//	              ▲  │            │
//	              │  │            ├─ goes back (released, modified, lost): ready, or barred when some present
//	              │  │            │  consumer must not have it again
//	              └──┼────────────┘
//	                 └─► leaving (expired, dead) ──► gone (Finish)
//
// What always holds between two calls:
//
//   - no entry waits that a consumer with credit may have, unless it, or one before it, is being loaded, or the queue is
//     paused
//   - a consumer has been given at most limit deliveries
//   - waiting + acquired + leaving = entries added − entries gone
//   - an entry has one owner at a time; acquisition grows by one with each, so that a late settlement is known as such
package queue
