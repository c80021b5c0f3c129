package store

import (
	"fmt"
	"slices"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
)

// Remembered returns the ids of an address that came last, n at the most, in the order in which they came.
func (s *Store) Remembered(address string, n int) ([]engine.DuplicateID, error) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return nil, s.err
	}
	view := s.index.View()
	waiting, whole := s.pending.remembered(address, n)
	s.mu.Unlock()
	var indexed []index.ID
	if !whole {
		var err error
		if indexed, err = s.index.Remembered(view, address, n-len(waiting)); err != nil {
			return nil, fmt.Errorf("store: remembered: %w", err)
		}
	}
	ids := make([]engine.DuplicateID, 0, len(indexed)+len(waiting))
	for i := range indexed {
		ids = append(ids, indexed[i].Value)
	}
	for i := range waiting {
		ids = append(ids, waiting[i].Value)
	}
	return ids, nil
}

// remembered returns the last ids of an address that are pending, and whether those are all that are asked for.
func (p *pending) remembered(address string, n int) (ids []index.ID, whole bool) {
	a := p.ids[address]
	if a == nil {
		return nil, p.noIDs != 0 || n <= 0
	}
	ids = slices.Clone(a.ids[max(len(a.ids)-max(n, 0), 0):])
	return ids, a.forgotten != 0 || p.noIDs != 0 || len(ids) >= n
}
