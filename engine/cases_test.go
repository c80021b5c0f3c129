package engine_test

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store/memory"
)

// Tests named TestCaseNNN reproduce, at the engine, faults that users of other brokers reported.

// Fifty links attach to a queue, a topic or a subscription that isn't there yet: all get in, and there is one of it.
func TestCase124_ConcurrentFirstUse(t *testing.T) {
	for _, address := range []string{"queue://q", "q::part"} {
		b, err := engine.New(engine.Options{}, memory.New())
		if err != nil {
			t.Fatal(err)
		}
		var attaching sync.WaitGroup
		queues := make([]string, 50)
		for i := range queues {
			attaching.Go(func() {
				if i%2 == 0 {
					p, err := b.Producer(engine.ProducerSpec{Address: address}, ignoreResults{})
					if err != nil {
						t.Errorf("producer: %v", err)
						return
					}
					p.Publish(msg(fmt.Sprint(i), true), 1)
				}
				c, err := b.Consumer(engine.ConsumerSpec{Address: address}, &sharedSink{})
				if err != nil {
					t.Errorf("consumer: %v", err)
					return
				}
				queues[i] = c.Queue()
			})
		}
		attaching.Wait()
		if len(slices.Compact(slices.Sorted(slices.Values(queues)))) != 1 || len(b.Queues()) != 1 {
			t.Errorf("%s: queues %q, want one", address, queues)
		}
		b.Close()
	}
}

// An operator's declarations and the first links come at the same time: all succeed, and one of the declarations has made it.
func TestCase247_DeclaredByManyAtOnce(t *testing.T) {
	b, err := engine.New(engine.Options{}, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var at sync.WaitGroup
	var made atomic.Int32
	for i := range 50 {
		at.Go(func() {
			if i%2 == 0 {
				if _, err := b.Consumer(engine.ConsumerSpec{Address: "q"}, &sharedSink{}); err != nil {
					t.Errorf("consumer: %v", err)
				}
				return
			}
			did, err := b.Create(engine.QueueSpec{Address: "q", Routing: engine.Anycast})
			if err != nil {
				t.Errorf("create: %v", err)
			}
			if did {
				made.Add(1)
			}
		})
	}
	at.Wait()
	if all := b.Queues(); len(all) != 1 || all[0].Name != "q" || all[0].Consumers != 25 || made.Load() > 1 {
		t.Errorf("queues %+v, made by %d", all, made.Load())
	}
}

// Only one of many that attach to the same durable subscription at once gets it; none is left in between.
func TestCase128_OneActiveConsumerPerDurableSubscription(t *testing.T) {
	for _, steal := range []bool{false, true} {
		b, err := engine.New(engine.Options{}, memory.New())
		if err != nil {
			t.Fatal(err)
		}
		var attaching sync.WaitGroup
		var mu sync.Mutex
		var in []*sharedSink
		for range 20 {
			attaching.Go(func() {
				spec := durableAt("topic://t", "s")
				spec.Subscription.Steal = steal
				s := &sharedSink{}
				if _, err := b.Consumer(spec, s); err == nil {
					mu.Lock()
					in = append(in, s)
					mu.Unlock()
				}
			})
		}
		attaching.Wait()
		active := 0
		for _, s := range in {
			if s.end() == nil {
				active++
			}
		}
		if qs := b.Queues(); active != 1 || len(qs) != 1 || qs[0].Consumers != 1 {
			t.Errorf("steal %v: %d active of %d, queues %+v, want one", steal, active, len(in), qs)
		}
		b.Close()
	}
}

// sharedSink is a sink that only remembers its end.
type sharedSink struct {
	mu    sync.Mutex
	ended error
}

func (s *sharedSink) Deliver(engine.Delivery) {}
func (s *sharedSink) Drained()                {}
func (s *sharedSink) Settled(uint64)          {}
func (s *sharedSink) Unsettled(uint64)        {}
func (s *sharedSink) Ended(err error)         { s.mu.Lock(); s.ended = err; s.mu.Unlock() }
func (s *sharedSink) end() error              { s.mu.Lock(); defer s.mu.Unlock(); return s.ended }

// A drain of an empty queue is answered.
func TestCase143_DrainOfAnEmptyQueue(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		c := w.consumer("q")
		c.Drain(10)
		if c.drained != 1 || len(c.got) != 0 {
			t.Errorf("drained %d times with %d deliveries, want once with none", c.drained, len(c.got))
		}
		w.producer("q").send(false, "a")
		if len(c.got) != 0 {
			t.Error("delivery after the drain without new credit")
		}
	})
}

// A drain with messages brings them first.
func TestCase146_DrainBringsWhatThereIsFirst(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b", "c")
		c := w.consumer("q")
		c.Drain(10)
		if c.drained != 1 || len(c.got) != 3 {
			t.Errorf("drained %d times with %d deliveries, want once with three", c.drained, len(c.got))
		}
		c.Drain(3)
		if c.drained != 2 {
			t.Error("a drain without credit is not answered")
		}
	})
}

