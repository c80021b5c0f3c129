package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// Store is a store under test, and how to close it and open it again as after a restart.
type Store struct {
	engine.Store
	Reopen func(t *testing.T) engine.Store
}

// Run runs the suite. open makes an empty store.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *subject)
	}{
		{"an empty store has nothing", testEmpty},
		{"what is committed is there after a restart", testRestart},
		{"what is committed is there for the next broker", testRecoverAgain},
		{"all fields of an entry come back", testFields},
		{"removed entries are gone", testRemove},
		{"counts and annotations are absolute", testCount},
		{"a purge takes one priority and a range of numbers", testPurge},
		{"a move is one step", testMove},
		{"a deleted queue is gone with its entries", testDelete},
		{"records for what isn't there are passed over", testUnknown},
		{"records may be applied again", testAgain},
		{"numbers and queue ids are never forgotten", testLast},
		{"load goes by number, count and bytes", testLoad},
		{"each priority is a level of its own", testLevels},
		{"some entries are picked", testPick},
		{"what expires is told in order of time", testExpiries},
		{"what has gone doesn't expire", testExpiriesGone},
		{"what comes later expires as well", testExpiriesLater},
		{"what has a due time waits for it", testDelayed},
		{"due times come and go", testDelay},
		{"what has gone isn't due", testDelayedGone},
		{"many wait, and are due one after the other", testDelayedBacklog},
		{"what waits expires", testDelayedExpires},
		{"ids are remembered", testRemember},
		{"ids are known by the number of their message", testRememberAgain},
		{"ids are forgotten", testForget},
		{"many ids come and go", testManyIDs},
		{"load runs beside commit", testConcurrent},
		{"many entries come and go", testChurn},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			c.test(t, &subject{t: t, store: s.Store, reopen: s.Reopen})
		})
	}
}

// subject is a store under test with the steps that all tests take.
type subject struct {
	t      *testing.T
	store  engine.Store
	reopen func(t *testing.T) engine.Store
}

func (s *subject) commit(records ...engine.Record) {
	s.t.Helper()
	if err := s.store.Commit(records); err != nil {
		s.t.Fatalf("commit: %v", err)
	}
}

func (s *subject) recover() engine.State {
	s.t.Helper()
	state, err := s.store.Recover()
	if err != nil {
		s.t.Fatalf("recover: %v", err)
	}
	return state
}

func (s *subject) restart() engine.State {
	s.t.Helper()
	s.store = s.reopen(s.t)
	return s.recover()
}

func (s *subject) load(q engine.QueueID, from uint64, n, bytes int) []engine.Stored {
	s.t.Helper()
	entries, err := s.store.Load(q, usual, from, n, bytes)
	if err != nil {
		s.t.Fatalf("load: %v", err)
	}
	return entries
}

// usual is the priority of entries where none is named.
const usual = queue.DefaultPriority

// expect checks which numbers a queue has.
func (s *subject) expect(q engine.QueueID, numbers ...uint64) {
	s.t.Helper()
	var got []uint64
	for _, e := range s.load(q, 0, 1<<20, 1<<30) {
		got = append(got, e.Number)
	}
	if !slices.Equal(got, numbers) {
		s.t.Fatalf("queue %d has %v, want %v", q, got, numbers)
	}
}

func define(id engine.QueueID) engine.Record {
	name := fmt.Sprint("q", id)
	return engine.Record{
		Kind: engine.RecordDefine, Queue: id,
		Definition: &engine.Definition{ID: id, Address: name, Name: name, Routing: engine.Anycast},
	}
}

func enqueue(id engine.QueueID, number uint64) engine.Record {
	return engine.Record{Kind: engine.RecordEnqueue, Queue: id, Number: number, Message: message(fmt.Sprint("m", number))}
}

func remove(id engine.QueueID, number uint64) engine.Record {
	return engine.Record{Kind: engine.RecordRemove, Queue: id, Number: number, Priority: usual}
}

func message(payload string) *queue.Message {
	return &queue.Message{Payload: []byte(payload), Durable: true, Priority: usual, Address: "a"}
}

func testEmpty(t *testing.T, s *subject) {
	if state := s.recover(); len(state.Queues) != 0 || state.LastNumber != 0 || state.LastQueue != 0 {
		t.Errorf("state = %+v, want nothing", state)
	}
	s.expect(1)
}

