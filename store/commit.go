package store

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// Commit makes all records hold. It returns when they are on the device, and waits before that while the index is too
// far behind.
func (s *Store) Commit(records []engine.Record) error {
	if err := s.admit(records); err != nil { // what is refused doesn't wait first
		return err
	}
	if err := s.await(); err != nil { // before the lock, which the goroutine that applies may want
		return err
	}
	s.append.Lock()
	defer s.append.Unlock()
	if err := s.admit(records); err != nil {
		return err
	}
	w := &s.writer
	w.reset()
	s.moved.reset()
	start := time.Now()
	parts, err := s.encode(records)
	if err != nil {
		return s.appendFailed(err)
	}
	if w.empty() {
		return nil
	}
	_, err = s.appendWindow(w.b, parts, start)
	return err
}

// admit refuses what can't be taken now.
func (s *Store) admit(records []engine.Record) error {
	if err := s.usable(); err != nil {
		return err
	}
	if s.full.Load() && brings(records) {
		s.measure.refused.Add(1)
		return engine.ErrStoreFull
	}
	return nil
}

// Room reports whether new messages are taken now.
func (s *Store) Room() bool { return !s.full.Load() }

// brings says whether records bring a new message. One that moves is there already, and a settlement may wait for that:
// it is taken while the reserve lasts.
func brings(records []engine.Record) bool {
	return slices.ContainsFunc(records, func(r engine.Record) bool { return r.Kind == engine.RecordEnqueue })
}

// await waits while too much is pending.
func (s *Store) await() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending.bytes >= s.o.ApplyMax {
		start := time.Now()
		for s.pending.bytes >= s.o.ApplyMax && s.err == nil {
			s.room.Wait()
		}
		s.measure.waited.Add(int64(time.Since(start)))
	}
	return s.err
}

// appendWindow writes a window with parts that were appended before it, and enters it.
func (s *Store) appendWindow(payload []byte, parts int64, start time.Time) (journal.Record, error) {
	r, err := s.journal.Append(journal.KindWindow, payload)
	if err == nil {
		flush := time.Now()
		r.Payload = payload
		err = s.pass(r)
		s.measure.flushed(r.Length, time.Since(flush))
	}
	if err != nil {
		return r, s.appendFailed(err)
	}
	s.mu.Lock()
	err = s.pending.enter(payload, r, r.Length+parts, start)
	behind := s.pending.bytes > s.o.ApplyMax/2
	s.mu.Unlock()
	if err != nil {
		return r, s.fail(err)
	}
	if behind {
		s.nudge()
	}
	return r, nil
}

func (s *Store) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// appendFailed says what an error of the journal means: a full device isn't the end.
func (s *Store) appendFailed(err error) error {
	if errors.Is(err, journal.ErrFull) {
		s.space.noRoom.Store(true)
		s.full.Store(true)
		s.measure.refused.Add(1)
		return fmt.Errorf("%w: %w", engine.ErrStoreFull, err)
	}
	return s.fail(err)
}

// encode writes the records that hold as facts. It returns how many bytes of parts it has appended to the journal.
func (s *Store) encode(records []engine.Record) (parts int64, err error) {
	w := &s.writer
	for i := range records {
		r := &records[i]
		queue := uint64(r.Queue)
		switch r.Kind {
		case engine.RecordDefine:
			w.define(r.Definition)
			s.moved.define(queue, true)
		case engine.RecordDelete:
			w.delete(queue)
			s.moved.define(queue, false)
		case engine.RecordRemove:
			w.remove(queue, r.Number, level(r.Priority))
		case engine.RecordPurge:
			if r.FromNumber <= r.Number {
				w.purge(queue, level(r.Priority), index.Span{First: r.FromNumber, Last: r.Number})
			}
		case engine.RecordCount:
			p := level(r.Priority)
			w.count(queue, r.Number, p, r.Count, r.Base)
			w.annotations(r.Annotations)
			if r.Due != 0 {
				w.due(queue, r.Number, p, r.Due)
			}
		case engine.RecordDue:
			w.due(queue, r.Number, level(r.Priority), r.Due)
		case engine.RecordEnqueue, engine.RecordMove:
			move := r.Kind == engine.RecordMove
			if move {
				if there, err := s.exists(records, i); err != nil {
					return parts, err
				} else if !there {
					continue
				}
			}
			if !s.defined(queue) {
				if move {
					w.remove(uint64(r.From), r.FromNumber, level(r.Priority))
				}
				continue
			}
			n, err := s.encodeBody(r)
			parts += n
			if err != nil {
				return parts, err
			}
			p := level(r.Message.Priority)
			if move {
				w.move(queue, r.Number, uint64(r.From), r.FromNumber, p, w.bodies, r.Count, r.Base)
			} else {
				w.enqueue(factEnqueue, queue, r.Number, p, w.bodies, r.Count, r.Base)
			}
			w.annotations(r.Annotations)
			if r.Due != 0 {
				w.due(queue, r.Number, p, r.Due)
			}
		case engine.RecordRemember:
			w.remember(r.Remembered.Address, r.Number, uint64(r.Remembered.Keep), r.Remembered.ID)
		case engine.RecordForget:
			w.forget(r.Remembered.Address)
		default:
			return parts, fmt.Errorf("record of kind %d", r.Kind)
		}
	}
	return parts, nil
}

// level returns a priority as one of ten.
func level(priority uint8) uint8 { return min(priority, 9) }

// partsGroup is how many bytes of parts are flushed at once.
const partsGroup = 4 << 20

// encodeBody writes a record's message, with a large payload before the window.
func (s *Store) encodeBody(r *engine.Record) (parts int64, err error) {
	w, m := &s.writer, r.Message
	if len(m.Payload) <= s.o.Inline || m == w.last {
		w.body(m, nil)
		return 0, nil
	}
	s.parts = s.parts[:0]
	group := int64(0)
	for rest := m.Payload; len(rest) > 0; {
		n := min(s.o.Inline, len(rest))
		part, err := s.journal.Append(journal.KindPart, rest[:n])
		if err != nil {
			return parts, err
		}
		s.parts = append(s.parts, journal.Place{
			Segment: part.Segment, Offset: uint32(part.Offset), Length: uint32(n), CRC: journal.Checksum(rest[:n]),
		})
		rest = rest[n:]
		parts += int64(n)
		if group += int64(n); group >= partsGroup {
			group = 0
			if err := s.journal.Flush(); err != nil {
				return parts, err
			}
		}
	}
	w.body(m, s.parts)
	return parts, nil
}

// appendState commits what the writer has, which brings no message. The caller holds append.
func (s *Store) appendState() error {
	_, err := s.appendWindow(s.writer.b, 0, time.Now())
	return err
}
