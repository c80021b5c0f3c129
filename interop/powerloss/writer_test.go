//go:build linux

package powerloss

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/letomq/leto/store"
)

// writerEnv makes the test binary the process that has the store.
const writerEnv = "LETO_POWERLOSS_WRITER"

// order is what a writer is told.
type order struct {
	Dir, Board string
	Seed       uint64
	From, To   int64 // how many batches the store holds, at least and at most
	Last       bool  // look and go

	SegmentSize          int64
	ApplyAge, Checkpoint time.Duration
}

// write checks the store and goes on writing to it until it is killed. It returns the exit code of the process.
func write(text string) int {
	w := writer{}
	err := json.Unmarshal([]byte(text), &w.order)
	if err == nil {
		w.board, err = openBoard(w.Board)
	}
	if err == nil {
		err = w.run()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

type writer struct {
	order
	*board
	*history
	bare bool // the index was taken away on purpose
}

func (w *writer) options() store.Options {
	return store.Options{
		Dir: w.Dir, SegmentSize: w.SegmentSize, Inline: 2000, ApplyMax: 1 << 20, ApplyAge: w.ApplyAge, Checkpoint: w.Checkpoint,
		MemTable: 512 << 10,
		Alarm: func(what string) {
			if w.bare {
				return
			}
			fmt.Println("alarm:", what)
			if strings.Contains(what, "made anew") {
				w.rebuilt.Store(1)
			}
		},
	}
}

func (w *writer) run() error {
	w.history = newHistory(w.Seed)
	for range w.From {
		w.next()
	}
	start := time.Now()
	s, err := store.Open(w.options())
	if err != nil {
		return err
	}
	w.opening.Store(int64(time.Since(start)))
	if err := w.find(s); err != nil {
		return err
	}
	// What was found has been flushed by opening it: from now on it has to stay.
	w.acked.Store(int64(w.made))
	w.open.Store(1)
	if w.Last {
		return w.look(s)
	}
	go w.report(s)
	for {
		if err := s.Commit(w.next()); err != nil {
			return err
		}
		w.acked.Store(int64(w.made))
	}
}

// find brings the history to where the store is.
func (w *writer) find(s *store.Store) error {
	got, state, err := read(s)
	if err != nil {
		return err
	}
	first := w.compare(got, state)
	for err = first; err != nil && int64(w.made) < w.To; {
		w.next()
		if err = w.compare(got, state); err != nil && w.number == state.LastNumber {
			first = err // the likeliest one
		}
	}
	if err != nil {
		return fmt.Errorf("%d to %d batches should be there: %w", w.From, w.To, first)
	}
	return nil
}

// look closes the store and opens it again, and then once more without its index.
func (w *writer) look(s *store.Store) error {
	for _, what := range []string{"after closing", "without an index"} {
		if err := s.Close(); err != nil {
			return err
		}
		if what == "without an index" {
			w.bare = true
			if err := os.RemoveAll(filepath.Join(w.Dir, "index")); err != nil {
				return err
			}
		}
		var err error
		if s, err = store.Open(w.options()); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		got, state, err := read(s)
		if err == nil {
			err = w.compare(got, state)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return s.Close()
}

// report writes on the board what the store does.
func (w *writer) report(s *store.Store) {
	for range time.Tick(time.Millisecond) {
		m := s.Metrics()
		w.relocated.Store(m.Relocated)
		w.freed.Store(m.Freed)
		w.saved.Store(m.Checkpoints)
		w.bad.Store(m.BadBodies)
	}
}
