package store

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// Store is the durable engine.Store: the journal takes what is committed, and the index follows behind it.
type Store struct {
	o       Options
	id      [16]byte
	lock    *os.File
	journal *journal.Journal
	index   *index.Index

	append sync.Mutex // whoever appends to the journal
	writer windowWriter
	moved  movedEntries // of the window that is being written
	parts  []journal.Place

	mu      sync.Mutex // guards pending, ending and err
	room    *sync.Cond // pending has become less, or the store has failed or ends
	pending *pending
	ending  bool
	err     error // why nothing more is taken

	reading  sync.RWMutex // held by readers while what they look at must stay: segments and versions of the index
	views    sync.RWMutex // held while what the index has and what is pending must stay apart as they are; before mu
	wake     chan struct{}
	requests chan request
	holds    atomic.Int32   // snapshots that are read
	readers  sync.WaitGroup // who reads them
	stop     chan struct{}
	running  sync.WaitGroup

	saved      position               // the last one written
	applied    savedPosition          // how far the index is
	statement  statement              // what was restated last
	idle       map[uint64]idleSegment // segments that might be emptied
	kept       bool                   // garbage, for the sake of a snapshot
	full       atomic.Bool            // messages are refused
	low        atomic.Bool            // the index is left alone
	space      space
	unreadable unreadable
	measure    measures
}

// savedPosition is a window and what is behind it.
type savedPosition struct {
	window uint64
	next   journal.Position
}

var _ engine.Store = (*Store)(nil)

// ErrClosed says that a store is closed.
var ErrClosed = errors.New("store: closed")

// Close applies what is committed, makes a checkpoint and ends the store. It must not be called during a Commit. Exports
// and backups under way end with ErrClosed. A store that has failed is ended as it is, and Close returns why it has.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.ending {
		s.mu.Unlock()
		return ErrClosed
	}
	s.ending = true
	failed := s.err
	if s.err == nil {
		s.err = ErrClosed
	}
	s.room.Broadcast()
	s.mu.Unlock()
	close(s.stop)
	s.running.Wait()
	s.readers.Wait() // none begins any more

	var err error
	if failed == nil && !s.low.Load() && !s.o.volatile {
		if err = s.applyAll(); err == nil {
			err = s.checkpoint()
		}
	}
	s.append.Lock()
	defer s.append.Unlock()
	s.reading.Lock()
	defer s.reading.Unlock()
	if failed != nil {
		s.abandon()
		return failed
	}
	if err = errors.Join(err, s.release()); err != nil {
		return fmt.Errorf("store: close: %w", err)
	}
	return nil
}

// abandonPatience is how long the end of a store that has failed may take.
const abandonPatience = 2 * time.Second

// abandon closes what is open of a store that has failed. The index tries for ever to write to a device that takes
// nothing: it is left alone then, with the lock, until the process ends. What else goes wrong follows from the failure.
func (s *Store) abandon() {
	done := make(chan struct{})
	go func() {
		_ = s.release()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(abandonPatience):
	}
}

// release closes what is open.
func (s *Store) release() error {
	var err error
	switch {
	case s.index == nil:
	case s.roomToClose():
		err = s.index.Close()
	default: // that would be the end of the process, and what it would write is in the journal
		s.alarm("store: no space left on the device: the index is left as it is, and brought up to date at the next start")
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.Close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// fail ends the store: what is on the device isn't known any more.
func (s *Store) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("store: failed: %w", err)
		s.alarm(s.err.Error() + ": nothing durable is taken any more until a restart")
	}
	s.room.Broadcast()
	return s.err
}

func (s *Store) alarm(what string) {
	if s.o.Alarm != nil {
		s.o.Alarm(what)
	}
}

// usable returns why nothing more is taken, or nil.
func (s *Store) usable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Recover returns what is stored besides entries, after it has applied what is pending. The goroutine that applies
// answers, so that definitions and summaries are those of one moment, also beside commits.
func (s *Store) Recover() (engine.State, error) {
	if err := s.usable(); err != nil {
		return engine.State{}, err
	}
	var state engine.State
	err := s.ask(func() error {
		if err := s.catchUp(); err != nil {
			return err
		}
		counters := s.index.Counters()
		state = engine.State{LastNumber: counters.LastNumber, LastQueue: engine.QueueID(counters.LastQueue)}
		if err := s.index.Remembering(func(address string, _ uint64) error {
			state.Remembering = append(state.Remembering, address)
			return nil
		}); err != nil {
			return err
		}
		return s.index.Definitions(func(id uint64, value []byte) error {
			d, err := decodeDefinition(id, value)
			if err != nil {
				return err
			}
			sum, _ := s.index.Summary(id)
			state.Queues = append(state.Queues, d)
			state.Summaries = append(state.Summaries, summary(sum))
			return nil
		})
	})
	if err != nil {
		return engine.State{}, fmt.Errorf("store: recover: %w", err)
	}
	return state, nil
}

func summary(sum *index.Summary) engine.Summary {
	var s engine.Summary
	for i := range sum.Levels {
		l := &sum.Levels[i]
		if l.Entries > 0 {
			s.Entries += l.Entries
			s.Bytes += int64(l.Bytes)
			s.Levels = append(s.Levels, engine.Level{
				Priority: l.Priority, Entries: l.Entries - l.Delayed, Delayed: l.Delayed, Head: l.Head,
			})
		}
	}
	slices.SortFunc(s.Levels, func(a, b engine.Level) int { return cmp.Compare(b.Priority, a.Priority) })
	return s
}
