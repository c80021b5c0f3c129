//go:build linux

package powerloss

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// contents is what queues hold.
type contents map[engine.QueueID]map[uint64]engine.Stored

// history is a series of batches that is the same for the same seed, and what a store holds after those that were made.
type history struct {
	rng     *rand.Rand
	made    int // batches
	held    contents
	defined map[engine.QueueID]engine.Definition
	number  uint64 // last one given
	queue   engine.QueueID
}

func newHistory(seed uint64) *history {
	return &history{
		rng: rand.New(rand.NewPCG(seed, 11)), held: contents{}, defined: map[engine.QueueID]engine.Definition{},
	}
}

const (
	fewestQueues = 3
	mostQueues   = 6
	straggler    = 53 // every so many numbers, an entry stays for long
)

// next makes one more batch.
func (h *history) next() []engine.Record {
	h.made++
	var batch []engine.Record
	if len(h.held) < fewestQueues || len(h.held) < mostQueues && h.rng.IntN(60) == 0 {
		batch = append(batch, h.define())
	}
	ids := slices.Sorted(maps.Keys(h.held))
	if len(ids) == mostQueues && h.rng.IntN(60) == 0 {
		gone := ids[1+h.rng.IntN(len(ids)-1)]
		delete(h.held, gone)
		delete(h.defined, gone)
		batch = append(batch, engine.Record{Kind: engine.RecordDelete, Queue: gone})
		ids = slices.Sorted(maps.Keys(h.held))
	}
	for range 1 + h.rng.IntN(40) {
		batch = append(batch, h.enqueue(ids)...)
	}
	for _, id := range ids {
		for _, n := range slices.Sorted(maps.Keys(h.held[id])) {
			if r := h.change(ids, id, n); r.Kind != 0 {
				batch = append(batch, r)
			}
		}
		if h.rng.IntN(80) == 0 {
			batch = append(batch, h.purge(id))
		}
	}
	return batch
}

func (h *history) define() engine.Record {
	h.queue++
	d := engine.Definition{ID: h.queue, Address: fmt.Sprint("address", h.queue), Name: fmt.Sprint("queue", h.queue), Routing: engine.Multicast}
	h.held[h.queue], h.defined[h.queue] = map[uint64]engine.Stored{}, d
	return engine.Record{Kind: engine.RecordDefine, Queue: h.queue, Definition: &d}
}

// enqueue brings one message to one queue or two.
func (h *history) enqueue(ids []engine.QueueID) (batch []engine.Record) {
	h.number++
	m := h.message()
	first := h.rng.IntN(len(ids))
	for i := range 1 + h.rng.IntN(8)/7 {
		e := engine.Stored{Number: h.number, Message: m}
		if h.rng.IntN(3) == 0 { // long enough to fill the index soon
			e.Count, e.Base = 3, 2
			e.Annotations = []queue.Annotation{{Key: "from", Value: strings.Repeat("far ", 100+h.rng.IntN(300))}, {Key: "at", Value: int64(h.number)}}
		}
		id := ids[(first+i)%len(ids)]
		h.held[id][h.number] = e
		batch = append(batch, engine.Record{
			Kind: engine.RecordEnqueue, Queue: id, Number: h.number, Message: m, Count: e.Count, Base: e.Base, Annotations: e.Annotations,
		})
	}
	return batch
}

func (h *history) message() *queue.Message {
	size := h.rng.IntN(400)
	if h.rng.IntN(80) == 0 { // in parts
		size = h.rng.IntN(40_000)
	}
	// No two are alike, and no part of one is like another part.
	payload := make([]byte, size)
	for i, v := 0, h.number<<20; i < size; i, v = i+1, v*6364136223846793005+1442695040888963407 {
		payload[i] = byte(v >> 56)
	}
	return &queue.Message{
		Payload: payload, Durable: true, HeaderDurable: true, DurableValue: true, Priority: []uint8{4, 4, 4, 4, 1, 9}[h.rng.IntN(6)],
		Address: "address", Arrived: int64(h.number), Expiry: int64(h.rng.IntN(2)) << 45,
	}
}

