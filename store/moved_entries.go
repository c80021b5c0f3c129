package store

import (
	"cmp"
	"slices"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
)

// movedEntries is what the records of a window say about queues and entries, as far as somebody asks before the window
// is entered.
type movedEntries struct {
	queues  map[uint64]bool // defined or deleted in the window
	entries map[entryKey]bool
	purges  []entryRange
	read    int // so many records are in entries and purges
	asked   bool
	before  map[entryKey]struct{} // those that moves of the window name and that were there before it
}

type entryKey struct {
	queue    uint64
	priority uint8
	number   uint64
}

type entryRange struct {
	queue    uint64
	priority uint8
	index.Span
}

func (r *entryRange) has(k entryKey) bool {
	return k.queue == r.queue && k.priority == r.priority && k.number >= r.First && k.number <= r.Last
}

func (m *movedEntries) reset() {
	if m.queues != nil {
		clear(m.queues)
	}
	if m.entries != nil {
		clear(m.entries)
	}
	m.purges, m.read, m.asked = m.purges[:0], 0, false
	clear(m.before)
}

func (m *movedEntries) define(queue uint64, there bool) {
	if m.queues == nil {
		m.queues = map[uint64]bool{}
	}
	m.queues[queue] = there
}

// defined says whether there is a queue, after the records of the window so far.
func (s *Store) defined(queue uint64) bool {
	if len(s.moved.queues) > 0 {
		if there, known := s.moved.queues[queue]; known {
			return there
		}
	}
	// Only who appends changes it, and that is who asks.
	_, there := s.pending.queues[queue]
	return there
}

// exists says whether there is an entry that the i-th record of a window moves.
func (s *Store) exists(records []engine.Record, i int) (bool, error) {
	queue, number, priority := uint64(records[i].From), records[i].FromNumber, level(records[i].Priority)
	if !s.defined(queue) {
		return false, nil
	}
	m := &s.moved
	if m.entries == nil {
		m.entries = map[entryKey]bool{}
	}
	for ; m.read < i; m.read++ {
		r := &records[m.read]
		key := entryKey{uint64(r.Queue), level(r.Priority), r.Number}
		switch r.Kind {
		case engine.RecordMove:
			m.entries[entryKey{uint64(r.From), level(r.Priority), r.FromNumber}] = false
			m.entries[entryKey{uint64(r.Queue), level(r.Message.Priority), r.Number}] = true
		case engine.RecordEnqueue:
			m.entries[entryKey{uint64(r.Queue), level(r.Message.Priority), r.Number}] = true
		case engine.RecordRemove:
			m.entries[key] = false
		case engine.RecordPurge:
			gone := entryRange{key.queue, key.priority, index.Span{First: r.FromNumber, Last: r.Number}}
			for k := range m.entries {
				if gone.has(k) {
					m.entries[k] = false
				}
			}
			m.purges = append(m.purges, gone)
		}
	}
	key := entryKey{queue, priority, number}
	if there, known := m.entries[key]; known {
		return there, nil
	}
	if slices.ContainsFunc(m.purges, func(r entryRange) bool { return r.has(key) }) {
		return false, nil
	}
	if !m.asked {
		if err := s.askBefore(records[i:]); err != nil {
			return false, err
		}
	}
	_, there := m.before[key]
	return there, nil
}

// askBefore finds out which of the entries that records move are there before their window, all at once: one by one
// would cost as much as all else that is done for them.
func (s *Store) askBefore(records []engine.Record) error {
	m := &s.moved
	m.asked = true
	if m.before == nil {
		m.before = map[entryKey]struct{}{}
	}
	var keys []entryKey
	for i := range records {
		if r := &records[i]; r.Kind == engine.RecordMove {
			keys = append(keys, entryKey{uint64(r.From), level(r.Priority), r.FromNumber})
		}
	}
	slices.SortFunc(keys, func(a, b entryKey) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.priority, b.priority), cmp.Compare(a.number, b.number))
	})
	keys = slices.Compact(keys)
	s.reading.RLock()
	defer s.reading.RUnlock()
	var numbers []uint64
	for len(keys) > 0 {
		first := keys[0]
		numbers = numbers[:0]
		for len(keys) > 0 && keys[0].queue == first.queue && keys[0].priority == first.priority {
			numbers = append(numbers, keys[0].number)
			keys = keys[1:]
		}
		if err := s.find(first.queue, first.priority, numbers, func(e *index.Entry) {
			m.before[entryKey{first.queue, first.priority, e.Number}] = struct{}{}
		}); err != nil {
			return err
		}
	}
	return nil
}
