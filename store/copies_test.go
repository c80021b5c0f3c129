package store_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store"
)

var copyLoad = load{queues: 5, large: 40, largest: 60_000, keep: 11}

func fill(t *testing.T, s *store.Store, m *model, rng *rand.Rand, batches int) {
	t.Helper()
	for range batches {
		if err := s.Commit(m.next(rng, copyLoad)); err != nil {
			t.Fatal(err)
		}
	}
}

func healthy(t *testing.T, s *store.Store) {
	t.Helper()
	r, err := s.Check()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) > 0 {
		t.Fatalf("%d problems, among them %s", len(r.Problems)+r.More, strings.Join(r.Problems[:min(5, len(r.Problems))], "\n"))
	}
}

func TestExport(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	o := small(t, t.TempDir())
	o.Inline = 2000
	s := open(t, o)
	m := newModel()
	fill(t, s, m, rng, 200)
	healthy(t, s)
	var b bytes.Buffer
	if err := s.Export(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()

	o.Dir = t.TempDir()
	if err := store.Import(o, bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	m.check(t, s)
	healthy(t, s)
	fill(t, s, m, rng, 20)
	if err := m.diff(s, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Import(o, bytes.NewReader(whole)); err == nil {
		t.Error("an import into a store that isn't empty has no error")
	}

	for name, spoilt := range map[string][]byte{
		"empty": nil, "cut off": whole[:len(whole)/2], "without end": whole[:len(whole)-16],
		"changed": func() []byte { c := bytes.Clone(whole); c[len(c)/3] ^= 4; return c }(),
	} {
		o.Dir = t.TempDir()
		if err := store.Import(o, bytes.NewReader(spoilt)); !errors.Is(err, store.ErrExport) {
			t.Errorf("%s: error = %v, want ErrExport", name, err)
		}
	}
}

// TestBackup copies a store again and again while it is in use; each copy is what the store was at some moment between
// the call and its return.
func TestBackup(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	o := small(t, t.TempDir())
	o.Inline = 2000
	s := open(t, o)
	m := newModel()
	var mu sync.Mutex // of history
	history := []*model{m.clone()}
	stop := make(chan struct{})
	var committing sync.WaitGroup
	committing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			records := m.next(rng, copyLoad)
			mu.Lock()
			history = append(history, m.clone())
			mu.Unlock()
			if err := s.Commit(records); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for n := range 4 {
		mu.Lock()
		first := len(history) - 1
		if first > 0 { // the last may not hold yet
			first--
		}
		mu.Unlock()
		dir := filepath.Join(t.TempDir(), "copy")
		if err := s.Backup(dir); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		moments := history[first:len(history):len(history)]
		mu.Unlock()
		copied := o
		copied.Dir = dir
		if n%2 == 1 { // a copy is as good without its index
			if err := os.RemoveAll(filepath.Join(dir, "index")); err != nil {
				t.Fatal(err)
			}
		}
		c := open(t, copied)
		found := false
		var err error
		for _, m := range moments {
			if err = m.diff(c, true); err == nil {
				found = true
				break
			}
		}
		if !found {
			t.Fatalf("copy %d is none of %d moments; the last: %v", n, len(moments), err)
		}
		healthy(t, c)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	committing.Wait()
	if err := s.Backup(o.Dir); err == nil {
		t.Error("a backup into a folder that isn't empty has no error")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCheck turns bits in a body and in a record of a sealed segment.
func TestCheck(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 7))
	o := small(t, t.TempDir())
	s := open(t, o)
	m := newModel()
	fill(t, s, m, rng, 50)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := store.Check(o)
	if err != nil || len(r.Problems) > 0 || r.Entries == 0 || r.Queues == 0 || r.Windows == 0 || r.Bytes == 0 {
		t.Fatalf("report = %+v, %v, want no problems", r, err)
	}

	name := filepath.Join(o.Dir, "journal", "0000000000000001.seg")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// A body may have been written again elsewhere, and the one here be of no use.
	in := func(p []byte) (times int) {
		names, err := filepath.Glob(filepath.Join(o.Dir, "journal", "*.seg"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			all, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			times += bytes.Count(all, p)
		}
		return times
	}
	var spoilt []byte // the payload of an entry that is there
	q := m.queues[1]
	for n := range q.entries {
		if p := q.entries[n].Message.Payload; len(p) > 100 && bytes.Contains(b, p) && in(p) == 1 {
			spoilt = p
			break
		}
	}
	if spoilt == nil {
		t.Fatal("no message to spoil")
	}
	b[bytes.Index(b, spoilt)+50] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err = store.Check(o)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(r.Problems, "\n")
	if !strings.Contains(text, "segment 0000000000000001 is corrupt") || !strings.Contains(text, "of queue 1 is corrupt") {
		t.Errorf("problems = %s, want the segment and the message", text)
	}

	// The message is never delivered, the others are.
	s = open(t, o)
	got := 0
	for p := range uint8(10) {
		entries, err := s.Load(1, p, 0, 1<<20, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		got += len(entries)
	}
	for n, e := range q.entries {
		if e.Due == 0 {
			continue
		}
		entries, err := s.Pick(1, min(e.Message.Priority, 9), []uint64{n}, 1)
		if err != nil {
			t.Fatal(err)
		}
		got += len(entries)
	}
	if got != len(q.entries)-1 || s.Metrics().BadBodies != 1 {
		t.Errorf("%d entries, %d bad, want %d, 1", got, s.Metrics().BadBodies, len(q.entries)-1)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// brakeWriter takes one write and then waits.
type brakeWriter struct{ taken, goOn chan struct{} }

func (w brakeWriter) Write(b []byte) (int, error) {
	w.taken <- struct{}{}
	<-w.goOn
	return len(b), nil
}

// TestCloseDuringExport: the export ends early and says so, and the store waits for it.
func TestCloseDuringExport(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 7))
	o := small(t, t.TempDir())
	s := open(t, o)
	m := newModel()
	for exported := 0; exported < 3<<20; { // more than a frame
		records := m.next(rng, load{queues: 2, largest: 60_000, large: 2, keep: 1})
		for i := range records {
			if records[i].Message != nil {
				exported += len(records[i].Message.Payload)
			}
		}
		if err := s.Commit(records); err != nil {
			t.Fatal(err)
		}
	}
	w := brakeWriter{make(chan struct{}, 1000), make(chan struct{})}
	exported, closed := make(chan error, 1), make(chan error, 1)
	go func() { exported <- s.Export(w) }()
	<-w.taken
	go func() { closed <- s.Close() }()
	for !errors.Is(s.Commit(nil), store.ErrClosed) {
		runtime.Gosched()
	}
	select {
	case err := <-closed:
		t.Fatalf("close = %v while somebody reads", err)
	default:
	}
	close(w.goOn)
	if err := <-exported; !errors.Is(err, store.ErrClosed) {
		t.Errorf("export = %v, want ErrClosed", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestSpaceAfterExport: what an export has kept is given back when that ends, also if nothing is committed any more.
func TestSpaceAfterExport(t *testing.T) {
	s := open(t, small(t, t.TempDir()))
	defer s.Close()
	const n = 200
	records := []engine.Record{{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "q", Name: "q"}}}
	for number := uint64(1); number <= n; number++ {
		m := &engine.Message{Durable: true, Priority: 4, Payload: make([]byte, 50_000)}
		records = append(records, engine.Record{Kind: engine.RecordEnqueue, Queue: 1, Number: number, Priority: 4, Message: m})
		if err := s.Commit(records); err != nil {
			t.Fatal(err)
		}
		records = records[:0]
	}
	w := brakeWriter{make(chan struct{}, 1000), make(chan struct{})}
	exported := make(chan error, 1)
	go func() { exported <- s.Export(w) }()
	<-w.taken
	if err := s.Commit([]engine.Record{{Kind: engine.RecordPurge, Queue: 1, Priority: 4, FromNumber: 1, Number: n}}); err != nil {
		t.Fatal(err)
	}
	checkpoints, since := int64(0), time.Now()
	eventually(t, "the last checkpoint", func() bool { // none for 20 times as long as it takes
		m := s.Metrics()
		if m.Entries > 0 || m.Checkpoints != checkpoints {
			checkpoints, since = m.Checkpoints, time.Now()
		}
		return time.Since(since) > 100*time.Millisecond
	})
	if n := s.Metrics().Segments; n < 10 {
		t.Fatalf("%d segments during an export, want all that had messages", n)
	}
	close(w.goOn)
	if err := <-exported; err != nil {
		t.Fatal(err)
	}
	eventually(t, "segments given back", func() bool { return s.Metrics().Segments < 6 })
}
