package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// littleMemory returns options with little memory and a spill.
func littleMemory() engine.Options {
	o := tiny
	o.Spill = func() (engine.Spill, error) { return &memory.Spill{}, nil }
	return o
}

// all returns what has been delivered up to now.
func (c *consumer) all() []engine.Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// fresh returns what of that take hasn't returned.
func (c *consumer) fresh() []engine.Delivery { return c.all()[c.taken:] }

// A message that fails waits as the settings say, from attempt to attempt, and then dies.
func TestRedeliveryWaits(t *testing.T) {
	opts := set(engine.AddressSettings{
		RedeliveryDelay: new(time.Second), RedeliveryMultiplier: new(2.0), MaxRedeliveryDelay: new(3 * time.Second), MaxDeliveryAttempts: new(5),
	})
	bothKinds(t, opts, func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		p.send(durable, "bad")
		c := w.consumer("q")
		begun := time.Now()
		for attempt, at := range []time.Duration{0, 1, 3, 6, 9} {
			at *= time.Second
			if wait := at - time.Since(begun); wait > 0 {
				time.Sleep(wait - time.Millisecond)
				c.credit(1)
				if i := w.info("q"); i.Delivering != 0 || i.Delayed != 1 {
					t.Fatalf("attempt %d: queue = %+v a millisecond before %v", attempt, i, at)
				}
				later(time.Millisecond)
			}
			d := c.take(1)
			if d[0].Count != uint32(attempt) {
				t.Fatalf("attempt %d: %q", attempt, texts(d))
			}
			c.settle(failed, d...)
		}
		w.expectQueue("DLQ", "bad+5")
	})
}

// What waits holds up nobody, and has its place afterwards.
func TestWaitingHoldsUpNobody(t *testing.T) {
	opts := set(engine.AddressSettings{RedeliveryDelay: new(time.Second)})
	bothKinds(t, opts, func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		p.send(durable, "1", "2", "3", "4")
		c := w.consumer("q")
		d := c.take(2)
		c.settle(failed, d[1], d[0])
		expect(t, "meanwhile", c.take(1), "3")
		p.send(durable, "5")
		later(time.Second)
		expect(t, "afterwards", c.rest(), "1+1", "2+1", "4", "5")
	})
}

// A consumer that gives back whatever it gets can't make the broker spin.
func TestReleasingPauses(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "x")
		c := w.consumer("q")
		begun := time.Now()
		var at []time.Duration
		for range 14 {
			for len(c.fresh()) == 0 {
				c.credit(1)
				time.Sleep(time.Millisecond)
			}
			at = append(at, time.Since(begun))
			c.settle(released, c.take(1)...)
		}
		for i, ms := range []int{0, 0, 0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000} {
			pause, want := at[i+1]-at[i], time.Duration(ms)*time.Millisecond
			if pause < want || pause > want+5*time.Millisecond {
				t.Errorf("pause %d takes %v, want %v", i+1, pause, want)
			}
		}
	})
}

// What waits long is in the store only, or spilled, and comes when its time has come, after a restart as well.
func TestWaitsSurviveRestart(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			opts := set(engine.AddressSettings{RedeliveryDelay: new(10 * time.Second)})
			opts.Limits = tiny.Limits
			inWorld(t, opts, func(t *testing.T, w *world) {
				w.producer("q").send(true, "1", "2", "3")
				c := w.consumer("q")
				d := c.take(2)
				c.settle(failed, d[0])
				later(4 * time.Second)
				c.settle(failed, d[1])
				c.Close(engine.ClosingClean)
				if i := w.info("q"); i.Delayed != 2 || i.Messages != 1 {
					t.Fatalf("queue = %+v", i)
				}
				if used := w.Totals().Memory; used > 300 {
					t.Errorf("%d bytes of memory are used", used)
				}
				if restart {
					w.restart()
				}
				if i := w.info("q"); i.Delayed != 2 || i.Messages != 1 {
					t.Fatalf("queue = %+v", i)
				}
				c = w.consumer("q")
				c.credit(10)
				expect(t, "at first", c.take(1), "3")
				later(5900 * time.Millisecond)
				expect(t, "before", c.fresh())
				later(200 * time.Millisecond)
				expect(t, "the first", c.take(1), "1+1")
				later(4 * time.Second)
				expect(t, "the second", c.take(1), "2+1")
				c.settle(accepted, c.all()[1:]...)
				if i := w.info("q"); i.Delayed != 0 || i.Messages != 0 {
					t.Errorf("queue = %+v, want none", i)
				}
			})
		})
	}
}

