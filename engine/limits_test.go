package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/letomq/leto/engine"
)

func TestQueueLimit(t *testing.T) {
	inWorld(t, engine.Options{Limits: engine.Limits{Queues: 3}}, func(t *testing.T, w *world) {
		for i := range 3 {
			w.consumer(fmt.Sprint("q", i))
		}
		_, err := w.tryConsumer(engine.ConsumerSpec{Address: "q3"})
		wantErr(t, err, engine.ErrLimit)
		_, err = w.tryConsumer(engine.ConsumerSpec{Address: "q0::more"})
		wantErr(t, err, engine.ErrLimit)
		_, err = w.tryConsumer(engine.ConsumerSpec{Dynamic: true, By: mine})
		wantErr(t, err, engine.ErrLimit)
		_, err = w.tryProducer(engine.ProducerSpec{Address: "topic://t"}) // addresses are bounded too
		wantErr(t, err, engine.ErrLimit)
		m := msg("a", false)
		m.Address = "q3"
		r := w.producerOf(engine.ProducerSpec{Anonymous: true}).publish(m)
		if r.Condition != "amqp:resource-limit-exceeded" || r.Queue != "q3" || r.Reason != "queues" {
			t.Errorf("publish = %+v, want resource-limit-exceeded", r)
		}
		if err := w.Delete("q1", ""); err != nil {
			t.Fatal(err)
		}
		w.consumer("q3")
	})
}

// A publish that doesn't fit is rejected, and says which queue and why. Case 160: no time passes between room and relief.
func TestCase202_MemoryLimitRejectsWithReason(t *testing.T) {
	inWorld(t, engine.Options{Limits: engine.Limits{MemoryBytes: 100_000}}, func(t *testing.T, w *world) {
		const durable = false
		relieved := 0
		cancel := w.OnRelief(func() { relieved++ })
		defer cancel()
		p := w.producer("q")
		big := strings.Repeat("x", 1000)
		taken := 0
		var r engine.Result
		for range 200 {
			if r = p.publish(msg(big, durable)); r.Verdict != engine.Accepted {
				break
			}
			if taken++; taken < 50 && w.Pressure() || taken > 75 && !w.Pressure() {
				t.Errorf("after %d messages: pressure %v", taken, w.Pressure())
			}
		}
		if r.Verdict != engine.Rejected || r.Condition != "amqp:resource-limit-exceeded" || r.Queue != "q" || r.Reason != "memory" || r.Description == "" {
			t.Errorf("publish = %+v, want rejected with queue and reason", r)
		}
		if taken < 70 || taken > 100 {
			t.Errorf("%d messages of 1000 bytes in 100,000 bytes", taken)
		}
		c := w.consumer("q")
		ds := c.take(taken)
		c.settle(accepted, ds[:10]...)
		if !w.Pressure() || relieved != 0 {
			t.Errorf("relieved at %d bytes already", w.Totals().Memory)
		}
		c.settle(accepted, ds[10:]...)
		synctest.Wait()
		if w.Pressure() || relieved != 1 {
			t.Errorf("pressure %v, relieved %d times, want once", w.Pressure(), relieved)
		}
		if r := p.publish(msg(big, durable)); r.Verdict != engine.Accepted {
			t.Errorf("publish after relief = %+v", r)
		}
	})
}

// What waits and is in the store doesn't press: memory holds a part of it.
func TestDurableBacklogDoesNotPress(t *testing.T) {
	inWorld(t, engine.Options{Limits: engine.Limits{MemoryBytes: 100_000}}, func(t *testing.T, w *world) {
		p := w.producer("q")
		big := strings.Repeat("x", 1000)
		for range 300 {
			p.send(true, big)
			if used := w.Totals().Memory; used > 25_000+1192 || w.Pressure() {
				t.Fatalf("memory = %d, pressure %v, want a quarter of the limit at most", used, w.Pressure())
			}
		}
		if i := w.info("q"); i.Messages != 300 || i.Bytes != 300_000 {
			t.Errorf("queue = %+v, want 300 messages of 1000 bytes", i)
		}
		c := w.consumer("q")
		for range 300 {
			c.settle(accepted, c.take(1)...)
		}
		expect(t, "rest", c.rest())
		if used := w.Totals().Memory; used != 0 {
			t.Errorf("memory = %d for an empty queue", used)
		}
	})
}

func TestMessageInManyQueuesIsCountedOnce(t *testing.T) {
	bothKinds(t, engine.Options{Limits: engine.Limits{MemoryBytes: 1 << 20}}, func(t *testing.T, w *world, durable bool) {
		var subs []*consumer
		for range 20 {
			subs = append(subs, w.consumer("topic://t"))
		}
		p := w.producer("t")
		p.send(durable, strings.Repeat("x", 500_000))
		if used := w.Totals().Memory; used < 500_000 || used > 520_000 {
			t.Errorf("memory = %d, want about 500,000", used)
		}
		for i, c := range subs {
			c.settle(accepted, c.take(1)...)
			if used := w.Totals().Memory; (used >= 500_000) != (i < len(subs)-1) {
				t.Errorf("memory = %d after %d of %d have it", used, i+1, len(subs))
			}
		}
	})
}
