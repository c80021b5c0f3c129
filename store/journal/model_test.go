package journal_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/letomq/leto/store/journal"
	"github.com/letomq/leto/store/journal/crashfs"
)

// world is what the store around a journal would remember: what it was told that holds, and its position file.
type world struct {
	kept     []kept // flushed, of segments that weren't freed, by index
	pending  []kept // of the group whose flush didn't return
	position journal.Position
	freed    map[uint64]bool // Free was called; true: it returned, and they are gone
	serial   int             // makes payloads different
}

type kept struct {
	journal.Record
	payload string
}

func newWorld() *world { return &world{freed: map[uint64]bool{}} }

func (w *world) isFreed(segment uint64) bool {
	_, called := w.freed[segment]
	return called
}

func (w *world) copy() *world {
	c := *w
	c.kept, c.pending, c.freed = slices.Clone(w.kept), slices.Clone(w.pending), maps.Clone(w.freed)
	return &c
}

// session is one life of a process: it opens the journal, checks it against the world, and works with it until
// something fails. What it does depends on rng and on the file system alone.
func (w *world) session(fs *crashfs.FS, rng *rand.Rand, steps int) error {
	o := options(fs)
	o.Spares = rng.IntN(3)
	o.From = w.position
	j, err := w.open(o)
	if err != nil {
		return err
	}
	err = w.work(j, rng, steps)
	if err == nil && rng.IntN(2) == 0 {
		return j.Close()
	}
	return errors.Join(err, abandon(j, fs))
}

// abandon ends a journal's life without letting it write anything.
func abandon(j *journal.Journal, fs *crashfs.FS) error {
	fs.StopAt(1)
	_ = fs.SyncDir("journal")
	if err := j.Close(); err != nil && !errors.Is(err, crashfs.ErrCrashed) {
		return err
	}
	return nil
}

