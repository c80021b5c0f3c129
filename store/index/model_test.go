package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/letomq/leto/store/journal"
)

// model is what an index should hold.
type model struct {
	queues map[uint64]map[uint8]map[uint64]Entry
	last   uint64
}

func newModel() *model { return &model{queues: map[uint64]map[uint8]map[uint64]Entry{}} }

func (m *model) clone() *model {
	c := newModel()
	c.last = m.last
	for q, levels := range m.queues {
		c.queues[q] = map[uint8]map[uint64]Entry{}
		for p, entries := range levels {
			c.queues[q][p] = maps.Clone(entries)
		}
	}
	return c
}

func (m *model) level(q uint64, p uint8) map[uint64]Entry {
	if m.queues[q][p] == nil {
		m.queues[q][p] = map[uint64]Entry{}
	}
	return m.queues[q][p]
}

func randomEntry(r *rand.Rand, number uint64) Entry {
	e := Entry{
		Number:  number,
		Place:   journal.Place{Segment: r.Uint64N(5) + 1, Offset: r.Uint32N(1 << 26), Length: 60 + r.Uint32N(1000), CRC: r.Uint32()},
		Payload: r.Uint64N(50),
	}
	if r.IntN(4) == 0 {
		e.Count, e.Base = r.Uint32N(9)+1, r.Uint32N(2)
	}
	if r.IntN(4) == 0 {
		e.Expiry = r.Int64N(1 << 50)
	}
	switch r.IntN(8) {
	case 0:
		e.Extra = &Extra{Due: r.Int64N(4) * 1000, Annotations: []byte("ann")}
	case 1:
		e.Extra = &Extra{Parts: []Part{{Segment: r.Uint64N(5) + 1, Bytes: 1 << 20}}}
		e.Payload = 1 << 20
	}
	return e
}

// batch makes a random batch and lets the model follow.
func (m *model) batch(r *rand.Rand) *Batch {
	b := &Batch{}
	if len(m.queues) < 3 || r.IntN(30) == 0 {
		q := r.Uint64N(1000) + 1
		b.Defines = append(b.Defines, Definition{Queue: q, Value: []byte(fmt.Sprint("q", q))})
		if m.queues[q] == nil {
			m.queues[q] = map[uint8]map[uint64]Entry{}
		}
	}
	ids := slices.Sorted(maps.Keys(m.queues))
	if len(ids) > 3 && r.IntN(20) == 0 {
		i := r.IntN(len(ids))
		b.Deletes = append(b.Deletes, ids[i])
		delete(m.queues, ids[i])
		ids = slices.Delete(ids, i, i+1)
	}
	for _, q := range ids {
		if r.IntN(3) == 0 {
			continue
		}
		p := uint8(r.IntN(2)) * 9
		entries := m.level(q, p)
		l := &LevelBatch{Queue: q, Priority: p}
		for range r.IntN(3) {
			if m.last == 0 {
				break
			}
			s := Span{First: r.Uint64N(m.last)}
			s.Last = s.First + r.Uint64N(600)
			l.Purges = append(l.Purges, s)
			for n := s.First; n <= s.Last; n++ {
				delete(entries, n)
			}
		}
		numbers := slices.Sorted(maps.Keys(entries))
		drop := r.IntN(3)
		for i, n := range numbers {
			switch {
			case drop == 0 && i < len(numbers)*9/10, drop == 1 && r.IntN(4) == 0:
				l.Edits = append(l.Edits, Edit{Number: n, Kind: EditRemove})
				delete(entries, n)
			case r.IntN(40) == 0:
				c := Entry{Count: r.Uint32N(5), Base: 1}
				if r.IntN(2) == 0 {
					c.Extra = &Extra{Due: r.Int64N(3) * r.Int64N(1<<40), Annotations: []byte("later")}
				}
				l.Edits = append(l.Edits, Edit{Number: n, Kind: EditCount, Entry: &c})
				e := entries[n]
				e.recount(&c)
				entries[n] = e
			case r.IntN(40) == 0:
				for range 1 + r.IntN(3) {
					due := Entry{Extra: &Extra{Due: r.Int64N(3) * r.Int64N(1<<40)}}
					l.Edits = append(l.Edits, Edit{Number: n, Kind: EditDue, Entry: &due})
					e := entries[n]
					e.delay(due.Due())
					entries[n] = e
				}
			case r.IntN(60) == 0:
				e := randomEntry(r, n)
				l.Edits = append(l.Edits, Edit{Number: n, Kind: EditPut, Entry: &e})
				entries[n] = e
				if r.IntN(4) == 0 {
					l.Edits = append(l.Edits, Edit{Number: n, Kind: EditRemove})
					delete(entries, n)
				}
			}
		}
		for range r.IntN(4) { // for what may not be there
			if m.last == 0 {
				break
			}
			n := r.Uint64N(m.last) + 1
			if _, there := entries[n]; there {
				continue
			}
			switch r.IntN(4) {
			case 0:
				l.Edits = append(l.Edits, Edit{Number: n, Kind: EditRemove})
			case 3:
				l.Edits = append(l.Edits, Edit{Number: n, Kind: EditDue, Entry: &Entry{Extra: &Extra{Due: 7}}})
			case 1:
				l.Edits = append(l.Edits, Edit{Number: n, Kind: EditCount, Entry: &Entry{Count: 3}})
			case 2:
				e := randomEntry(r, n)
				l.Edits = append(l.Edits, Edit{Number: n, Kind: EditPut, Entry: &e})
				entries[n] = e
			}
		}
		for range r.IntN(1200) {
			m.last += r.Uint64N(3) + 1
			e := randomEntry(r, m.last)
			l.Adds = append(l.Adds, e)
			entries[m.last] = e
		}
		b.Levels = append(b.Levels, l)
	}
	b.Counters.LastNumber = m.last
	return b
}

