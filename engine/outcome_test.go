package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
)

// The tests of this file are the lines of the table "what returns, counts and waits" in the contract.

func TestAcceptedIsGone(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b", "c")
		c := w.consumer("q")
		ds := c.take(3)
		c.settle(accepted, ds[1])
		c.settle(accepted, ds[0], ds[2])
		if i := w.info("q"); i.Acknowledged != 3 || i.Messages+i.Delivering != 0 || i.Bytes != 0 {
			t.Errorf("queue = %+v, want empty with 3 acknowledged", i)
		}
		w.restart()
		w.expectQueue("q")
	})
}

func TestModifiedFailedReturnsToItsPlaceCounted(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b", "c")
		c := w.consumer("q")
		ds := c.take(2)
		c.settle(failed, ds[1])
		c.settle(failed, ds[0])
		w.expectQueue("q", "a+1", "b+1", "c")
		c.Close(engine.ClosingClean)
		if w.restart(); durable {
			w.expectQueue("q", "a+1", "b+1", "c")
		}
	})
}

func TestRejectedGoesToTheDeadLetterAddress(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b")
		c := w.consumer("q")
		ds := c.take(1)
		c.settle(engine.Outcome{Kind: engine.Rejected, Condition: "app:broken", Description: "no such order"}, ds...)
		w.expectQueue("q", "b")
		check := func() {
			dead := w.consumer("DLQ")
			d := dead.take(1)[0]
			expect(t, "dead letter", []engine.Delivery{d}, "a+1")
			for key, want := range map[string]any{
				engine.OrigAddress: "q", engine.OrigQueue: "q", engine.OrigMessageID: int64(ds[0].Number),
				engine.DeathReason: "rejected: app:broken: no such order", engine.ActualExpiry: nil,
			} {
				if got := annotation(d, key); got != want {
					t.Errorf("%s = %v, want %v", key, got, want)
				}
			}
			dead.Close(engine.ClosingClean)
		}
		check()
		if w.restart(); durable {
			check()
			w.expectQueue("q", "b")
		}
	})
}

func TestRejectPolicyRedeliver(t *testing.T) {
	opts := set(engine.AddressSettings{RejectPolicy: new(engine.RejectRedeliver), MaxDeliveryAttempts: new(2)})
	bothKinds(t, opts, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b")
		c := w.consumer("q")
		c.settle(rejected, c.take(1)...)
		w.expectQueue("q", "a+1", "b")
		c.settle(rejected, c.take(1)...)
		w.expectQueue("q", "b")
		w.expectQueue("DLQ", "a+2")
	})
}

func TestReleasedReturnsUncounted(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b", "c")
		c := w.consumer("q")
		for range 20 { // more often than attempts are allowed
			c.settle(released, c.take(1)...)
			later(time.Second) // it pauses
		}
		w.expectQueue("q", "a", "b", "c")
		if d := c.take(1)[0]; d.FirstAcquirer {
			t.Error("first-acquirer after it had been with a consumer")
		}
	})
}

func TestModifiedAnnotationsAreMerged(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a")
		c := w.consumer("q")
		with := func(o engine.Outcome, as ...engine.Annotation) engine.Outcome { o.Annotations = as; return o }
		first := c.take(1)
		c.settle(with(modified, engine.Annotation{Key: "x-opt-a", Value: "1"}, engine.Annotation{Key: "x-opt-b", Value: "1"}), first...)
		second := c.take(1)
		c.settle(with(failed, engine.Annotation{Key: "x-opt-b", Value: "2"}), second...)
		if len(second[0].Annotations) != 2 || annotation(second[0], "x-opt-b") != "1" {
			t.Errorf("annotations = %v: those handed out must not change", second[0].Annotations)
		}
		c.Close(engine.ClosingClean)
		if durable {
			w.restart()
		}
		d := w.consumer("q").take(1)[0]
		if d.Count != 1 || annotation(d, "x-opt-a") != "1" || annotation(d, "x-opt-b") != "2" || len(d.Annotations) != 2 {
			t.Errorf("delivery = count %d, annotations %v, want 1, a=1 b=2", d.Count, d.Annotations)
		}
	})
}

func TestAnnotationsDoNotGrowForEver(t *testing.T) {
	inWorld(t, set(engine.AddressSettings{MaxDeliveryAttempts: new(-1)}), func(t *testing.T, w *world) {
		w.producer("q").send(false, "a")
		c := w.consumer("q")
		for i := range 200 {
			o := failed
			o.Annotations = []engine.Annotation{{Key: strings.Repeat("x", i+1), Value: strings.Repeat("v", 500)}}
			c.settle(o, c.take(1)...)
		}
		size := 0
		for _, a := range c.take(1)[0].Annotations {
			size += len(a.Key) + len(a.Value.(string))
		}
		if size > 16<<10 || size < 1<<10 {
			t.Errorf("annotations have %d bytes, want some but not more than 16 KiB", size)
		}
	})
}

