package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/letomq/leto/store"
	"github.com/letomq/leto/store/journal"
	"github.com/letomq/leto/store/journal/crashfs"
)

// device is a file system that can crash, with what the index's folder was at some of the checkpoints. The index
// itself is on a real one: whatever was flushed by a checkpoint is in every copy made at it or later.
type device struct {
	*crashfs.FS
	t      *testing.T
	rng    *rand.Rand
	mu     sync.Mutex
	dir    string // of the store
	copies []indexCopy
}

type indexCopy struct {
	dir  string
	time uint64
}

// Rename copies the index's folder at some checkpoints, before the position is replaced.
func (d *device) Rename(from, to string) error {
	if to == "position" {
		d.mu.Lock()
		if d.rng.IntN(6) == 0 {
			c := indexCopy{copyStore(d.t, filepath.Join(d.dir, "index")), store.PositionTime(d.ReadFile(from))}
			d.copies = append(d.copies, c)
		}
		d.mu.Unlock()
	}
	return d.FS.Rename(from, to)
}

// lose ends the power: it returns a device with what is left.
func (d *device) lose() *device {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := &device{FS: d.FS.Crash(d.rng), t: d.t, rng: d.rng, dir: d.t.TempDir()}
	saved := store.PositionTime(next.ReadFile("position"))
	pick := ""
	for _, c := range d.copies {
		if c.time >= saved && d.rng.IntN(2) == 0 {
			pick = c.dir
			break
		}
	}
	if pick == "" { // as it is now
		if _, err := os.Stat(filepath.Join(d.dir, "index")); err == nil {
			pick = copyStore(d.t, filepath.Join(d.dir, "index"))
		}
	}
	if pick != "" {
		if err := os.CopyFS(filepath.Join(next.dir, "index"), os.DirFS(pick)); err != nil {
			d.t.Fatal(err)
		}
	}
	return next
}

func (d *device) options() store.Options {
	o := small(d.t, d.dir)
	o.FS = d
	o.SegmentSize = 128 << 10
	o.Inline = 2000
	o.ApplyAge, o.Checkpoint = time.Millisecond, 3*time.Millisecond
	return o
}

var _ journal.FS = (*device)(nil)

// TestPowerLoss cuts the power at random operations of the journal, in chains: each round goes on from what the one
// before has left. What was committed is there, exactly; what wasn't may be there as a whole.
func TestPowerLoss(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			d := &device{FS: crashfs.New(), t: t, rng: rand.New(rand.NewPCG(seed, 4)), dir: t.TempDir()}
			m := newModel()
			after := m // with the batch whose commit failed
			rebuilt := 0
			for round := range 25 {
				if n := 1 + rng.IntN(1+rng.IntN(600)); rng.IntN(4) == 0 {
					d.FailFrom(n, syscall.EIO)
				} else {
					d.StopAt(n)
				}
				if rng.IntN(12) == 0 && round > 0 {
					rebuilt++
					if err := os.RemoveAll(filepath.Join(d.dir, "index")); err != nil {
						t.Fatal(err)
					}
				}
				s, err := store.Open(d.options())
				if err == nil {
					if err = m.diff(s, true); err != nil && !crashed(err) && after != m {
						if e := after.diff(s, true); e == nil {
							m, err = after, nil
						} else if crashed(e) {
							err = e
						}
					}
					if err != nil && !crashed(err) {
						t.Fatalf("round %d: %v", round, err)
					}
					if err == nil {
						after = m
					}
					for err == nil {
						after = m.clone()
						records := after.next(rng, load{queues: 4, large: 50, largest: 30_000, keep: 97})
						if err = s.Commit(records); err == nil {
							m = after
						}
					}
				}
				if !crashed(err) {
					t.Fatalf("round %d: %v", round, err)
				}
				next := d.lose()
				if s != nil {
					s.Close()
				}
				if faults := d.Faults(); len(faults) > 0 {
					t.Fatalf("round %d: %v", round, faults)
				}
				d = next
			}
			s := open(t, d.options())
			if err := m.diff(s, true); err != nil && after.diff(s, true) != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d numbers given, %d times rebuilt", m.last, rebuilt)
		})
	}
}

// crashed says whether an error comes from the crash, or the failure that preceded it.
func crashed(err error) bool {
	return errors.Is(err, crashfs.ErrCrashed) || errors.Is(err, syscall.EIO)
}