// A drain is answered, or the link ends, though the queue is deleted.
func TestCase148_DrainOfADeletedQueue(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		c := w.consumer("q")
		if err := w.Delete("q", ""); err != nil {
			t.Fatal(err)
		}
		c.Drain(10)
		if c.drained != 0 || c.ended == nil {
			t.Errorf("drained %d, ended %v, want ended only", c.drained, c.ended)
		}
	})
}

// No delivery without credit, and then as many as it allows.
func TestCase152_NothingWithoutCredit(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		c := w.consumer("q")
		w.producer("q").send(durable, "a", "b", "c")
		later(time.Second)
		expect(t, "without credit", c.got)
		c.credit(1)
		later(time.Second)
		expect(t, "with credit for one", c.got, "a")
	})
}

// One message at a time, with every outcome mixed, never starves.
func TestCase157_CreditOfOneNeverStarves(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{MaxDeliveryAttempts: new(2)}), func(t *testing.T, w *world, durable bool) {
		p, c := w.producer("q"), w.consumer("q")
		outcomes := []engine.Outcome{accepted, released, failed, rejected, modified}
		for i := range 500 {
			p.send(durable, fmt.Sprint(i))
			c.settle(outcomes[i%len(outcomes)], c.take(1)...)
		}
	})
}

// Priorities hold after a restart.
func TestCase187_PriorityAfterRestart(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		p := w.producer("q")
		for i := range 10 {
			m := msg(fmt.Sprint(i), true)
			m.Priority = uint8(i)
			p.publish(m)
		}
		w.restart()
		w.expectQueue("q", "9", "8", "7", "6", "5", "4", "3", "2", "1", "0")
	})
}

// An absolute expiry time of 0, or before the epoch, hides no ttl; the sums don't overflow.
func TestCase190_AbsoluteExpiryOfZeroMeansNone(t *testing.T) {
	const now, ms = int64(1_700_000_000_000), int64(60_000)
	for _, c := range []struct {
		ttl            uint32
		absolute, want int64
	}{
		{60_000, 0, now + ms},
		{60_000, -62_135_596_800_000, now + ms}, // 0001-01-01
		{60_000, math.MinInt64, now + ms},
		{0, 0, 0},
		{0, math.MinInt64, 0},
		{0, now + 5, now + 5},
		{0, now - 5, now - 5},
		{1, now + 5000, now + 1},
		{60_000, now + 5000, now + 5000},
		{60_000, math.MaxInt64, now + ms},
		{0, math.MaxInt64, math.MaxInt64},
		{math.MaxUint32, 0, now + math.MaxUint32},
		{0, 253_402_300_799_999, 253_402_300_799_999},
	} {
		if got := queue.ExpiryAt(now, c.ttl, c.absolute); got != c.want {
			t.Errorf("ttl %d, absolute %d: %d, want %d", c.ttl, c.absolute, got, c.want)
		}
	}
	if got := queue.ExpiryAt(math.MaxInt64-5, 10, 0); got != math.MaxInt64 {
		t.Errorf("sum overflows to %d", got)
	}
}

// Modified with no field set requeues without counting.
func TestCase196_ModifiedWithoutFields(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a")
		c := w.consumer("q")
		c.settle(modified, c.take(1)...)
		w.expectQueue("q", "a")
	})
}

// Rejected goes to the dead-letter address with its reason, or is discarded: never back and never round again.
func TestCase197_RejectedIsNeverRedelivered(t *testing.T) {
	for name, address := range map[string]string{"with": "DLQ", "without": ""} {
		t.Run(name, func(t *testing.T) {
			opts := set(engine.AddressSettings{DeadLetterAddress: new(address)})
			bothKinds(t, opts, func(t *testing.T, w *world, durable bool) {
				w.producer("q").send(durable, "a")
				c := w.consumer("q")
				c.credit(10)
				c.settle(rejected, c.got[0])
				if len(c.got) != 1 || w.Totals().Messages != len(address)/3 {
					t.Errorf("%d deliveries, %d messages left", len(c.got), w.Totals().Messages)
				}
			})
		})
	}
}

// What is released goes at once to a link that has credit.
func TestCase199_ReleasedIsRedeliveredAtOnce(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a")
		c := w.consumer("q")
		c.credit(2)
		c.settle(released, c.got[0])
		expect(t, "the same link", c.got, "a", "a")
		other := w.consumer("q")
		other.credit(1)
		c.settle(released, c.got[1])
		expect(t, "another link", other.got, "a")
	})
}

// What goes back stands again where it was, however it went back.
func TestCase200_OrderAfterReturn(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{CountOnLoss: new(false)}), func(t *testing.T, w *world, durable bool) {
		want := []string{}
		for i := range 10 {
			want = append(want, fmt.Sprint(i+1))
		}
		w.producer("q").send(durable, want...)
		c := w.consumer("q")
		ds := c.take(10)
		for _, i := range []int{2, 6, 0} { // 3, 7, 1
			c.settle(released, ds[i])
		}
		expect(t, "released", c.take(3), "1", "3", "7")
		c.Close(engine.ClosingLost)
		w.expectQueue("q", want...)
		one, two := w.consumer("q"), w.consumer("q")
		for range 5 {
			one.take(1)
			two.take(1)
		}
		two.Close(engine.ClosingClean)
		one.Close(engine.ClosingLost)
		w.expectQueue("q", want...)
	})
}