func TestUndeliverableHere(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b")
		c, other := w.consumer("q"), w.consumer("q")
		c.settle(notHere, c.take(1)...)
		c.credit(5)
		expect(t, "the same link", c.got[1:], "b")
		expect(t, "another link", other.take(1), "a")
		other.settle(notHere, other.got...)
		other.credit(5)
		expect(t, "another link later", other.got[1:])
		w.expectQueue("q", "a") // nobody may have it: as released
		o := notHere
		o.Failed = true
		third := w.consumer("q")
		third.settle(o, third.take(1)...)
		w.expectQueue("q", "a+1")
		expect(t, "a new link", w.consumer("q").take(1), "a+1")
	})
}

func TestCleanDetachReturnsUncounted(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b", "c", "d")
		c := w.consumer("q")
		ds := c.take(3)
		c.settle(accepted, ds[1])
		c.Close(engine.ClosingClean)
		w.expectQueue("q", "a", "c", "d")
		c.settle(accepted, ds[0]) // too late
		w.expectQueue("q", "a", "c", "d")
	})
}

func TestLostConnectionCounts(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b", "c")
		c := w.consumer("q")
		c.take(2)
		c.Close(engine.ClosingLost)
		w.expectQueue("q", "a+1", "b+1", "c")
		if w.restart(); durable {
			w.expectQueue("q", "a+1", "b+1", "c")
		}
	})
}

func TestCountOnLossOff(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{CountOnLoss: new(false)}), func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a")
		c := w.consumer("q")
		c.take(1)
		c.Close(engine.ClosingLost)
		w.expectQueue("q", "a")
	})
}

func TestMaxDeliveryAttempts(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{MaxDeliveryAttempts: new(3)}), func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b")
		var c *consumer
		for i := range 3 {
			c = w.consumer("q")
			if d := c.take(1)[0]; d.Count != uint32(i) || string(d.Message.Payload) != "a" {
				t.Fatalf("attempt %d: %s", i+1, texts(c.got))
			}
			c.Close(engine.ClosingLost)
		}
		w.expectQueue("q", "b")
		dead := w.consumer("DLQ").take(1)
		expect(t, "dead letter", dead, "a+3")
		if got := annotation(dead[0], engine.DeathReason); got != "max-delivery-attempts reached: 3" {
			t.Errorf("reason = %v", got)
		}
		if i := w.info("q"); i.Killed != 1 {
			t.Errorf("killed = %d, want 1", i.Killed)
		}
	})
}

func TestEndlessAttempts(t *testing.T) {
	inWorld(t, set(engine.AddressSettings{MaxDeliveryAttempts: new(-1)}), func(t *testing.T, w *world) {
		w.producer("q").send(false, "a")
		c := w.consumer("q")
		for range 50 {
			c.settle(failed, c.take(1)...)
		}
		w.expectQueue("q", "a+50")
	})
}

func TestDeadWithoutAddressIsDroppedAndCounted(t *testing.T) {
	opts := set(engine.AddressSettings{DeadLetterAddress: new(""), MaxDeliveryAttempts: new(1)})
	bothKinds(t, opts, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b")
		c := w.consumer("q")
		ds := c.take(2)
		c.settle(failed, ds[0])
		c.settle(rejected, ds[1])
		w.expectQueue("q")
		if totals := w.Totals(); totals.Dropped != 2 || totals.Killed != 2 {
			t.Errorf("totals = %+v, want 2 killed, 2 dropped", totals)
		}
		if len(w.dropped) != 2 || w.dropped[0] != (engine.Dropped{Queue: "q", Number: ds[0].Number, Reason: engine.DropAttempts}) ||
			w.dropped[1].Reason != engine.DropRejected {
			t.Errorf("dropped = %+v", w.dropped)
		}
		w.restart()
		w.expectQueue("q")
	})
}

func TestSettledWithoutOutcomeReturns(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a")
		c := w.consumer("q")
		c.settle(engine.Outcome{}, c.take(1)...)
		w.expectQueue("q", "a")
	})
}

func TestPresettledIsGoneWhenSent(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b")
		c := w.consumerOf(engine.ConsumerSpec{Address: "q", Settled: true})
		c.take(1)
		c.Close(engine.ClosingLost)
		w.expectQueue("q", "b")
		if w.restart(); durable {
			w.expectQueue("q", "b")
		}
	})
}
