package store

import (
	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// snapshot is the store at one moment. While it is held, segments stay, and versions of the index.
type snapshot struct {
	*index.Snapshot
	store    *Store
	window   uint64
	end      journal.Position
	segments []journal.SegmentInfo
	epoch    uint64
}

// request is something that the goroutine that applies does for another.
type request struct {
	do   func() error
	done chan error
}

// ask has the goroutine that applies do something.
func (s *Store) ask(do func() error) error {
	r := request{do, make(chan error, 1)}
	select {
	case s.requests <- r:
		return <-r.done
	case <-s.stop:
		return ErrClosed
	}
}

// snapshot applies all that is committed and returns what there is. Commits wait for that. The caller releases it.
func (s *Store) snapshot() (*snapshot, error) {
	var snap *snapshot
	err := s.ask(func() error {
		s.append.Lock()
		defer s.append.Unlock()
		if err := s.catchUp(); err != nil {
			return err
		}
		s.holds.Add(1)
		s.readers.Add(1)
		snap = &snapshot{
			Snapshot: s.index.Snapshot(), store: s, window: s.applied.window, end: s.journal.End(),
			segments: s.journal.Segments(), epoch: s.journal.Epoch(),
		}
		return nil
	})
	return snap, err
}

func (s *snapshot) release() {
	s.store.holds.Add(-1)
	s.store.readers.Done()
}
