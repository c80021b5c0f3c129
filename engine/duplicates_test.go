package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// once publishes a message whose payload is its id, and expects it to be accepted.
func (p *producer) once(durable bool, ids ...string) {
	p.w.t.Helper()
	for _, id := range ids {
		if r := p.publishOnce(msg(id, durable), id); r.Verdict != engine.Accepted {
			p.w.t.Fatalf("publish %s: %+v, want accepted", id, r)
		}
	}
}

func (w *world) expectDuplicates(n uint64) {
	w.t.Helper()
	if got := w.Totals().Duplicates; got != n {
		w.t.Errorf("%d duplicates, want %d", got, n)
	}
}

func TestCase241_SecondOfAnIDIsAcceptedAndDropped(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p, other, relay := w.producer("q"), w.producer("q"), w.producerOf(engine.ProducerSpec{Anonymous: true})
		elsewhere := w.producer("r")
		p.once(durable, "a", "b", "a")
		other.once(!durable, "b", "c")
		elsewhere.once(durable, "a")
		m := msg("c", durable)
		m.Address = "queue://q"
		if r := relay.publishOnce(m, "c"); r.Verdict != engine.Accepted {
			t.Errorf("anonymous: %+v, want accepted", r)
		}
		p.send(durable, "x", "x") // no id
		w.expectQueue("q", "a", "b", "c", "x", "x")
		w.expectQueue("r", "a")
		w.expectDuplicates(3)
		c := w.consumer("q")
		c.settle(accepted, c.take(5)...)
		p.once(durable, "a", "b", "c") // also when it has been consumed
		w.expectQueue("q")
	})
}

func TestCase241_AfterARestart(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.once(true, "a", "b")
		p.once(false, "c")
		w.restart()
		p = w.producer("q")
		p.once(true, "b", "a", "c", "d") // c was in memory only
		w.expectQueue("q", "a", "b", "c", "d")
		w.restart()
		w.producer("q").once(true, "a", "b", "c", "d")
		w.expectQueue("q", "a", "b", "c", "d")
	})
}

// A duplicate of a message whose commit doesn't hold yet is accepted when it does.
func TestCase241_FirstIsNotCommittedYet(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p, durable, transient := w.producer("q"), w.producer("q"), w.producer("q")
		synctest.Wait()
		resume := store.hold()
		p.startOnce(msg("a", true), "a")
		synctest.Wait()
		p.startOnce(msg("again", true), "a")
		durable.startOnce(msg("again", true), "a")
		transient.startOnce(msg("again", false), "a")
		transient.startOnce(msg("b", false), "b")
		synctest.Wait()
		if n := len(p.results) + len(durable.results) + len(transient.results); n != 0 {
			t.Errorf("%d confirmed before the commit", n)
		}
		resume()
		synctest.Wait()
		for _, p := range []*producer{p, durable, transient} {
			for ticket, r := range p.results {
				if r.Verdict != engine.Accepted {
					t.Errorf("ticket %d: %+v, want accepted", ticket, r)
				}
			}
		}
		if n := len(p.results) + len(durable.results) + len(transient.results); n != 5 {
			t.Errorf("%d confirmed, want 5", n)
		}
		w.expectQueue("q", "a", "b")
		w.expectDuplicates(3)
		if n := store.count(engine.RecordRemember); n != 1 {
			t.Errorf("%d ids stored, want 1", n)
		}
	})
}

// What the store doesn't take isn't remembered, and a duplicate of it is refused as well: it wasn't dropped for nothing.
func TestCase241_FirstIsRefused(t *testing.T) {
	store := &watchedStore{}
	opts := set(engine.AddressSettings{IDCacheSize: new(2)})
	inWorldOn(t, opts, store, func(t *testing.T, w *world) {
		p, other := w.producer("q"), w.producer("q")
		p.once(true, "1", "2")
		synctest.Wait()
		resume := store.hold()
		store.fail(engine.ErrStoreFull)
		for _, id := range []string{"a", "b", "c"} {
			p.startOnce(msg(id, true), id)
			other.startOnce(msg(id, true), id)
		}
		resume()
		synctest.Wait()
		for _, p := range []*producer{p, other} {
			for ticket, r := range p.results {
				if ticket != 1 && ticket != 2 && r.Reason != "store-full" || p == other && r.Reason != "store-full" {
					t.Errorf("ticket %d: %+v, want store-full", ticket, r)
				}
			}
		}
		w.expectDuplicates(0)
		store.fail(nil)
		other.once(true, "1", "2") // and it has pushed nothing out
		w.expectDuplicates(2)
		other.once(true, "c", "b")
		w.expectQueue("q", "1", "2", "c", "b")
		store.fail(errors.New("broken"))
		p.startOnce(msg("d", true), "d")
		other.startOnce(msg("d", true), "d")
		synctest.Wait()
		if r := other.results[other.next]; r.Reason != "store" {
			t.Errorf("broken store: %+v, want store", r)
		}
	})
}

