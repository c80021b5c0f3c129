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
