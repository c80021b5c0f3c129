package store

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// Open opens the store in a folder, or a new one. It returns when all that was committed is applied. ErrLocked says
// that another process has it, *journal.CorruptError that something that had been flushed can't be read.
func Open(o Options) (*Store, error) {
	if err := makeFolder(o.Dir); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	o.complete()
	s := &Store{o: o, wake: make(chan struct{}, 1), stop: make(chan struct{}), requests: make(chan request), idle: map[uint64]idleSegment{}}
	s.room = sync.NewCond(&s.mu)
	if err := s.recover(); err != nil {
		s.release()
		return nil, err
	}
	s.running.Go(s.apply)
	s.running.Go(s.watch)
	return s, nil
}

// makeFolder makes a folder if it isn't there, so that it survives as well.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return journal.OS(filepath.Dir(dir)).SyncDir(".")
}

// recover brings the store to the state that the journal says it has.
func (s *Store) recover() (err error) {
	if s.lock, err = lock(s.o.Dir); err != nil {
		return err
	}
	if err = s.roomToOpen(); err != nil {
		return err
	}
	if s.id, err = readFormat(s.o.FS); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(s.o.Dir, spillDir)); err != nil {
		return fmt.Errorf("store: spill: %w", err)
	}
	at, known, err := readPosition(s.o.FS, s.id)
	if err != nil {
		return fmt.Errorf("store: position: %w", err)
	}
	if s.journal, err = journal.Open(journal.Options{
		FS: s.o.FS, Dir: journalDir, StoreID: s.id, SegmentSize: s.o.SegmentSize, Spares: s.o.Spares, From: at.next,
	}); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if !known && len(s.journal.Segments()) > 0 {
		s.alarm("store: there is no whole position file: the index is made anew")
	}
	if known {
		if err = s.openIndex(at.time); err != nil {
			s.alarm(fmt.Sprintf("store: the index doesn't open and is made anew: %v", err))
			known = false
		}
	}
	if known {
		s.saved, s.applied = at, savedPosition{at.window, at.next}
		s.pending = newPending(s.index)
		if err = s.knownQueues(); err == nil {
			err = s.replay(at.next)
		}
	} else {
		err = s.rebuildIndex()
	}
	if err != nil {
		return err
	}
	s.applied.next = s.journal.End()
	if err := s.checkpoint(); err != nil {
		return err
	}
	if err := s.journal.Begin(max(s.journal.Epoch(), 1)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return s.measureSpace()
}

func (s *Store) openIndex(time uint64) (err error) {
	s.index, err = index.Open(index.Options{
		Dir: filepath.Join(s.o.Dir, indexDir), MemTable: s.o.MemTable, Alarm: s.o.Alarm, Unflushed: s.o.volatile,
	}, time)
	return err
}

func (s *Store) knownQueues() error {
	return s.index.Definitions(func(queue uint64, _ []byte) error {
		s.pending.queues[queue] = struct{}{}
		return nil
	})
}

// replay applies what the journal has from a position on.
func (s *Store) replay(from journal.Position) error {
	err := s.journal.Replay(from, func(r journal.Record) error {
		if r.Kind != journal.KindWindow {
			return nil
		}
		if err := s.pending.enter(r.Payload, r, r.Length, time.Time{}); err != nil {
			return err
		}
		if s.pending.bytes > s.o.ApplyMax/2 {
			return s.applyAll()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store: replay: %w", err)
	}
	return s.applyAll()
}
