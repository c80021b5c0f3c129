package engine_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
)

func TestDeadLetterOnItsOwnQueueDoesNotGoInCircles(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{MaxDeliveryAttempts: new(2)}), func(t *testing.T, w *world, durable bool) {
		w.producer("DLQ").send(durable, "a", "b")
		c := w.consumer("DLQ")
		for range 5 { // attempts don't end there
			c.settle(failed, c.take(1)...)
		}
		w.expectQueue("DLQ", "a+5", "b")
		c.settle(rejected, c.take(1)...)
		w.expectQueue("DLQ", "b")
		if len(w.dropped) != 1 || w.dropped[0].Reason != engine.DropLoop || w.Totals().Dropped != 1 {
			t.Errorf("dropped = %+v, want one for going in circles", w.dropped)
		}
	})
}

func TestDeathWritesOverAnEarlierDeath(t *testing.T) {
	opts := engine.Options{Settings: []engine.AddressSettings{
		{Match: "#", DeadLetterAddress: new("dead.first")},
		{Match: "dead.first", DeadLetterAddress: new("dead.second"), MaxDeliveryAttempts: new(2)},
	}}
	bothKinds(t, opts, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a")
		c := w.consumer("q")
		c.settle(rejected, c.take(1)...)
		first := w.consumer("dead.first")
		for range 2 { // what was counted elsewhere doesn't count towards this queue's limit
			first.settle(failed, first.take(1)...)
		}
		d := w.consumer("dead.second").take(1)[0]
		expect(t, "dead twice", []engine.Delivery{d}, "a+3")
		if got := annotation(d, engine.DeathReason); got != "max-delivery-attempts reached: 2" {
			t.Errorf("reason = %v, want the attempts there", got)
		}
		if got := annotation(d, engine.OrigQueue); got != "dead.first" || len(d.Annotations) != 5 {
			t.Errorf("annotations = %v, want only those of the last death", d.Annotations)
		}
	})
}

func TestDeadLetterAddressIsMadeThoughAutoCreateIsOff(t *testing.T) {
	opts := set(engine.AddressSettings{AutoCreateAddresses: new(false), AutoCreateQueues: new(false)})
	inWorld(t, opts, func(t *testing.T, w *world) {
		if err := w.Declare(engine.QueueSpec{Address: "q"}); err != nil {
			t.Fatal(err)
		}
		w.producer("q").send(true, "a")
		c := w.consumer("q")
		c.settle(rejected, c.take(1)...)
		w.expectQueue("DLQ", "a+1")
	})
}

func TestDeadLetterAddressWithoutQueueDrops(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{DeadLetterAddress: new("topic://dead")}), func(t *testing.T, w *world, durable bool) {
		if err := w.Declare(engine.QueueSpec{Address: "dead", Routing: engine.Multicast}); err != nil {
			t.Fatal(err)
		}
		w.producer("q").send(durable, "a")
		c := w.consumer("q")
		c.settle(rejected, c.take(1)...)
		if len(w.dropped) != 1 || w.dropped[0].Reason != engine.DropNoQueue {
			t.Errorf("dropped = %+v", w.dropped)
		}
		w.expectQueue("q")
	})
}

func TestDeadLetterAddressWithManyQueues(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{DeadLetterAddress: new("topic://dead")}), func(t *testing.T, w *world, durable bool) {
		spec := engine.ConsumerSpec{
			Address: "topic://dead", Subscription: engine.Subscription{Name: "keep", Durable: true},
			By: engine.Principal{Container: "c"},
		}
		keep, pass := w.consumerOf(spec), w.consumer("topic://dead")
		w.producer("q").send(durable, "a")
		c := w.consumer("q")
		c.settle(rejected, c.take(1)...)
		expect(t, "subscriber", pass.take(1), "a+1")
		keep.Close(engine.ClosingClean)
		if durable {
			w.restart()
		}
		expect(t, "durable subscriber", w.consumerOf(spec).take(1), "a+1")
		w.expectQueue("q")
	})
}

func TestDeathReasonIsBounded(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		w.producer("q").send(false, "a")
		c := w.consumer("q")
		c.settle(engine.Outcome{Kind: engine.Rejected, Description: strings.Repeat("é", 5000)}, c.take(1)...)
		reason := annotation(w.consumer("DLQ").take(1)[0], engine.DeathReason).(string)
		if len(reason) > 1024 || len(reason) < 1000 || strings.ToValidUTF8(reason, "?") != reason {
			t.Errorf("reason has %d bytes, valid %v", len(reason), strings.ToValidUTF8(reason, "?") == reason)
		}
	})
}

