package server

import (
	"math/rand/v2"
	"sync"
	"testing"
)

func holder() *incoming {
	return &incoming{attachment: &attachment{conn: &connection{mail: mailbox{wake: make(chan struct{}, 1)}}}}
}

// TestPartialsUnderContention: the budget is kept, nothing of it is lost, and whoever is evicted is told.
func TestPartialsUnderContention(t *testing.T) {
	s := &partials{limit: 10_000}
	var working sync.WaitGroup
	var holders [8]*incoming
	var lost [8]int
	for i := range holders {
		p := holder()
		holders[i] = p
		working.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range 2000 {
				m := s.begin(p)
				kept, size := true, 0
				for range r.IntN(20) {
					n := r.IntN(400)
					if kept = s.add(m, make([]byte, n)); !kept {
						break
					}
					size += n
					if used := s.bytes.Load(); used > s.limit+8*400 { // who finds no room takes it back in a moment
						t.Errorf("%d bytes", used)
					}
				}
				whole, stayed := s.end(m)
				if stayed && len(whole) != size || !kept && stayed {
					t.Errorf("%d bytes of %d, kept %v, stayed %v", len(whole), size, kept, stayed)
				}
				if !stayed {
					lost[i]++
				}
			}
		})
	}
	working.Wait()
	for i, p := range holders {
		if n := len(p.conn.mail.notices); n != lost[i] {
			t.Errorf("%d notices, %d evicted", n, lost[i])
		}
	}
	if n := s.bytes.Load(); n != 0 || s.first != nil || s.last != nil {
		t.Errorf("%d bytes left, first %v, last %v", n, s.first, s.last)
	}
}

// TestPartialLargerThanTheBudget is alone and has no one to blame.
func TestPartialLargerThanTheBudget(t *testing.T) {
	s := &partials{limit: 100}
	m := s.begin(holder())
	if !s.add(m, make([]byte, 100)) || s.add(m, make([]byte, 1)) || s.add(m, make([]byte, 1000)) || !s.evicted(m) {
		t.Error("the budget isn't kept")
	}
	if _, stayed := s.end(m); stayed || s.bytes.Load() != 0 {
		t.Errorf("stayed %v, %d bytes", stayed, s.bytes.Load())
	}
}
