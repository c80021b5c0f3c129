package store

import (
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
	m.purges, m.read = m.purges[:0], 0
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

// exists says whether there is an entry, after some records of the window.
func (s *Store) exists(before []engine.Record, queue, number uint64, priority uint8) (bool, error) {
	if !s.defined(queue) {
		return false, nil
	}
	m := &s.moved
	if m.entries == nil {
		m.entries = map[entryKey]bool{}
	}
	for ; m.read < len(before); m.read++ {
		r := &before[m.read]
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
	s.reading.RLock()
	defer s.reading.RUnlock()
	found := false
	err := s.look(queue, priority, number, 1, func(e *index.Entry) bool {
		found = e.Number == number
		return false
	})
	return found, err
}
