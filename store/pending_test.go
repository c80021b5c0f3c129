package store

import (
	"testing"
	"time"

	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// TestPendingAllocations enters windows whose messages are gone with the next: they cost nothing but the time.
func TestPendingAllocations(t *testing.T) {
	x, err := index.Open(index.Options{Dir: t.TempDir()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	p := newPending(x)
	p.queues[1] = struct{}{}
	m := &queue.Message{Payload: make([]byte, 100), Durable: true, Priority: 4, Address: "a"}
	var w windowWriter
	number, window := uint64(0), uint64(0)
	const messages = 100
	enter := func() {
		w.reset()
		for n := range uint64(messages) {
			if number > 0 {
				w.remove(1, number-messages+n+1, 4)
			}
			w.last = nil
			w.body(m, nil)
			w.enqueue(factEnqueue, 1, number+n+1, 4, w.bodies, 0, 0)
			w.annotations(nil)
		}
		number += messages
		window++
		if err := p.enter(w.b, journal.Record{Index: window, Segment: 1, Offset: 4096}, int64(len(w.b)), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if window > 3 {
			if b := p.collect(window - 2); len(b.Levels) > 0 {
				t.Fatalf("%d entries are left", len(b.Levels[0].Adds))
			}
			p.applied(window - 2)
		}
	}
	for range 10 {
		enter()
	}
	if n := testing.AllocsPerRun(100, enter); n > 5 {
		t.Errorf("%v allocations for %d messages", n, messages)
	}
}

// TestRelocationBesideManyEdits: what a held message costs to relocate doesn't grow with what others consume meanwhile,
// for nobody can commit until it is known.
func TestRelocationBesideManyEdits(t *testing.T) {
	const held, consumed = 1000, 200_000
	l := &shelfLevel{floor: 1 << 40}
	l.remove(1, 1)
	l.count(&fact{number: 3, count: 3, base: 1}, 1)
	for n := range uint64(consumed) {
		l.remove(held+1+n, 1)
	}
	r := relocating{store: &Store{pending: &pending{shelves: map[uint64]*shelf{1: {levels: [index.Priorities]*shelfLevel{4: l}}}}}}
	for n := range uint64(held) {
		r.ready = append(r.ready, relocated{queue: 1, priority: 4, number: 1 + n})
	}
	start := time.Now()
	r.removed()
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("%v for %d entries beside %d edits", took, held, consumed)
	}
	if len(r.ready) != held-1 || r.ready[0].number != 2 || r.ready[1].entry.Count != 3 || r.ready[2].entry.Count != 0 {
		t.Errorf("%d entries, the first %d with count %d", len(r.ready), r.ready[0].number, r.ready[1].entry.Count)
	}
}
