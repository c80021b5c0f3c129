package store_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store"
)

// model is what a store should hold: what was committed, carried out in memory.
type model struct {
	queues map[engine.QueueID]*modelQueue
	last   uint64
	lastQ  engine.QueueID
	made   uint64
	ids    map[string][]engine.DuplicateID
}

type modelQueue struct {
	definition engine.Definition
	entries    map[uint64]engine.Stored
}

func newModel() *model { return &model{queues: map[engine.QueueID]*modelQueue{}} }

func (m *model) clone() *model {
	c := *m
	c.ids = maps.Clone(m.ids)
	c.queues = map[engine.QueueID]*modelQueue{}
	for id, q := range m.queues {
		c.queues[id] = &modelQueue{q.definition, maps.Clone(q.entries)}
	}
	return &c
}

func (m *model) apply(records []engine.Record) {
	for i := range records {
		r := &records[i]
		q := m.queues[r.Queue]
		switch r.Kind {
		case engine.RecordRemember, engine.RecordForget:
			m.remember(r)
			continue
		case engine.RecordDefine:
			if q == nil {
				q = &modelQueue{entries: map[uint64]engine.Stored{}}
				m.queues[r.Queue] = q
			}
			q.definition = *r.Definition
			m.lastQ = max(m.lastQ, r.Queue)
			continue
		case engine.RecordDelete:
			delete(m.queues, r.Queue)
			continue
		case engine.RecordMove:
			from := m.queues[r.From]
			if from == nil {
				continue
			}
			if _, there := from.entries[r.FromNumber]; !there {
				continue
			}
			delete(from.entries, r.FromNumber)
		}
		if q == nil {
			continue
		}
		switch r.Kind {
		case engine.RecordEnqueue, engine.RecordMove:
			q.entries[r.Number] = engine.Stored{
				Number: r.Number, Count: r.Count, Base: r.Base, Due: r.Due, Annotations: r.Annotations, Message: r.Message,
			}
			m.last = max(m.last, r.Number)
		case engine.RecordRemove:
			delete(q.entries, r.Number)
		case engine.RecordPurge:
			for n, e := range q.entries {
				if n >= r.FromNumber && n <= r.Number && min(e.Message.Priority, 9) == r.Priority {
					delete(q.entries, n)
				}
			}
		case engine.RecordCount:
			if e, there := q.entries[r.Number]; there {
				e.Count, e.Base, e.Due, e.Annotations = r.Count, r.Base, r.Due, r.Annotations
				q.entries[r.Number] = e
			}
		case engine.RecordDue:
			if e, there := q.entries[r.Number]; there {
				e.Due = r.Due
				q.entries[r.Number] = e
			}
		}
	}
}

// load is what the random steps look like.
type load struct {
	queues  int
	large   int // one of so many messages is large; 0: none
	largest int
	keep    int // one of so many entries stays for long
}

