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
	queues map[uint64]bool // those that are there in the end
}

// exists says whether there is a queue in the end.
func (b *rebuild) exists(queue uint64) bool { return b.queues[queue] }

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
	b := &rebuild{queues: map[uint64]bool{}}
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
		if s.pending.bytes > s.o.ApplyMax/2 {
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
