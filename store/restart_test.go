package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
)

// TestRestarts commits at random, closes the store or copies its folder as a kill leaves it at random moments, takes
// the index away now and then, and compares all that it holds.
func TestRestarts(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			o := small(t, t.TempDir())
			o.Inline = 2000
			o.SegmentSize = 256 << 10
			s := open(t, o)
			m := newModel()
			freed, relocated, rebuilt := int64(0), int64(0), 0
			for round := range 600 {
				if err := s.Commit(m.next(r, load{queues: 5, large: 50, largest: 60_000, keep: 97})); err != nil {
					t.Fatal(err)
				}
				if r.IntN(40) == 0 {
					if err := m.diff(s, false); err != nil {
						t.Fatal(err)
					}
				}
				if r.IntN(20) == 0 {
					time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
				}
				if r.IntN(50) != 0 && round != 599 {
					continue
				}
				metrics := s.Metrics()
				freed += metrics.Freed
				relocated += metrics.Relocated
				how := r.IntN(4)
				if how == 1 {
					o.Dir = copyStore(t, o.Dir)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if how >= 2 {
					rebuilt++
					if err := os.RemoveAll(filepath.Join(o.Dir, "index")); err != nil {
						t.Fatal(err)
					}
				}
				s = open(t, o)
				m.check(t, s)
				if report, err := s.Check(); err != nil || len(report.Problems) > 0 {
					t.Fatalf("check: %v, %q", err, report.Problems)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d segments freed, %d entries relocated, %d times rebuilt", freed, relocated, rebuilt)
			if freed == 0 || relocated == 0 {
				t.Error("not everything happened")
			}
		})
	}
}

// TestRecoverLater asks for the state while queues come and go: each definition has its summary.
func TestRecoverLater(t *testing.T) {
	o := small(t, t.TempDir())
	o.ApplyAge = time.Microsecond
	s := open(t, o)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if state, err := s.Recover(); err != nil || len(state.Queues) != len(state.Summaries) {
				done <- fmt.Errorf("%d queues, %d summaries, %w", len(state.Queues), len(state.Summaries), err)
				return
			}
		}
	}()
	for id := engine.QueueID(1); id < 500; id++ {
		records := []engine.Record{{Kind: engine.RecordDefine, Queue: id, Definition: &engine.Definition{ID: id, Address: "a", Name: "q"}}}
		if id > 3 {
			records = append(records, engine.Record{Kind: engine.RecordDelete, Queue: id - 3})
		}
		if err := s.Commit(records); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