// change does something to an entry, or nothing: then the record's kind is 0.
func (h *history) change(ids []engine.QueueID, id engine.QueueID, n uint64) (r engine.Record) {
	e := h.held[id][n]
	what := h.rng.IntN(400)
	if n%straggler == 0 && what != 0 {
		return r
	}
	r = engine.Record{Queue: id, Number: n, Priority: e.Message.Priority}
	switch {
	case what < 60:
		r.Kind = engine.RecordRemove
		delete(h.held[id], n)
	case what < 66:
		e.Count++
		e.Annotations = []queue.Annotation{{Key: "tried", Value: int64(what)}}
		h.held[id][n] = e
		r.Kind, r.Count, r.Base, r.Annotations = engine.RecordCount, e.Count, e.Base, e.Annotations
	case what < 69:
		h.number++
		to := ids[h.rng.IntN(len(ids))]
		moved := engine.Stored{Number: h.number, Count: 1, Base: 1, Message: e.Message.Moved("moved")}
		delete(h.held[id], n)
		h.held[to][h.number] = moved
		r.Kind, r.Queue, r.Number, r.From, r.FromNumber = engine.RecordMove, to, h.number, id, n
		r.Count, r.Base, r.Message = moved.Count, moved.Base, moved.Message
	}
	return r
}

func (h *history) purge(id engine.QueueID) engine.Record {
	from := h.rng.Uint64N(h.number + 1)
	r := engine.Record{Kind: engine.RecordPurge, Queue: id, Priority: 4, FromNumber: from, Number: from + h.rng.Uint64N(200)}
	for n, e := range h.held[id] {
		if n >= r.FromNumber && n <= r.Number && e.Message.Priority == r.Priority {
			delete(h.held[id], n)
		}
	}
	return r
}

// read returns what a store holds.
func read(s engine.Store) (contents, engine.State, error) {
	state, err := s.Recover()
	if err != nil {
		return nil, state, err
	}
	all := contents{}
	for _, d := range state.Queues {
		entries := map[uint64]engine.Stored{}
		for priority := range uint8(10) {
			for from := uint64(0); ; {
				some, err := s.Load(d.ID, priority, from, 200, 256<<10)
				if err != nil {
					return nil, state, err
				}
				if len(some) == 0 {
					break
				}
				for _, e := range some {
					if e.Number < from {
						return nil, state, fmt.Errorf("queue %d: entry %d behind one of %d", d.ID, e.Number, from-1)
					}
					if e.Message.Priority != priority {
						return nil, state, fmt.Errorf("queue %d: entry %d of priority %d among those of %d", d.ID, e.Number, e.Message.Priority, priority)
					}
					entries[e.Number], from = e, e.Number+1
				}
			}
		}
		all[d.ID] = entries
	}
	return all, state, nil
}

// compare returns how what a store holds differs from what it should hold.
func (h *history) compare(got contents, state engine.State) error {
	var missing, extra, other []string
	note := func(list *[]string, format string, args ...any) {
		if len(*list) < 8 {
			*list = append(*list, fmt.Sprintf(format, args...))
		}
	}
	for i, d := range state.Queues {
		want, known := h.defined[d.ID]
		if !known {
			note(&extra, "queue %d", d.ID)
			continue
		}
		if d != want {
			note(&other, "queue %d is %+v, want %+v", d.ID, d, want)
		}
		size := int64(0)
		for _, e := range h.held[d.ID] {
			size += int64(e.Message.Size())
		}
		if sum := state.Summaries[i]; sum.Entries != uint64(len(h.held[d.ID])) || sum.Bytes != size {
			note(&other, "queue %d: %d entries, %d bytes by its summary, want %d, %d", d.ID, sum.Entries, sum.Bytes, len(h.held[d.ID]), size)
		}
		for n := range got[d.ID] {
			if _, there := h.held[d.ID][n]; !there {
				note(&extra, "entry %d of queue %d", n, d.ID)
			}
		}
	}
	for id, entries := range h.held {
		if got[id] == nil {
			note(&missing, "queue %d", id)
			continue
		}
		for n, want := range entries {
			if e, there := got[id][n]; !there {
				note(&missing, "entry %d of queue %d", n, id)
			} else if !same(e, want) {
				note(&other, "entry %d of queue %d: %+v of %+v, want %+v of %+v", n, id, e, e.Message, want, want.Message)
			}
		}
	}
	if state.LastNumber < h.number || state.LastQueue < h.queue {
		note(&other, "last number %d and queue %d, want %d and %d", state.LastNumber, state.LastQueue, h.number, h.queue)
	}
	if len(missing)+len(extra)+len(other) == 0 {
		return nil
	}
	return fmt.Errorf("after %d batches: missing %v; too much %v; different %v", h.made, missing, extra, other)
}

func same(a, b engine.Stored) bool {
	m, n := a.Message, b.Message
	return a.Count == b.Count && a.Base == b.Base && slices.Equal(a.Annotations, b.Annotations) && bytes.Equal(m.Payload, n.Payload) &&
		m.Address == n.Address && m.Expiry == n.Expiry && m.Arrived == n.Arrived && m.Priority == n.Priority && m.TTL == n.TTL &&
		m.HeaderDurable == n.HeaderDurable && m.DurableValue == n.DurableValue && m.HeaderTTL == n.HeaderTTL && m.Format == n.Format
}