func testRestart(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), define(2), enqueue(1, 1), enqueue(2, 2), enqueue(1, 3))
	s.commit(remove(1, 1))
	state := s.restart()
	if len(state.Queues) != 2 {
		t.Fatalf("queues = %+v, want two", state.Queues)
	}
	s.expect(1, 3)
	s.expect(2, 2)
	s.commit(enqueue(1, 4))
	s.restart()
	s.expect(1, 3, 4)
}

func testRecoverAgain(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), define(2), enqueue(1, 1), enqueue(2, 2), enqueue(1, 3))
	s.commit(remove(1, 1), engine.Record{Kind: engine.RecordDelete, Queue: 2}, define(5))
	state := s.recover()
	if len(state.Queues) != 2 || state.LastQueue != 5 || state.LastNumber != 3 {
		t.Fatalf("state = %+v, want queues 1 and 5 and number 3", state)
	}
	level := engine.Level{Priority: usual, Entries: 1}
	for i, q := range state.Queues {
		sum := state.Summaries[i]
		if q.ID == 5 && sum.Entries == 0 {
			continue
		}
		if q.ID != 1 || sum.Entries != 1 || len(sum.Levels) != 1 || sum.Levels[0].Head > 3 {
			t.Fatalf("queue %d: summary = %+v, want that of 3", q.ID, sum)
		}
		if level.Head = sum.Levels[0].Head; sum.Levels[0] != level {
			t.Fatalf("level = %+v, want %+v", sum.Levels[0], level)
		}
	}
	s.expect(1, 3)
}

func testFields(t *testing.T, s *subject) {
	s.recover()
	d := engine.Definition{
		ID: 7, Address: "prices", Name: `c\.1.link`, Routing: engine.Multicast, Auto: true, Paused: true, Container: "c.1", Link: "link",
	}
	m := &queue.Message{
		Payload: []byte{0, 1, 2, 255}, Format: 0xffffffff, Durable: true, HeaderDurable: true, HeaderPriority: true,
		HeaderTTL: true, DurableValue: true, Priority: 9, TTL: 1<<32 - 1, Expiry: 1<<63 - 1, Arrived: 1_700_000_000_000,
		Address: "prices",
	}
	annotations := []queue.Annotation{
		{Key: "a", Value: "text"}, {Key: "b", Value: int64(-5)}, {Key: "c", Value: queue.Millis(12)},
		{Key: "d", Value: queue.Encoded{0x40}},
	}
	s.commit(engine.Record{Kind: engine.RecordDefine, Queue: 7, Definition: &d}, engine.Record{
		Kind: engine.RecordEnqueue, Queue: 7, Number: 9, Count: 3, Base: 2, Due: 1<<63 - 1, Annotations: annotations, Message: m,
	})
	state := s.restart()
	if len(state.Queues) != 1 || state.Queues[0] != d {
		t.Errorf("definition = %+v, want %+v", state.Queues, d)
	}
	got, err := s.store.Pick(7, 9, []uint64{9}, 1000)
	if err != nil {
		t.Fatalf("pick: %v", err)
	}
	want := engine.Stored{Number: 9, Count: 3, Base: 2, Due: 1<<63 - 1, Annotations: annotations, Message: m.Fresh()}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("entry = %+v\nwant %+v", got, want)
	}
	if got[0].Message == m {
		t.Error("the message is the one that was committed, want a new struct")
	}
}

func testRemove(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), enqueue(1, 1), enqueue(1, 2), enqueue(1, 3), remove(1, 2))
	s.expect(1, 1, 3)
	s.commit(remove(1, 1), remove(1, 3))
	s.expect(1)
	s.restart()
	s.expect(1)
}

func testCount(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), enqueue(1, 1))
	add := []queue.Annotation{{Key: "x-opt-a", Value: "1"}}
	s.commit(engine.Record{Kind: engine.RecordCount, Queue: 1, Number: 1, Priority: usual, Count: 5})
	s.commit(engine.Record{Kind: engine.RecordCount, Queue: 1, Number: 1, Priority: usual, Count: 6, Base: 1, Annotations: add})
	s.restart()
	got := s.load(1, 0, 1, 1)
	if len(got) != 1 || got[0].Count != 6 || got[0].Base != 1 || !reflect.DeepEqual(got[0].Annotations, add) {
		t.Errorf("entry = %+v, want count 6 of which 1 elsewhere, one annotation", got)
	}
}

