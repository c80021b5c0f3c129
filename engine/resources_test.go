package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
)

// TestDeadLetterResources: dead letters, and what expires, have a queue for each address that they come from.
func TestDeadLetterResources(t *testing.T) {
	opts := engine.Options{Settings: []engine.AddressSettings{
		{
			Match: "own.#", DeadLetterAddress: new("dead"), AutoCreateDeadLetterResources: new(true), DeadLetterQueueSuffix: new(".x"),
			ExpiryAddress: new("late"), AutoCreateExpiryResources: new(true), ExpiryQueuePrefix: new("E."),
		},
		{Match: "plain", DeadLetterAddress: new("dead")},
	}}
	inWorld(t, opts, func(t *testing.T, w *world) {
		for _, address := range []string{"own.a", "own.b", "plain"} {
			p := w.producer(address)
			p.send(true, "dies at "+address)
			c := w.consumer(address)
			c.settle(rejected, c.take(1)...)
			c.Close(engine.ClosingClean)
		}
		w.producer("own.a").publish(lasting("expires", time.Second))
		later(2 * time.Second)
		for range 2 {
			for name, want := range map[[2]string]string{
				{"dead", "DLQ.own.a.x"}: "dies at own.a+1", {"dead", "DLQ.own.b.x"}: "dies at own.b+1", {"dead", "dead"}: "dies at plain+1", {"late", "E.own.a"}: "expires",
			} {
				c := w.consumerOf(engine.ConsumerSpec{Address: name[0] + "::" + name[1], Browse: true})
				expect(t, name[1], c.rest(), want)
				c.Close(engine.ClosingClean)
			}
			w.restart()
		}
		// At the dead-letter address itself there is nowhere to go.
		if p, err := w.Retry(t.Context(), "dead", "DLQ.own.a.x", engine.Selection{}, nil); err != nil || p.Done != 1 {
			t.Errorf("retry: %+v, %v", p, err)
		}
		w.expectQueue("own.a", "dies at own.a")
	})
}

// TestPlainDeadLettersBesideResources go to the queue of the address's name, and not in turn to all.
func TestPlainDeadLettersBesideResources(t *testing.T) {
	opts := engine.Options{Settings: []engine.AddressSettings{{Match: "own.#", AutoCreateDeadLetterResources: new(true)}}}
	inWorld(t, opts, func(t *testing.T, w *world) {
		for _, address := range []string{"plain", "own.a", "plain", "plain", "own.b", "plain"} {
			w.producer(address).send(true, "x")
			c := w.consumer(address)
			c.settle(rejected, c.take(1)...)
			c.Close(engine.ClosingClean)
		}
		w.expectQueue("DLQ", "x+1", "x+1", "x+1", "x+1")
	})
}

func TestLifetime(t *testing.T) {
	const hour = 3_600_000
	for _, c := range []struct {
		what      string
		settings  engine.AddressSettings
		ttl, want int64 // milliseconds, 0 for none
	}{
		{"nothing is told", engine.AddressSettings{}, 5, 5},
		{"no expiry", engine.AddressSettings{NoExpiry: new(true), ExpiryDelay: new(int64(7))}, 5, 0},
		{"expiry-delay, none", engine.AddressSettings{ExpiryDelay: new(int64(7)), MaxExpiryDelay: new(int64(3))}, 0, 7},
		{"expiry-delay, one", engine.AddressSettings{ExpiryDelay: new(int64(7)), MaxExpiryDelay: new(int64(3))}, 5, 5},
		{"expiry-delay 0", engine.AddressSettings{ExpiryDelay: new(int64(0))}, 0, 0},
		{"below min", engine.AddressSettings{MinExpiryDelay: new(int64(9))}, 5, 9},
		{"above min", engine.AddressSettings{MinExpiryDelay: new(int64(9))}, 50, 50},
		{"min, none", engine.AddressSettings{MinExpiryDelay: new(int64(9))}, 0, 9},
		{"above max", engine.AddressSettings{MaxExpiryDelay: new(int64(9))}, 50, 9},
		{"below max", engine.AddressSettings{MaxExpiryDelay: new(int64(9))}, 5, 5},
		{"min and max, none", engine.AddressSettings{MinExpiryDelay: new(int64(2)), MaxExpiryDelay: new(int64(9))}, 0, 9},
		{"too far", engine.AddressSettings{MinExpiryDelay: new(int64(1<<63 - 1))}, 5, 1000 * 365 * 24 * hour},
	} {
		inWorld(t, set(c.settings), func(t *testing.T, w *world) {
			now := time.Now().UnixMilli()
			m := msg("x", false)
			m.Arrived = now
			if c.ttl != 0 {
				m.Expiry, m.TTL, m.HeaderTTL = now+c.ttl, uint32(c.ttl), true
			}
			w.producer("q").publish(m)
			d := w.consumer("q").take(1)[0].Message
			want := int64(0)
			if c.want != 0 {
				want = now + c.want
			}
			if d.Expiry != want || d.HeaderTTL != (want != 0) || d.TTL != uint32(min(c.want, 1<<32-1)) {
				t.Errorf("%s: expires after %d ms (ttl %v %d), want %d", c.what, d.Expiry-now, d.HeaderTTL, d.TTL, c.want)
			}
		})
	}
}

// TestDeadLettersDontGoInACircle: what has failed at one address and fails again at its dead-letter address, which has
// the first one for its own, stays there, with all its attempts before it.
func TestDeadLettersDontGoInACircle(t *testing.T) {
	settings := []engine.AddressSettings{
		{Match: "#", MaxDeliveryAttempts: new(2)},
		{Match: "a", DeadLetterAddress: new("b")},
		{Match: "b", DeadLetterAddress: new("c")},
		{Match: "c", DeadLetterAddress: new("a")},
	}
	if got := engine.DeadLetterCircles(settings); len(got) != 1 || !slices.Equal(got[0], strings.Fields("b c a b")) {
		t.Errorf("circles: %v", got)
	}
	for _, durable := range []bool{false, true} {
		inWorld(t, engine.Options{Settings: settings}, func(t *testing.T, w *world) {
			w.producer("a").send(durable, "x")
			for i, address := range []string{"a", "a", "b", "b", "b", "b", "b"} {
				c := w.consumer(address)
				ds := c.take(1)
				if ds[0].Count != uint32(i) {
					t.Errorf("attempt %d: count %d", i, ds[0].Count)
				}
				c.settle(failed, ds...)
				c.Close(engine.ClosingClean)
			}
			w.expectQueue("b", "x+7")
			if durable {
				w.restart()
				w.expectQueue("b", "x+7")
			}
			c := w.consumer("b")
			d := c.take(1)[0]
			if annotation(d, engine.OrigQueue) != "a" {
				t.Errorf("it came from %v", annotation(d, engine.OrigQueue))
			}
			c.settle(rejected, d) // somebody has said so: it goes on
			w.expectQueue("c", "x+8")
		})
	}
}