func TestExpiredGoesToTheExpiryAddress(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		m := msg("a", durable)
		m.Expiry, m.HeaderTTL, m.TTL = time.Now().Add(time.Minute).UnixMilli(), true, 60000
		p.publish(m)
		p.send(durable, "b")
		later(59 * time.Second)
		w.expectQueue("q", "a", "b")
		later(time.Second)
		w.expectQueue("q", "b")
		if durable {
			w.restart()
		}
		d := w.consumer("ExpiryQueue").take(1)[0]
		expect(t, "expired", []engine.Delivery{d}, "a")
		if d.Message.Expiry != 0 || d.Message.HeaderTTL || d.Message.TTL != 0 {
			t.Errorf("message = %+v: it must not expire again", d.Message)
		}
		if annotation(d, engine.OrigQueue) != "q" || annotation(d, engine.OrigAddress) != "q" ||
			annotation(d, engine.ActualExpiry) != m.Expiry || annotation(d, engine.DeathReason) != nil {
			t.Errorf("annotations = %v", d.Annotations)
		}
		if !d.FirstAcquirer {
			t.Error("first-acquirer not set although nobody had it")
		}
	})
}

func TestExpiredWithoutAddressIsDroppedAndCounted(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{ExpiryAddress: new("")}), func(t *testing.T, w *world, durable bool) {
		m := msg("a", durable)
		m.Expiry = time.Now().Add(time.Second).UnixMilli()
		w.producer("q").publish(m)
		later(2 * time.Second)
		if i := w.info("q"); i.Expired != 1 || i.Messages != 0 || w.Totals().Dropped != 1 {
			t.Errorf("queue = %+v, totals %+v", i, w.Totals())
		}
		w.restart()
		w.expectQueue("q")
	})
}

func TestExpiredIsNeverDelivered(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		m := msg("late", durable)
		m.Expiry = time.Now().Add(-time.Second).UnixMilli()
		c := w.consumer("q")
		c.credit(5)
		p.publish(m)
		m = msg("held", durable)
		m.Expiry = time.Now().Add(time.Second).UnixMilli()
		p.publish(m)
		expect(t, "delivered", c.got, "held")
		later(time.Minute) // with a consumer it is left alone
		if i := w.info("q"); i.Delivering != 1 {
			t.Errorf("queue = %+v, want one delivering", i)
		}
		c.settle(released, c.got...)
		expect(t, "delivered", c.got, "held")
		w.expectQueue("ExpiryQueue", "late", "held")
	})
}

func TestExpiryOnTheExpiryAddressItself(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		m := msg("a", durable)
		m.Expiry = time.Now().Add(time.Second).UnixMilli()
		w.producer("ExpiryQueue").publish(m)
		later(time.Hour)
		w.expectQueue("ExpiryQueue", "a") // once more, and for ever
		if i := w.info("ExpiryQueue"); i.Expired != 1 || i.Added != 2 {
			t.Errorf("queue = %+v, want it expired once", i)
		}
	})
}

func TestManyQueuesExpireInTime(t *testing.T) {
	inWorld(t, set(engine.AddressSettings{ExpiryAddress: new("")}), func(t *testing.T, w *world) {
		start := time.Now()
		p := w.producerOf(engine.ProducerSpec{Anonymous: true})
		const queues = 50
		for i := range queues {
			for j := range 3 {
				m := msg("x", false)
				m.Address = "q" + strings.Repeat("i", i)
				m.Expiry = start.Add(time.Duration((i*7919)%queues+j*100+1) * time.Second).UnixMilli()
				p.publish(m)
			}
		}
		for s := 1; s <= 310; s++ {
			later(time.Until(start.Add(time.Duration(s) * time.Second)))
			want := 0
			for i := range queues {
				for j := range 3 {
					if (i*7919)%queues+j*100+1 <= s {
						want++
					}
				}
			}
			if got := w.Totals().Expired; got != uint64(want) {
				t.Fatalf("after %d s: %d expired, want %d", s, got, want)
			}
		}
	})
}

// An expiry at the end of time is waited for without haste.
func TestExpiryAtTheEndOfTime(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		p := w.producer("q")
		for _, at := range []int64{math.MaxInt64, math.MaxInt64 / 1_000_000, 253_402_300_799_999} {
			m := msg("a", false)
			m.Expiry = at
			p.publish(m)
		}
		later(100 * 24 * time.Hour)
		w.expectQueue("q", "a", "a", "a")
	})
}

func TestExpiredWhileTheBrokerWasDown(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		m := msg("a", true)
		m.Expiry = time.Now().Add(3 * time.Second).UnixMilli()
		w.producer("q").publish(m)
		w.close()
		time.Sleep(time.Minute)
		w.open()
		c := w.consumer("q")
		c.credit(1)
		expect(t, "delivered", c.got)
		w.expectQueue("ExpiryQueue", "a")
	})
}
