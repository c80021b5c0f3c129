package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

func delayed(id engine.QueueID, number uint64, at int64) engine.Record {
	r := enqueue(id, number)
	r.Due = at
	return r
}

func due(id engine.QueueID, number uint64, at int64) engine.Record {
	return engine.Record{Kind: engine.RecordDue, Queue: id, Number: number, Priority: usual, Due: at}
}

// expectDelayed checks what of a queue is told to be due, in order, and when the next entry is.
func (s *subject) expectDelayed(id engine.QueueID, until int64, n int, next int64, numbers ...uint64) {
	s.t.Helper()
	all, at, err := s.store.Delayed(id, engine.Due{}, until, n)
	if err != nil {
		s.t.Fatalf("delayed: %v", err)
	}
	var got []uint64
	for _, d := range all {
		got = append(got, d.Number)
		if want := len(fmt.Sprint("m", d.Number)); d.Bytes != want || d.Queue != id {
			s.t.Errorf("entry %d of queue %d has %d bytes, want %d of queue %d", d.Number, d.Queue, d.Bytes, want, id)
		}
	}
	if !slices.Equal(got, numbers) || at != next {
		s.t.Fatalf("queue %d until %d, %d at most: %v, then at %d, want %v, then at %d", id, until, n, got, at, numbers, next)
	}
	for i, d := range all { // what comes behind each of them
		rest, at, err := s.store.Delayed(id, d, until, n-i-1)
		if err != nil || !slices.Equal(rest, all[i+1:]) || at != next {
			s.t.Fatalf("queue %d behind %v until %d: %v, then at %d, %v, want %v, then at %d", id, d, until, rest, at, err, all[i+1:], next)
		}
	}
}

// expectWaiting checks how many entries of a queue have a due time, and how many have none.
func (s *subject) expectWaiting(state engine.State, queue int, ready, waiting uint64) {
	s.t.Helper()
	sum := state.Summaries[queue]
	var entries, delayed uint64
	for _, l := range sum.Levels {
		entries += l.Entries
		delayed += l.Delayed
	}
	if entries != ready || delayed != waiting || sum.Entries != ready+waiting {
		s.t.Fatalf("queue %d: %+v, want %d entries that are ready and %d that wait", state.Queues[queue].ID, sum, ready, waiting)
	}
}

func testDelayed(t *testing.T, s *subject) {
	s.recover()
	high := delayed(1, 5, 200)
	high.Message.Priority = 9
	s.commit(define(1), define(2), enqueue(1, 1), delayed(1, 2, 300), delayed(1, 3, 200), delayed(1, 4, 200), high, delayed(2, 6, 100))
	for range 2 {
		s.expect(1, 1)
		s.expect(2)
		s.expectDelayed(1, 199, 10, 200)
		s.expectDelayed(1, 200, 10, 300, 5, 3, 4)
		s.expectDelayed(1, 1000, 2, 200, 5, 3)
		s.expectDelayed(1, 1000, 10, 0, 5, 3, 4, 2)
		s.expectDelayed(2, 1000, 1, 0, 6)
		s.expectDelayed(3, 1000, 1, 0)
		if got, err := s.store.Pick(1, usual, []uint64{1, 2, 5}, 1000); err != nil || len(got) != 2 || got[0].Due != 0 || got[1].Due != 300 {
			t.Errorf("picked %+v, %v, want both, the second with its due time", got, err)
		}
		state := s.restart()
		s.expectWaiting(state, 0, 1, 4)
		s.expectWaiting(state, 1, 0, 1)
	}
}

// testDelay has an entry fail, wait, become due and fail again, with restarts between any two steps or without.
func testDelay(t *testing.T, s *subject) {
	failed := func(number uint64, count uint32, at int64) engine.Record {
		return engine.Record{
			Kind: engine.RecordCount, Queue: 1, Number: number, Priority: usual, Count: count, Due: at,
			Annotations: []queue.Annotation{{Key: "n", Value: int64(count)}},
		}
	}
	s.recover()
	s.commit(define(1), define(2))
	number := uint64(0)
	for _, pattern := range []int{0, 0b0101, 0b1010, 0b1111} {
		number++
		restart := func(step int) {
			if pattern&(1<<step) != 0 {
				s.restart()
			}
		}
		s.commit(enqueue(1, number))
		restart(0)
		for round := range uint32(2) {
			at := int64(1000 + round)
			s.commit(failed(number, round+1, at))
			restart(1)
			s.expect(1)
			s.expectDelayed(1, at, 10, 0, number)
			s.commit(due(1, number, at+10), due(1, number+1, 5)) // the second isn't there
			s.expectDelayed(1, at, 10, at+10)
			s.commit(due(1, number, 0))
			restart(2)
			s.expect(1, number)
			s.expectDelayed(1, 5000, 10, 0)
			got := s.load(1, 0, 1, 1)[0]
			want := []queue.Annotation{{Key: "n", Value: int64(round + 1)}}
			if got.Count != round+1 || got.Due != 0 || !reflect.DeepEqual(got.Annotations, want) {
				t.Fatalf("entry = %+v, want count %d and its annotation", got, round+1)
			}
		}
		s.commit(failed(number, 9, 700))
		restart(3)
		s.commit(failed(number, 10, 0)) // a count says all there is
		s.expect(1, number)
		s.commit(remove(1, number))
	}
	s.expectWaiting(s.restart(), 0, 0, 0)
	s.expectDelayed(1, 5000, 10, 0)
}

