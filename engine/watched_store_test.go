package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// errNoSpace has not even settlements fit.
var errNoSpace = fmt.Errorf("nothing fits: %w", engine.ErrStoreFull)

// watchedStore is a memory store that remembers what was committed, and can be held or broken.
type watchedStore struct {
	memory.Store
	mu      sync.Mutex
	batches [][]engine.Record
	gate    chan struct{} // if not nil, each commit takes one from it
	broken  error
	good    int // commits before it breaks
}

func (s *watchedStore) Commit(records []engine.Record) error {
	s.mu.Lock()
	gate, broken := s.gate, s.broken
	if s.good > 0 {
		s.good--
		broken = nil
	}
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if errors.Is(broken, engine.ErrStoreFull) && !errors.Is(broken, errNoSpace) && !slices.ContainsFunc(records, func(r engine.Record) bool {
		return r.Kind == engine.RecordEnqueue
	}) {
		broken = nil
	}
	if broken != nil {
		return broken
	}
	s.mu.Lock()
	s.batches = append(s.batches, slices.Clone(records))
	s.mu.Unlock()
	return s.Store.Commit(records)
}

func (s *watchedStore) Room() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken == nil
}

// hold makes commits wait until the returned function is called.
func (s *watchedStore) hold() (resume func()) {
	gate := make(chan struct{})
	s.mu.Lock()
	s.gate = gate
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.gate = nil
		s.mu.Unlock()
		close(gate)
	}
}

func (s *watchedStore) fail(err error) { s.failAfter(0, err) }

// failAfter breaks the store after some commits more.
func (s *watchedStore) failAfter(good int, err error) {
	s.mu.Lock()
	s.good, s.broken = good, err
	s.mu.Unlock()
}

// count returns how many records of a kind were committed, of any for 0.
func (s *watchedStore) count(kind engine.RecordKind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, batch := range s.batches {
		for _, r := range batch {
			if kind == 0 || r.Kind == kind {
				n++
			}
		}
	}
	return n
}
