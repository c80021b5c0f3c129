package store

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/letomq/leto/store/journal"
)

// space is how much room there is on the device.
type space struct {
	free    atomic.Int64
	reserve int64
}

// How the reserve is divided. Badger dies when the device is full, since it writes through memory maps; so messages
// are refused long before, the index is left alone next, and what removes messages goes on as long as the journal can.
const (
	spaceResume = 5 // quarters of the reserve above which messages are taken again
	spaceLow    = 2 // quarters below which the index and its checkpoints wait

	spaceInterval = 250 * time.Millisecond
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

// openSpace is what an opening may write to the index, in bytes: replayed windows, tables that are flushed and merged.
const openSpace = 32 << 20

// roomToOpen refuses to open the index where it would be the end of the process: it writes through memory maps.
func (s *Store) roomToOpen() error {
	free, err := journal.OS(s.o.Dir).Free()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if free < openSpace {
		return fmt.Errorf("store: %d MiB free on the device, %d are needed to open it: nothing was changed, make space and start again",
			free>>20, openSpace>>20)
	}
	return nil
}

// watch looks after the room on the device until the store ends.
func (s *Store) watch() {
	tick := time.NewTicker(spaceInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			if free, err := s.o.FS.Free(); err == nil {
				s.judgeSpace(free)
			}
		}
	}
}

func (s *Store) judgeSpace(free int64) {
	s.space.free.Store(free)
	quarter := s.space.reserve / 4
	switch full := s.full.Load(); {
	case !full && free < 4*quarter:
		s.full.Store(true)
		s.alarm("store: little space left on the device: messages are refused")
	case full && free >= spaceResume*quarter:
		s.full.Store(false)
		s.alarm("store: there is space again: messages are taken")
	}
	if low := free < spaceLow*quarter; low != s.low.Load() {
		s.low.Store(low)
		if low {
			s.alarm("store: hardly any space left on the device: the index waits")
		}
	}
}
