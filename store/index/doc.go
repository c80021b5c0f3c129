// Package index keeps, in Badger, where the entries of each queue are in the journal, and the state of the store.
//
// It runs behind the journal: Apply takes what whole windows leave. Nothing in it survives by itself: a checkpoint
// flushes its files, and Open takes it back to exactly the state of a checkpoint, whatever a crash has left of later
// ones, so that what the journal has behind it can be applied on firm ground. That works because every version of a
// key that is newer than the last checkpoint is kept until the next.
//
// Apply, Checkpoint, Keep and Close belong to one goroutine; what reads may be called by any.
package index
