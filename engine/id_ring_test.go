package engine

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIDRing compares a ring with a slice of what came last.
func TestIDRing(t *testing.T) {
	for _, size := range []int{1, 2, 7, 100, 1000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(size), 1))
			r := idRing{size: size, seed: maphash.MakeSeed()}
			var last []DuplicateID // the zero one where an id was removed
			made := 0
			make := func() DuplicateID { made++; return NewDuplicateID([]byte(fmt.Sprint(made))) }
			for range 20 * size {
				switch k := rng.IntN(10); {
				case k == 0 && len(last) > 0:
					i := rng.IntN(len(last))
					r.remove(last[i])
					last[i] = DuplicateID{}
				case k == 1:
					r.remove(make()) // isn't there
				default:
					id := make()
					r.push(id)
					if last = append(last, id); len(last) > size {
						last = slices.Delete(last, 0, 1)
					}
				}
				there := 0
				for _, id := range last {
					if id != (DuplicateID{}) {
						there++
						if size <= 100 && !r.has(id) {
							t.Fatal("an id is missing")
						}
					}
				}
				if r.count != there || r.has(make()) {
					t.Fatalf("%d ids, want %d", r.count, there)
				}
			}
			var inOrder []DuplicateID
			r.each(func(id DuplicateID) { inOrder = append(inOrder, id) })
			last = slices.DeleteFunc(last, func(id DuplicateID) bool { return id == DuplicateID{} })
			if !slices.Equal(inOrder, last) {
				t.Errorf("%d ids, want %d, or others", len(inOrder), len(last))
			}
			for i := 1; i <= made; i++ {
				id := NewDuplicateID([]byte(fmt.Sprint(i)))
				if want := slices.Contains(last, id); r.has(id) != want {
					t.Fatalf("id %d: there %v, want %v", i, !want, want)
				}
			}
			if most := int64(size*16 + max(16, 4*size)*4); r.bytes() > most {
				t.Errorf("%d bytes for %d ids, want at most %d", r.bytes(), size, most)
			}
		})
	}
}

func BenchmarkIDRing(b *testing.B) {
	r := idRing{size: 20000, seed: maphash.MakeSeed()}
	ids := make([]DuplicateID, 1<<16)
	for i := range ids {
		ids[i] = NewDuplicateID([]byte(fmt.Sprint(i)))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if id := ids[i%len(ids)]; !r.has(id) {
			r.push(id)
		}
	}
}
