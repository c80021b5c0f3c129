package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
)

// Load returns entries of a queue that have a priority. A body that doesn't read well is left out and reported: it is
// never delivered. One that can't be read is an error the first times, and then left out as well.
func (s *Store) Load(q engine.QueueID, priority uint8, from uint64, n, bytes int) ([]engine.Stored, error) {
	if n <= 0 {
		return nil, nil
	}
	s.reading.RLock()
	defer s.reading.RUnlock()
	var found []engine.Stored
	var entries []index.Entry
	b := bodies{store: s}
	for len(found) == 0 || bytes > 0 && len(found) < n {
		// As many as would do if their payloads were as large as their bodies.
		entries = entries[:0]
		left := bytes
		if err := s.look(uint64(q), level(priority), from, n-len(found), func(e *index.Entry) bool {
			entries = append(entries, *e)
			left -= int(min(e.Payload, 1<<40))
			return left > 0
		}); err != nil {
			return found, err
		}
		if len(entries) == 0 {
			return found, nil
		}
		b.reset(entries)
		for i := range entries {
			e := &entries[i]
			from = e.Number + 1
			stored, err := s.readEntry(&b, q, e)
			if err != nil {
				return found, err
			}
			if stored.Message == nil {
				continue
			}
			found = append(found, stored)
			bytes -= stored.Message.Size()
		}
	}
	return found, nil
}

// Pick returns some entries of a queue that have a priority, of those that are there. A body that doesn't read well is
// left out and reported.
func (s *Store) Pick(q engine.QueueID, priority uint8, numbers []uint64, bytes int) ([]engine.Stored, error) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	entries := make([]index.Entry, 0, len(numbers))
	if err := s.find(uint64(q), level(priority), numbers, func(e *index.Entry) { entries = append(entries, *e) }); err != nil {
		return nil, err
	}
	found := make([]engine.Stored, 0, len(entries))
	b := bodies{store: s}
	b.reset(entries)
	for i := range entries {
		if len(found) > 0 && bytes <= 0 {
			break
		}
		stored, err := s.readEntry(&b, q, &entries[i])
		if err != nil {
			return found, err
		}
		if stored.Message != nil {
			found = append(found, stored)
			bytes -= stored.Message.Size()
		}
	}
	return found, nil
}

// readEntry reads an entry's body. One that doesn't read well is reported, and returned without a message: also one that
// can't be read at all, when it has been tried a few times, and in a spill at once.
func (s *Store) readEntry(b *bodies, q engine.QueueID, e *index.Entry) (engine.Stored, error) {
	stored, err := b.read(e)
	var bad *BodyError
	switch {
	case err == nil:
		s.unreadable.read(e.Place)
		return stored, nil
	case errors.As(err, &bad):
	case s.o.volatile:
		if s.measure.badBodies.Add(1) == 1 { // the engine counts what it misses
			s.alarm(fmt.Sprintf("store: messages can't be read: %v", err))
		}
		return engine.Stored{}, nil
	case s.passedOver(e.Place):
		bad = &BodyError{Segment: e.Place.Segment, Offset: e.Place.Offset, Reason: err.Error()}
	default:
		return stored, err
	}
	bad.Queue, bad.Number = q, e.Number
	s.measure.badBodies.Add(1)
	s.alarm(bad.Error())
	return engine.Stored{}, nil
}

// BodyError says that a message's body isn't what was written.
type BodyError struct {
	Queue   engine.QueueID
	Number  uint64
	Segment uint64
	Offset  uint32
	Reason  string
}

func (e *BodyError) Error() string {
	return fmt.Sprintf("store: message %d of queue %d is corrupt in segment %016x at %d: %s", e.Number, e.Queue, e.Segment,
		e.Offset, e.Reason)
}

// look calls f with entries of a level that have no due time, in ascending order of number, pending ones and others, n at
// the most or until it returns false. The caller holds reading.
func (s *Store) look(queue uint64, priority uint8, from uint64, n int, f func(*index.Entry) bool) error {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return s.err
	}
	view := s.index.View()
	waiting, whole := s.pending.peek(queue, priority, from, n)
	whole = whole || len(waiting.edits) == 0 && !s.index.Ready(queue, priority)
	s.mu.Unlock()
	fresh := waiting.fresh

	ended := false
	give := func(e *index.Entry) bool {
		if e.Due() != 0 {
			return true
		}
		n--
		if !f(e) || n <= 0 {
			ended = true
		}
		return !ended
	}
	if !whole {
		if err := s.index.Load(view, queue, priority, from, func(e *index.Entry) bool {
			for len(fresh) > 0 && fresh[0].Number < e.Number && !ended {
				give(&fresh[0])
				fresh = fresh[1:]
			}
			if ended || len(fresh) > 0 && fresh[0].Number == e.Number {
				return !ended
			}
			if waiting.amend(e) {
				return true
			}
			return give(e)
		}); err != nil {
			return fmt.Errorf("store: load: %w", err)
		}
	}
	for i := range fresh {
		if ended || !give(&fresh[i]) {
			break
		}
	}
	return nil
}

// peek returns what is pending of a level from a number on: at most n entries without a due time, and what changes of
// those that the index has. With whole, there is nothing in the index to be looked at. Entries with a due time are left
// out where the index can't have them without it.
func (p *pending) peek(queue uint64, priority uint8, from uint64, n int) (found pendingFound, whole bool) {
	s := p.shelves[queue]
	if s == nil {
		return found, false
	}
	if s.deleted != 0 {
		found.deleted = true
		return found, true
	}
	l := s.levels[priority]
	if l == nil {
		return found, false
	}
	i, _ := l.search(from)
	for ready := 0; i < len(l.entries) && ready < n; i++ {
		e := &l.entries[i]
		if e.gone {
			continue
		}
		if e.Due() == 0 {
			ready++
		} else if !e.indexed {
			continue
		}
		found.fresh = append(found.fresh, e.Entry)
	}
	for i := range l.edits {
		if e := &l.edits[i]; e.Number >= from && e.Kind != index.EditPut {
			found.edits.add(e.Edit)
		}
	}
	found.purges = slices.Clone(l.purges)
	return found, false
}
