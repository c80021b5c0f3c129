package store

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// rebuild makes the index anew from the segments that are left. What segments held that are gone has been restated in
// later ones: FORMAT.md, "Restating". A queue may be defined behind the messages that it has, so they are read twice.
type rebuild struct {
	store  *Store
	queues map[uint64]bool // those that are there in the end
}

// exists says whether there is a queue in the end.
func (b *rebuild) exists(queue uint64) bool { return b.queues[queue] }

// gone removes all entries of some numbers from the index, which has what came before.
func (b *rebuild) gone(f *fact) error {
	p := b.store.pending
	l := p.level(f.queue, f.priority)
	if l == nil {
		return nil
	}
	for _, r := range f.ranges {
		if err := b.store.index.Load(b.store.index.View(), f.queue, f.priority, r.first, func(e *index.Entry) bool {
			if e.Number <= r.last {
				l.edits = append(l.edits, pendingEdit{index.Edit{Number: e.Number, Kind: index.EditRemove}, 0})
			}
			return e.Number < r.last
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) rebuildIndex() error {
	if s.index != nil {
		s.index.Close()
		s.index = nil
	}
	if err := index.Empty(filepath.Join(s.o.Dir, indexDir)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := s.openIndex(0); err != nil {
		return fmt.Errorf("store: new index: %w", err)
	}
	b := &rebuild{store: s, queues: map[uint64]bool{}}
	s.pending = newPending(s.index)
	s.pending.rebuild = b
	if err := s.eachWindow(func(r journal.Record) error { return b.survey(r.Payload) }); err != nil {
		return fmt.Errorf("store: rebuild: %w", err)
	}
	for queue := range b.queues {
		s.pending.queues[queue] = struct{}{}
	}
	last := journal.Record{}
	if err := s.eachWindow(func(r journal.Record) error {
		if restates(r.Payload) || s.pending.bytes > s.o.ApplyMax/2 {
			if err := s.applyAll(); err != nil {
				return err
			}
		}
		last = r
		return s.pending.enter(r.Payload, r, r.Length, time.Time{})
	}); err != nil {
		return fmt.Errorf("store: rebuild: %w", err)
	}
	if err := s.applyAll(); err != nil {
		return fmt.Errorf("store: rebuild: %w", err)
	}
	s.pending.rebuild = nil
	if last.Index == 0 {
		s.applied.next = s.journal.End()
	}
	return nil
}

func (s *Store) eachWindow(f func(journal.Record) error) error {
	return s.journal.Replay(journal.Position{}, func(r journal.Record) error {
		if r.Kind != journal.KindWindow {
			return nil
		}
		return f(r)
	})
}

// restates says whether a window restates what is known.
func restates(payload []byte) bool {
	return len(payload) > 1 && factKind(payload[1]) == factRestated
}

// survey notes which queues come and go.
func (b *rebuild) survey(payload []byte) error {
	w := readWindow(payload)
	for w.next() {
		switch f := &w.fact; f.kind {
		case factDefine:
			b.queues[f.queue] = true
		case factDelete:
			delete(b.queues, f.queue)
		case factDeleted:
			for queue := range b.queues {
				for _, r := range f.ranges {
					if queue >= r.first && queue <= r.last {
						delete(b.queues, queue)
						break
					}
				}
			}
		}
	}
	return w.err
}