func testPurge(t *testing.T, s *subject) {
	s.recover()
	other := enqueue(1, 5)
	other.Message.Priority = 0
	purge := engine.Record{Kind: engine.RecordPurge, Queue: 1, Priority: usual, FromNumber: 3, Number: 6}
	s.commit(define(1), define(2), enqueue(1, 2), enqueue(1, 3), enqueue(1, 4), other, enqueue(1, 6), enqueue(1, 7), enqueue(2, 8))
	s.commit(remove(1, 4), purge, enqueue(1, 9))
	for range 2 {
		s.expect(1, 2, 7, 9)
		s.expect(2, 8)
		if got, err := s.store.Load(1, 0, 0, 10, 1000); err != nil || !slices.Equal(numbers(got), []uint64{5}) {
			t.Errorf("priority 0 has %v, %v, want what it had", numbers(got), err)
		}
		state := s.restart()
		if got := state.Summaries[0]; got.Entries != 4 || got.Bytes != 8 {
			t.Errorf("summary = %+v, want 4 entries of 2 bytes", got)
		}
		s.commit(purge) // once more
	}
}

func testMove(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), define(2), enqueue(1, 1), enqueue(1, 2))
	dead := message("m1").Moved("q2")
	s.commit(engine.Record{
		Kind: engine.RecordMove, From: 1, FromNumber: 1, Priority: usual, Queue: 2, Number: 3, Count: 4, Base: 4, Message: dead,
	})
	s.restart()
	s.expect(1, 2)
	s.expect(2, 3)
	got := s.load(2, 0, 1, 1)[0]
	if got.Count != 4 || got.Message.Address != "q2" || string(got.Message.Payload) != "m1" {
		t.Errorf("moved entry = %+v %+v", got, got.Message)
	}
	// within a queue: it gets another place
	s.commit(enqueue(1, 4), engine.Record{
		Kind: engine.RecordMove, From: 1, FromNumber: 2, Priority: usual, Queue: 1, Number: 5, Count: 1, Message: message("m2"),
	})
	s.expect(1, 4, 5)
	s.restart()
	s.expect(1, 4, 5)
	s.commit(remove(1, 4))
	// into a queue that is gone: the entry is gone too, as if it had been deleted there
	s.commit(engine.Record{Kind: engine.RecordDelete, Queue: 2})
	s.commit(engine.Record{Kind: engine.RecordMove, From: 1, FromNumber: 5, Priority: usual, Queue: 2, Number: 6, Message: dead})
	s.expect(1)
	s.expect(2)
}

func testDelete(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), define(2), enqueue(1, 1), enqueue(2, 2))
	s.commit(engine.Record{Kind: engine.RecordDelete, Queue: 1}, enqueue(1, 3))
	state := s.restart()
	if len(state.Queues) != 1 || state.Queues[0].ID != 2 {
		t.Errorf("queues = %+v, want only 2", state.Queues)
	}
	s.expect(1)
	s.expect(2, 2)
}

func testUnknown(t *testing.T, s *subject) {
	s.recover()
	s.commit(enqueue(9, 1), remove(9, 1), engine.Record{Kind: engine.RecordCount, Queue: 9, Number: 1, Count: 1},
		engine.Record{Kind: engine.RecordDelete, Queue: 9})
	s.commit(define(1), remove(1, 5), engine.Record{Kind: engine.RecordCount, Queue: 1, Number: 5, Count: 1},
		engine.Record{Kind: engine.RecordMove, From: 9, FromNumber: 1, Queue: 1, Number: 6, Message: message("x")},
		enqueue(1, 7))
	s.restart()
	s.expect(1, 7)
	s.expect(9)
}

func testAgain(t *testing.T, s *subject) {
	s.recover()
	batch := []engine.Record{
		define(1), enqueue(1, 1), enqueue(1, 2), {Kind: engine.RecordCount, Queue: 1, Number: 1, Priority: usual, Count: 2}, remove(1, 2),
	}
	s.commit(batch...)
	s.commit(batch...)
	s.restart()
	s.expect(1, 1)
	if got := s.load(1, 0, 1, 1)[0]; got.Count != 2 {
		t.Errorf("count = %d, want 2", got.Count)
	}
}

