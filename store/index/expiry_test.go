package index

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/letomq/leto/store/journal"
)

type place struct {
	queue    uint64
	priority uint8
	number   uint64
}

// told is what a reader has been given.
type told struct {
	r    *Expiring
	all  map[place]int64
	last int64 // the time it was asked up to
}

// ask reads up to a time, and checks what comes against the model.
func (o *told) ask(t *testing.T, r *rand.Rand, m *model, until int64) {
	t.Helper()
	o.last = max(o.last, until)
	for calls := 0; ; calls++ {
		n, got := 1+r.IntN(700), 0
		next, err := o.r.Next(until, n, func(queue uint64, priority uint8, e *Entry) {
			got++
			if want := m.queues[queue][priority][e.Number]; want.Number != e.Number || want.Expiry != e.Expiry || e.Expiry > until || e.Expiry <= 0 {
				t.Fatalf("queue %d, priority %d: entry %d expires at %d, want %+v until %d", queue, priority, e.Number, e.Expiry, want, until)
			}
			o.all[place{queue, priority, e.Number}] = e.Expiry
		})
		if err != nil || got > n || calls > 10_000 {
			t.Fatalf("%d entries in call %d, %v, want at most %d", got, calls, err, n)
		}
		if next == 0 || next > until {
			soonest := int64(never)
			m.each(func(_ place, e Entry) {
				if e.Expiry > until {
					soonest = min(soonest, e.Expiry)
				}
			})
			if next == 0 && soonest != never || next > soonest {
				t.Fatalf("ask again at %d, the next one expires at %d", next, soonest)
			}
			break
		}
	}
	m.each(func(p place, e Entry) {
		if e.Expiry > 0 && e.Expiry <= until && o.all[p] != e.Expiry {
			t.Fatalf("%+v expires at %d and wasn't told by %d", p, e.Expiry, until)
		}
	})
}

func (m *model) each(f func(place, Entry)) {
	for q, levels := range m.queues {
		for p, entries := range levels {
			for n, e := range entries {
				f(place{q, p, n}, e)
			}
		}
	}
}

// TestExpiring applies random batches and asks what expires, for ever later times: whatever is there has been told, and
// a new reader is told the same.
func TestExpiring(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			dir := t.TempDir()
			x := open(t, dir, 0)
			m, now, ts := newModel(), int64(1), uint64(0)
			o := &told{r: x.Expiring(), all: map[place]int64{}}
			for round := range 60 {
				b := m.batch(r)
				for _, l := range b.Levels {
					spread := []int64{1, 100, 1 << 20, 1 << 40}[r.IntN(4)]
					shift := func(e *Entry) {
						if e.Expiry != 0 {
							e.Expiry = max(now-50+r.Int64N(spread), 1)
							m.queues[l.Queue][l.Priority][e.Number] = *e
						}
					}
					for i := range l.Adds {
						shift(&l.Adds[i])
					}
					for i := range l.Edits {
						if e := &l.Edits[i]; e.Kind == EditPut && m.queues[l.Queue][l.Priority][e.Number].Number != 0 {
							shift(e.Entry)
						}
					}
				}
				if err := x.Apply(b); err != nil {
					t.Fatal(err)
				}
				x.Publish()
				now += r.Int64N(200)
				if r.IntN(10) == 0 {
					now += 1 << 19
				}
				switch r.IntN(12) {
				case 0:
					var err error
					if ts, err = x.Checkpoint(); err != nil {
						t.Fatal(err)
					}
					if err := x.Close(); err != nil {
						t.Fatal(err)
					}
					x = open(t, dir, ts)
					o = &told{r: x.Expiring(), all: map[place]int64{}}
				case 1:
					again := told{r: x.Expiring(), all: map[place]int64{}}
					again.ask(t, r, m, now)
				case 2: // in the midst of a round
					if _, err := o.r.Next(now, 10, func(queue uint64, priority uint8, e *Entry) {
						o.all[place{queue, priority, e.Number}] = e.Expiry
					}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				o.ask(t, r, m, now)
				if round%10 == 0 {
					m.check(t, x)
				}
			}
			m.check(t, x)
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestExpiringLeavesBehind has many entries that have expired and stay: those that expire later are found without
// going through them again.
func TestExpiringLeavesBehind(t *testing.T) {
	x := open(t, t.TempDir(), 0)
	defer x.Close()
	b := &Batch{Defines: []Definition{{Queue: 1, Value: []byte("q")}}}
	l := &LevelBatch{Queue: 1, Priority: 4}
	for n := uint64(1); n <= 100*runMax; n++ {
		e := Entry{Number: n, Place: journal.Place{Segment: 1, Length: 100}, Expiry: 1000}
		if n%(10*runMax) == 0 {
			e.Expiry = 2000
		}
		l.Adds = append(l.Adds, e)
	}
	b.Levels = append(b.Levels, l)
	if err := x.Apply(b); err != nil {
		t.Fatal(err)
	}
	x.Publish()
	r := x.Expiring()
	count := func(until int64) (n int, next int64) {
		for {
			var err error
			if next, err = r.Next(until, 1000, func(uint64, uint8, *Entry) { n++ }); err != nil {
				t.Fatal(err)
			}
			if next == 0 || next > until {
				return n, next
			}
		}
	}
	for _, c := range []struct {
		until int64
		n     int
		next  int64
	}{{999, 0, 1000}, {1000, 100*runMax - 10, 2000}, {1500, 0, 2000}, {2000, 10, 0}, {3000, 0, 0}} {
		if n, next := count(c.until); n != c.n || next != c.next {
			t.Errorf("until %d: %d entries, then %d, want %d and %d", c.until, n, next, c.n, c.next)
		}
	}
}
