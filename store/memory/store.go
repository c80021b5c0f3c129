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
	times  timetable
	ids    map[string][]remembered
}

var _ engine.Store = (*Store)(nil)

// remembered is an id of an address.
type remembered struct {
	number uint64
	id     engine.DuplicateID
}

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
	for address := range s.ids {
		state.Remembering = append(state.Remembering, address)
	}
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
	s.forget()
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
	case engine.RecordRemember:
		s.remember(r.Number, r.Remembered)
		return
	case engine.RecordForget:
		delete(s.ids, r.Remembered.Address)
		return
	case engine.RecordDelete:
		if q := s.queues[r.Queue]; q != nil {
			s.times.gone += q.expiring()
		}
		delete(s.queues, r.Queue)
		return
	case engine.RecordMove:
		if from := s.queues[r.From]; from == nil || !s.remove(from, r.FromNumber) {
			return
		}
	}
	q := s.queues[r.Queue]
	if q == nil {
		return
	}
	switch r.Kind {
	case engine.RecordEnqueue, engine.RecordMove:
		s.remove(q, r.Number)
		if at := r.Message.Expiry; at > 0 {
			s.times.add(at, r.Queue, r.Number)
		}
		e := engine.Stored{Number: r.Number, Count: r.Count, Base: r.Base, Annotations: r.Annotations, Message: r.Message}
		q.delay(&e, r.Due)
		q.put(e)
		s.state.LastNumber = max(s.state.LastNumber, r.Number)
	case engine.RecordPurge:
		for _, n := range q.between(r.Priority, r.FromNumber, r.Number) {
			s.remove(q, n)
		}
	case engine.RecordRemove:
		s.remove(q, r.Number)
	case engine.RecordCount:
		if e := q.find(r.Number); e != nil {
			e.Count, e.Base, e.Annotations = r.Count, r.Base, r.Annotations
			q.delay(e, r.Due)
			q.forget()
		}
	case engine.RecordDue:
		if e := q.find(r.Number); e != nil {
			q.delay(e, r.Due)
			q.forget()
		}
	}
}

func (s *Store) remember(number uint64, r *engine.Remembered) {
	ids := s.ids[r.Address]
	if n := len(ids); n > 0 && ids[n-1].number >= number {
		return
	}
	if s.ids == nil {
		s.ids = map[string][]remembered{}
	}
	s.ids[r.Address] = append(ids[max(len(ids)+1-r.Keep, 0):], remembered{number, r.ID})
	s.state.LastNumber = max(s.state.LastNumber, number)
}

// Remembered returns the ids of an address that came last.
func (s *Store) Remembered(address string, n int) ([]engine.DuplicateID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := s.ids[address]
	ids = ids[max(len(ids)-max(n, 0), 0):]
	found := make([]engine.DuplicateID, len(ids))
	for i := range ids {
		found[i] = ids[i].id
	}
	return found, nil
}

// Room reports that there is always room.
func (s *Store) Room() bool { return true }

// remove takes an entry out, if it is there.
func (s *Store) remove(q *entries, number uint64) bool {
	e := q.find(number)
	if e == nil {
		return false
	}
	if e.Message.Expiry > 0 {
		s.times.gone++
	}
	if e.Due != 0 {
		q.agenda.gone++
	}
	removed := q.remove(number)
	q.forget()
	return removed
}

// Pick returns some entries of a queue that have a priority.
func (s *Store) Pick(id engine.QueueID, priority uint8, numbers []uint64, bytes int) ([]engine.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[id]
	if q == nil {
		return nil, nil
	}
	var found []engine.Stored
	for _, n := range numbers {
		e := q.find(n)
		if e == nil || level(e.Message) != priority {
			continue
		}
		if len(found) > 0 && bytes <= 0 {
			break
		}
		picked := *e
		picked.Message = e.Message.Fresh()
		found = append(found, picked)
		bytes -= picked.Message.Size()
	}
	return found, nil
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
