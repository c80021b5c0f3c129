package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// Spill is a spill under test beside a plain one: queues and priorities that fill at one end and empty at the other.
type Spill struct {
	Steps   int                                // commits and loads
	Settle  func()                             // called now and then: have what goes on in the background be done
	Check   func(t *testing.T, s engine.Spill) // called while it is empty; may be nil
	Payload func(rng *rand.Rand) int           // bytes of a payload
}

type spillLevel struct {
	queue    engine.QueueID
	priority uint8
	entries  []engine.Stored
}

// Run compares a spill with the plain one, step by step.
func (c Spill) Run(t *testing.T, s engine.Spill) {
	rng := rand.New(rand.NewPCG(1, uint64(c.Steps)))
	levels := map[int]*spillLevel{}
	number, lastQueue := uint64(0), engine.QueueID(0)
	commit := func(records []engine.Record) {
		t.Helper()
		if err := s.Commit(records); err != nil {
			t.Fatalf("commit: %v", err)
		}
	}
	make := func(slot int) {
		lastQueue++
		commit([]engine.Record{{Kind: engine.RecordDefine, Queue: lastQueue, Definition: &engine.Definition{ID: lastQueue}}})
		for p := range 3 {
			levels[slot*3+p] = &spillLevel{queue: lastQueue, priority: uint8(p * 4)}
		}
	}
	purge := func(l *spillLevel, n int) {
		if n == 0 {
			return
		}
		commit([]engine.Record{{
			Kind: engine.RecordPurge, Queue: l.queue, Priority: l.priority, FromNumber: l.entries[0].Number, Number: l.entries[n-1].Number,
		}})
		l.entries = l.entries[n:]
	}
	fire := func(id engine.QueueID) {
		var want []engine.Due
		at := map[uint64]*engine.Stored{}
		for _, l := range levels {
			for i := range l.entries {
				if e := &l.entries[i]; l.queue == id && e.Due != 0 {
					want = append(want, engine.Due{Queue: id, Priority: l.priority, Number: e.Number, Bytes: e.Message.Size(), At: e.Due})
					at[e.Number] = e
				}
			}
		}
		slices.SortFunc(want, func(a, b engine.Due) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
		})
		n, until, next := 1+rng.IntN(50), rng.Int64N(150), int64(0)
		for i := range want {
			if i == n || want[i].At > until {
				next, want = want[i].At, want[:i]
				break
			}
		}
		due, soon, err := s.Delayed(id, engine.Due{}, until, n)
		if err != nil || soon != next || !slices.Equal(due, want) {
			t.Fatalf("queue %d until %d: %v, then at %d, %v, want %v, then at %d", id, until, due, soon, err, want, next)
		}
		if len(want) > 0 {
			i := rng.IntN(len(want))
			rest, soon, err := s.Delayed(id, want[i], until, n-i-1)
			if err != nil || soon != next || !slices.Equal(rest, want[i+1:]) {
				t.Fatalf("queue %d behind %v until %d: %v, then at %d, %v, want %v, then at %d", id, want[i], until, rest, soon, err, want[i+1:], next)
			}
		}
		var records []engine.Record
		for _, d := range due {
			e := at[d.Number]
			if e.Due = 0; d.Number%5 == 0 {
				e.Due = 60 + rng.Int64N(60)
			}
			records = append(records, engine.Record{Kind: engine.RecordDue, Queue: id, Number: d.Number, Priority: d.Priority, Due: e.Due})
		}
		commit(records)
	}
	for slot := range 3 {
		make(slot)
	}
	for step := range c.Steps {
		if step%500 == 499 && c.Settle != nil {
			c.Settle()
		}
		filling := step/(c.Steps/6)%2 == 0
		l := levels[rng.IntN(len(levels))]
		switch k := rng.IntN(10); {
		case k < 1 && rng.IntN(20) == 0: // a queue goes, and another one comes
			slot := rng.IntN(3)
			commit([]engine.Record{{Kind: engine.RecordDelete, Queue: levels[slot*3].queue}})
			if found, err := s.Load(levels[slot*3].queue, 0, 0, 10, 1<<20); len(found) > 0 || err != nil {
				t.Fatalf("deleted queue has %d entries, %v", len(found), err)
			}
			make(slot)
		case k < 3 && rng.IntN(3) == 0:
			fire(l.queue)
		case k < 6 && filling || k < 2:
			var records []engine.Record
			for range 1 + rng.IntN(200) {
				number++
				e := engine.Stored{Number: number, Message: &queue.Message{
					Payload: fill(c.Payload(rng), number), Priority: l.priority, Durable: number%2 == 0, Address: fmt.Sprint("a", number%3),
					TTL: uint32(number), Expiry: int64(number % 5), Arrived: int64(number),
				}}
				if number%7 == 0 {
					e.Count, e.Base = 3, 2
					e.Annotations = []queue.Annotation{{Key: "x-a", Value: int64(number)}}
				}
				if rng.IntN(20) == 0 {
					e.Due = 1 + rng.Int64N(100)
				}
				records = append(records, engine.Record{
					Kind: engine.RecordEnqueue, Queue: l.queue, Number: number, Priority: l.priority, Message: e.Message,
					Count: e.Count, Base: e.Base, Due: e.Due, Annotations: e.Annotations,
				})
				l.entries = append(l.entries, e)
			}
			if len(records) > 2 && rng.IntN(3) == 0 { // some come late
				records[0], records[len(records)-1] = records[len(records)-1], records[0]
			}
			commit(records)
		default:
			from := uint64(0)
			at := 0
			if len(l.entries) > 0 && rng.IntN(3) == 0 { // somewhere, as a browser does
				at = rng.IntN(len(l.entries))
				from = l.entries[at].Number
			}
			n, bytes := 1+rng.IntN(300), 1+rng.IntN(100_000)
			found, err := s.Load(l.queue, l.priority, from, n, bytes)
			if err != nil {
				t.Fatalf("load: %v", err)
			}
			var want []*engine.Stored
			passed := at // so many are found, or stand between those
			for i := at; i < len(l.entries) && len(want) < n && bytes > 0; i++ {
				if e := &l.entries[i]; e.Due == 0 {
					want = append(want, e)
					passed = i + 1
					bytes -= e.Message.Size()
				}
			}
			if len(found) != len(want) {
				t.Fatalf("step %d: load from %d: %d entries, want %d", step, from, len(found), len(want))
			}
			for i := range found {
				compare(t, &found[i], want[i])
			}
			if at == 0 {
				purge(l, passed)
			}
		}
	}
	for _, l := range levels {
		purge(l, len(l.entries))
		if found, err := s.Load(l.queue, l.priority, 0, 10, 1<<20); len(found) > 0 || err != nil {
			t.Fatalf("purged level has %d entries, %v", len(found), err)
		}
	}
	if c.Check != nil {
		c.Check(t, s)
	}
}

func fill(n int, number uint64) []byte {
	b := slices.Repeat([]byte{byte(number)}, n)
	copy(b, fmt.Sprint(number))
	return b
}

func compare(t *testing.T, got, want *engine.Stored) {
	t.Helper()
	g, w := got.Message, want.Message
	if got.Number != want.Number || got.Due != want.Due || got.Count != want.Count || got.Base != want.Base ||
		!slices.Equal(got.Annotations, want.Annotations) || string(g.Payload) != string(w.Payload) || g.Priority != w.Priority ||
		g.Durable != w.Durable || g.Address != w.Address || g.TTL != w.TTL || g.Expiry != w.Expiry || g.Arrived != w.Arrived {
		t.Fatalf("entry %d came back as %+v %+v, want %+v %+v", want.Number, got, g, want, w)
	}
}