// An error that a consumer gives with rejected is kept as far as it goes.
func TestCase203_RejectedWithAnyError(t *testing.T) {
	for _, c := range []struct{ condition, description, want string }{
		{"", "", "rejected"},
		{"amqp:internal-error", "", "rejected: amqp:internal-error"},
		{"", "because", "rejected: because"},
		{"x\xff", "y\xfe\xfd", "rejected: x�: y�"},
	} {
		inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
			w.producer("q").send(false, "a")
			k := w.consumer("q")
			k.settle(engine.Outcome{Kind: engine.Rejected, Condition: c.condition, Description: c.description}, k.take(1)...)
			if got := annotation(w.consumer("DLQ").take(1)[0], engine.DeathReason); got != c.want {
				t.Errorf("reason = %q, want %q", got, c.want)
			}
		})
	}
}

// A settlement of nothing, of nil, of too old ownerships and of a very long range costs what it names and no more.
func TestCase205_SettlementOfWhatIsNotThere(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		w.producer("q").send(false, "a")
		c, other := w.consumer("q"), w.consumer("q")
		d := c.take(1)[0]
		batch := make([]engine.Settlement, 100_000)
		for i := range batch {
			batch[i] = engine.Settlement{Handle: d.Handle, Acquisition: d.Acquisition + 1 + uint32(i)}
		}
		batch[17].Handle = nil
		c.Settle(batch, accepted, 1)
		c.Settle(nil, accepted, 2)
		other.Settle(settlements(d), accepted, 3) // somebody else's
		if i := w.info("q"); i.Delivering != 1 || i.Acknowledged != 0 {
			t.Errorf("queue = %+v, want it untouched", i)
		}
	})
}

// Accepted and then detached, at once: none of the accepted comes back.
func TestCase208_AcceptedThenDetached(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b", "c")
		c := w.consumer("q")
		ds := c.take(3)
		c.Settle(settlements(ds[:2]...), accepted, 1)
		c.Close(engine.ClosingLost)
		w.expectQueue("q", "c+1")
	})
}

// A producer that goes away still hears what became of what it sent.
func TestCase209_VerdictsAfterTheProducerIsGone(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p := w.producer("q")
		synctest.Wait()
		resume := store.hold()
		p.start(msg("a", true))
		p.Close()
		resume()
		synctest.Wait()
		if p.results[1].Verdict != engine.Accepted {
			t.Errorf("verdict = %+v, want accepted", p.results[1])
		}
		w.expectQueue("q", "a")
	})
}

// Only failures count: released three times, failed twice, lost once is three.
func TestCase211_OnlyFailuresCount(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{MaxDeliveryAttempts: new(4)}), func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a")
		c := w.consumer("q")
		for _, o := range []engine.Outcome{released, failed, released, failed, released} {
			c.settle(o, c.take(1)...)
		}
		c.take(1)
		c.Close(engine.ClosingLost)
		w.expectQueue("q", "a+3")
		c = w.consumer("q")
		c.settle(failed, c.take(1)...)
		w.expectQueue("q")
		w.expectQueue("DLQ", "a+4")
	})
}

// A limit of three is three attempts, also for messages that fail in one range.
func TestCase212_AttemptsAreExactInBatches(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{MaxDeliveryAttempts: new(3)}), func(t *testing.T, w *world, durable bool) {
		var want, dead []string
		for i := range 20 {
			want = append(want, fmt.Sprint(i))
			dead = append(dead, fmt.Sprint(i, "+3"))
		}
		w.producer("q").send(durable, want...)
		c := w.consumer("q")
		for range 3 {
			c.settle(failed, c.take(20)...)
		}
		if len(c.got) != 60 {
			t.Errorf("%d deliveries, want 60", len(c.got))
		}
		w.expectQueue("q")
		w.expectQueue("DLQ", dead...)
	})
}

// Names that look alike when glued together are different queues.
func TestCase244_NamesDoNotCollide(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		w.producer("a/b::c").send(false, "1")
		w.producer("a::b/c").send(false, "2")
		w.producer("a.b").send(false, "3")
		for address, want := range map[string]string{"a/b::c": "1", "a::b/c": "2", "a.b": "3"} {
			w.expectQueue(address, want)
		}
	})
}

// A ttl of 0 is no ttl.
func TestCase278_TTLOfZeroIsNone(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		m := msg("a", durable)
		m.HeaderTTL, m.TTL = true, 0
		m.Expiry = queue.ExpiryAt(time.Now().UnixMilli(), m.TTL, 0)
		w.producer("q").publish(m)
		later(365 * 24 * time.Hour)
		expect(t, "a year later", w.consumer("q").take(1), "a")
	})
}