// testDelayedGone takes away entries that wait, in every way.
func testDelayedGone(t *testing.T, s *subject) {
	for _, restart := range []bool{false, true} {
		step := func() {
			if restart {
				s.restart()
			}
		}
		s.recover()
		base := uint64(0)
		id := engine.QueueID(1)
		if restart {
			base, id = 100, 11
		}
		s.commit(define(id), define(id+1), define(id+2))
		for n := range uint64(10) {
			s.commit(delayed(id, base+n+1, int64(50+n)))
		}
		s.commit(delayed(id+2, base+50, 77))
		step()
		s.commit(remove(id, base+1))
		s.commit(engine.Record{Kind: engine.RecordPurge, Queue: id, Priority: usual, FromNumber: base + 3, Number: base + 5})
		s.commit(due(id, base+4, 99)) // it isn't there
		moved := engine.Record{
			Kind: engine.RecordMove, From: id, FromNumber: base + 7, Priority: usual, Queue: id + 1, Number: base + 60,
			Message: message(fmt.Sprint("m", base+60)), Due: 44,
		}
		s.commit(moved)
		moved.FromNumber, moved.Number, moved.Due = base+8, base+61, 0
		moved.Message = message(fmt.Sprint("m", base+61))
		s.commit(moved)
		s.commit(engine.Record{Kind: engine.RecordDelete, Queue: id + 2})
		for range 2 {
			s.expectDelayed(id, 1000, 100, 0, base+2, base+6, base+9, base+10)
			s.expectDelayed(id, 50, 100, 51)
			s.expectDelayed(id+1, 1000, 100, 0, base+60)
			s.expectDelayed(id+2, 1000, 100, 0)
			s.expect(id)
			s.expect(id+1, base+61)
			step()
		}
		s.commit(engine.Record{Kind: engine.RecordPurge, Queue: id, Priority: usual, FromNumber: 0, Number: 1 << 40})
		s.expectDelayed(id, 1000, 100, 0)
		state := s.restart()
		queue := len(state.Queues) - 2
		s.expectWaiting(state, queue, 0, 0)
		s.expectWaiting(state, queue+1, 1, 1)
	}
}

// testDelayedBacklog has many entries that wait before one that doesn't, and fires them a few at a time.
func testDelayedBacklog(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1))
	const n = 3000
	rng := rand.New(rand.NewPCG(1, n))
	type wait struct {
		at     int64
		number uint64
	}
	var waits []wait
	for first := uint64(1); first <= n; first += 100 {
		var batch []engine.Record
		for number := first; number < first+100; number++ {
			at := 1 + rng.Int64N(500)
			waits = append(waits, wait{at, number})
			if number%3 == 0 {
				batch = append(batch, enqueue(1, number), due(1, number, at))
			} else {
				batch = append(batch, delayed(1, number, at))
			}
		}
		s.commit(batch...)
	}
	s.commit(enqueue(1, n+1))
	slices.SortFunc(waits, func(a, b wait) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number)) })
	s.expect(1, n+1)
	fired := []uint64{n + 1}
	for round := 0; len(waits) > 0; round++ {
		if round%20 == 7 {
			s.restart()
		}
		k := min(1+rng.IntN(100), len(waits))
		next := int64(0)
		if k < len(waits) {
			next = waits[k].at
		}
		var numbers []uint64
		var batch []engine.Record
		for _, w := range waits[:k] {
			numbers = append(numbers, w.number)
			batch = append(batch, due(1, w.number, 0))
		}
		s.expectDelayed(1, 500, k, next, numbers...)
		s.commit(batch...)
		fired = append(fired, numbers...)
		waits = waits[k:]
		if round%5 == 0 {
			slices.Sort(fired)
			s.expect(1, fired...)
		}
	}
	s.expectWaiting(s.restart(), 0, n+1, 0)
}

// testDelayedExpires has an entry expire while it waits.
func testDelayedExpires(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1))
	for n := uint64(1); n <= 4; n++ {
		r := expiring(1, n, 100)
		if n == 2 {
			r.Due = 5000
		}
		s.commit(r)
	}
	s.restart()
	for range 2 {
		s.commit(due(1, 3, 6000), due(1, 4, 7000))
		s.commit(due(1, 4, 0))
		all, _, err := s.store.Expiries().Due(100, 10)
		if err != nil || len(all) != 4 {
			t.Fatalf("%+v expire, %v, want four", all, err)
		}
		for i, at := range []int64{0, 5000, 6000, 0} {
			if all[i].At != at {
				t.Errorf("entry %d is due at %d, want %d", all[i].Number, all[i].At, at)
			}
		}
		s.restart()
	}
}