// next makes a random batch that a broker could commit, and carries it out.
func (m *model) next(r *rand.Rand, l load) []engine.Record {
	var records []engine.Record
	add := func(more ...engine.Record) {
		m.apply(more)
		records = append(records, more...)
	}
	if len(m.queues) < l.queues || r.IntN(100) == 0 {
		id := m.lastQ + 1
		d := engine.Definition{ID: id, Address: fmt.Sprint("a", id), Name: fmt.Sprint("q", id), Routing: engine.Anycast}
		add(engine.Record{Kind: engine.RecordDefine, Queue: id, Definition: &d})
	}
	ids := slices.Sorted(maps.Keys(m.queues))
	if len(ids) > l.queues && r.IntN(4) == 0 {
		add(engine.Record{Kind: engine.RecordDelete, Queue: ids[1+r.IntN(len(ids)-1)]})
		ids = slices.Sorted(maps.Keys(m.queues))
	}
	for range 1 + r.IntN(40) {
		id := ids[r.IntN(len(ids))]
		msg := m.message(r, l)
		m.last++
		e := engine.Record{Kind: engine.RecordEnqueue, Queue: id, Number: m.last, Message: msg}
		if r.IntN(10) == 0 {
			e.Count, e.Base = 2, 1
			e.Annotations = []queue.Annotation{{Key: "why", Value: "moved"}}
		}
		if r.IntN(8) == 0 {
			e.Due = dueTime(r)
		}
		add(e)
		if r.IntN(10) == 0 { // to another queue as well
			if e.Queue = ids[r.IntN(len(ids))]; e.Queue != id {
				add(e)
			}
		}
	}
	for _, id := range ids {
		q := m.queues[id]
		for _, n := range slices.Sorted(maps.Keys(q.entries)) {
			e := q.entries[n]
			p := min(e.Message.Priority, 9)
			switch k := r.IntN(100); {
			case n%uint64(l.keep) == 0 && k > 0:
			case k < 1:
				m.last++
				to := ids[r.IntN(len(ids))]
				add(engine.Record{
					Kind: engine.RecordMove, Queue: to, Number: m.last, From: id, FromNumber: n, Priority: p,
					Count: 1, Base: 1, Due: e.Due * r.Int64N(2), Message: e.Message.Moved("dead"),
				})
			case k < 3:
				add(engine.Record{
					Kind: engine.RecordCount, Queue: id, Number: n, Priority: p, Count: e.Count + 1, Base: e.Base,
					Annotations: []queue.Annotation{{Key: "tried", Value: int64(k)}}, Due: dueTime(r) * r.Int64N(2),
				})
			case k < 5 || e.Due != 0 && k < 15:
				add(engine.Record{Kind: engine.RecordDue, Queue: id, Number: n, Priority: p, Due: dueTime(r) * (r.Int64N(4) / 3)})
			case k < 33:
				add(engine.Record{Kind: engine.RecordRemove, Queue: id, Number: n, Priority: p})
			}
		}
		if r.IntN(60) == 0 {
			from := r.Uint64N(m.last + 1)
			add(engine.Record{
				Kind: engine.RecordPurge, Queue: id, Priority: 4, FromNumber: from, Number: from + r.Uint64N(50),
			})
		}
	}
	m.identify(r, add)
	return records
}

// dueTime makes a due time: some are the same.
func dueTime(r *rand.Rand) int64 { return 1_000_000 + r.Int64N(1000) }

func (m *model) message(r *rand.Rand, l load) *queue.Message {
	size := r.IntN(300)
	if l.large > 0 && r.IntN(l.large) == 0 {
		size = r.IntN(l.largest)
	}
	m.made++
	payload := bytes.Repeat([]byte{byte(m.made), byte(m.made >> 8), 0xa5}, size/3+1)[:size]
	return &queue.Message{
		Payload: payload, Durable: true, HeaderDurable: true, Priority: []uint8{4, 4, 4, 0, 9}[r.IntN(5)],
		Arrived: int64(m.made), Address: "a", Expiry: []int64{0, 1<<40 + r.Int64N(1000)}[r.IntN(2)],
	}
}

// check compares a store with the model.
func (m *model) check(t testing.TB, s *store.Store) {
	t.Helper()
	if err := m.diff(s, true); err != nil {
		t.Fatal(err)
	}
}

// diff returns how a store differs from the model. Summaries are those of the index: they are only right when nothing
// is pending.
func (m *model) diff(s *store.Store, summaries bool) error {
	state, err := s.Recover()
	if err == nil {
		err = m.diffIDs(s)
	}
	if err != nil {
		return err
	}
	if !summaries {
		for _, q := range m.queues {
			if err := q.diff(s); err != nil {
				return err
			}
		}
		return nil
	}
	if state.LastNumber < m.last || state.LastQueue < m.lastQ {
		return fmt.Errorf("last number and queue = %d, %d, want %d, %d", state.LastNumber, state.LastQueue, m.last, m.lastQ)
	}
	if len(state.Queues) != len(m.queues) {
		return fmt.Errorf("%d queues, want %d", len(state.Queues), len(m.queues))
	}
	for i, d := range state.Queues {
		q := m.queues[d.ID]
		if q == nil || q.definition != d {
			return fmt.Errorf("queue %d = %+v, which isn't what was defined", d.ID, d)
		}
		if err := q.diff(s); err != nil {
			return err
		}
		sum := state.Summaries[i]
		total := int64(0)
		for _, e := range q.entries {
			total += int64(e.Message.Size())
		}
		if sum.Entries != uint64(len(q.entries)) || sum.Bytes != total {
			return fmt.Errorf("queue %d: summary of %d entries, %d bytes, want %d, %d", d.ID, sum.Entries, sum.Bytes, len(q.entries), total)
		}
	}
	return nil
}