// A message that is refused is none that has been taken.
func TestCase241_RefusedIsNotRemembered(t *testing.T) {
	opts := engine.Options{
		Limits:   engine.Limits{MemoryBytes: 64 << 10},
		Settings: []engine.AddressSettings{{Match: "closed", AutoCreateAddresses: new(false)}},
	}
	bothKinds(t, opts, func(t *testing.T, w *world, durable bool) {
		p := w.producerOf(engine.ProducerSpec{Anonymous: true})
		m := msg("a", durable)
		m.Address = "closed"
		if r := p.publishOnce(m, "a"); r.Reason != "not-found" {
			t.Fatalf("unknown address: %+v", r)
		}
		if err := w.Declare(engine.QueueSpec{Address: "closed"}); err != nil {
			t.Fatal(err)
		}
		m = msg(string(make([]byte, 70<<10)), durable)
		m.Address = "closed"
		if r := p.publishOnce(m, "a"); r.Reason != "memory" {
			t.Fatalf("too much: %+v", r)
		}
		w.producer("closed").once(durable, "a")
		w.expectQueue("closed", "a")
		w.expectDuplicates(0)
	})
}

func TestCase241_OnlyTheLastAreRemembered(t *testing.T) {
	opts := engine.Options{Settings: []engine.AddressSettings{
		{Match: "#", IDCacheSize: new(3)}, {Match: "off", IDCacheSize: new(0)}, {Match: "large.*", IDCacheSize: new(2000)},
	}}
	bothKinds(t, opts, func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		p.once(durable, "1", "2", "3", "4", "2", "3", "4", "1")
		w.expectQueue("q", "1", "2", "3", "4", "1")
		off := w.producer("off")
		off.once(durable, "1", "1")
		w.expectQueue("off", "1", "1")
		w.expectDuplicates(3)
		large := w.producer("large.q")
		for range 2 {
			for i := range 2000 {
				large.once(durable, fmt.Sprint(i))
			}
		}
		w.expectDuplicates(2003)
	})
}

// The ids of a topic are those of the address, not of a queue behind it, and each queue gets the message once.
func TestCase241_Topic(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p := w.producer("topic://t")
		p.once(durable, "a")
		p.once(durable, "a") // nobody got it: it wasn't remembered, and isn't a duplicate
		w.expectDuplicates(0)
		subscribe := func(name string) *consumer {
			return w.consumerOf(engine.ConsumerSpec{
				Address: "topic://t", By: engine.Principal{Container: "c"},
				Subscription: engine.Subscription{Name: name, Durable: true},
			})
		}
		one, two := subscribe("1"), subscribe("2")
		p.once(durable, "a", "b", "a")
		expect(t, "one", one.rest(), "a", "b")
		expect(t, "two", two.rest(), "a", "b")
		w.expectDuplicates(1)
	})
}

// An address that is deleted, or has no queue at a restart, has no ids, and the store doesn't keep them either.
func TestCase241_IDsGoWithTheirAddress(t *testing.T) {
	store := memory.New()
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.once(true, "a")
		if err := w.Delete("q", ""); err != nil {
			t.Fatal(err)
		}
		p.once(true, "a", "a") // a new address of that name
		w.expectQueue("q", "a")
		w.producer("r").once(true, "a")
		w.restart()
		if err := w.Delete("q", ""); err != nil { // not used since
			t.Fatal(err)
		}
		if err := w.Delete("r", "r"); err != nil { // the address stays
			t.Fatal(err)
		}
		w.producer("q").once(true, "a")
		w.expectQueue("q", "a")
		w.restart()
		synctest.Wait()
		if state, err := store.Recover(); err != nil || !slices.Equal(state.Remembering, []string{"q"}) {
			t.Errorf("ids are stored of %q, %v, want q alone", state.Remembering, err)
		}
	})
}

// The ids of more addresses than memory has room for are in the store.
func TestIDsOfManyAddresses(t *testing.T) {
	const addresses, each = 60, 300
	opts := engine.Options{Limits: engine.Limits{MemoryBytes: 1 << 20}}
	inWorld(t, opts, func(t *testing.T, w *world) {
		p := w.producerOf(engine.ProducerSpec{Anonymous: true})
		c := 0
		for round := range 2 {
			for a := range addresses {
				for id := range each {
					m := msg("", true)
					m.Address = fmt.Sprint("q", a)
					if r := p.publishOnce(m, fmt.Sprint(id)); r.Verdict != engine.Accepted {
						t.Fatalf("round %d: %+v", round, r)
					}
				}
				if n, err := w.Purge(fmt.Sprint("q", a), ""); err != nil {
					t.Fatal(err)
				} else {
					c += n
				}
				synctest.Wait()
				if used := w.Totals().Memory; used > 1<<20/8+20<<10 {
					t.Fatalf("%d bytes of memory", used)
				}
			}
		}
		if c != addresses*each {
			t.Errorf("%d messages, want %d", c, addresses*each)
		}
		w.expectDuplicates(addresses * each)
	})
}

