package store_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store"
	"github.com/letomq/leto/store/journal"
	"github.com/letomq/leto/store/storetest"
)

func openSpill(t *testing.T, o store.SpillOptions) *store.Spill {
	t.Helper()
	if o.Alarm == nil {
		o.Alarm = func(what string) { t.Logf("alarm: %s", what) }
	}
	s, err := store.OpenSpill(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSpillContract(t *testing.T) {
	dir := t.TempDir()
	s := openSpill(t, store.SpillOptions{Dir: dir, SegmentSize: 1 << 20, Checkpoint: 5 * time.Millisecond})
	storetest.Spill{
		Steps: 3000,
		Payload: func(rng *rand.Rand) int {
			if rng.IntN(500) == 0 {
				return rng.IntN(600_000) // in parts
			}
			return rng.IntN(400)
		},
		Check: func(t *testing.T, _ engine.Spill) {
			// The last segment, one that is ready for what comes next, and one that is kept for later.
			eventually(t, "segments come back", func() bool { return s.Size() <= 3<<20 })
			if m := s.Metrics(); m.Restated > 0 || m.BadBodies > 0 {
				t.Errorf("metrics = %+v, want nothing restated", m)
			}
		},
	}.Run(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "spill")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder after close: %v, want none", err)
	}
}

// A slow queue between busy ones doesn't keep their segments.
func TestSpillIsNotPinnedBySlowQueues(t *testing.T) {
	s := openSpill(t, store.SpillOptions{Dir: t.TempDir(), SegmentSize: 1 << 20, Checkpoint: 5 * time.Millisecond})
	defer s.Close()
	define := func(q engine.QueueID) engine.Record {
		return engine.Record{Kind: engine.RecordDefine, Queue: q, Definition: &engine.Definition{ID: q}}
	}
	commit := func(records ...engine.Record) {
		t.Helper()
		if err := s.Commit(records); err != nil {
			t.Fatal(err)
		}
	}
	commit(define(1), define(2))
	enqueue := func(q engine.QueueID, n uint64, size int) engine.Record {
		return engine.Record{
			Kind: engine.RecordEnqueue, Queue: q, Number: n, Priority: 4, Message: &engine.Message{Payload: make([]byte, size), Priority: 4},
		}
	}
	const rounds = 400
	for n := range uint64(rounds) {
		commit(enqueue(1, 2*n+1, 100), enqueue(2, 2*n+2, 50_000))
	}
	commit(engine.Record{Kind: engine.RecordPurge, Queue: 2, Priority: 4, FromNumber: 1, Number: 2 * rounds})
	eventually(t, "segments are emptied", func() bool {
		commit(engine.Record{Kind: engine.RecordRemove, Queue: 2, Number: 1, Priority: 4}) // something goes on
		return s.Size() <= 6<<20
	})
	found, err := s.Load(1, 4, 0, 10_000, 1<<30)
	if err != nil || len(found) != rounds {
		t.Errorf("load = %d entries, %v, want %d", len(found), err, rounds)
	}
}

func TestSpillStopsBeforeTheStoreDoes(t *testing.T) {
	dir := t.TempDir()
	m := &meter{FS: journal.OS(filepath.Join(dir, "spill"))}
	m.free.Store(1400)
	s := openSpill(t, store.SpillOptions{Dir: dir, FS: m, Reserve: 1000})
	defer s.Close()
	define := engine.Record{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1}}
	enqueue := engine.Record{Kind: engine.RecordEnqueue, Queue: 1, Number: 1, Priority: 4, Message: &engine.Message{Priority: 4}}
	if err := s.Commit([]engine.Record{define}); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit([]engine.Record{enqueue}); !errors.Is(err, engine.ErrStoreFull) {
		t.Errorf("commit with the store's reserve nearly reached = %v, want ErrStoreFull", err)
	}
	m.free.Store(4000)
	eventually(t, "it goes on", func() bool { return s.Commit([]engine.Record{enqueue}) == nil })
}

// What can't be read is passed over: nobody waits for it.
func TestSpillPassesOverWhatCantBeRead(t *testing.T) {
	dir := t.TempDir()
	s := openSpill(t, store.SpillOptions{Dir: dir, SegmentSize: 1 << 20})
	defer s.Close()
	records := []engine.Record{{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1}}}
	for n := range uint64(100) {
		records = append(records, engine.Record{
			Kind: engine.RecordEnqueue, Queue: 1, Number: n + 1, Priority: 4, Message: &engine.Message{Payload: make([]byte, 20_000), Priority: 4},
		})
		if err := s.Commit(records); err != nil {
			t.Fatal(err)
		}
		records = records[:0]
	}
	names, err := filepath.Glob(filepath.Join(dir, "spill", "journal", "0*.seg"))
	if err != nil || len(names) < 2 {
		t.Fatalf("segments: %q, %v", names, err)
	}
	if err := os.Truncate(names[0], 500_000); err != nil { // the rest of it can't be read any more
		t.Fatal(err)
	}
	found, err := s.Load(1, 4, 0, 1000, 1<<30)
	if err != nil || len(found) < 50 || len(found) > 99 || found[len(found)-1].Number != 100 {
		t.Errorf("load = %d entries, %v, want some of 100, the last as well", len(found), err)
	}
	if m := s.Metrics(); m.BadBodies != int64(100-len(found)) {
		t.Errorf("%d bad bodies, want %d", m.BadBodies, 100-len(found))
	}
}

// Nothing of a spill is there when the store is opened again, also after a crash.
func TestStoreRemovesSpill(t *testing.T) {
	o := small(t, t.TempDir())
	s := open(t, o)
	spill := openSpill(t, store.SpillOptions{Dir: o.Dir, SegmentSize: 1 << 20})
	spilled := copyStore(t, o.Dir)
	if _, err := os.Stat(filepath.Join(spilled, "spill", "journal")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(spill.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	o.Dir = spilled
	s = open(t, o)
	defer s.Close()
	if _, err := os.Stat(filepath.Join(spilled, "spill")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("spill after opening: %v, want none", err)
	}
}
