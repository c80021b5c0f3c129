// Package store is the durable store of the broker: what is committed survives the process and the power.
//
// A commit is one window of facts in the journal (package journal), with the bodies of its messages, and one flush.
// The index (package index) follows behind: what came and went meanwhile never reaches it. It is in Badger, says where
// in the journal the body of each entry is, and is flushed only by checkpoints; an opening takes it back to the last
// one and applies what the journal has behind it. FORMAT.md has every byte.
//
//	s, err := store.Open(store.Options{Dir: dir})
//	state, err := s.Recover()                  // queues and their summaries
//	err = s.Commit(records)                    // on the device, or engine.ErrStoreFull, or the end
//	entries, err := s.Load(queue, 4, 0, 1024, 1<<20)
//
// One goroutine commits. Another one, the store's own, applies windows, makes checkpoints, gives segments back, and
// does what needs the store to stand still for a moment. Whoever appends to the journal holds Store.append; Store.mu
// guards what is pending and is held for moments only; Store.reading keeps segments and versions while they are read.
//
// It decides nothing: routing, expiry and dead-lettering are the engine's.
//
// A Spill is such a store in a folder below, of what needn't survive: nothing in it waits for the device.
//
// Package memory is a store that forgets, and storetest is the suite that both of them pass.
package store
