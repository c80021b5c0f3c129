package store

import (
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// rebuild makes the index anew from the segments that are left. What segments held that are gone has been restated in
// later ones: FORMAT.md, "Statements". So they are read twice: first to know which queues there are in the end and
// what was restated, for that may stand behind the messages that it is about.
type rebuild struct {
	queues     map[uint64][]byte // definitions of those that are there in the end
	statements []restatedWindow
	payload    []byte
}

// restatedWindow is a window of a statement.
type restatedWindow struct {
	applied uint64 // the window that it belongs behind
	record  journal.Record
}

// exists says whether there is a queue in the end.
func (b *rebuild) exists(queue uint64) bool { return b.queues[queue] != nil }

func (s *Store) rebuildIndex() error {
	if s.index != nil {
		s.index.Close()
		s.index = nil
	}
	// The position speaks of the old index; the new one counts its times anew.
	if err := removeFile(s.o.FS, positionName); err != nil {
		return fmt.Errorf("store: position: %w", err)
	}
	if err := index.Empty(filepath.Join(s.o.Dir, indexDir)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := s.openIndex(0); err != nil {
		return fmt.Errorf("store: new index: %w", err)
	}
	b := &rebuild{queues: map[uint64][]byte{}}
	s.pending = newPending(s.index)
	s.pending.rebuild = b
	if err := b.run(s); err != nil {
		return fmt.Errorf("store: rebuild: %w", err)
	}
	s.pending.rebuild = nil
	return nil
}

func (b *rebuild) run(s *Store) error {
	if err := s.eachWindow(b.survey); err != nil {
		return err
	}
	if err := b.findQueues(s); err != nil {
		return err
	}
	for queue, definition := range b.queues {
		s.pending.queues[queue] = struct{}{}
		shelf := s.pending.shelf(queue)
		shelf.defined, shelf.definition = 1, definition
	}
	last := uint64(0)
	if err := s.eachWindow(func(r journal.Record) error {
		if err := b.restated(s, r.Index); err != nil {
			return err
		}
		last = r.Index
		if _, restates := restates(r.Payload); restates {
			return nil
		}
		return b.enter(s, r.Payload, r)
	}); err != nil {
		return err
	}
	err := b.restated(s, last+1)
	if err == nil {
		err = s.applyAll()
	}
	s.applied.window = last
	return err
}

func (b *rebuild) enter(s *Store, payload []byte, r journal.Record) error {
	if err := s.pending.enter(payload, r, r.Length, time.Time{}); err != nil {
		return err
	}
	if s.pending.bytes > s.o.ApplyMax/2 {
		return s.applyAll()
	}
	return nil
}

// restated enters the windows of statements that belong before a window.
func (b *rebuild) restated(s *Store, window uint64) error {
	for len(b.statements) > 0 && b.statements[0].applied < window {
		r := b.statements[0].record
		if err := b.read(s, r); err != nil {
			return err
		}
		r.Index = b.statements[0].applied
		b.statements = b.statements[1:]
		if err := b.enter(s, b.payload, r); err != nil {
			return err
		}
	}
	return nil
}

func (b *rebuild) read(s *Store, r journal.Record) error {
	if int64(cap(b.payload)) < r.Length {
		b.payload = make([]byte, r.Length)
	}
	b.payload = b.payload[:r.Length]
	return s.journal.ReadAt(r.Segment, r.Offset, b.payload)
}

func (s *Store) eachWindow(f func(journal.Record) error) error {
	return s.journal.Replay(journal.Position{}, func(r journal.Record) error {
		if r.Kind != journal.KindWindow {
			return nil
		}
		return f(r)
	})
}

// restates says whether a window belongs to a statement, and behind which window that is true.
func restates(payload []byte) (applied uint64, restates bool) {
	w := readWindow(payload)
	if !w.next() || w.fact.kind != factRestated {
		return 0, false
	}
	return w.fact.number, true
}

// survey notes the statements.
func (b *rebuild) survey(r journal.Record) error {
	if applied, restates := restates(r.Payload); restates {
		r.Payload = nil
		b.statements = append(b.statements, restatedWindow{applied, r})
	}
	return nil
}

// findQueues finds out which queues there are in the end.
func (b *rebuild) findQueues(s *Store) error {
	next := 0
	restated := func(window uint64) error {
		for ; next < len(b.statements) && b.statements[next].applied < window; next++ {
			if err := b.read(s, b.statements[next].record); err != nil {
				return err
			}
			if err := b.follow(b.payload); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.eachWindow(func(r journal.Record) error {
		if err := restated(r.Index); err != nil {
			return err
		}
		if _, restates := restates(r.Payload); restates {
			return nil
		}
		return b.follow(r.Payload)
	}); err != nil {
		return err
	}
	return restated(math.MaxUint64)
}

// follow notes which queues come and go in a window.
func (b *rebuild) follow(payload []byte) error {
	w := readWindow(payload)
	for w.next() {
		switch f := &w.fact; f.kind {
		case factDefine:
			b.queues[f.queue] = appendDefinition([]byte{definitionForm}, &f.definition)
		case factDelete:
			delete(b.queues, f.queue)
		case factDeleted:
			for queue := range b.queues {
				for _, r := range f.ranges {
					if queue >= r.First && queue <= r.Last {
						delete(b.queues, queue)
						break
					}
				}
			}
		}
	}
	return w.err
}
