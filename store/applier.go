package store

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/letomq/leto/engine"
)

// apply runs the index behind the journal until the store ends.
func (s *Store) apply() {
	tick := time.NewTicker(max(min(s.o.ApplyAge/4, s.o.Checkpoint/2), time.Millisecond))
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-s.stop:
			return
		case r := <-s.requests:
			r.done <- r.do()
			continue
		case <-s.wake:
		case <-tick.C:
		}
		if s.usable() != nil || s.low.Load() {
			continue
		}
		window := s.due()
		if window != 0 {
			if s.lookAtSpace(); s.low.Load() {
				continue
			}
		}
		err := s.applyThrough(window)
		released := s.kept && s.holds.Load() == 0
		if err == nil && time.Since(last) >= s.o.Checkpoint && (s.applied.window != s.saved.window || released) {
			if err = s.checkpoint(); err == nil {
				err = s.collectGarbage()
			}
			last = time.Now()
		}
		if err != nil {
			s.fail(err)
		}
	}
}

// due returns the last window that shouldn't wait any longer, 0 for none.
func (s *Store) due() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := int64(math.MaxInt64)
	if half := s.o.ApplyMax / 2; s.pending.bytes > half {
		keep = half - half/4 // not one by one
	}
	return s.pending.through(time.Now().Add(-s.o.ApplyAge), keep)
}

// applyAll applies all that is pending.
func (s *Store) applyAll() error {
	s.mu.Lock()
	window := s.pending.through(time.Time{}, 0)
	s.mu.Unlock()
	return s.applyThrough(window)
}

// catchUp applies all that is pending for somebody who needs it, with ErrStoreFull while the index is left alone.
func (s *Store) catchUp() error {
	if err := s.usable(); err != nil {
		return err
	}
	s.mu.Lock()
	behind := s.pending.through(time.Time{}, 0) != 0
	s.mu.Unlock()
	if behind && s.low.Load() {
		return engine.ErrStoreFull
	}
	if err := s.applyAll(); err != nil {
		return s.fail(err)
	}
	return nil
}

// applyThrough applies the windows up to one. Only one goroutine does so.
func (s *Store) applyThrough(window uint64) error {
	if window == 0 {
		return nil
	}
	start := time.Now()
	s.mu.Lock()
	batch := s.pending.collect(window)
	next := s.pending.position(window)
	s.mu.Unlock()
	something := len(batch.Defines)+len(batch.Deletes)+len(batch.Levels)+len(batch.Cells)+len(batch.IDs) > 0 ||
		batch.NoIDs ||
		batch.Counters != s.index.Counters()
	if something {
		if err := s.index.Apply(batch); err != nil {
			return fmt.Errorf("apply windows up to %d: %w", window, err)
		}
	}
	s.views.Lock()
	s.mu.Lock()
	if something {
		s.index.Publish()
	}
	s.pending.applied(window)
	s.applied = savedPosition{window, next}
	s.room.Broadcast()
	s.mu.Unlock()
	s.views.Unlock()
	s.measure.applied(batch, time.Since(start))
	return nil
}

// checkpoint makes sure that the index is on the device as it is, and gives back what is needed no more.
func (s *Store) checkpoint() error {
	start := time.Now()
	at := s.applied
	ts, err := s.index.Checkpoint()
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	p := position{window: at.window, next: at.next, epoch: s.journal.Epoch(), time: ts, storeID: s.id}
	if err := p.write(s.o.FS); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil // the one before stands, or this one: both are true until something is freed
	} else if err != nil {
		return fmt.Errorf("checkpoint: position: %w", err)
	}
	s.saved = p
	if s.holds.Load() == 0 {
		s.reading.Lock() // whoever reads an older state is done first
		s.index.Keep(ts)
		s.reading.Unlock()
	}
	s.measure.checkpoints.Add(1)
	s.measure.checkpointTime.Add(int64(time.Since(start)))
	return nil
}
