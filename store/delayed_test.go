package store

import (
	"slices"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
)

// TestDelayedGoesOn fires what the index has a few at a time: what has been fired isn't read again, although the index
// lists it until it has caught up.
func TestDelayedGoesOn(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentSize: 1 << 20, ApplyAge: time.Hour, Alarm: func(what string) { t.Log(what) }}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n, turn = 5000, 100
	records := []engine.Record{{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "a", Name: "q"}}}
	for i := range uint64(n) {
		records = append(records, engine.Record{
			Kind: engine.RecordEnqueue, Queue: 1, Number: i + 1, Message: &engine.Message{Payload: []byte("x"), Priority: 4}, Due: int64(i + 1),
		})
	}
	commit := func(records []engine.Record) {
		t.Helper()
		if err := s.Commit(records); err != nil {
			t.Fatal(err)
		}
	}
	commit(records)
	if _, err := s.Recover(); err != nil { // the index has all
		t.Fatal(err)
	}
	for fired := uint64(0); fired < n; fired += turn {
		due, next, err := s.Delayed(1, engine.Due{}, n, turn)
		if err != nil || len(due) != turn || due[0].Number != fired+1 || next != int64(fired+turn+1)%(n+1) {
			t.Fatalf("after %d: %d entries, the first %+v, then at %d, %v", fired, len(due), due[0], next, err)
		}
		if passed := s.pending.shelves[1]; fired > 0 && passed.passed.Number <= fired-turn {
			t.Fatalf("after %d: only %d are passed over", fired, passed.passed.Number)
		}
		records = records[:0]
		for _, d := range due {
			records = append(records, engine.Record{Kind: engine.RecordDue, Queue: 1, Number: d.Number, Priority: 4})
		}
		commit(records)
	}
	if err := s.ask(s.catchUp); err != nil {
		t.Fatal(err)
	}
	if due, next, err := s.Delayed(1, engine.Due{}, n, turn); len(due) > 0 || next != 0 || err != nil {
		t.Errorf("%v, then at %d, %v, want nothing that waits", due, next, err)
	}
}

// TestDelayCancelsOut has entries fail, wait and be due again before the index sees them: it never does.
func TestDelayCancelsOut(t *testing.T) {
	l := &shelfLevel{}
	for n := range uint64(3) {
		l.put(pendingEntry{Entry: index.Entry{Number: n + 1}, window: 1})
	}
	l.count(&fact{number: 1, count: 1, due: 100}, 2)
	l.count(&fact{number: 2, count: 1, due: 100}, 2)
	l.delay(&fact{number: 1}, 3)
	if len(l.waits) != 1 || l.waits[2] != (pendingWait{100, 1}) {
		t.Errorf("waits = %v, want entry 2 until window 1 is applied", l.waits)
	}
	b := l.collect(1, 4, 1)
	var dues []int64
	for i := range b.Adds {
		dues = append(dues, b.Adds[i].Due())
	}
	if len(b.Edits) > 0 || !slices.Equal(dues, []int64{0, 100, 0}) {
		t.Errorf("edits = %v, due times %v", b.Edits, dues)
	}
	l.delay(&fact{number: 2}, 4)
	l.delay(&fact{number: 3, due: 300}, 4)
	l.applied(1)
	if b := l.collect(1, 4, 4); len(b.Edits) != 2 || len(b.Adds) > 0 || len(l.waits) != 1 {
		t.Errorf("then %+v, %d wait, want two edits", b, len(l.waits))
	}
	l.applied(4)
	if len(l.waits)+len(l.edits)+len(l.entries) > 0 {
		t.Errorf("%+v is left", l)
	}
}
