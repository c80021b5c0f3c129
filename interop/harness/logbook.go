package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// logbook collects what the broker prints and answers questions about it.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed and replaced at every write
}

func newLogbook() *logbook { return &logbook{more: make(chan struct{})} }

// Write appends p and wakes whoever waits for more text.
func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	close(l.more)
	l.more = make(chan struct{})
	return len(p), nil
}

// String is the text so far.
func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// address waits for a whole line that names SCHEME://HOST:PORT and returns HOST:PORT.
func (l *logbook) address(ctx context.Context, scheme string, ended <-chan struct{}) (string, error) {
	pattern := regexp.MustCompile(scheme + `://([^\s/"',]+:[1-9][0-9]*)`)
	for {
		l.mu.Lock()
		whole := l.text.Bytes()[:bytes.LastIndexByte(l.text.Bytes(), '\n')+1]
		found := pattern.FindSubmatch(whole)
		more := l.more
		l.mu.Unlock()
		if found != nil {
			return string(found[1]), nil
		}
		select {
		case <-more:
		case <-ended:
			return "", fmt.Errorf("broker: ended without naming a %s:// address", scheme)
		case <-ctx.Done():
			return "", fmt.Errorf("broker: named no %s:// address: %w", scheme, ctx.Err())
		}
	}
}

// fault is an error when the text shows a crash.
func (l *logbook) fault() error {
	text := l.String()
	for _, sign := range []string{"panic:", "fatal error:", "WARNING: DATA RACE"} {
		if strings.Contains(text, sign) {
			return errors.New("printed " + sign)
		}
	}
	return nil
}
