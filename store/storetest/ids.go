package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/letomq/leto/engine"
)

func idOf(n uint64) engine.DuplicateID { return engine.NewDuplicateID([]byte(fmt.Sprint(n))) }

// remember is that an address has taken a message with an id that is made of its number.
func remember(address string, number uint64, keep int) engine.Record {
	return engine.Record{
		Kind: engine.RecordRemember, Number: number,
		Remembered: &engine.Remembered{Address: address, ID: idOf(number), Keep: keep},
	}
}

func forget(address string) engine.Record {
	return engine.Record{Kind: engine.RecordForget, Remembered: &engine.Remembered{Address: address}}
}

// expectIDs checks which ids of an address came last.
func (s *subject) expectIDs(address string, n int, numbers ...uint64) {
	s.t.Helper()
	got, err := s.store.Remembered(address, n)
	if err != nil {
		s.t.Fatalf("remembered: %v", err)
	}
	want := make([]engine.DuplicateID, len(numbers))
	for i, n := range numbers {
		want[i] = idOf(n)
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("address %q has %d ids, want those of %v", address, len(got), numbers)
	}
}

func (s *subject) expectRemembering(addresses ...string) {
	s.t.Helper()
	got := s.restart().Remembering
	slices.Sort(got)
	if !slices.Equal(got, addresses) {
		s.t.Fatalf("ids are remembered of %q, want %q", got, addresses)
	}
}

func testRemember(t *testing.T, s *subject) {
	s.recover()
	s.commit(define(1), enqueue(1, 1), remember("a", 1, 3))
	s.commit(enqueue(1, 2), remember("a", 2, 3), enqueue(1, 3), remember("b", 3, 3))
	s.expectIDs("a", 3, 1, 2)
	s.expectRemembering("a", "b")
	s.expectIDs("a", 3, 1, 2)
	s.commit(remember("a", 4, 3), remember("a", 5, 3))
	for range 2 {
		s.expectIDs("a", 3, 2, 4, 5)
		s.expectIDs("a", 2, 4, 5)
		s.expectIDs("a", 0)
		s.expectIDs("b", 3, 3)
		s.expectIDs("ab", 3)
		s.expectRemembering("a", "b")
	}
	if state := s.recover(); state.LastNumber != 5 {
		t.Errorf("last number = %d, want 5", state.LastNumber)
	}
}

func testRememberAgain(t *testing.T, s *subject) {
	s.recover()
	batch := []engine.Record{remember("a", 7, 9), remember("a", 8, 9)}
	s.commit(batch...)
	s.commit(batch...)
	s.expectIDs("a", 9, 7, 8)
	s.restart()
	s.commit(remember("a", 9, 9))
	s.commit(batch...)
	s.restart()
	s.expectIDs("a", 9, 7, 8, 9)
}

func testForget(t *testing.T, s *subject) {
	s.recover()
	s.commit(remember("a", 1, 9), remember("b", 2, 9))
	s.restart()
	s.commit(remember("a", 3, 9), forget("a"), remember("a", 4, 9), forget("c"))
	for range 2 {
		s.expectIDs("a", 9, 4)
		s.expectIDs("b", 9, 2)
		s.expectRemembering("a", "b")
	}
	s.commit(forget("a"))
	s.expectIDs("a", 9)
	s.expectRemembering("b")
	s.expectIDs("a", 9)
}

func testManyIDs(t *testing.T, s *subject) {
	s.recover()
	const keep = 700
	var want []uint64
	number := uint64(0)
	for round := range 40 {
		var batch []engine.Record
		for range []int{3, 250}[round%2] {
			number += 2
			want = append(want, number)
			batch = append(batch, remember("a", number, keep), remember("b", number+1, 1))
		}
		s.commit(batch...)
		if round%5 == 4 {
			s.restart()
		}
		s.expectIDs("a", keep, want[max(len(want)-keep, 0):]...)
		s.expectIDs("b", 1, number+1)
	}
}
