package engine

import (
	"slices"
	"testing"
)

// pageWith returns a page of these numbers.
func pageWith(whole bool, numbers ...uint64) page {
	p := page{whole: whole}
	for _, n := range numbers {
		p.entries = append(p.entries, Stored{Number: n, Message: &Message{Payload: make([]byte, 10)}})
	}
	return p
}

func TestPagesBecomeOne(t *testing.T) {
	for _, c := range []struct {
		name  string
		a, b  page
		want  []uint64
		whole bool
	}{
		{"both whole", pageWith(true, 1, 4), pageWith(true, 2, 3, 9), []uint64{1, 2, 3, 4, 9}, true},
		{"one ends before the other", pageWith(false, 1, 4), pageWith(true, 2, 3, 9), []uint64{1, 2, 3, 4}, false},
		{"and the other way round", pageWith(true, 1, 4), pageWith(false, 2, 3), []uint64{1, 2, 3}, false},
		{"neither whole", pageWith(false, 1, 4), pageWith(false, 2, 3), []uint64{1, 2, 3}, false},
		{"in both", pageWith(true, 1, 2, 3), pageWith(true, 2, 3, 4), []uint64{1, 2, 3, 4}, true},
		{"one empty", pageWith(true), pageWith(false, 2, 3), []uint64{2, 3}, false},
		{"both empty", pageWith(true), pageWith(true), nil, true},
	} {
		for _, p := range []page{c.a.with(c.b), c.b.with(c.a)} {
			var got []uint64
			for _, e := range p.entries {
				got = append(got, e.Number)
			}
			if !slices.Equal(got, c.want) || p.whole != c.whole {
				t.Errorf("%s: %v, whole %v, want %v, %v", c.name, got, p.whole, c.want, c.whole)
			}
		}
	}
	if p := pageWith(true, 1, 2, 3).trim(2, 1000); len(p.entries) != 2 || p.whole {
		t.Errorf("trimmed to two: %+v", p)
	}
	if p := pageWith(true, 1, 2, 3).trim(5, 10); len(p.entries) != 1 || p.whole {
		t.Errorf("trimmed to 10 bytes: %+v", p)
	}
	if p := pageWith(true, 1, 2, 3).trim(3, 30); len(p.entries) != 3 || !p.whole {
		t.Errorf("trimmed to all: %+v", p)
	}
}
