package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func windowOf(numbers ...uint64) (*spillWindow, spillKey) {
	w, k := newSpillWindow(), spillKey{1, 4}
	for _, n := range numbers {
		w.put(k, Record{Number: n, Message: &Message{Payload: make([]byte, n)}})
	}
	return w, k
}

// What is cut out of a window, in whatever order, is what was asked for, and counts.
func TestSpillWindowCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var want []uint64
		for n := uint64(1); n <= 40; n++ {
			if r.IntN(3) > 0 {
				want = append(want, n)
			}
		}
		w, k := windowOf(want...)
		for len(want) > 0 {
			from := uint64(r.IntN(42))
			last := from + uint64(r.IntN(8))
			cut := func(n uint64) bool { return n >= from && n <= last }
			var gone, wantGone []uint64
			w.cut(k, from, last, func(m *Message) { gone = append(gone, uint64(m.Size())) })
			wantBytes := int64(0)
			for _, n := range want {
				if cut(n) {
					wantGone = append(wantGone, n)
				} else {
					wantBytes += int64(n) + 192
				}
			}
			want = slices.DeleteFunc(want, cut)
			var left []uint64
			for _, rec := range w.levels[k] {
				left = append(left, rec.Number)
			}
			if !slices.Equal(left, want) || !slices.Equal(gone, wantGone) || w.bytes != wantBytes {
				t.Fatalf("cut %d to %d: %v in %d bytes left, want %v in %d; %v gone, want %v", from, last, left, w.bytes, want,
					wantBytes, gone, wantGone)
			}
		}
		if len(w.levels) != 0 {
			t.Fatalf("%d levels of nothing", len(w.levels))
		}
	}
}

// To take out the first ones doesn't move the others: a window may have 40,000 that expire at once.
func TestSpillWindowCutMovesLittle(t *testing.T) {
	var numbers []uint64
	for n := uint64(1); n <= 100; n++ {
		numbers = append(numbers, n)
	}
	w, k := windowOf(numbers...)
	end := &w.levels[k][99]
	for n := uint64(1); n < 100; n++ {
		w.cut(k, n, n, func(*Message) {})
		if all := w.levels[k]; &all[len(all)-1] != end {
			t.Fatalf("the last entry has moved when entry %d was taken out", n)
		}
	}
}
