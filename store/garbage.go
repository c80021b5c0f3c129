package store

import (
	"fmt"

	"github.com/letomq/leto/store/journal"
)

// segmentStart is where the first record of a segment is.
const segmentStart = 4096

// sealed is a segment behind the checkpoint.
type sealed struct {
	journal.SegmentInfo
	last uint64 // index of its last record
}

// behind returns the segments that lie behind the checkpoint, in order.
func (s *Store) behind() []sealed {
	var all []sealed
	segments := s.journal.Segments()
	for i := range segments {
		if i+1 < len(segments) && segments[i].Sealed && segments[i].Number < s.saved.next.Segment {
			all = append(all, sealed{segments[i], segments[i+1].FirstIndex - 1})
		}
	}
	return all
}

// collectGarbage gives back the segments that hold nothing that is needed, and empties one that holds little. It
// follows a checkpoint: what the index says now is on the device.
func (s *Store) collectGarbage() error {
	if s.kept = s.holds.Load() > 0; s.kept {
		return nil
	}
	live := s.index.Live()
	var dead []sealed
	bytes := int64(0)
	for _, seg := range s.behind() {
		if l := live[seg.Number]; l.Entries == 0 {
			dead = append(dead, seg)
			bytes += seg.Size
		}
	}
	if len(dead) > 0 {
		// What is dead can only go when what it says has been restated, and that costs: so not for every little.
		if last := dead[len(dead)-1].last; last > s.statement.applied && !s.o.volatile && (bytes >= 2*s.statement.cost || s.full.Load()) {
			if err := s.restate(); err != nil {
				return err
			}
		}
		if err := s.free(dead); err != nil {
			return err
		}
	}
	return s.relocateOne(live)
}

func (s *Store) free(dead []sealed) error {
	s.reading.Lock() // nobody reads a body there any more
	defer s.reading.Unlock()
	for _, seg := range dead {
		if seg.last > s.statement.applied && !s.o.volatile {
			continue
		}
		if err := s.journal.Free(seg.Number); err != nil {
			return fmt.Errorf("free segment: %w", err)
		}
		delete(s.idle, seg.Number)
		s.measure.freed.Add(1)
	}
	return nil
}
