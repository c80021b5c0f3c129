package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
)

// What an outcome does beside what TestWhatReturnsCountsAndWaits says.

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