// TestDuplicatesModel compares a broker that is used at random with lists of the ids that came last.
func TestDuplicatesModel(t *testing.T) {
	const size, ids = 5, 12
	type known struct{ all, durable []string } // oldest first
	for seed := range uint64(20) {
		store := &watchedStore{}
		opts := set(engine.AddressSettings{IDCacheSize: new(size)})
		inWorldOn(t, opts, store, func(t *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 8))
			model := map[string]*known{"q": {}, "r": {}}
			want := map[string][]string{}
			last := func(list []string, id string) []string {
				list = append(list, id)
				return list[max(len(list)-size, 0):]
			}
			take := func(address, id, payload string, durable bool) {
				k := model[address]
				k.all = last(k.all, id)
				if durable {
					k.durable = last(k.durable, id)
				}
				want[address] = append(want[address], payload)
			}
			var p []*producer
			attach := func() {
				p = []*producer{w.producer("q"), w.producer("r"), w.producer("q"), w.producer("r")}
				synctest.Wait()
			}
			attach()
			made := 0
			for range 300 {
				i := rng.IntN(len(p))
				address := []string{"q", "r"}[i%2]
				id := fmt.Sprint(rng.IntN(ids))
				durable := rng.IntN(3) > 0
				switch rng.IntN(20) {
				case 0:
					w.restart()
					for _, k := range model {
						k.all = slices.Clone(k.durable)
					}
					for a := range want { // transient ones are gone
						want[a] = slices.DeleteFunc(want[a], func(payload string) bool { return payload[0] == 't' })
					}
					attach()
				case 1, 2, 3: // many at once, taken or refused together
					resume := store.hold()
					full := rng.IntN(3) == 0
					if full {
						store.fail(engine.ErrStoreFull)
					}
					var taken, tickets []uint64
					var claimed, payloads []string
					for range 1 + rng.IntN(8) {
						made++
						id := fmt.Sprint(rng.IntN(ids))
						payload := fmt.Sprint("d", made)
						ticket := p[i].startOnce(msg(payload, true), id)
						if slices.Contains(model[address].all, id) {
							taken = append(taken, ticket)
							continue
						}
						tickets = append(tickets, ticket)
						if !slices.Contains(claimed, id) {
							claimed, payloads = append(claimed, id), append(payloads, payload)
						}
					}
					resume()
					synctest.Wait()
					for _, ticket := range append(taken, tickets...) {
						wanted := engine.Accepted
						if full && slices.Contains(tickets, ticket) {
							wanted = engine.Rejected
						}
						if r := p[i].results[ticket]; r.Verdict != wanted {
							t.Errorf("seed %d: %+v, want %v", seed, r, wanted)
							return
						}
					}
					store.fail(nil)
					if !full {
						for n, id := range claimed {
							take(address, id, payloads[n], true)
						}
					}
				default:
					made++
					payload := fmt.Sprint("td"[b2i(durable):][:1], made)
					if r := p[i].publishOnce(msg(payload, durable), id); r.Verdict != engine.Accepted {
						t.Errorf("seed %d: %+v", seed, r)
						return
					}
					if !slices.Contains(model[address].all, id) {
						take(address, id, payload, durable)
					}
				}
				for a, messages := range want {
					if got := w.contents(a); !slices.Equal(got, messages) {
						t.Errorf("seed %d: %s has %q, want %q", seed, a, got, messages)
						return
					}
				}
			}
		})
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestDuplicatesAtOnce has several producers send the same ids at the same time.
func TestDuplicatesAtOnce(t *testing.T) {
	const producers, n = 4, 2000
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprint("durable ", durable), func(t *testing.T) {
			b, err := engine.New(engine.Options{}, memory.New())
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			var sending, confirmed sync.WaitGroup
			confirmed.Add(producers * n)
			for i := range producers {
				p, err := b.Producer(engine.ProducerSpec{Address: fmt.Sprint("q", i%2)}, confirmer(func(_ uint64, r engine.Result) {
					if r.Verdict != engine.Accepted {
						t.Errorf("confirmed: %+v", r)
					}
					confirmed.Done()
				}))
				if err != nil {
					t.Fatal(err)
				}
				sending.Go(func() {
					for id := range n {
						m := msg(fmt.Sprint(id), durable)
						r, decided := p.PublishOnce(m, engine.NewDuplicateID(m.Payload), uint64(id))
						if !decided {
							continue
						}
						if r.Verdict != engine.Accepted {
							t.Errorf("publish: %+v", r)
						}
						confirmed.Done()
					}
				})
			}
			sending.Wait()
			confirmed.Wait()
			for _, q := range []string{"q0", "q1"} {
				if i, err := b.Queue(q, ""); err != nil || i.Messages != n {
					t.Errorf("queue %s: %d messages, %v, want %d", q, i.Messages, err, n)
				}
			}
			if got := b.Totals().Duplicates; got != (producers-2)*n {
				t.Errorf("%d duplicates, want %d", got, (producers-2)*n)
			}
		})
	}
}

// confirmer is a function that hears of results.
type confirmer func(uint64, engine.Result)

func (f confirmer) Confirmed(ticket uint64, r engine.Result) { f(ticket, r) }
