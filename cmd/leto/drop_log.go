package main

import (
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/engine"
)

// dropLog writes of messages that are dropped: for each queue and reason the first at once, and then, once a period,
// how many more there have been. A million that expire at once must not be a million lines.
type dropLog struct {
	log    zerolog.Logger
	period time.Duration

	mu    sync.Mutex
	more  map[dropKey]int // since the line about the first
	rest  int             // of queues and reasons beyond dropKeys
	timer *time.Timer     // nil: nothing was dropped lately
	ended bool
}

type dropKey struct{ queue, reason string }

// dropKeys is about how many queues are told apart in one period.
const dropKeys = 64

func newDropLog(log zerolog.Logger, period time.Duration) *dropLog {
	return &dropLog{log: log, period: period, more: map[dropKey]int{}}
}

// dropped takes note of a message. It may be called from any goroutine.
func (l *dropLog) dropped(d engine.Dropped) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := dropKey{d.Queue, d.Reason}
	switch n, known := l.more[k]; {
	case known:
		l.more[k] = n + 1
		return
	case len(l.more) >= dropKeys:
		l.rest++
		return
	}
	l.more[k] = 0
	l.log.Warn().Str("queue", d.Queue).Uint64("number", d.Number).Str("reason", d.Reason).Msg("message dropped")
	if l.timer == nil && !l.ended {
		l.timer = time.AfterFunc(l.period, l.sum)
	}
}

// sum writes what has been held back, and begins a new period.
func (l *dropLog) sum() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, n := range l.more {
		if n > 0 {
			l.log.Warn().Str("queue", k.queue).Int("messages", n).Str("reason", k.reason).Msg("more messages dropped")
		}
	}
	if l.rest > 0 {
		l.log.Warn().Int("messages", l.rest).Msg("more messages dropped, of other queues")
	}
	clear(l.more)
	l.rest, l.timer = 0, nil
}

// end writes what is held back. Nothing is dropped any more.
func (l *dropLog) end() {
	l.mu.Lock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.sum()
}
