package amqp

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestUnsettledModel compares the table with a map, near the place where ids
// run over and with gaps wider than the ring.
func TestUnsettledModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var u unsettled[uint64]
		model := map[uint32]uint64{}
		start := rapid.SampledFrom([]uint32{0, 1, 1<<31 - 3000, 1<<32 - 3000, 1<<32 - 1}).Draw(t, "start")
		newest, value := start, uint64(0)
		// ids sorted in their order from start on.
		ids := func() []uint32 {
			all := make([]uint32, 0, len(model))
			for id := range model {
				all = append(all, id)
			}
			slices.SortFunc(all, func(a, b uint32) int { return int(int64(a-start) - int64(b-start)) })
			return all
		}
		some := func() uint32 {
			if all := ids(); len(all) > 0 && rapid.Bool().Draw(t, "known") {
				return rapid.SampledFrom(all).Draw(t, "id")
			}
			return start + rapid.Uint32Range(0, newest-start+10).Draw(t, "offset")
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				gap := rapid.SampledFrom([]uint32{1, 1, 1, 1, 2, 7, 100, ringSpan - 300, ringSpan - 1, ringSpan, ringSpan + 1, 20000}).Draw(t, "gap")
				for range rapid.SampledFrom([]int{1, 1, 1, 2, 3, 5, 10, 40, 40, 300}).Draw(t, "times") {
					newest += gap
					value++
					if !u.put(newest, value) {
						t.Fatalf("put %d was refused", newest)
					}
					model[newest] = value
					gap = 1
				}
			},
			"put again": func(t *rapid.T) {
				id := some()
				if _, there := model[id]; there && u.put(id, 1) {
					t.Fatalf("put of %d, which is there, was taken", id)
				}
			},
			"get": func(t *rapid.T) {
				id := some()
				got, ok := u.get(id)
				if want, there := model[id]; ok != there || got != want {
					t.Fatalf("get %d is %d %v, not %d %v", id, got, ok, want, there)
				}
			},
			"set": func(t *rapid.T) {
				id := some()
				if _, there := model[id]; there {
					value++
					u.set(id, value)
					model[id] = value
				}
			},
			"remove": func(t *rapid.T) {
				id := some()
				_, there := model[id]
				if u.remove(id) != there {
					t.Fatalf("remove %d is %v", id, !there)
				}
				delete(model, id)
			},
			"remove most": func(t *rapid.T) {
				for _, id := range ids() {
					if id%16 != 3 {
						u.remove(id)
						delete(model, id)
					}
				}
			},
			"removeIf": func(t *rapid.T) {
				odd := rapid.Uint64Range(2, 5).Draw(t, "divisor")
				u.removeIf(func(v uint64) bool { return v%odd == 0 })
				for id, v := range model {
					if v%odd == 0 {
						delete(model, id)
					}
				}
			},
			"walk": func(t *rapid.T) {
				first := some()
				last := first + rapid.SampledFrom([]uint32{0, 1, 50, 30000, 1<<31 - 1}).Draw(t, "width")
				var want []uint32
				for _, id := range ids() {
					if id-first <= last-first {
						want = append(want, id)
					}
				}
				var got []uint32
				for from := first; ; {
					id, ok := u.next(from, last)
					if !ok {
						break
					}
					got = append(got, id)
					if id == last || len(got) > len(want) {
						break
					}
					from = id + 1
				}
				if !slices.Equal(got, want) {
					t.Fatalf("walk %d…%d is %v, not %v", first, last, got, want)
				}
			},
			"trim": func(t *rapid.T) { u.trim() },
			"": func(t *rapid.T) {
				if u.len() != len(model) {
					t.Fatalf("len is %d, not %d", u.len(), len(model))
				}
				if len(u.ring) > ringSpan {
					t.Fatalf("ring of %d", len(u.ring))
				}
			},
		})
	})
}

// TestUnsettledHostileIDs: ids that jump round the number space are refused
// before they meet one that is there, and cost nothing.
func TestUnsettledHostileIDs(t *testing.T) {
	for _, jump := range []uint32{1, ringSpan, 1 << 20, 1 << 29, 1 << 30, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		var u unsettled[int]
		taken := 0
		for i := range 10_000 {
			if u.put(uint32(i)*jump, i) {
				taken++
			}
		}
		if taken != u.len() {
			t.Errorf("jump %d: %d were taken, %d are there", jump, taken, u.len())
		}
		found := 0
		for i := range uint32(10_000) {
			if u.remove(i * jump) {
				found++
			}
		}
		if found != taken || u.len() != 0 {
			t.Errorf("jump %d: %d were taken, %d found, %d left", jump, taken, found, u.len())
		}
	}
}

// TestUnsettledOldEntry: one delivery that stays unsettled doesn't make the
// table grow with all that come after it.
func TestUnsettledOldEntry(t *testing.T) {
	var u unsettled[int]
	u.put(0, 7)
	for id := uint32(1); id < 1_000_000; id++ {
		u.put(id, 0)
		u.remove(id)
	}
	if len(u.ring) > ringSpan || len(u.aside) > 1 || len(u.order) > 100 {
		t.Errorf("ring of %d, %d aside, order of %d", len(u.ring), len(u.aside), len(u.order))
	}
	if v, ok := u.get(0); !ok || v != 7 {
		t.Errorf("the old entry is %d %v", v, ok)
	}
	if id, ok := u.next(0, 1<<31-1); !ok || id != 0 {
		t.Errorf("next is %d %v", id, ok)
	}
}

// TestUnsettledMostGone: what has been settled aside is no longer in a walk's way.
func TestUnsettledMostGone(t *testing.T) {
	var u unsettled[int]
	const n = 100_000
	for id := range uint32(n) {
		u.put(id, 0)
	}
	for id := range uint32(n - ringSpan - 1) {
		u.remove(id)
	}
	if len(u.order) > 64 {
		t.Errorf("order of %d for %d aside", len(u.order), len(u.aside))
	}
	if id, ok := u.next(0, n); !ok || id != n-ringSpan-1 {
		t.Errorf("next is %d %v", id, ok)
	}
}

func BenchmarkUnsettled(b *testing.B) {
	var u unsettled[sent]
	id := uint32(0)
	for b.Loop() {
		u.put(id, sent{})
		if id >= 100 {
			u.remove(id - 100)
		}
		id++
	}
}
