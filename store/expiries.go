package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
)

// expiries is an engine.Expiries on the index. What is pending is found when it has been applied: ApplyAge later at the
// most, if there is room on the device.
type expiries struct {
	store   *Store
	reader  *index.Expiring
	found   []engine.Due
	numbers []uint64
}

// Expiries returns a reader of what expires.
func (s *Store) Expiries() engine.Expiries { return &expiries{store: s, reader: s.index.Expiring()} }

// Due returns entries that expire at until or before, and when to ask again.
func (x *expiries) Due(until int64, n int) ([]engine.Due, int64, error) {
	s := x.store
	s.reading.RLock()
	defer s.reading.RUnlock()
	if err := s.usable(); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	timed := s.pending.timed
	s.mu.Unlock()
	x.found = x.found[:0]
	next, err := x.reader.Next(until, n, func(queue uint64, priority uint8, e *index.Entry) {
		x.found = append(x.found, engine.Due{
			Queue: engine.QueueID(queue), Priority: priority, Number: e.Number, Bytes: int(e.Payload), At: e.Due(),
		})
	})
	if err != nil {
		return nil, 0, err
	}
	if timed {
		soon := until + max(s.o.ApplyAge/4, 10*time.Millisecond).Milliseconds()
		if next == 0 || next > soon {
			next = soon
		}
	}
	due, err := x.present()
	return due, next, err
}

// present returns those that were found and haven't been removed since the index has them.
func (x *expiries) present() ([]engine.Due, error) {
	slices.SortFunc(x.found, func(a, b engine.Due) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
	})
	there := x.found[:0:0]
	for found := x.found; len(found) > 0; {
		first := found[0]
		x.numbers = x.numbers[:0]
		rest := found
		for len(rest) > 0 && rest[0].Queue == first.Queue && rest[0].Priority == first.Priority {
			x.numbers = append(x.numbers, rest[0].Number)
			rest = rest[1:]
		}
		same := found[:len(found)-len(rest)]
		if gone, known := x.removed(uint64(first.Queue), first.Priority, same); known {
			for _, d := range same {
				if !gone(d.Number) {
					there = append(there, d)
				}
			}
		} else if err := x.store.find(uint64(first.Queue), first.Priority, x.numbers, func(e *index.Entry) {
			there = append(there, engine.Due{
				Queue: first.Queue, Priority: first.Priority, Number: e.Number, Bytes: int(e.Payload), At: e.Due(),
			})
		}); err != nil {
			return nil, err
		}
		found = rest
	}
	return there, nil
}

// removed returns what says whether an entry that was found is pending to be removed; false if the index has gone on
// since, so that who knows what is pending doesn't know enough, or if some may have a due time.
func (x *expiries) removed(queue uint64, priority uint8, found []engine.Due) (gone func(number uint64) bool, known bool) {
	if slices.ContainsFunc(found, func(d engine.Due) bool { return d.At != 0 }) {
		return nil, false
	}
	s := x.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index.View() != x.reader.View() || s.pending.delays(queue, priority) {
		return nil, false
	}
	if sum, there := s.index.Summary(queue); there && sum.Delayed() > 0 {
		return nil, false
	}
	waiting := s.pending.find(queue, priority, x.numbers)
	return waiting.removes, true
}
