package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/letomq/leto/store/journal"
	"github.com/letomq/leto/store/journal/crashfs"
)

// seeds returns how many seeds a test takes. LETO_SEEDS multiplies them, for a run of hours.
func seeds(n int) int {
	if testing.Short() {
		return max(1, n/4)
	}
	if times, err := strconv.Atoi(os.Getenv("LETO_SEEDS")); err == nil {
		return n * times
	}
	return n
}

// TestCrashAtEveryOperation lets the power go, or kills the process, at every operation of sessions that follow each
// other.
func TestCrashAtEveryOperation(t *testing.T) {
	for seed := range seeds(9) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			capacity := 0
			if seed%3 == 0 {
				capacity = 6
			}
			chain(t, uint64(seed), 8, capacity, func(fs *crashfs.FS, n int) { fs.StopAt(n) },
				func(err error) bool {
					return errors.Is(err, crashfs.ErrCrashed) || capacity > 0 && errors.Is(err, journal.ErrFull)
				})
		})
	}
}

// TestErrorAtEveryOperation lets every operation fail, once or from then on: the journal ends, never flushes again,
// and what was flushed is there after the next start.
func TestErrorAtEveryOperation(t *testing.T) {
	for seed := range seeds(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			chain(t, uint64(seed), 4, 0, func(fs *crashfs.FS, n int) {
				if n%2 == 0 {
					fs.FailAt(n, syscall.EIO)
				} else {
					fs.FailFrom(n, syscall.EIO)
				}
			}, func(err error) bool { return errors.Is(err, syscall.EIO) })
		})
	}
}

// TestFullAtEveryOperation lets the device be full at every operation. What fails for want of space is nowhere.
func TestFullAtEveryOperation(t *testing.T) {
	for seed := range seeds(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			chain(t, uint64(seed), 4, 0, func(fs *crashfs.FS, n int) { fs.FailAt(n, syscall.ENOSPC) },
				func(err error) bool {
					var w wrong
					return !errors.As(err, &w) && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, journal.ErrFailed))
				})
		})
	}
}

// TestCrashWhileOpening kills a process again and again while it opens what a crash left.
func TestCrashWhileOpening(t *testing.T) {
	for seed := range seeds(200) {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		fs, w := crashfs.New(), newWorld()
		fs.StopAt(60 + rng.IntN(60))
		if err := w.session(fs, rng, 30); err != nil && !errors.Is(err, crashfs.ErrCrashed) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for again := range 20 {
			fs = fs.Crash(rng)
			fs.StopAt(1 + rng.IntN(4))
			o := options(fs)
			o.From = w.position
			j, err := w.open(o)
			if err != nil {
				if !errors.Is(err, crashfs.ErrCrashed) {
					t.Fatalf("seed %d, time %d: %v", seed, again, err)
				}
				continue
			}
			if err := abandon(j, fs); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestServiceResumesWhenThereIsSpace fills a device, finds nothing of what was refused, and goes on when there is
// space again.
func TestServiceResumesWhenThereIsSpace(t *testing.T) {
	for _, inline := range []bool{true, false} {
		fs := crashfs.New()
		fs.SetCapacity(3 * small)
		o := options(fs)
		if !inline {
			o = journal.Options{FS: fs, Dir: "journal", StoreID: storeID, SegmentSize: small}
		}
		j := begin(t, o, 1)
		w, rng := newWorld(), rand.New(rand.NewPCG(1, 1))
		full := 0
		for range 200 {
			switch err := w.commit(j, rng); {
			case errors.Is(err, journal.ErrFull):
				w.pending = nil
				full++
				if full == 10 {
					fs.SetCapacity(40 * small)
				}
			case err != nil:
				t.Fatal(err)
			}
			if err := w.checkAll(j); err != nil {
				t.Fatal(err)
			}
		}
		if full < 10 || len(w.kept) < 50 {
			t.Fatalf("%d times full, %d records", full, len(w.kept))
		}
		closeJournal(t, j)
	}
}

// TestFailedFlushAndKill lets the flush of a segment's header fail, or that of its first group, and kills the process.
// The next one reads bytes that are not on the device although no flush of theirs fails any more.
func TestFailedFlushAndKill(t *testing.T) {
	for flushes := range 2 {
		for seed := range uint64(20) {
			fs := crashfs.New()
			j := begin(t, options(fs), 1)
			add(t, j, journal.KindWindow, "first")
			flush(t, j)
			closeJournal(t, j)

			fs = fs.Copy()
			j, err := journal.Open(options(fs))
			if err != nil {
				t.Fatal(err)
			}
			fs.FailAt(2+2*flushes, syscall.EIO) // header, flush, group, flush
			if err := j.Begin(2); !errors.Is(err, journal.ErrFailed) || !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			if err := j.Begin(2); !errors.Is(err, journal.ErrFailed) {
				t.Fatal(err)
			}
			fs = fs.Kill()
			closeJournal(t, j)

			j = begin(t, options(fs), 2)
			add(t, j, journal.KindWindow, "second")
			flush(t, j)
			after := fs.Crash(rand.New(rand.NewPCG(seed, 4)))
			closeJournal(t, j)
			j, err = journal.Open(options(after))
			if err != nil {
				t.Fatal(err)
			}
			if got := replayed(t, j, journal.Position{}); len(got) != 2 {
				t.Fatalf("%q", got)
			}
			closeJournal(t, j)
		}
	}
}
