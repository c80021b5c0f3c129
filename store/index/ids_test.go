package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

// idModel is what an index should hold of ids: all that an address has had, and how many of them have to be there.
type idModel struct {
	ids  map[string][]ID
	keep map[string]uint64
	last uint64
}

func newIDModel() *idModel { return &idModel{ids: map[string][]ID{}, keep: map[string]uint64{}} }

func (m *idModel) clone() *idModel {
	c := &idModel{ids: map[string][]ID{}, keep: maps.Clone(m.keep), last: m.last}
	for a, ids := range m.ids {
		c.ids[a] = slices.Clone(ids)
	}
	return c
}

func (m *idModel) batch(r *rand.Rand) *Batch {
	b := &Batch{NoIDs: r.IntN(60) == 0}
	if b.NoIDs {
		clear(m.ids)
	}
	for a := range 4 {
		if r.IntN(3) == 0 {
			continue
		}
		name := []string{"", "a", "aa", "a\x00b"}[a]
		ids := &IDBatch{Address: name, Forget: r.IntN(40) == 0, Keep: []uint64{1, 10, 700, 2000}[a]}
		if ids.Forget {
			delete(m.ids, name)
		}
		if old := m.ids[name]; len(old) > 0 && r.IntN(4) == 0 { // known
			ids.IDs = append(ids.IDs, old[r.IntN(len(old))])
		}
		for range r.IntN([]int{3, 40, 1500}[r.IntN(3)]) {
			m.last += 1 + r.Uint64N(3)
			id := ID{Number: m.last}
			id.Value[0], id.Value[15] = byte(r.Uint32()), byte(a)
			ids.IDs = append(ids.IDs, id)
			m.ids[name] = append(m.ids[name], id)
			m.keep[name] = ids.Keep
		}
		b.IDs = append(b.IDs, ids)
	}
	b.Counters.LastNumber = m.last
	return b
}

func (m *idModel) check(t *testing.T, x *Index) {
	t.Helper()
	s := x.Snapshot()
	if err := s.CheckIDs(func(problem string) { t.Error(problem) }); err != nil {
		t.Fatal(err)
	}
	found := map[string]uint64{}
	if err := s.Remembering(func(address string, keep uint64) error { found[address] = keep; return nil }); err != nil {
		t.Fatal(err)
	}
	for a := range found {
		if len(m.ids[a]) == 0 {
			t.Errorf("address %q has ids, want none", a)
		}
	}
	for a, all := range m.ids {
		if len(all) == 0 {
			continue
		}
		keep := int(m.keep[a])
		want := all[max(len(all)-keep, 0):]
		got, err := x.Remembered(x.View(), a, keep)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) || found[a] != m.keep[a] {
			t.Fatalf("address %q: %d ids, keeps %d, want the last %d of %d", a, len(got), found[a], keep, len(all))
		}
		every, err := s.Remembered(a)
		if err != nil {
			t.Fatal(err)
		}
		if len(every) >= keep+2*idsMax || !slices.Equal(every, all[len(all)-len(every):]) {
			t.Fatalf("address %q: %d ids are there, want about the last %d of %d", a, len(every), keep, len(all))
		}
	}
}

// TestIDs applies random batches of ids, and goes back to the last checkpoint at any time.
func TestIDs(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			dir := filepath.Join(t.TempDir(), "0")
			x := open(t, dir, 0)
			m, saved, ts := newIDModel(), newIDModel(), uint64(0)
			for round := range 200 {
				if err := x.Apply(m.batch(r)); err != nil {
					t.Fatal(err)
				}
				x.Publish()
				if round%10 == 0 {
					m.check(t, x)
				}
				switch r.IntN(30) {
				case 0, 1, 2, 3:
					var err error
					if ts, err = x.Checkpoint(); err != nil {
						t.Fatal(err)
					}
					saved = m.clone()
					x.Keep(ts)
				case 4:
					if r.IntN(2) == 0 {
						spoil(t, x, r)
					}
					if err := x.Close(); err != nil {
						t.Fatal(err)
					}
					x = open(t, dir, ts)
					m = saved.clone()
					m.check(t, x)
				}
			}
			m.check(t, x)
			copied := filepath.Join(t.TempDir(), "copy")
			at, err := x.Snapshot().CopyTo(Options{Dir: copied})
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = open(t, copied, at)
			m.check(t, x)
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
