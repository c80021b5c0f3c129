package queue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRingAgainstSlice runs a ring beside a sorted slice of numbers.
func TestRingAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var want []uint64
		fresh := func() *Entry {
			n := rapid.Uint64Range(1, 1<<20).Draw(t, "number")
			for slices.Contains(want, n) {
				n++
			}
			return &Entry{number: n}
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				e := fresh()
				r.insert(e)
				want = append(want, e.number)
				slices.Sort(want)
			},
			"merge": func(t *rapid.T) {
				var batch []*Entry
				for range rapid.IntRange(1, 20).Draw(t, "batch") {
					e := fresh()
					batch = append(batch, e)
					want = append(want, e.number)
				}
				slices.Sort(want)
				slices.SortFunc(batch, func(a, b *Entry) int { return int(int64(a.number) - int64(b.number)) })
				r.merge(batch)
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "pops") {
					if len(want) == 0 {
						return
					}
					if e := r.popFront(); e.number != want[0] {
						t.Fatalf("popped %d, want %d", e.number, want[0])
					}
					want = want[1:]
				}
			},
			"remove": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(want)-1).Draw(t, "at")
				r.remove(uint32(i))
				want = slices.Delete(want, i, i+1)
			},
			"keep": func(t *rapid.T) {
				r.keep(func(e *Entry) bool { return e.number%5 != 0 })
				want = slices.DeleteFunc(want, func(n uint64) bool { return n%5 == 0 })
			},
			"": func(t *rapid.T) {
				if int(r.n) != len(want) {
					t.Fatalf("ring has %d, want %d", r.n, len(want))
				}
				for i, n := range want {
					if got := r.at(uint32(i)).number; got != n {
						t.Fatalf("ring[%d] = %d, want %d", i, got, n)
					}
					if at := r.search(keyOf(0, n)); int(at) != i {
						t.Fatalf("search %d = %d, want %d", n, at, i)
					}
				}
				if len(want) == 0 && len(r.buf) > ringKeep {
					t.Fatalf("empty ring keeps %d places", len(r.buf))
				}
				filled := 0
				for _, e := range r.buf {
					if e != nil {
						filled++
					}
				}
				if filled != len(want) {
					t.Fatalf("ring holds on to %d entries, has %d", filled, len(want))
				}
			},
		})
	})
}
