package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/letomq/leto/store/journal"
)

// space is how much room there is on the device.
type space struct {
	free    atomic.Int64
	reserve int64
	noRoom  atomic.Bool // the journal found none for a segment

	mu   sync.Mutex           // guards what follows
	past [spaceLookback]int64 // what was free at the ends of the last intervals, the latest last
	next time.Time            // when the interval ends
	said bool                 // that the index waits, since messages are refused
}

// How the reserve is divided. Badger dies when the device is full, since it writes through memory maps; so messages
// are refused long before, the index is left alone next, and what removes messages goes on as long as the journal can.
// But only the index can give space back: so it waits when what it writes at once wouldn't fit, or while somebody else
// fills the device so fast that it would be full before the index is done with what it has begun; not because there is little.
const (
	spaceResume = 5 // quarters of the reserve above which messages are taken again
	spaceLow    = 2 // quarters below which the index and its checkpoints wait while somebody fills the device

	spaceInterval = 250 * time.Millisecond
	spaceLookback = 4              // intervals
	spaceFall     = indexSpace / 4 // bytes that go in that time when somebody fills the device
	spaceAhead    = 2              // how many times what went in that time must be free for the index to go on
	spaceLook     = 20 * time.Millisecond
)

// measureSpace sets the reserve.
func (s *Store) measureSpace() error {
	free, err := s.o.FS.Free()
	if err != nil {
		return err
	}
	if s.space.reserve, err = reserveOf(s.o.Reserve, s.o.FS); err != nil {
		return err
	}
	s.judgeSpace(free)
	return nil
}

// reserveOf returns what is asked for, or what is usual where nothing is.
func reserveOf(asked int64, files journal.FS) (int64, error) {
	if asked > 0 {
		return asked, nil
	}
	free, err := files.Free()
	return min(defaultReserve, free/8), err
}

// indexSpace is what the index may write at once, in bytes: windows that are applied, tables that are flushed and merged.
const indexSpace = 32 << 20

// roomToOpen refuses to open the index where it would be the end of the process: it writes through memory maps.
func (s *Store) roomToOpen() error {
	free, err := journal.OS(s.o.Dir).Free()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if free < indexSpace {
		return fmt.Errorf("store: %d MiB free on the device, %d are needed to open it: nothing was changed, make space and start again",
			free>>20, indexSpace>>20)
	}
	return nil
}

// roomToClose says whether the index can be closed: it writes what it has in memory.
func (s *Store) roomToClose() bool {
	free, err := journal.OS(s.o.Dir).Free()
	return err != nil || free >= indexSpace/2
}

// watch looks after the room on the device until the store ends: often while the index has something to write,
// since that is when a full device is the end of the process.
func (s *Store) watch() {
	tick := time.NewTimer(spaceInterval)
	defer tick.Stop()
	for applied := int64(0); ; {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		s.lookAtSpace()
		now := s.measure.applies.Load()
		if now != applied {
			tick.Reset(spaceLook)
		} else {
			tick.Reset(spaceInterval)
		}
		applied = now
	}
}

// lookAtSpace acts on what is free now.
func (s *Store) lookAtSpace() {
	if free, err := s.o.FS.Free(); err == nil {
		s.judgeSpace(free)
	}
}

// judgeSpace acts on what is free.
func (s *Store) judgeSpace(free int64) {
	s.space.free.Store(free)
	s.space.mu.Lock()
	defer s.space.mu.Unlock()
	quarter := s.space.reserve / 4
	resume := spaceResume * quarter
	if s.space.noRoom.Load() {
		resume = max(resume, s.o.SegmentSize+s.o.SegmentSize/4)
	}
	switch full := s.full.Load(); {
	case !full && free < 4*quarter:
		s.full.Store(true)
		s.alarm("store: little space left on the device: messages are refused")
	case full && free >= resume:
		s.space.noRoom.Store(false)
		s.space.said = false
		s.full.Store(false)
		s.alarm("store: there is space again: messages are taken")
	}
	fell := s.space.look(free, time.Now())
	low := free < min(indexSpace, spaceLow*quarter) || fell > spaceFall && free < max(spaceLow*quarter, spaceAhead*fell)
	if low != s.low.Load() {
		s.low.Store(low)
		if low && !s.space.said {
			s.space.said = true
			s.alarm("store: hardly any space left on the device: the index waits")
		}
	}
}

// look notes what is free and returns how much less that is than it was. Under mu.
func (s *space) look(free int64, now time.Time) (fell int64) {
	fell = s.past[0] - free
	if now.Before(s.next) {
		return fell
	}
	s.next = now.Add(spaceInterval)
	copy(s.past[:], s.past[1:])
	s.past[len(s.past)-1] = free
	return fell
}