// open opens the journal and checks that everything that was flushed is there, in order, and nothing else but a
// beginning of the group that was not.
func (w *world) open(o journal.Options) (*journal.Journal, error) {
	j, err := journal.Open(o)
	if err != nil {
		return nil, err
	}
	if err := w.check(j); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// wrong says that the journal did something wrong, unlike what an injected fault does.
type wrong string

func (e wrong) Error() string { return string(e) }

func wrongf(format string, args ...any) error { return wrong(fmt.Sprintf(format, args...)) }

func (w *world) check(j *journal.Journal) error {
	want, _ := slices.BinarySearchFunc(w.kept, w.position.Index, func(k kept, index uint64) int {
		return int(int64(k.Index) - int64(index))
	})
	pending := w.pending
	index, epoch := w.position.Index, uint64(0)
	err := j.Replay(w.position, func(rec journal.Record) error {
		if index != 0 && rec.Index != index {
			return wrongf("index %d where %d comes next", rec.Index, index)
		}
		if rec.Epoch < epoch {
			return wrongf("epoch %d after %d", rec.Epoch, epoch)
		}
		index, epoch = rec.Index+1, rec.Epoch
		if rec.Kind == journal.KindEpoch {
			return nil
		}
		if want < len(w.kept) {
			if err := w.kept[want].matches(rec); err != nil {
				return err
			}
			want++
			return nil
		}
		if len(pending) == 0 {
			return wrongf("record %d was never appended, or dropped", rec.Index)
		}
		if err := pending[0].matches(rec); err != nil {
			return err
		}
		w.kept = append(w.kept, pending[0])
		want++
		pending = pending[1:]
		return nil
	})
	if err != nil {
		return err
	}
	if want < len(w.kept) {
		return wrongf("record %d was flushed, and is missing", w.kept[want].Index)
	}
	w.pending = nil
	for _, s := range j.Segments() {
		if w.freed[s.Number] {
			return wrongf("segment %d was freed, and is back", s.Number)
		}
	}
	for _, k := range w.kept {
		if !w.isFreed(k.Segment) {
			b := make([]byte, k.Length)
			if err := j.ReadAt(k.Segment, k.Offset, b); err != nil {
				return err
			}
			if string(b) != k.payload {
				return wrongf("record %d reads otherwise", k.Index)
			}
		}
	}
	return nil
}

func (k *kept) matches(rec journal.Record) error {
	if string(rec.Payload) != k.payload {
		return wrongf("record %d has another payload: %.20q, want %.20q", rec.Index, rec.Payload, k.payload)
	}
	rec.Payload = nil
	if fmt.Sprint(rec) != fmt.Sprint(k.Record) {
		return wrongf("record %+v, want %+v", rec, k.Record)
	}
	return nil
}

// checkAll reads the journal from its first segment on: everything is there but what lay in freed segments.
func (w *world) checkAll(j *journal.Journal) error {
	var want []kept
	for _, k := range w.kept {
		if !w.isFreed(k.Segment) {
			want = append(want, k)
		}
	}
	err := j.Replay(journal.Position{}, func(rec journal.Record) error {
		if len(want) > 0 && rec.Index == want[0].Index {
			err := want[0].matches(rec)
			want = want[1:]
			return err
		}
		return nil
	})
	if err == nil && len(want) > 0 {
		return wrongf("record %d is missing when all segments are read", want[0].Index)
	}
	return err
}

func (w *world) work(j *journal.Journal, rng *rand.Rand, steps int) error {
	epoch := max(1, j.Epoch()+uint64(rng.IntN(2)))
	for {
		err := j.Begin(epoch)
		if err == nil {
			break
		}
		if !errors.Is(err, journal.ErrFull) || !w.free(j) {
			return err
		}
	}
	for range steps {
		switch rng.IntN(8) {
		case 0: // the index is applied and on the device up to some record
			if n := len(w.kept); n > 0 {
				if next := w.kept[rng.IntN(n)].Next(); next.Index > w.position.Index {
					w.position = next
				}
			}
		case 1:
			for _, s := range j.Segments() {
				if s.Number < w.position.Segment && rng.IntN(2) == 0 {
					w.freed[s.Number] = false
					if err := j.Free(s.Number); err != nil {
						return err
					}
					w.freed[s.Number] = true
				}
			}
		case 2:
			if err := w.checkAll(j); err != nil {
				return err
			}
		default:
			if err := w.commit(j, rng); errors.Is(err, journal.ErrFull) {
				w.pending = nil
				if !w.free(j) {
					return nil
				}
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// commit appends a group and flushes it.
func (w *world) commit(j *journal.Journal, rng *rand.Rand) error {
	for range 1 + rng.IntN(4) {
		w.serial++
		size := rng.IntN(300)
		switch rng.IntN(8) {
		case 0:
			size = rng.IntN(int(j.MaxPayload()) - 20)
		case 1, 2, 3:
			size = rng.IntN(9000)
		}
		kind := journal.KindWindow + journal.Kind(rng.IntN(2))
		payload := fmt.Sprintf("%08d", w.serial) + strings.Repeat(string(rune('a'+w.serial%26)), size)
		rec, err := j.Append(kind, []byte(payload[:3]), []byte(payload[3:]))
		if err != nil {
			w.pending = nil // nothing of it is written
			return err
		}
		w.pending = append(w.pending, kept{rec, payload})
	}
	if err := j.Flush(); err != nil {
		return err
	}
	w.kept, w.pending = append(w.kept, w.pending...), nil
	return nil
}

// free makes room: everything that was flushed is applied, and its segments are given back. It says whether there
// were any.
func (w *world) free(j *journal.Journal) bool {
	w.position = j.End()
	some := false
	for _, s := range j.Segments() {
		if s.Number < w.position.Segment {
			w.freed[s.Number] = false
			if j.Free(s.Number) != nil {
				return false
			}
			w.freed[s.Number], some = true, true
		}
	}
	return some
}

// chain runs sessions, each on what the one before left. In each the operation with number 1, 2, 3 … fails by fault,
// until there is none with that number; after each the power goes, or the process is killed, and the outcome is
// checked. One of the outcomes, by chance, is where the next session starts.
func chain(t *testing.T, seed uint64, sessions, capacity int, fault func(fs *crashfs.FS, n int), known func(error) bool) {
	rng := rand.New(rand.NewPCG(seed, 1))
	fs, w := crashfs.New(), newWorld()
	fs.SetCapacity(int64(capacity) * small)
	outcomes := 0
	for session := range sessions {
		next, nextWorld := fs, w
		plan := rng.Uint64()
		steps := 4 + rng.IntN(16)
		for n := 1; ; n++ {
			at := fmt.Sprintf("seed %d, session %d, operation %d", seed, session, n)
			fs, w := fs.Copy(), w.copy()
			fault(fs, n)
			err := w.session(fs, rand.New(rand.NewPCG(plan, 2)), steps)
			if err != nil && !known(err) {
				t.Fatalf("%s: %v", at, err)
			}
			if faults := fs.Faults(); len(faults) > 0 {
				t.Fatalf("%s: %v", at, faults)
			}
			var after *crashfs.FS
			if rng.IntN(4) == 0 {
				after = fs.Kill()
			} else {
				after = fs.Crash(rng)
			}
			after.SetCapacity(int64(capacity) * small)
			outcomes++
			trial, trialWorld := after.Copy(), w.copy()
			o := options(trial)
			o.From = w.position
			j, err := trialWorld.open(o)
			if err != nil {
				t.Fatalf("%s: after the crash: %v", at, err)
			}
			if err := trialWorld.checkAll(j); err != nil {
				t.Fatalf("%s: after the crash: %v", at, err)
			}
			closeJournal(t, j)
			if rng.IntN(n) == 0 {
				next, nextWorld = after, w
			}
			if fs.Ops() < n {
				break
			}
		}
		fs, w = next, nextWorld
	}
	t.Logf("%d outcomes", outcomes)
}