func (m *model) check(t *testing.T, x *Index) {
	t.Helper()
	live := map[uint64]Live{}
	refer := func(s uint64, bytes int64) {
		l := live[s]
		l.Bytes += bytes
		l.Entries++
		live[s] = l
	}
	defined := 0
	if err := x.Definitions(func(q uint64, value []byte) error {
		defined++
		if m.queues[q] == nil || string(value) != fmt.Sprint("q", q) {
			t.Errorf("queue %d = %q, want it to be gone or defined", q, value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if defined != len(m.queues) {
		t.Fatalf("%d queues, want %d", defined, len(m.queues))
	}
	for q, levels := range m.queues {
		total, bytes := uint64(0), uint64(0)
		for p, entries := range levels {
			numbers := slices.Sorted(maps.Keys(entries))
			i := 0
			if err := x.Load(x.View(), q, p, 0, func(e *Entry) bool {
				if i >= len(numbers) || e.Number != numbers[i] {
					t.Fatalf("queue %d level %d: entry %d is number %d, of %d", q, p, i, e.Number, len(numbers))
				}
				if want := entries[e.Number]; !reflect.DeepEqual(plain(*e), plain(want)) {
					t.Fatalf("entry %d = %+v, want %+v", e.Number, plain(*e), plain(want))
				}
				i++
				return true
			}); err != nil {
				t.Fatal(err)
			}
			if i != len(numbers) {
				t.Fatalf("queue %d level %d has %d entries, want %d", q, p, i, len(numbers))
			}
			for _, e := range entries {
				total++
				bytes += e.Payload
				refer(e.Place.Segment, int64(e.Place.Length))
				if e.Extra != nil {
					for _, part := range e.Extra.Parts {
						refer(part.Segment, int64(part.Bytes))
					}
				}
			}
			if len(numbers) > 2 { // from the middle
				from := numbers[len(numbers)/2] - 1
				at := slices.IndexFunc(numbers, func(n uint64) bool { return n >= from })
				_ = x.Load(x.View(), q, p, from, func(e *Entry) bool {
					if e.Number != numbers[at] {
						t.Fatalf("from %d: %d, want %d", from, e.Number, numbers[at])
					}
					return false
				})
			}
		}
		m.checkDelayed(t, x, q)
		s, _ := x.Summary(q)
		if n, b := s.Entries(); n != total || b != bytes {
			t.Fatalf("queue %d: summary of %d entries, %d bytes, want %d, %d", q, n, b, total, bytes)
		}
	}
	if err := x.Snapshot().CheckExpiries(func(problem string) { t.Fatal(problem) }); err != nil {
		t.Fatal(err)
	}
	if err := x.Snapshot().CheckDues(func(problem string) { t.Fatal(problem) }); err != nil {
		t.Fatal(err)
	}
	if got := x.Live(); !maps.Equal(got, live) {
		t.Fatalf("live = %v, want %v", got, live)
	}
	if c := x.Counters(); c.LastNumber != m.last {
		t.Fatalf("last number %d, want %d", c.LastNumber, m.last)
	}
}

// checkDelayed compares what a queue has that waits, from the first on and from any other.
func (m *model) checkDelayed(t *testing.T, x *Index, q uint64) {
	t.Helper()
	var want []Delayed
	for p, entries := range m.queues[q] {
		for _, e := range entries {
			if e.Due() != 0 {
				want = append(want, Delayed{At: e.Due(), Priority: p, Number: e.Number, Payload: e.Payload})
			}
		}
	}
	slices.SortFunc(want, Delayed.Compare)
	from := Delayed{}
	for range 2 {
		var got []Delayed
		if err := x.Delayed(x.View(), q, from, func(d Delayed) bool {
			got = append(got, d)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("queue %d: %d entries wait, want %d", q, len(got), len(want))
		}
		if len(want) > 1 {
			want = want[len(want)/2:]
			from = want[0]
		}
	}
	s, _ := x.Summary(q)
	for _, l := range s.Levels {
		n := uint64(0)
		for _, e := range m.queues[q][l.Priority] {
			if e.Due() != 0 {
				n++
			}
		}
		if n != l.Delayed {
			t.Fatalf("queue %d, priority %d: %d entries wait, want %d", q, l.Priority, l.Delayed, n)
		}
	}
}

// plain makes entries comparable: no Extra is the same as an empty one.
func plain(e Entry) any {
	x := Extra{}
	if e.Extra != nil {
		x = *e.Extra
	}
	e.Extra = nil
	if len(x.Annotations) == 0 {
		x.Annotations = nil
	}
	return []any{e, x}
}

func open(t *testing.T, dir string, ts uint64) *Index {
	t.Helper()
	x, err := Open(Options{Dir: dir, MemTable: 512 << 10, Alarm: func(s string) { t.Error(s) }}, ts)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestModel applies random batches, and goes back to the last checkpoint by closing, or by a copy of the files as
// they are, at any time.
func TestModel(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			dir := filepath.Join(t.TempDir(), "0")
			x := open(t, dir, 0)
			m, saved, ts := newModel(), newModel(), uint64(0)
			for round := range 100 {
				if err := x.Apply(m.batch(r)); err != nil {
					t.Fatal(err)
				}
				x.Publish()
				if round%10 == 0 {
					m.check(t, x)
				}
				switch {
				case r.IntN(8) == 0:
					var err error
					if ts, err = x.Checkpoint(); err != nil {
						t.Fatal(err)
					}
					saved = m.clone()
					x.Keep(ts)
				case r.IntN(25) == 0: // as after kill -9
					next := copyFiles(t, dir)
					if err := x.Close(); err != nil {
						t.Fatal(err)
					}
					dir = next
					x = open(t, dir, ts)
					m = saved.clone()
					m.check(t, x)
				case r.IntN(25) == 0:
					if r.IntN(2) == 0 {
						spoil(t, x, r)
					}
					if err := x.Close(); err != nil {
						t.Fatal(err)
					}
					x = open(t, dir, ts)
					m = saved.clone()
					m.check(t, x)
				}
			}
			m.check(t, x)
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// copyFiles copies a folder in which files come and go.
func copyFiles(t *testing.T, dir string) string {
	for {
		next := filepath.Join(t.TempDir(), "copy")
		before, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		err = os.CopyFS(next, os.DirFS(dir))
		if after, _ := filepath.Glob(filepath.Join(dir, "*")); err == nil && slices.Equal(before, after) {
			return next
		}
	}
}

// spoil lets keys be anything, as if a crash had kept some of the commits since the checkpoint and lost others.
func spoil(t *testing.T, x *Index, r *rand.Rand) {
	var keys [][]byte
	for _, table := range []byte{tableQueue, tableRun, tableOverride, tableExpiry, tableDue, tableSummary, tableIDs, tableAddress, tableSegment, tableCounters} {
		if err := x.scanAt(x.ts, []byte{table}, func(key, _ []byte) error {
			keys = append(keys, slices.Clone(key))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	w := x.writer()
	for _, key := range keys {
		err := error(nil)
		switch r.IntN(4) {
		case 0:
			err = w.delete(key)
		case 1:
			err = w.set(key, []byte("spoilt"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.commit(); err != nil {
		t.Fatal(err)
	}
}
