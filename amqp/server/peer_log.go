package server

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// peerLog writes lines that peers can bring about. Each kind of line is written some times a period; of the rest it is
// said how many there were. Whoever can connect must not be able to fill a disk.
type peerLog struct {
	log zerolog.Logger

	mu    sync.Mutex
	kinds map[string]*heldBack // by message; messages are constants
}

// heldBack is what one kind of line had in the period that began last.
type heldBack struct {
	began         time.Time
	written, more int
	level         zerolog.Level
}

const (
	logPeriod  = time.Second
	logsAtOnce = 20
	// logText bounds what of a peer's words goes into one field of a line, in bytes.
	logText = 200
)

// line begins a line at a level, or returns nil when there have been enough of its kind.
func (l *peerLog) line(now time.Time, level zerolog.Level, message string) *zerolog.Event {
	if level < l.log.GetLevel() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kinds == nil {
		l.kinds = map[string]*heldBack{}
	}
	h := l.kinds[message]
	if h == nil {
		h = &heldBack{began: now, level: level}
		l.kinds[message] = h
	}
	if now.Sub(h.began) >= logPeriod {
		l.flush(message, h)
		h.began, h.written = now, 0
	}
	if h.written >= logsAtOnce {
		h.more++
		return nil
	}
	h.written++
	return l.log.WithLevel(level)
}

// flush says of every kind what has been held back, once its period is over or at once.
func (l *peerLog) flushAll(now time.Time, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for message, h := range l.kinds {
		if all || now.Sub(h.began) >= logPeriod {
			l.flush(message, h)
		}
	}
}

func (l *peerLog) flush(message string, h *heldBack) {
	if h.more > 0 {
		l.log.WithLevel(h.level).Int("more", h.more).Msg(message)
		h.more = 0
	}
}

// brief is text that a peer has a part in, as long as it may be in a line.
func brief(text string) string {
	if len(text) > logText {
		return text[:logText] + "…"
	}
	return text
}
