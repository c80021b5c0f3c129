// Package memory is a store that keeps its records in memory.
//
// What is committed outlives the broker that committed it, when that is dropped and built again inside one process,
// and nothing else: it is for tests and for brokers that may forget. It shares the payloads of messages with the
// engine and holds no copy of them. The state belongs to the Store and is guarded by its mutex.
package memory
