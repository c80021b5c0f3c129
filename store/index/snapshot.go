package index

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Snapshot is the index as it was published last. It can be read as long as nothing newer is kept: see Keep.
type Snapshot struct {
	x        *Index
	view     uint64
	queues   map[uint64]*Summary
	live     map[uint64]Live
	counters Counters
}

// Snapshot returns one. It belongs to the owner of the index: nothing may have been applied that isn't published.
func (x *Index) Snapshot() *Snapshot {
	x.mu.Lock()
	defer x.mu.Unlock()
	return &Snapshot{x: x, view: x.view, queues: maps.Clone(x.queues), live: maps.Clone(x.live), counters: x.counters}
}

// Counters returns the numbers that must never be given again.
func (s *Snapshot) Counters() Counters { return s.counters }

// Live returns what each segment holds that is needed. It must not be changed.
func (s *Snapshot) Live() map[uint64]Live { return s.live }

// Queues returns the queues in ascending order.
func (s *Snapshot) Queues() []uint64 { return slices.Sorted(maps.Keys(s.queues)) }

// Summary returns that of a queue.
func (s *Snapshot) Summary(queue uint64) *Summary { return s.queues[queue] }

// Definitions calls f with all queues, in ascending order. The value is valid during the call.
func (s *Snapshot) Definitions(f func(queue uint64, value []byte) error) error {
	return s.x.scanAt(s.view, []byte{tableQueue}, func(key, value []byte) error {
		return f(binary.BigEndian.Uint64(key[1:]), value)
	})
}

// Cells calls f with all cells. Keys and values are valid during the call.
func (s *Snapshot) Cells(f func(space uint64, key, value []byte) error) error {
	return s.x.scanAt(s.view, []byte{tableCell}, func(key, value []byte) error {
		return f(binary.BigEndian.Uint64(key[1:]), key[9:], value)
	})
}

// Load calls f with the entries of a level in ascending order, until it returns false. The entry is valid during the
// call.
func (s *Snapshot) Load(queue uint64, priority uint8, f func(*Entry) bool) error {
	sum := s.queues[queue]
	if sum == nil {
		return nil
	}
	for i := range sum.Levels {
		if l := &sum.Levels[i]; l.Priority == priority {
			return s.x.load(s.view, queue, l, l.Head, true, f)
		}
	}
	return nil
}

// CopyTo writes the snapshot to a new index in a folder, and returns the time that Open needs for it. All of it is on
// the device then.
func (s *Snapshot) CopyTo(o Options) (ts uint64, err error) {
	to, err := Open(o, 0)
	if err != nil {
		return 0, err
	}
	w := to.writer()
	for _, table := range []byte{
		tableQueue, tableRun, tableOverride, tableExpiry, tableDue, tableSummary, tableIDs, tableAddress, tableCell, tableSegment,
	} {
		if err = s.x.scanAt(s.view, []byte{table}, w.set); err != nil {
			w.discard()
			to.Close()
			return 0, fmt.Errorf("index: copy: %w", err)
		}
	}
	if err = w.end(s.counters); err == nil {
		ts, err = to.Checkpoint()
	}
	if e := to.Close(); err == nil {
		err = e
	}
	return ts, err
}
