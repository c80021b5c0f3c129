//go:build !linux

package bench

import (
	"errors"
	"sync"
	"time"
)

// timer ticks with the runtime's timers: to the millisecond.
type timer struct {
	first  *time.Timer
	ticks  *time.Ticker
	every  time.Duration
	closed chan struct{}
	once   sync.Once
}

// newTicker ticks for the first time after first, which must be positive.
func newTicker(first, interval time.Duration) (ticker, error) {
	return &timer{first: time.NewTimer(first), every: interval, closed: make(chan struct{})}, nil
}

func (t *timer) wait() error {
	next := t.first.C
	if t.ticks != nil {
		next = t.ticks.C
	}
	select {
	case <-t.closed:
		return errors.New("timer: closed")
	case <-next:
	}
	if t.ticks == nil {
		t.ticks = time.NewTicker(t.every)
	}
	return nil
}

func (t *timer) close() { t.once.Do(func() { close(t.closed) }) }