// Messages that are sent for later come within 100 ms of their time, in order of it, and take no memory meanwhile.
func TestSentForLater(t *testing.T) {
	for _, c := range []struct {
		name             string
		durable, restart bool
	}{{"durable", true, false}, {"durable, restart", true, true}, {"transient", false, false}} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, littleMemory(), func(t *testing.T, w *world) {
				const n = 4000
				begun := time.Now()
				due := map[string]time.Time{}
				rng := rand.New(rand.NewPCG(1, 2))
				p := w.producer("q")
				for i := range n {
					m := msg(fmt.Sprint(i), c.durable)
					at := begun.Add(30*time.Second + time.Duration(rng.IntN(60_000))*time.Millisecond)
					m.Due = at.UnixMilli()
					due[fmt.Sprint(i)] = at
					p.start(m)
					if i%100 == 0 {
						synctest.Wait()
					}
				}
				synctest.Wait()
				if c.restart {
					w.restart()
				}
				if i := w.info("q"); i.Delayed != n || i.Messages != 0 {
					t.Fatalf("queue = %+v, want %d delayed", i, n)
				}
				if used := w.Totals().Memory; used > 300<<10 {
					t.Errorf("%d bytes of memory are used", used)
				}
				r := w.consumer("q")
				r.SetLimit(n)
				last, worst := time.Time{}, time.Duration(0)
				seen := 0
				for time.Since(begun) < 95*time.Second {
					later(10 * time.Millisecond)
					came := r.all()
					for _, d := range came[seen:] {
						at := due[string(d.Message.Payload)]
						if at.Before(last.Add(-100 * time.Millisecond)) {
							t.Fatalf("message due %v comes behind one due %v", at, last)
						}
						last = at
						late := time.Since(at)
						worst = max(worst, late)
						if late < -time.Millisecond {
							t.Fatalf("message %s comes %v early", d.Message.Payload, -late)
						}
						delete(due, string(d.Message.Payload))
					}
					if len(came) > seen {
						r.settle(accepted, came[seen:]...)
						seen = len(came)
					}
				}
				if len(due) > 0 {
					t.Errorf("%d messages haven't come: queue = %+v", len(due), w.info("q"))
				}
				if worst > 110*time.Millisecond {
					t.Errorf("messages come up to %v late", worst)
				}
			})
		})
	}
}

// What waits for its time expires while it waits, in memory and at home only.
func TestWaitingExpires(t *testing.T) {
	for _, durable := range []bool{true, false} {
		for _, wait := range []time.Duration{3 * time.Second, time.Minute} {
			t.Run(fmt.Sprint("durable ", durable, ", waits ", wait), func(t *testing.T) {
				inWorld(t, littleMemory(), func(t *testing.T, w *world) {
					p := w.producer("q")
					for i := range 20 {
						m := msg(fmt.Sprint(i), durable)
						m.Due = time.Now().Add(wait).UnixMilli()
						if i%2 == 0 {
							m.Expiry = time.Now().Add(2 * time.Second).UnixMilli()
						}
						p.publish(m)
					}
					later(5 * time.Second)
					if i := w.info("q"); i.Expired != 10 || i.Delayed+i.Messages != 10 {
						t.Fatalf("queue = %+v, want half of it expired", i)
					}
					later(wait)
					if i := w.info("q"); i.Messages != 10 || i.Delayed != 0 {
						t.Fatalf("queue = %+v, want the other half", i)
					}
					if i := w.info("ExpiryQueue"); i.Messages != 10 {
						t.Errorf("expiry queue = %+v", i)
					}
				})
			})
		}
	}
}

