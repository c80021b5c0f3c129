package crash

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letomq/leto/interop/wire"
)

// manners are what a failing consumer does, in percent.
type manners struct{ accepts, rejects, fails int } // otherwise it releases

// failer is a consumer without transactions, the only link of its connection. It fails all the time.
type failer struct {
	*taker
	books  *books
	number uint16
	at     uint8
	rng    *rand.Rand
	claims map[uint32]*work // asked for, by delivery-id
	held   []delivery
}

// failOn fails until the broker is gone, and lets its connection be cut now and then.
func failOn(k *books, b *broker, at uint8, m manners, numbers func() uint16, rng *rand.Rand) error {
	for {
		number := numbers()
		f := &failer{books: k, number: number, at: at, rng: rng, claims: map[uint32]*work{}}
		var err error
		if f.taker, err = newTaker(b, fmt.Sprint("failer-", number), terms{name: "in", address: places[at], second: true}, nil); err != nil {
			return err
		}
		for left := 100 + rng.IntN(500); left > 0 && err == nil; left-- {
			err = f.step(m)
		}
		if err == nil {
			err = f.leave()
		}
		f.conn.Close()
		if err != nil {
			return err
		}
	}
}

// step takes one delivery, and says something of one that it has.
func (f *failer) step(m manners) error {
	if err := f.take(false); err != nil {
		return err
	}
	if len(f.held) < f.rng.IntN(8) {
		return nil
	}
	i := f.rng.IntN(len(f.held))
	d := f.held[i]
	f.held = slices.Delete(f.held, i, i+1)
	v := release
	switch k := f.rng.IntN(100); {
	case k < m.accepts:
		v = accept
	case k < m.accepts+m.rejects:
		v = reject
	case k < m.accepts+m.rejects+m.fails:
		v = fail
	}
	w := f.books.begin(true)
	f.books.retire(w, &d, v, false)
	f.claims[d.id] = w
	err := f.conn.Send(disposition(d.id, d.id, false, outcome(v, f.rng.IntN(4) > 0)))
	for err != nil && f.take(false) == nil { // what the broker has said before it went still counts
	}
	return err
}

// take reads up to a delivery, or with drain up to the answer to that.
func (f *failer) take(drain bool) error {
	for {
		if drain != f.drains && (drain || f.credit == 0) || !drain && f.credit < 20 {
			f.credit, f.drains = 40, drain
			if err := f.conn.Send(flow(f.count, f.credit, drain)); err != nil {
				return err
			}
		}
		g, err := f.conn.Await(wire.CodeTransfer, wire.CodeDisposition, wire.CodeFlow)
		if err != nil {
			return err
		}
		switch g.Code {
		case wire.CodeDisposition:
			f.settled(&g)
		case wire.CodeFlow:
			if g.Field(4) != nil && g.Number(6) == 0 && g.Number(8) != 0 {
				f.count, f.credit, f.drains = uint32(g.Number(5)), 0, false
				return nil
			}
		case wire.CodeTransfer:
			f.count++
			f.credit--
			d := delivery{id: uint32(g.Number(1)), at: f.at}
			if d.name, d.count, _, err = readPlain(g.Payload, workSize); err != nil {
				return err
			}
			f.books.deliver(d.name, d.at, d.count, f.number)
			f.held = append(f.held, d)
			if !drain {
				return nil
			}
		}
	}
}

func (f *failer) settled(g *wire.Frame) {
	if g.Number(3) != 1 {
		return
	}
	for id := range covered(g) {
		if w := f.claims[id]; w != nil {
			f.books.told(w, holds)
			delete(f.claims, id)
		}
	}
}

// leave cuts the connection.
func (f *failer) leave() error {
	if err := f.take(true); err != nil {
		return err
	}
	f.books.cut(f.held, slices.Collect(maps.Values(f.claims))...)
	return nil
}

// feedOn posts messages as long as there aren't enough.
func feedOn(k *books, b *broker, number uint16, rng *rand.Rand) error {
	claims := map[name]*work{}
	var feeds [bookQueues]*feed
	for to := range feeds {
		s, err := newFeed(b, places[to], func(n name) { k.told(claims[n], holds); delete(claims, n) })
		if err != nil {
			return err
		}
		defer s.conn.Close()
		feeds[to] = s
	}
	for sequence := uint32(0); ; sequence++ {
		to := rng.IntN(bookQueues)
		n := name{producer: number, to: uint8(to), sequence: sequence}
		w := k.begin(true)
		claims[n] = w
		k.post(w, n)
		k.commit(w)
		if err := feeds[to].send(n, plain(n, workSize)); err != nil {
			return err
		}
		for k.crowded(enough) {
			select {
			case <-b.Ended():
				return errors.New("the broker is gone")
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// TestKilledWhileManyFail: SIGKILL while consumers reject, fail and release all the time, messages die of that, and dead
// letters are sent back. Each message is in one place, and no count is below what was confirmed.
func TestKilledWhileManyFail(t *testing.T) {
	withMuchAndLittle(t, 3, func(t *testing.T, rng *rand.Rand, memory string) {
		c := &bookChain{t: t, rng: rng, books: newBooks(), data: filepath.Join(t.TempDir(), "data"), memory: memory, size: func(name) int { return workSize }}
		var last atomic.Uint32
		number := func() uint16 { return uint16(last.Add(1)) }
		fails := func(at uint8, m manners) func(b *broker, rng *rand.Rand) error {
			return func(b *broker, rng *rand.Rand) error {
				return failOn(c.books, b, at, m, number, rng)
			}
		}
		c.run(
			func(b *broker, rng *rand.Rand) error { return feedOn(c.books, b, number(), rng) },
			fails(placeA, manners{accepts: 5, rejects: 90}),
			fails(placeA, manners{accepts: 5, rejects: 20, fails: 50}),
			fails(placeB, manners{accepts: 5, fails: 70}),
			fails(placeB, manners{accepts: 5, fails: 70}),
			fails(placeFew, manners{fails: 40}),
			fails(placeFew, manners{accepts: 10, fails: 90}),
			func(b *broker, rng *rand.Rand) error { return sendBackOn(c.books, b, rng) },
		)
	})
}

// sendBackOn has dead letters be sent back now and then.
func sendBackOn(k *books, b *broker, rng *rand.Rand) error {
	for {
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
		k.sendBack()
		if _, err := command(b, places[letters], "retry", fmt.Sprintf(`{"count": %d}`, 1+rng.IntN(600))); err != nil {
			return err
		}
	}
}
