package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/letomq/leto/engine"
)

var (
	mine   = engine.Principal{Container: "c", Connection: "1"}
	theirs = engine.Principal{Container: "c", Connection: "2"}
)

func TestDynamicNodeNamesCannotBeGuessed(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		seen := map[string]bool{}
		for range 50 {
			name := w.consumerOf(engine.ConsumerSpec{Dynamic: true, By: mine}).Address()
			if _, bits, _ := strings.Cut(name, "."); len(bits) != 32 || seen[name] {
				t.Errorf("name %q, want 128 new random bits in it", name)
			}
			seen[name] = true
		}
	})
	inWorld(t, engine.Options{Rand: strings.NewReader("only 20 bytes of it.")}, func(t *testing.T, w *world) {
		w.consumerOf(engine.ConsumerSpec{Dynamic: true, By: mine})
		if _, err := w.tryConsumer(engine.ConsumerSpec{Dynamic: true, By: mine}); err == nil {
			t.Error("a name was made without randomness")
		}
	})
}

// Only the connection that made a dynamic node may consume from it; everybody may send.
func TestCase122_DynamicNodeIsItsConnectionsOwn(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		c := w.consumerOf(engine.ConsumerSpec{Dynamic: true, By: mine})
		for _, spec := range []engine.ConsumerSpec{
			{Address: c.Address(), By: theirs},
			{Address: c.Address(), By: theirs, Browse: true},
			{Address: c.Address() + "::" + c.Address(), By: theirs},
		} {
			_, err := w.tryConsumer(spec)
			wantErr(t, err, engine.ErrNotAllowed)
		}
		w.consumerOf(engine.ConsumerSpec{Address: c.Address(), By: mine, Browse: true})
		p := w.producerOf(engine.ProducerSpec{Address: c.Address(), By: theirs})
		if r, now := p.Publish(msg("a", durable), 1); !now || r.Verdict != engine.Accepted {
			t.Errorf("publish = %+v, %v: a temporary queue keeps nothing over a restart", r, now)
		}
		expect(t, "owner", c.take(1), "a")
	})
}

func TestCase121_DynamicNodesOfBothRolesAndKinds(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		queue := w.producerOf(engine.ProducerSpec{Dynamic: true, By: mine})
		queue.send(false, "a")
		expect(t, "queue", w.consumerOf(engine.ConsumerSpec{Address: queue.Address(), By: mine}).take(1), "a")
		topic := w.producerOf(engine.ProducerSpec{Dynamic: true, Routing: engine.Multicast, By: mine})
		one := w.consumerOf(engine.ConsumerSpec{Address: topic.Address(), By: mine})
		two := w.consumerOf(engine.ConsumerSpec{Address: topic.Address(), By: mine})
		topic.send(false, "b")
		expect(t, "subscriber", one.take(1), "b")
		expect(t, "subscriber", two.take(1), "b")
		source := w.consumerOf(engine.ConsumerSpec{Dynamic: true, Routing: engine.Multicast, By: mine})
		if source.Routing() != engine.Multicast {
			t.Errorf("routing = %s, want multicast", source.Routing())
		}
		w.producer(source.Address()).send(false, "c")
		expect(t, "topic made by its subscriber", source.take(1), "c")
	})
}

func TestLifetimes(t *testing.T) {
	there := func(w *world, address string) bool {
		_, err := w.Queue(address, "")
		return !errors.Is(err, engine.ErrNotFound)
	}
	for _, c := range []struct {
		lifetime engine.Lifetime
		// is it there: once the creating link is gone, while another producer and a message are there; then without
		// the producer; then without the message
		orphan, unlinked bool
	}{
		{engine.DeleteOnClose, false, false},
		{engine.DeleteOnNoLinks, true, false},
		{engine.DeleteOnNoMessages, true, true},
		{engine.DeleteOnNoLinksOrMessages, true, true},
	} {
		inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
			creator := w.producerOf(engine.ProducerSpec{Dynamic: true, Lifetime: c.lifetime, By: mine})
			address := creator.Address()
			other := w.producer(address)
			if !there(w, address) {
				t.Fatalf("lifetime %d: not there at all", c.lifetime)
			}
			other.send(false, "a")
			creator.Close()
			if got := there(w, address); got != c.orphan {
				t.Errorf("lifetime %d: there without its creator %v, want %v", c.lifetime, got, c.orphan)
			}
			other.Close()
			if got := there(w, address); got != c.unlinked {
				t.Errorf("lifetime %d: there without links %v, want %v", c.lifetime, got, c.unlinked)
			}
			if !c.unlinked {
				return
			}
			k := w.consumerOf(engine.ConsumerSpec{Address: address, By: mine})
			k.settle(accepted, k.take(1)...)
			if c.lifetime == engine.DeleteOnNoMessages == there(w, address) {
				t.Errorf("lifetime %d: there when empty but linked: %v", c.lifetime, there(w, address))
			}
			k.Close(engine.ClosingClean)
			if there(w, address) {
				t.Errorf("lifetime %d: there at the end", c.lifetime)
			}
		})
	}
}

func TestDynamicNodesEndWithTheirConnection(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		c := w.consumerOf(engine.ConsumerSpec{Dynamic: true, Lifetime: engine.DeleteOnNoLinksOrMessages, By: mine})
		other := w.consumerOf(engine.ConsumerSpec{Dynamic: true, By: theirs})
		p := w.producer(c.Address())
		p.send(false, "a")
		c.Close(engine.ClosingLost)
		w.Disconnected(mine.Connection)
		w.Disconnected(mine.Connection)
		if n := len(w.Addresses()); n != 1 {
			t.Errorf("%d addresses, want the other connection's", n)
		}
		if other.ended != nil {
			t.Errorf("other connection's: %v", other.ended)
		}
		// a late reply leaves nothing behind
		if r := p.publish(msg("b", false)); r.Verdict != engine.Rejected || r.Condition != "amqp:not-found" {
			t.Errorf("publish = %+v, want rejected", r)
		}
		_, err := w.tryProducer(engine.ProducerSpec{Address: c.Address()})
		wantErr(t, err, engine.ErrNotFound)
		_, err = w.tryConsumer(engine.ConsumerSpec{Address: c.Address(), By: mine})
		wantErr(t, err, engine.ErrNotFound)
		if n := len(w.Addresses()); n != 1 {
			t.Errorf("%d addresses, want 1", n)
		}
	})
}
