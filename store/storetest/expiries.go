package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

func expiring(id engine.QueueID, number uint64, at int64) engine.Record {
	r := enqueue(id, number)
	r.Message.Expiry = at
	return r
}

// due asks up to a time until there is no more, and returns what was told, in order of number.
func (s *subject) due(x engine.Expiries, until int64, n int) (numbers []uint64, next int64) {
	s.t.Helper()
	var all []engine.Due
	for {
		due, next, err := x.Due(until, n)
		if err != nil || len(due) > n {
			s.t.Fatalf("%d entries, %v, want at most %d", len(due), err, n)
		}
		if !slices.IsSortedFunc(due, func(a, b engine.Due) int {
			return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
		}) {
			s.t.Fatalf("%+v isn't in order", due)
		}
		all = append(all, due...)
		if next == 0 || next > until {
			for _, d := range all {
				if want := len(fmt.Sprint("m", d.Number)); d.Bytes != want {
					s.t.Errorf("entry %d has %d bytes, want %d", d.Number, d.Bytes, want)
				}
				numbers = append(numbers, d.Number)
			}
			slices.Sort(numbers)
			return slices.Compact(numbers), next // what is written anew may be told again
		}
	}
}

func testPick(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1))
	for n := uint64(1); n <= 2000; n += 100 {
		var batch []engine.Record
		for i := range uint64(100) {
			batch = append(batch, enqueue(1, 2*(n+i)))
		}
		s.commit(batch...)
	}
	s.commit(remove(1, 8), engine.Record{Kind: engine.RecordPurge, Queue: 1, Priority: usual, FromNumber: 500, Number: 520})
	s.commit(engine.Record{Kind: engine.RecordCount, Queue: 1, Number: 4, Priority: usual, Count: 3, Base: 1,
		Annotations: []queue.Annotation{{Key: "a", Value: "b"}}})
	pick := func(bytes int, asked ...uint64) []engine.Stored {
		got, err := s.store.Pick(1, usual, asked, bytes)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for range 2 {
		got := pick(1<<20, 1, 2, 4, 8, 500, 520, 522, 4000, 5000)
		if n := numbers(got); !slices.Equal(n, []uint64{2, 4, 522, 4000}) {
			t.Fatalf("picked %v", n)
		}
		if e := got[1]; e.Count != 3 || e.Base != 1 || len(e.Annotations) != 1 || string(e.Message.Payload) != "m4" {
			t.Errorf("entry = %+v %+v", e, e.Message)
		}
		if n := numbers(pick(6, 2, 10, 12, 14)); !slices.Equal(n, []uint64{2, 10, 12}) {
			t.Errorf("6 bytes: picked %v", n)
		}
		if n := numbers(pick(0, 8, 10, 12)); !slices.Equal(n, []uint64{10}) {
			t.Errorf("no bytes: picked %v", n)
		}
		if got, err := s.store.Pick(1, 9, []uint64{2}, 100); err != nil || len(got) > 0 {
			t.Errorf("other priority: %v, %v", got, err)
		}
		if got, err := s.store.Pick(2, usual, []uint64{2}, 100); err != nil || len(got) > 0 {
			t.Errorf("no such queue: %v, %v", got, err)
		}
		s.restart()
	}
}

func testExpiries(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), define(2), enqueue(1, 1), expiring(1, 2, 300), expiring(2, 3, 100), expiring(1, 4, 100), expiring(1, 5, 200))
	high := expiring(1, 6, 150)
	high.Message.Priority = 9
	s.commit(high, expiring(1, 7, 1<<50))
	for range 2 {
		s.restart()
		for _, n := range []int{1, 2, 100} {
			x := s.store.Expiries()
			if got, next := s.due(x, 99, n); len(got) > 0 || next != 100 {
				t.Errorf("until 99: %v, next at %d", got, next)
			}
			if got, next := s.due(x, 150, n); !slices.Equal(got, []uint64{3, 4, 6}) || next > 200 {
				t.Errorf("until 150: %v, next at %d", got, next)
			}
			if got, next := s.due(x, 299, n); !slices.Equal(got, []uint64{5}) || next > 300 {
				t.Errorf("until 299: %v, next at %d", got, next)
			}
			if got, next := s.due(x, 1000, n); !slices.Equal(got, []uint64{2}) || next != 1<<50 {
				t.Errorf("until 1000: %v, next at %d", got, next)
			}
			if got, next := s.due(x, 2000, n); len(got) > 0 || next != 1<<50 {
				t.Errorf("until 2000: %v, next at %d", got, next)
			}
		}
	}
}

