package memory

import (
	"cmp"
	"slices"
	"sync"

	"github.com/letomq/leto/engine"
)

// Store is an engine.Store in memory. The zero value is an empty one.
type Store struct {
	mu     sync.Mutex
	queues map[engine.QueueID]*entries
	state  engine.State // without Queues and Summaries
}

var _ engine.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{} }

// Recover returns the queues that are defined, in order of their definition.
func (s *Store) Recover() (engine.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	for _, q := range s.queues {
		state.Queues = append(state.Queues, q.definition)
	}
	slices.SortFunc(state.Queues, func(a, b engine.Definition) int { return cmp.Compare(a.ID, b.ID) })
	for _, d := range state.Queues {
		state.Summaries = append(state.Summaries, s.queues[d.ID].summary())
	}
	return state, nil
}

// Commit applies the records. It doesn't fail.
func (s *Store) Commit(records []engine.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range records {
		s.apply(&records[i])
	}
	return nil
}

func (s *Store) apply(r *engine.Record) {
	switch r.Kind {
	case engine.RecordDefine:
		if s.queues == nil {
			s.queues = map[engine.QueueID]*entries{}
		}
		if s.queues[r.Queue] == nil {
			s.queues[r.Queue] = &entries{}
		}
		s.queues[r.Queue].definition = *r.Definition
		s.state.LastQueue = max(s.state.LastQueue, r.Queue)
		return
	case engine.RecordDelete:
		delete(s.queues, r.Queue)
		return
	case engine.RecordMove:
		if from := s.queues[r.From]; from == nil || !from.remove(r.FromNumber) {
			return
		}
	}
	q := s.queues[r.Queue]
	if q == nil {
		return
	}
	switch r.Kind {
	case engine.RecordEnqueue, engine.RecordMove:
		q.put(engine.Stored{Number: r.Number, Count: r.Count, Base: r.Base, Annotations: r.Annotations, Message: r.Message})
		s.state.LastNumber = max(s.state.LastNumber, r.Number)
	case engine.RecordPurge:
		q.purge(r.Priority, r.FromNumber, r.Number)
	case engine.RecordRemove:
		q.remove(r.Number)
	case engine.RecordCount:
		if e := q.find(r.Number); e != nil {
			e.Count, e.Base, e.Annotations = r.Count, r.Base, r.Annotations
		}
	}
}

// Load returns entries of a queue that have a priority.
func (s *Store) Load(id engine.QueueID, priority uint8, from uint64, n, bytes int) ([]engine.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[id]
	if q == nil {
		return nil, nil
	}
	return q.load(priority, from, n, bytes), nil
}
