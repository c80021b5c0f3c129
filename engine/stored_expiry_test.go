package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
)

// lasting is a durable message that expires.
func lasting(text string, ttl time.Duration) *engine.Message {
	m := msg(text, true)
	m.Expiry = time.Now().Add(ttl).UnixMilli()
	return m
}

// fillLasting sends n messages without waiting for each, the i-th with the time to live that is asked for.
func (p *producer) fillLasting(n int, ttl func(int) time.Duration) {
	p.w.t.Helper()
	for i := range n {
		m := msg(fmt.Sprint(i), true)
		if d := ttl(i); d != 0 {
			m = lasting(fmt.Sprint(i), d)
		}
		p.start(m)
	}
	synctest.Wait()
	for ticket, r := range p.results {
		if r.Verdict != engine.Accepted {
			p.w.t.Fatalf("publish %d: %+v", ticket, r)
		}
	}
}

func evenly(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// peak watches how much memory is used.
type peak struct {
	highest atomic.Int64
	stop    chan struct{}
	done    sync.WaitGroup
}

func watchMemory(w *world) *peak {
	p := &peak{stop: make(chan struct{})}
	p.done.Go(func() {
		for {
			p.highest.Store(max(p.highest.Load(), w.Totals().Memory))
			select {
			case <-p.stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	return p
}

func (p *peak) end() int64 {
	close(p.stop)
	p.done.Wait()
	return p.highest.Load()
}

func TestStoredMessagesExpire(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			opts := tiny
			opts.Settings = set(engine.AddressSettings{ExpiryAddress: new("E")}).Settings
			inWorld(t, opts, func(t *testing.T, w *world) {
				const n = 5000
				sent := time.Now().UnixMilli()
				w.producer("q").fillLasting(n, func(i int) time.Duration { return time.Duration(1+i%2*100) * time.Second })
				if restart {
					w.restart()
				}
				i := w.info("q")
				if i.Messages != n || restart && i.Stored != n {
					t.Fatalf("queue = %+v", i)
				}
				kept := n - i.Stored // the first ones
				later(900 * time.Millisecond)
				if i := w.info("q"); i.Messages != n || i.Expired != 0 {
					t.Fatalf("before its time: %+v", i)
				}
				memory := watchMemory(w)
				later(200 * time.Millisecond)
				if used := memory.end(); used > 1<<19 {
					t.Errorf("memory while messages expire = %d", used)
				}
				if i := w.info("q"); i.Messages != n/2 || i.Expired != n/2 || i.Delivering != 0 {
					t.Errorf("queue = %+v, want half expired", i)
				}
				c := w.consumer("E")
				var numbers []int
				for range n / 2 {
					d := c.take(1)[0]
					number, _ := strconv.Atoi(string(d.Message.Payload))
					numbers = append(numbers, number)
					at, _ := annotation(d, engine.ActualExpiry).(int64)
					if number%2 != 0 || at < sent+1000 || at > sent+1100 || annotation(d, engine.OrigQueue) != "q" || annotation(d, engine.OrigAddress) != "q" {
						t.Fatalf("expired: %s, %+v", d.Message.Payload, d.Annotations)
					}
					if d.Message.Expiry != 0 || d.Message.Address != "E" {
						t.Fatalf("expired: %+v", d.Message)
					}
					c.Settle(settlements(d), accepted, 0)
				}
				// What expires in memory does so beside the others.
				if stored := slices.DeleteFunc(slices.Clone(numbers), func(n int) bool { return n < kept }); !slices.IsSorted(stored) {
					t.Error("what is in the store and expires at the same time doesn't keep its order")
				}
				expect(t, "rest of E", c.rest())
				w.restart()
				if i := w.info("q"); i.Messages != n/2 || i.Stored != n/2 {
					t.Errorf("queue = %+v, want half", i)
				}
				later(100 * time.Second)
				if i := w.info("q"); i.Messages != 0 || i.Bytes != 0 {
					t.Errorf("queue = %+v, want nothing", i)
				}
				if i := w.info("E"); i.Messages != n/2 {
					t.Errorf("E = %+v, want the other half", i)
				}
			})
		})
	}
}

func TestExpiredWithoutAddressIsNotRead(t *testing.T) {
	store := &slowStore{}
	opts := tiny
	opts.Settings = set(engine.AddressSettings{ExpiryAddress: new("")}).Settings
	inWorldOn(t, opts, store, func(t *testing.T, w *world) {
		const n = 5000
		w.producer("q").fillLasting(n, evenly(time.Second))
		w.restart()
		before := store.loads.Load()
		later(1100 * time.Millisecond)
		i := w.info("q")
		if i.Messages != 0 || i.Bytes != 0 || i.Expired != n || i.Delivering != 0 {
			t.Errorf("queue = %+v, want all expired", i)
		}
		if got := store.loads.Load() - before; got != 0 {
			t.Errorf("%d loads", got)
		}
		if dropped := w.Totals().Dropped; dropped != n || len(w.dropped) != n || w.dropped[0].Reason != engine.DropExpired {
			t.Errorf("%d dropped, %d told", dropped, len(w.dropped))
		}
		w.restart()
		if i := w.info("q"); i.Messages != 0 {
			t.Errorf("after restart: %+v", i)
		}
	})
}

func TestHeldMessagesOfABacklogExpireWhenTheyComeBack(t *testing.T) {
	opts := tiny
	opts.Settings = set(engine.AddressSettings{ExpiryAddress: new("E")}).Settings
	inWorld(t, opts, func(t *testing.T, w *world) {
		w.producer("q").fillLasting(3000, evenly(time.Second))
		c := w.consumer("q")
		ds := c.take(100)
		later(1100 * time.Millisecond)
		if i := w.info("q"); i.Messages != 0 || i.Delivering != 100 || i.Expired != 2900 {
			t.Fatalf("queue = %+v, want those that are held", i)
		}
		c.settle(accepted, ds[:50]...)
		c.settle(released, ds[50:]...)
		if i := w.info("q"); i.Messages+i.Delivering != 0 || i.Expired != 2950 {
			t.Errorf("queue = %+v, want nothing", i)
		}
		if i := w.info("E"); i.Messages != 2950 {
			t.Errorf("E = %+v", i)
		}
		expect(t, "rest", c.rest())
	})
}

// A load that has read what expires meanwhile doesn't bring it back.
func TestExpiryBesideALoad(t *testing.T) {
	store := &slowStore{}
	opts := tiny
	opts.Settings = set(engine.AddressSettings{ExpiryAddress: new("E")}).Settings
	inWorldOn(t, opts, store, func(t *testing.T, w *world) {
		w.producer("q").fillLasting(3000, func(i int) time.Duration { return time.Duration(1+i%3) * time.Second })
		w.restart()
		resume := store.hold()
		c := w.consumer("q")
		c.credit(5)
		b := w.consumerOf(engine.ConsumerSpec{Address: "q", Browse: true})
		b.credit(3)
		later(1100 * time.Millisecond)
		if i := w.info("q"); i.Expired != 1000 || i.Messages != 2000 {
			t.Errorf("queue = %+v, want a third expired", i)
		}
		later(time.Second)
		if i := w.info("q"); i.Expired != 2000 || i.Messages != 1000 {
			t.Errorf("queue = %+v, want two thirds expired", i)
		}
		resume()
		synctest.Wait()
		expect(t, "given", c.got, "2", "5", "8", "11", "14")
		for _, d := range b.got {
			if n, _ := strconv.Atoi(string(d.Message.Payload)); n%3 != 2 {
				t.Errorf("browsed %d, which has expired", n)
			}
		}
		c.settle(accepted, c.got...)
		later(time.Second)
		if i := w.info("q"); i.Messages+i.Delivering != 0 || i.Expired != 2995 {
			t.Errorf("queue = %+v, want nothing", i)
		}
		if i := w.info("E"); i.Messages != 2995 {
			t.Errorf("E = %+v", i)
		}
	})
}

// What is on its way to the expiry address when its queue is purged arrives there, and what is purged doesn't.
func TestPurgeWhileStoredMessagesExpire(t *testing.T) {
	store := &watchedStore{}
	opts := tiny
	opts.Settings = set(engine.AddressSettings{ExpiryAddress: new("E")}).Settings
	inWorldOn(t, opts, store, func(t *testing.T, w *world) {
		w.producer("E").send(true, "first")
		w.producer("q").fillLasting(3000, func(i int) time.Duration { return time.Duration(i%2*3) * time.Second })
		w.restart()
		resume := store.hold()
		time.Sleep(3100 * time.Millisecond)
		synctest.Wait() // a commit waits, and those that are in it are leaving
		leaving := w.info("q").Delivering
		purged := make(chan int)
		go func() {
			n, err := w.Purge("q", "")
			if err != nil {
				t.Error(err)
			}
			purged <- n
		}()
		synctest.Wait()
		resume()
		n := <-purged
		synctest.Wait()
		if n == 0 || leaving == 0 || n > 3000-leaving {
			t.Fatalf("%d purged, of 3000 of which %d were leaving", n, leaving)
		}
		for range 2 {
			if e := w.info("E"); e.Messages != 3000-n+1 {
				t.Errorf("E = %+v, want what hasn't been purged of 3000, %d, and one", e, 3000-n)
			}
			if i := w.info("q"); i.Messages+i.Delivering != 0 {
				t.Errorf("queue = %+v, want nothing", i)
			}
			w.restart()
		}
	})
}

// TestExpiryFailsAndGoesOn has the store fail to read what expires.
func TestExpiryFailsAndGoesOn(t *testing.T) {
	store := &slowStore{}
	opts := tiny
	var told atomic.Int32
	opts.Observer.LoadFailed = func(error) { told.Add(1) }
	opts.Settings = set(engine.AddressSettings{ExpiryAddress: new("E")}).Settings
	inWorldOn(t, opts, store, func(t *testing.T, w *world) {
		w.producer("q").fillLasting(100, evenly(time.Second))
		w.restart()
		store.mu.Lock()
		store.fails = 3
		store.mu.Unlock()
		later(20 * time.Second)
		if i := w.info("q"); i.Messages+i.Delivering != 0 || told.Load() != 3 {
			t.Errorf("queue = %+v, %d failures told", i, told.Load())
		}
		if i := w.info("E"); i.Messages != 100 {
			t.Errorf("E = %+v", i)
		}
	})
}

// While the store has no room, what has an expiry address stays; what has none makes room.
func TestExpiryWaitsForRoom(t *testing.T) {
	store := &watchedStore{}
	opts := tiny
	opts.Settings = []engine.AddressSettings{
		{Match: "#", ExpiryAddress: new("E")}, {Match: "gone", ExpiryAddress: new("")},
	}
	inWorldOn(t, opts, store, func(t *testing.T, w *world) {
		w.producer("q").fillLasting(3000, evenly(time.Second))
		w.producer("gone").fillLasting(3000, evenly(1500*time.Millisecond))
		w.restart()
		store.fail(engine.ErrStoreFull)
		later(20 * time.Second)
		if q, gone := w.info("q"), w.info("gone"); q.Messages != 3000 || gone.Messages+gone.Delivering != 0 {
			t.Errorf("queues = %+v\n%+v", q, gone)
		}
		store.fail(nil)
		later(20 * time.Second)
		if q, e := w.info("q"), w.info("E"); q.Messages+q.Delivering != 0 || e.Messages != 3000 || len(w.failures) != 0 {
			t.Errorf("queues = %+v\n%+v, failures %v", q, e, w.failures)
		}
	})
}

// TestExpiryAgainstModel publishes, consumes, browses and restarts at random while messages expire, and follows each: it
// is accepted once, or at the expiry address once and not before its time, and never delivered behind it.
func TestExpiryAgainstModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 9))
			opts := tiny
			opts.Limits.MemoryBytes = 256 << 10
			opts.Settings = set(engine.AddressSettings{ExpiryAddress: new("E"), MaxDeliveryAttempts: new(-1)}).Settings
			inWorld(t, opts, func(t *testing.T, w *world) {
				expiry := map[string]int64{} // of what isn't accepted
				sent, taken := 0, 0
				p, c := w.producer("q"), w.consumer("q")
				for range 150 {
					switch r.IntN(8) {
					case 0, 1, 2:
						p.fill(0, nil)
						for range r.IntN(400) {
							text := fmt.Sprint("m", sent)
							sent++
							m := msg(text, true)
							if d := []time.Duration{0, 50 * time.Millisecond, time.Second, time.Duration(r.IntN(5000)) * time.Millisecond}[r.IntN(4)]; d != 0 {
								m = lasting(text, d)
							}
							m.Priority = uint8(4 + r.IntN(2)*5)
							expiry[text] = m.Expiry
							p.start(m)
						}
						synctest.Wait()
					case 3, 4:
						now := time.Now().UnixMilli()
						c.mu.Lock()
						taken = len(c.got)
						c.mu.Unlock()
						c.credit(r.IntN(200))
						c.mu.Lock()
						got := slices.Clone(c.got[taken:])
						c.mu.Unlock()
						for _, d := range got {
							text := string(d.Message.Payload)
							if at, there := expiry[text]; !there || at != 0 && at <= now {
								t.Fatalf("%s expires at %d and is delivered at %d", text, at, now)
							}
						}
						if r.IntN(3) == 0 {
							later(time.Duration(r.IntN(1500)) * time.Millisecond)
						}
						half := len(got) / 2
						for _, d := range got[:half] {
							delete(expiry, string(d.Message.Payload))
						}
						c.Settle(settlements(got[:half]...), accepted, 0)
						c.Settle(settlements(got[half:]...), released, 0)
						c.credit(0)
					case 5:
						w.contents("q")
					case 6:
						later(time.Duration(r.IntN(2000)) * time.Millisecond)
					case 7:
						if r.IntN(4) == 0 {
							w.restart()
							p, c = w.producer("q"), w.consumer("q")
						}
					}
				}
				c.Close(engine.ClosingClean)
				later(10 * time.Second)
				var want []string
				for text, at := range expiry {
					if at != 0 {
						want = append(want, text)
					}
				}
				slices.Sort(want)
				e := w.consumer("E")
				var got []string
				for range want {
					d := e.take(1)[0]
					at, _ := annotation(d, engine.ActualExpiry).(int64)
					text := string(d.Message.Payload)
					if at < expiry[text] {
						t.Errorf("%s expires at %d and did so at %d", text, expiry[text], at)
					}
					got = append(got, text)
					e.Settle(settlements(d), accepted, 0)
				}
				slices.Sort(got)
				if rest := e.rest(); len(rest) > 0 || !slices.Equal(got, want) {
					t.Errorf("%d expired, and %d more, want %d", len(got), len(rest), len(want))
				}
				if i := w.info("q"); i.Messages != len(expiry)-len(want) || i.Delivering != 0 {
					t.Errorf("queue = %+v, want %d", i, len(expiry)-len(want))
				}
			})
		})
	}
}

func (s *slowStore) Pick(q engine.QueueID, priority uint8, numbers []uint64, bytes int) ([]engine.Stored, error) {
	s.loads.Add(1)
	s.mu.Lock()
	fails := s.fails > 0
	if fails {
		s.fails--
	}
	s.mu.Unlock()
	if fails {
		return nil, errors.New("disk is gone")
	}
	return s.Store.Pick(q, priority, numbers, bytes)
}
