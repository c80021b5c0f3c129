package store_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store"
	"github.com/letomq/leto/store/journal"
	"github.com/letomq/leto/store/journal/crashfs"
)

// meter is a file system that says what it is told to about its free space.
type meter struct {
	journal.FS
	free atomic.Int64
}

func (m *meter) Free() (int64, error) { return m.free.Load(), nil }

// eventually waits for something that a store does on its own.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

func TestSpaceRunsOut(t *testing.T) {
	o := small(t, t.TempDir())
	m := &meter{FS: journal.OS(o.Dir)}
	m.free.Store(10_000)
	o.FS, o.Reserve = m, 1000
	s := open(t, o)
	commit := func(want error, records ...engine.Record) {
		t.Helper()
		if err := s.Commit(records); !errors.Is(err, want) {
			t.Fatalf("commit = %v, want %v", err, want)
		}
	}
	enqueue := func(n uint64) engine.Record {
		return engine.Record{Kind: engine.RecordEnqueue, Queue: 1, Number: n, Message: newModel().message(rand.New(rand.NewPCG(n, 1)), load{})}
	}
	commit(nil, engine.Record{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "a", Name: "q"}})
	commit(nil, enqueue(1), enqueue(2), enqueue(3))

	m.free.Store(999)
	eventually(t, "full", func() bool { return s.Metrics().Full })
	commit(engine.ErrStoreFull, enqueue(4))
	remove := func(n uint64) engine.Record {
		return engine.Record{Kind: engine.RecordRemove, Queue: 1, Number: n, Priority: priorityOf(enqueue(n))}
	}
	commit(nil, remove(1))
	commit(engine.ErrStoreFull, remove(2), enqueue(4)) // none of it
	commit(nil, engine.Record{                         // what moves is there already
		Kind: engine.RecordMove, Queue: 1, Number: 5, From: 1, FromNumber: 2, Priority: priorityOf(enqueue(2)), Message: enqueue(2).Message,
	})
	if s.Room() {
		t.Error("there is room, and no message is taken")
	}

	m.free.Store(499) // the index is left alone
	eventually(t, "low", func() bool { return s.Metrics().Free == 499 })
	applied := s.Metrics().Applies
	commit(nil, remove(3))
	time.Sleep(20 * time.Millisecond)
	if n := s.Metrics().Applies; n > applied+1 {
		t.Errorf("%d applications while there is hardly any space", n-applied)
	}

	m.free.Store(1200)
	eventually(t, "free", func() bool { return s.Metrics().Free == 1200 })
	commit(engine.ErrStoreFull, enqueue(4))
	m.free.Store(1250)
	eventually(t, "not full", func() bool { return !s.Metrics().Full })
	commit(nil, enqueue(4))
	eventually(t, "applied", func() bool { return s.Metrics().PendingWindows == 0 })
	if n := s.Metrics().Entries; n != 2 {
		t.Errorf("%d entries, want 4 and 5", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLittleSpaceThatStays leaves less than half of the reserve, for good: messages are refused, and the index goes on,
// since nobody else can give space back. It waits while somebody fills the device, and goes on when that is over.
func TestLittleSpaceThatStays(t *testing.T) {
	o := small(t, t.TempDir())
	m := &meter{FS: journal.OS(o.Dir)}
	m.free.Store(1 << 30)
	o.FS, o.Reserve, o.SegmentSize = m, 512<<20, 128<<10
	s := open(t, o)
	const n = 1000
	records := []engine.Record{{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "a", Name: "q"}}}
	for i := range uint64(n) {
		records = append(records, engine.Record{Kind: engine.RecordEnqueue, Queue: 1, Number: i + 1, Message: newModel().message(rand.New(rand.NewPCG(i, 1)), load{})})
	}
	for _, r := range records {
		if err := s.Commit([]engine.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "applied", func() bool { return s.Metrics().Entries == n })
	m.free.Store(200 << 20)
	eventually(t, "full", func() bool { return s.Metrics().Full })
	for _, r := range records[1:] {
		if err := s.Commit([]engine.Record{{Kind: engine.RecordRemove, Queue: 1, Number: r.Number, Priority: priorityOf(r)}}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "removed", func() bool { return s.Metrics().Entries == 0 })
	eventually(t, "segments freed", func() bool { return s.Metrics().Freed > 0 })

	// What is hardly enough for the index is too little.
	m.free.Store(20 << 20)
	eventually(t, "seen", func() bool { return s.Metrics().Free == 20<<20 })
	if err := s.Commit([]engine.Record{{Kind: engine.RecordDefine, Queue: 2, Definition: &engine.Definition{ID: 2, Address: "b", Name: "r"}}}); err != nil {
		t.Fatal(err)
	}
	applies := s.Metrics().Applies
	time.Sleep(50 * time.Millisecond)
	if more := s.Metrics().Applies - applies; more > 1 { // one may have been under way
		t.Errorf("%d applications with 20 MiB left", more)
	}
	m.free.Store(1 << 30)
	eventually(t, "not full", func() bool { return !s.Metrics().Full })
	eventually(t, "applied", func() bool { return s.Metrics().PendingWindows == 0 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func priorityOf(r engine.Record) uint8 { return min(r.Message.Priority, 9) }

// TestDeviceFull fills the device to the last byte: what doesn't fit doesn't hold, and it goes on when there is room.
func TestDeviceFull(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	files := crashfs.New()
	files.SetCapacity(1 << 20)
	o := small(t, t.TempDir())
	o.FS, o.SegmentSize, o.Reserve, o.Inline = files, 128<<10, 1, 2000
	s := open(t, o)
	m := newModel()
	refused := 0
	for range 4000 {
		after := m.clone()
		records := after.next(rng, load{queues: 3, keep: 2})
		switch err := s.Commit(records); {
		case err == nil:
			m = after
		case errors.Is(err, engine.ErrStoreFull):
			if refused++; refused == 20 {
				if err := m.diff(s, false); err != nil {
					t.Fatal(err)
				}
				files.SetCapacity(64 << 20)
				eventually(t, "not full", func() bool { return !s.Metrics().Full })
			}
		default:
			t.Fatal(err)
		}
		if refused >= 20 && rng.IntN(50) == 0 {
			break
		}
	}
	if refused < 20 {
		t.Fatalf("refused %d times only", refused)
	}
	if err := m.diff(s, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	m.check(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// cramped is a file system that has no room for a new position while it is told so.
type cramped struct {
	journal.FS
	full    atomic.Bool
	refused atomic.Int64
}

func (c *cramped) Open(name string, create bool) (journal.File, error) {
	if name == "position.tmp" && c.full.Load() {
		c.refused.Add(1)
		return nil, syscall.ENOSPC
	}
	return c.FS.Open(name, create)
}

// TestNoRoomForPosition has checkpoints find no room for the position: the store goes on, and makes them when there is some.
func TestNoRoomForPosition(t *testing.T) {
	o := small(t, t.TempDir())
	files := &cramped{FS: journal.OS(o.Dir)}
	o.FS, o.Checkpoint = files, time.Millisecond
	s := open(t, o)
	m := newModel()
	rng := rand.New(rand.NewPCG(4, 4))
	step := func() {
		t.Helper()
		after := m.clone()
		if err := s.Commit(after.next(rng, load{queues: 3, keep: 2})); err != nil {
			t.Fatal(err)
		}
		m = after
	}
	files.full.Store(true)
	eventually(t, "checkpoints without room", func() bool { step(); return files.refused.Load() > 3 })
	made := s.Metrics().Checkpoints
	files.full.Store(false)
	eventually(t, "checkpoints", func() bool { step(); return s.Metrics().Checkpoints > made+1 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	m.check(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDiskReturns lets messages come and go, some to stay, and drains the queues in the end.
func TestDiskReturns(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 8))
	o := small(t, t.TempDir())
	o.SegmentSize, o.Inline = 128<<10, 2000
	s := open(t, o)
	m := newModel()
	written, most := int64(0), int64(0)
	for range 3000 {
		if err := s.Commit(m.next(rng, load{queues: 4, large: 100, largest: 20_000, keep: 199})); err != nil {
			t.Fatal(err)
		}
		metrics := s.Metrics()
		written = metrics.WindowBytes
		most = max(most, metrics.JournalBytes)
		if metrics.JournalBytes > 3<<20 { // nobody waits for that in real life; here commits are very fast
			eventually(t, "segments freed", func() bool { return s.Metrics().JournalBytes < 3<<20 })
		}
	}
	metrics := s.Metrics()
	t.Logf("%d bytes written, at most %d in segments, %d segments freed, %d entries relocated, %d bytes restated, %d live", written,
		most, metrics.Freed, metrics.Relocated, metrics.Restated, metrics.LiveBytes)
	if metrics.Relocated == 0 {
		t.Error("nothing was relocated")
	}
	for id := range m.queues {
		var records []engine.Record
		for p := range uint8(10) {
			records = append(records, engine.Record{Kind: engine.RecordPurge, Queue: id, Priority: p, Number: m.last})
		}
		m.apply(records)
		if err := s.Commit(records); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "drained", func() bool {
		metrics := s.Metrics()
		return metrics.Entries == 0 && metrics.Segments <= 2 && metrics.LiveBytes == 0
	})
	healthy(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	m.check(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLocked opens a store twice.
func TestLocked(t *testing.T) {
	o := small(t, t.TempDir())
	s := open(t, o)
	if _, err := store.Open(o); !errors.Is(err, store.ErrLocked) {
		t.Errorf("second open = %v, want ErrLocked", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(nil); !errors.Is(err, store.ErrClosed) {
		t.Errorf("commit after close = %v, want ErrClosed", err)
	}
	if err := s.Close(); !errors.Is(err, store.ErrClosed) {
		t.Errorf("second close = %v, want ErrClosed", err)
	}
}

// TestIndexLost takes files of the index away; the store makes it anew and says so.
func TestIndexLost(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 8))
	o := small(t, t.TempDir())
	var alarms atomic.Pointer[string]
	o.Alarm = func(what string) { alarms.Store(&what) }
	s := open(t, o)
	m := newModel()
	for _, lost := range []string{"*.sst", "MANIFEST", "*.mem", "*"} {
		fill(t, s, m, rng, 100)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if removeFiles(t, o.Dir, "index/"+lost) == 0 {
			s = open(t, o)
			continue
		}
		alarms.Store(nil)
		s = open(t, o)
		m.check(t, s)
		healthy(t, s)
		if said := alarms.Load(); said == nil || !strings.Contains(*said, "made anew") {
			t.Errorf("%s lost: alarm = %v, want one", lost, said)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