// A purge takes what pauses as well.
func TestPurgeTakesWhatPauses(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "1", "2")
		c := w.consumer("q")
		for range 4 {
			c.settle(released, c.take(1)...)
		}
		if i := w.info("q"); i.Delayed != 1 || i.Messages != 1 {
			t.Fatalf("queue = %+v, want one that pauses", i)
		}
		if n, err := w.Purge("q", ""); n != 2 || err != nil {
			t.Errorf("%d purged, %v, want 2", n, err)
		}
		later(time.Second)
		w.restart()
		if i := w.info("q"); i.Delayed+i.Messages != 0 {
			t.Errorf("queue = %+v, want none", i)
		}
	})
}

// A message that is sent for later waits in every queue of a topic, and from a transaction as well: at least until its time,
// and no longer, though it commits late.
func TestSentForLaterEverywhere(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
			if restart && !durable {
				return
			}
			begun := time.Now()
			for _, q := range []string{"topic://t::one", "topic://t::two", "q"} {
				w.consumer(q).Close(engine.ClosingClean)
			}
			topic, queue := w.producer("topic://t"), w.producer("q")
			later := func(text string, d time.Duration) *engine.Message {
				m := msg(text, durable)
				m.Due = begun.Add(d).UnixMilli()
				return m
			}
			topic.publish(later("a", 3*time.Second))
			x := w.begin()
			for _, p := range []*producer{topic, queue} {
				x.Post(p.Producer, later("b", 2*time.Second))
				x.Post(p.Producer, later("c", time.Second))
				x.post(p, durable, "d")
			}
			time.Sleep(1500 * time.Millisecond) // c is late
			x.commit()
			synctest.Wait()
			if restart {
				w.restart()
			}
			one, two, q := w.consumer("topic://t::one"), w.consumer("topic://t::two"), w.consumer("q")
			for _, c := range []*consumer{one, two, q} {
				expect(t, c.Queue()+" at first", c.rest(), "c", "d")
			}
			time.Sleep(490 * time.Millisecond)
			for _, c := range []*consumer{one, two, q} {
				expect(t, c.Queue()+" before", c.rest())
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			for _, c := range []*consumer{one, two, q} {
				expect(t, c.Queue()+" the second", c.rest(), "b")
			}
			time.Sleep(time.Second)
			synctest.Wait()
			expect(t, "one the third", one.rest(), "a")
			expect(t, "two the third", two.rest(), "a")
			for _, c := range []*consumer{one, two, q} {
				c.settle(accepted, c.all()...)
				if i, err := w.Queue(c.Address(), c.Queue()); err != nil || i.Messages+i.Delayed+i.Delivering != 0 {
					t.Errorf("queue = %+v, %v, want none", i, err)
				}
			}
		})
	}
}

// slowDevice takes its time for each commit.
type slowDevice struct {
	memory.Store
	pause time.Duration
}

func (s *slowDevice) Commit(records []engine.Record) error {
	time.Sleep(s.pause)
	return s.Store.Commit(records)
}

// What of many queues is due at the same moment doesn't wait for a commit for each of them.
func TestManyQueuesAreDueAtOnce(t *testing.T) {
	const n = 500
	inWorldOn(t, engine.Options{}, &slowDevice{pause: 5 * time.Millisecond}, func(t *testing.T, w *world) {
		due := time.Now().Add(30 * time.Second)
		var all []*consumer
		for i := range n {
			name := fmt.Sprint("q", i)
			m := msg("x", true)
			m.Due = due.UnixMilli()
			w.producer(name).start(m)
			all = append(all, w.consumer(name))
		}
		later(10 * time.Second)
		for _, c := range all {
			c.SetLimit(1)
		}
		later(time.Until(due.Add(100 * time.Millisecond)))
		came := 0
		for _, c := range all {
			came += len(c.all())
		}
		if came != n {
			t.Errorf("%d of %d queues have what is due 100 ms after its time", came, n)
		}
	})
}
