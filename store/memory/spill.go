package memory

import "github.com/letomq/leto/engine"

// Spill is an engine.Spill in memory, for tests: it saves nothing. The zero value is an empty one.
type Spill struct{ store Store }

var _ engine.Spill = (*Spill)(nil)

// Commit applies the records. It doesn't fail.
func (s *Spill) Commit(records []engine.Record) error { return s.store.Commit(records) }

// Load returns entries of a queue that have a priority.
func (s *Spill) Load(id engine.QueueID, priority uint8, from uint64, n, bytes int) ([]engine.Stored, error) {
	return s.store.Load(id, priority, from, n, bytes)
}

// Pick returns some entries of a queue that have a priority.
func (s *Spill) Pick(id engine.QueueID, priority uint8, numbers []uint64, bytes int) ([]engine.Stored, error) {
	return s.store.Pick(id, priority, numbers, bytes)
}

// Expiries returns a reader of what expires.
func (s *Spill) Expiries() engine.Expiries { return s.store.Expiries() }

// Delayed returns entries of a queue that are due at until or before, and when the next one is.
func (s *Spill) Delayed(id engine.QueueID, after engine.Due, until int64, n int) ([]engine.Due, int64, error) {
	return s.store.Delayed(id, after, until, n)
}

// Size returns the bytes of the payloads.
func (s *Spill) Size() int64 {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	size := int64(0)
	for _, q := range s.store.queues {
		sum := q.summary()
		size += sum.Bytes
	}
	return size
}

// Close forgets everything.
func (s *Spill) Close() error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.queues = nil
	return nil
}