func (q *modelQueue) diff(s *store.Store) error {
	var levels [10][]uint64
	for n, e := range q.entries {
		p := min(e.Message.Priority, 9)
		levels[p] = append(levels[p], n)
	}
	for p, want := range levels {
		slices.Sort(want)
		var got []uint64
		for from := uint64(0); ; {
			entries, err := s.Load(q.definition.ID, uint8(p), from, 100, 64<<10)
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				break
			}
			for _, e := range entries {
				got = append(got, e.Number)
				if w, there := q.entries[e.Number]; there && !same(e, w) {
					return fmt.Errorf("queue %d: entry %d = %+v of %+v\nwant %+v of %+v", q.definition.ID, e.Number, e, e.Message, w, w.Message)
				}
			}
			from = entries[len(entries)-1].Number + 1
		}
		var delayed []uint64
		want = slices.DeleteFunc(want, func(n uint64) bool {
			if q.entries[n].Due != 0 {
				delayed = append(delayed, n)
				return true
			}
			return false
		})
		picked, err := s.Pick(q.definition.ID, uint8(p), delayed, 1<<30)
		if err != nil {
			return err
		}
		for i, e := range picked {
			if w := q.entries[e.Number]; len(picked) != len(delayed) || e.Number != delayed[i] || !same(e, w) {
				return fmt.Errorf("queue %d: entry %d that waits = %+v of %+v\nwant %+v of %+v", q.definition.ID, e.Number, e, e.Message, w, w.Message)
			}
		}
		if len(picked) != len(delayed) {
			return fmt.Errorf("queue %d, priority %d: %d entries wait, want %d", q.definition.ID, p, len(picked), len(delayed))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("queue %d, priority %d: %d entries, want %d\n%v\n%v", q.definition.ID, p, len(got), len(want), got, want)
		}
	}
	return q.diffDelayed(s)
}

// diffDelayed returns how a store differs in what it tells of due times.
func (q *modelQueue) diffDelayed(s *store.Store) error {
	var want []engine.Due
	for n, e := range q.entries {
		if e.Due != 0 {
			want = append(want, engine.Due{
				Queue: q.definition.ID, Priority: min(e.Message.Priority, 9), Number: n, Bytes: e.Message.Size(), At: e.Due,
			})
		}
	}
	slices.SortFunc(want, func(a, b engine.Due) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
	})
	for _, until := range []int64{0, 1_000_100, 1_000_500, 2_000_000} {
		for _, n := range []int{1, 7, 1000, 1 << 20} {
			k := 0
			for k < len(want) && k < n && want[k].At <= until {
				k++
			}
			next := int64(0)
			if k < len(want) {
				next = want[k].At
			}
			got, soon, err := s.Delayed(q.definition.ID, engine.Due{}, until, n)
			if err != nil {
				return err
			}
			if !slices.Equal(got, want[:k]) || soon != next {
				return fmt.Errorf("queue %d: %d due until %d, the next at %d, want %d and %d\n%v\n%v",
					q.definition.ID, len(got), until, soon, k, next, got, want[:k])
			}
			if k == 0 {
				continue
			}
			i := k / 3
			got, soon, err = s.Delayed(q.definition.ID, want[i], until, n-i-1)
			if err != nil || !slices.Equal(got, want[i+1:k]) || soon != next {
				return fmt.Errorf("queue %d: behind %v %d due until %d, the next at %d, %v, want %d and %d\n%v\n%v",
					q.definition.ID, want[i], len(got), until, soon, err, k-i-1, next, got, want[i+1:k])
			}
		}
	}
	return nil
}

func same(a, b engine.Stored) bool {
	m, n := a.Message, b.Message
	return a.Count == b.Count && a.Base == b.Base && a.Due == b.Due && fmt.Sprint(a.Annotations) == fmt.Sprint(b.Annotations) &&
		bytes.Equal(m.Payload, n.Payload) && m.Address == n.Address && m.Expiry == n.Expiry && m.Arrived == n.Arrived &&
		m.Priority == n.Priority && m.TTL == n.TTL && m.HeaderDurable == n.HeaderDurable && m.Format == n.Format
}
