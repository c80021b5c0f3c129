// Package store is the durable store: what must survive a restart.
//
// A commit window is one record of the journal (package journal), which also keeps the bodies; the index and the state
// are in Badger (package index), applied behind the journal. FORMAT.md says what is written. What was published and
// removed before it was applied never reaches the index.
//
// It decides nothing: routing, expiry and dead-lettering are the engine's, whose Store it is. Commit is called by one
// goroutine, the engine's committer; the goroutines that apply and that watch the device belong to the Store and are
// waited for in Close. Package memory is the same in memory, storetest the suite that every store passes.
package store