func testLast(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(3), enqueue(3, 41), remove(3, 41))
	s.commit(engine.Record{Kind: engine.RecordDelete, Queue: 3})
	if state := s.restart(); state.LastNumber != 41 || state.LastQueue != 3 {
		t.Errorf("last number and queue = %d, %d, want 41, 3", state.LastNumber, state.LastQueue)
	}
}

func testLoad(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1))
	for n := uint64(1); n <= 20; n++ {
		r := enqueue(1, 2*n)
		r.Message = message("0123456789")
		s.commit(r)
	}
	numbers := func(from uint64, n, bytes int) (got []uint64) {
		for _, e := range s.load(1, from, n, bytes) {
			got = append(got, e.Number)
		}
		return got
	}
	for _, c := range []struct {
		from     uint64
		n, bytes int
		want     []uint64
	}{
		{0, 3, 1000, []uint64{2, 4, 6}},
		{4, 2, 1000, []uint64{4, 6}},
		{5, 2, 1000, []uint64{6, 8}},
		{5, 100, 25, []uint64{6, 8, 10}},
		{5, 100, 1, []uint64{6}},
		{39, 100, 1000, []uint64{40}},
		{41, 100, 1000, nil},
	} {
		if got := numbers(c.from, c.n, c.bytes); !slices.Equal(got, c.want) {
			t.Errorf("load from %d, %d entries, %d bytes = %v, want %v", c.from, c.n, c.bytes, got, c.want)
		}
	}
}

func testConcurrent(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), enqueue(1, 1))
	var loading sync.WaitGroup
	stop := make(chan struct{})
	loading.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			got, err := s.store.Load(1, usual, 0, 5, 1000)
			if err != nil || len(got) == 0 || got[0].Number != 1 {
				t.Errorf("load = %v, %v, want entry 1 first", got, err)
				return
			}
		}
	})
	for n := uint64(2); n < 500; n++ {
		s.commit(enqueue(1, n), remove(1, max(n-1, 2)))
	}
	close(stop)
	loading.Wait()
}

func testChurn(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1))
	var want []uint64
	for n := uint64(1); n <= 2000; n++ {
		records := []engine.Record{enqueue(1, n)}
		want = append(want, n)
		if n%10 != 0 { // leave every tenth, take the others out of order
			i := len(want) - 1 - int(n%uint64(min(len(want), 7)))
			records = append(records, remove(1, want[i]))
			want = slices.Delete(want, i, i+1)
		}
		s.commit(records...)
	}
	s.expect(1, want...)
	s.restart()
	s.expect(1, want...)
}

func testLevels(t *testing.T, s *subject) {
	s.recover()
	leveled := func(number uint64, priority uint8) engine.Record {
		r := enqueue(1, number)
		r.Message.Priority = priority
		return r
	}
	s.commit(define(1), leveled(1, 0), leveled(2, 9), leveled(3, 4), leveled(4, 200), leveled(5, 9))
	s.commit(engine.Record{Kind: engine.RecordRemove, Queue: 1, Number: 2, Priority: 9})
	for range 2 {
		for priority, want := range map[uint8][]uint64{0: {1}, 4: {3}, 5: nil, 9: {4, 5}} {
			got, err := s.store.Load(1, priority, 0, 10, 1000)
			if err != nil {
				t.Fatalf("load: %v", err)
			}
			if !slices.Equal(numbers(got), want) {
				t.Errorf("priority %d has %v, want %v", priority, numbers(got), want)
			}
		}
		state := s.restart()
		got := state.Summaries[0]
		for i := range got.Levels { // the head may be lower than it has to be
			if want := [...]uint64{4, 3, 1}[i]; got.Levels[i].Head > want {
				t.Errorf("head %d of level %d, want at most %d", got.Levels[i].Head, i, want)
			}
			got.Levels[i].Head = 0
		}
		want := engine.Summary{Entries: 4, Bytes: 8, Levels: []engine.Level{
			{Priority: 9, Entries: 2}, {Priority: 4, Entries: 1}, {Priority: 0, Entries: 1},
		}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("summary = %+v, want %+v", got, want)
		}
	}
}

func numbers(entries []engine.Stored) (all []uint64) {
	for _, e := range entries {
		all = append(all, e.Number)
	}
	return all
}
