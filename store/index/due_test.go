package index

import (
	"math/rand/v2"
	"testing"
)

// TestDelayLeavesNothing has entries wait and be due again in one batch: nothing of that is in the tables but counts.
func TestDelayLeavesNothing(t *testing.T) {
	x := open(t, t.TempDir(), 0)
	defer x.Close()
	l := &LevelBatch{Queue: 1, Priority: 4}
	for n := range uint64(10) {
		l.Adds = append(l.Adds, randomEntry(rand.New(rand.NewPCG(n, 1)), n+1))
		l.Adds[n].Extra = nil
	}
	apply := func(b *Batch) {
		t.Helper()
		if err := x.Apply(b); err != nil {
			t.Fatal(err)
		}
		x.Publish()
	}
	keys := func(table byte) (n int) {
		if err := x.scan(table, func(_, _ []byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	apply(&Batch{Defines: []Definition{{Queue: 1, Value: []byte("q")}}, Levels: []*LevelBatch{l}})
	wait, ready := &Entry{Extra: &Extra{Due: 9}}, &Entry{}
	apply(&Batch{Levels: []*LevelBatch{{Queue: 1, Priority: 4, Edits: []Edit{
		{Number: 1, Kind: EditDue, Entry: wait}, {Number: 2, Kind: EditDue, Entry: wait}, {Number: 1, Kind: EditDue, Entry: ready},
		{Number: 2, Kind: EditRemove}, {Number: 2, Kind: EditDue, Entry: wait}, {Number: 3, Kind: EditDue, Entry: ready},
	}}}})
	if n := keys(tableDue); n != 0 {
		t.Errorf("%d entries are listed to be due, want none", n)
	}
	apply(&Batch{Levels: []*LevelBatch{{Queue: 1, Priority: 4, Edits: []Edit{
		{Number: 4, Kind: EditDue, Entry: wait}, {Number: 5, Kind: EditDue, Entry: wait},
	}}}})
	if n := keys(tableDue); n != 2 {
		t.Errorf("%d entries are listed to be due, want 2", n)
	}
	for name, spoil := range map[string]func(w *writer) error{
		"missing":    func(w *writer) error { return w.delete(appendDueKey(nil, 1, 9, 4, 5)) },
		"added":      func(w *writer) error { return w.set(appendDueKey(nil, 1, 8, 4, 5), []byte{1}) },
		"other size": func(w *writer) error { return w.set(appendDueKey(nil, 1, 9, 4, 5), []byte{200, 1}) },
	} {
		whole := x.ts
		w := x.writer()
		if err := spoil(w); err != nil {
			t.Fatal(err)
		}
		if err := w.commit(); err != nil {
			t.Fatal(err)
		}
		problems := 0
		s := x.Snapshot()
		s.view = x.ts
		if err := s.CheckDues(func(string) { problems++ }); err != nil || problems == 0 {
			t.Errorf("%s: %d problems, %v, want some", name, problems, err)
		}
		if err := x.rollBack(whole); err != nil {
			t.Fatal(err)
		}
	}
	apply(&Batch{Deletes: []uint64{1}})
	if due, overrides := keys(tableDue), keys(tableOverride); due != 0 || overrides != 0 {
		t.Errorf("%d entries of a deleted queue are listed to be due, %d changed", due, overrides)
	}
}

// TestOlderSummary reads a summary of a store that knew nothing of due times.
func TestOlderSummary(t *testing.T) {
	s, err := decodeSummary([]byte{1, 2, 4, 10, 100, 3, 20, 1, 9, 1, 5, 7, 7, 0})
	if err != nil || len(s.Levels) != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	if want := (Level{Priority: 4, Entries: 10, Bytes: 100, Head: 3, Last: 20, Overrides: 1}); s.Levels[0] != want {
		t.Errorf("level = %+v, want %+v", s.Levels[0], want)
	}
	if _, err := decodeSummary([]byte{3, 0}); err == nil {
		t.Error("a summary of a later form reads well")
	}
}