// testExpiriesGone takes entries away in every way, some before a restart and some after it.
func testExpiriesGone(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), define(2), define(3))
	for n := uint64(1); n <= 2000; n += 100 {
		var batch []engine.Record
		for i := range uint64(100) {
			batch = append(batch, expiring(1, n+i, int64(n+i)))
		}
		s.commit(batch...)
	}
	s.commit(expiring(2, 3001, 50), expiring(3, 3002, 50))
	want := map[uint64]bool{3001: true, 3002: true}
	for n := range uint64(2000) {
		want[n+1] = true
	}
	expect := func(until int64) {
		t.Helper()
		var all []uint64
		for n := range want {
			if n <= uint64(until) || n > 3000 {
				all = append(all, n)
			}
		}
		slices.Sort(all)
		if got, _ := s.due(s.store.Expiries(), until, 700); !slices.Equal(got, all) {
			t.Fatalf("until %d: %d entries, want %d", until, len(got), len(all))
		}
	}
	s.restart()
	expect(2000)
	for n := uint64(1); n <= 900; n += 30 {
		var batch []engine.Record
		for i := uint64(0); i < 30; i += 3 {
			batch = append(batch, remove(1, n+i))
			delete(want, n+i)
		}
		s.commit(batch...)
	}
	s.commit(engine.Record{Kind: engine.RecordPurge, Queue: 1, Priority: usual, FromNumber: 1000, Number: 1600})
	for n := uint64(1000); n <= 1600; n++ {
		delete(want, n)
	}
	moved := message("m3001").Moved("q1")
	s.commit(engine.Record{Kind: engine.RecordMove, From: 2, FromNumber: 3001, Queue: 1, Number: 4000, Priority: usual, Message: moved})
	s.commit(engine.Record{Kind: engine.RecordDelete, Queue: 3})
	s.commit(engine.Record{Kind: engine.RecordCount, Queue: 1, Number: 2, Priority: usual, Count: 1})
	delete(want, 3001)
	delete(want, 3002)
	expect(2000)
	expect(1500)
	s.restart()
	expect(2000)
	expect(1500)
	var rest []engine.Record
	for n := range want {
		rest = append(rest, remove(1, n))
	}
	s.commit(rest...)
	clear(want)
	expect(2000)
	s.restart()
	if got, next := s.due(s.store.Expiries(), 5000, 10); len(got) > 0 || next != 0 {
		t.Errorf("%v expire, next at %d, want none", got, next)
	}
}

// testExpiriesLater has a reader meet entries that are committed when it has been asked for their time already.
func testExpiriesLater(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), expiring(1, 1, 100), expiring(1, 2, 500))
	s.restart()
	x := s.store.Expiries()
	if got, _ := s.due(x, 200, 10); !slices.Equal(got, []uint64{1}) {
		t.Fatalf("until 200: %v", got)
	}
	s.commit(expiring(1, 3, 150), expiring(1, 4, 1<<50))
	var got []uint64
	for start := time.Now(); len(got) == 0 && time.Since(start) < time.Second; time.Sleep(time.Millisecond) {
		got, _ = s.due(x, 200, 10)
	}
	if len(got) == 0 { // late is allowed, but for a restart
		s.restart()
		x = s.store.Expiries()
		if got, _ = s.due(x, 200, 10); len(got) == 2 {
			got = got[1:]
		}
	}
	if !slices.Equal(got, []uint64{3}) {
		t.Errorf("then %v, want what came later", got)
	}
	if got, next := s.due(x, 600, 10); !slices.Equal(got, []uint64{2}) {
		t.Errorf("until 600: %v, next at %d", got, next)
	}
}
