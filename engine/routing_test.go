package engine_test

import (
	"strings"
	"testing"

	"github.com/letomq/leto/engine"
)

func TestAddressForms(t *testing.T) {
	inWorld(t, engine.Options{Settings: []engine.AddressSettings{
		{Match: "news.#", DefaultAddressRouting: new(engine.Multicast), DefaultQueueRouting: new(engine.Multicast)},
	}}, func(t *testing.T, w *world) {
		for _, c := range []struct {
			address string
			routing engine.Routing
			name    string
			want    engine.Routing
			err     error
		}{
			{"plain", engine.RoutingUnset, "plain", engine.Anycast, nil},
			{"news.today", engine.RoutingUnset, "news.today", engine.Multicast, nil},
			{"queue://a", engine.RoutingUnset, "a", engine.Anycast, nil},
			{"topic://b", engine.RoutingUnset, "b", engine.Multicast, nil},
			{"c", engine.Multicast, "c", engine.Multicast, nil},
			{"news.old", engine.Anycast, "news.old", engine.Anycast, nil},
			{"topic://d", engine.Multicast, "d", engine.Multicast, nil},
			{"topic://d", engine.Anycast, "", 0, engine.ErrInvalid},
			{"queue?consumer.exclusive=true", engine.RoutingUnset, "queue?consumer.exclusive=true", engine.Anycast, nil},
			{strings.Repeat("n", 257), engine.RoutingUnset, strings.Repeat("n", 257), engine.Anycast, nil},
			{"", engine.RoutingUnset, "", 0, engine.ErrInvalid},
			{"queue://", engine.RoutingUnset, "", 0, engine.ErrInvalid},
			{"a::", engine.RoutingUnset, "", 0, engine.ErrInvalid},
			{"::a", engine.RoutingUnset, "", 0, engine.ErrInvalid},
			{"a\r\nb", engine.RoutingUnset, "", 0, engine.ErrInvalid},
			{"a\x00b", engine.RoutingUnset, "", 0, engine.ErrInvalid},
			{"a\xffb", engine.RoutingUnset, "", 0, engine.ErrInvalid},
			{strings.Repeat("n", 1025), engine.RoutingUnset, "", 0, engine.ErrInvalid},
			{"$management", engine.RoutingUnset, "", 0, engine.ErrNotFound},
		} {
			for _, role := range []string{"producer", "consumer"} {
				var name string
				var routing engine.Routing
				var err error
				if role == "producer" {
					var p *producer
					if p, err = w.tryProducer(engine.ProducerSpec{Address: c.address, Routing: c.routing}); err == nil {
						name, routing = p.Address(), p.Routing()
					}
				} else {
					var k *consumer
					if k, err = w.tryConsumer(engine.ConsumerSpec{Address: c.address, Routing: c.routing}); err == nil {
						name, routing = k.Address(), k.Routing()
					}
				}
				wantErr(t, err, c.err)
				if name != c.name || routing != c.want {
					t.Errorf("%s at %q: %q %s, want %q %s", role, c.address, name, routing, c.name, c.want)
				}
			}
		}
	})
}

func TestQueueOfAnAddress(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		one, two := w.consumer("orders::one"), w.consumer("orders::two")
		if one.Queue() != "one" || one.Address() != "orders" {
			t.Errorf("consumer of %s::%s", one.Address(), one.Queue())
		}
		w.producer("orders::two").send(durable, "a")
		expect(t, "the named queue", two.take(1), "a")
		w.producer("orders").send(durable, "b", "c", "d", "e") // anycast: each to one of them
		if got := len(one.take(2)) + len(two.take(2)); got != 4 {
			t.Errorf("%d messages, want all four, shared", got)
		}
		w.producer("topic://prices")
		all, some := w.consumer("prices::all"), w.consumer("prices::some")
		w.producer("prices").send(durable, "p") // multicast: to both
		expect(t, "all", all.take(1), "p")
		expect(t, "some", some.take(1), "p")
	})
}

func TestAutoCreateOff(t *testing.T) {
	off := new(false)
	for name, s := range map[string]engine.AddressSettings{
		"addresses": {AutoCreateAddresses: off}, "both": {AutoCreateAddresses: off, AutoCreateQueues: off},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, set(s), func(t *testing.T, w *world) {
				_, err := w.tryConsumer(engine.ConsumerSpec{Address: "q"})
				wantErr(t, err, engine.ErrNotFound)
				_, err = w.tryProducer(engine.ProducerSpec{Address: "q"})
				wantErr(t, err, engine.ErrNotFound)
				_, err = w.tryConsumer(engine.ConsumerSpec{Address: "q::x"})
				wantErr(t, err, engine.ErrNotFound)
				m := msg("a", false)
				m.Address = "q"
				r := w.producerOf(engine.ProducerSpec{Anonymous: true}).publish(m)
				if r.Verdict != engine.Rejected || r.Condition != "amqp:not-found" || r.Queue != "q" || r.Reason != "not-found" {
					t.Errorf("anonymous = %+v, want rejected not-found", r)
				}
				if n := len(w.Addresses()) + len(w.Queues()); n != 0 {
					t.Errorf("%d addresses and queues were made", n)
				}
				if err := w.Declare(engine.QueueSpec{Address: "q"}); err != nil {
					t.Fatal(err)
				}
				w.producer("q").send(false, "a")
				expect(t, "declared", w.consumer("q").take(1), "a")
			})
		})
	}
	t.Run("queues", func(t *testing.T) {
		inWorld(t, set(engine.AddressSettings{AutoCreateQueues: off}), func(t *testing.T, w *world) {
			if err := w.Declare(engine.QueueSpec{Address: "q", Queue: "one"}); err != nil {
				t.Fatal(err)
			}
			w.producer("q").send(false, "a")
			expect(t, "the one queue", w.consumer("q").take(1), "a")
			_, err := w.tryConsumer(engine.ConsumerSpec{Address: "q::two"})
			wantErr(t, err, engine.ErrNotFound)
			w.consumer("topic://prices") // a subscriber brings its own
		})
	})
}

// An attach or a message never changes how an address routes.
func TestCase130_RoutingTypeIsNeverChanged(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		topic := w.consumer("topic://news")
		_, err := w.tryProducer(engine.ProducerSpec{Address: "news", Routing: engine.Anycast})
		wantErr(t, err, engine.ErrNotAllowed)
		_, err = w.tryConsumer(engine.ConsumerSpec{Address: "queue://news"})
		wantErr(t, err, engine.ErrNotAllowed)
		wantErr(t, w.Declare(engine.QueueSpec{Address: "news", Routing: engine.Anycast}), engine.ErrNotAllowed)
		m := msg("a", false)
		m.Address = "queue://news"
		if r := w.producerOf(engine.ProducerSpec{Anonymous: true}).publish(m); r.Condition != "amqp:not-allowed" {
			t.Errorf("anonymous = %+v, want not-allowed", r)
		}
		p := w.producer("news") // says nothing: the address's own
		if p.Routing() != engine.Multicast {
			t.Errorf("routing = %s, want multicast", p.Routing())
		}
		p.send(false, "b")
		expect(t, "subscriber", topic.take(1), "b")
	})
}

func TestAnonymousRelay(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p := w.producerOf(engine.ProducerSpec{Anonymous: true})
		if p.Address() != "" || p.Routing() != engine.RoutingUnset {
			t.Errorf("anonymous producer has address %q, routing %s", p.Address(), p.Routing())
		}
		sub := w.consumer("topic://t")
		to := func(address, text string) engine.Result {
			m := msg(text, durable)
			m.Address = address
			return p.publish(m)
		}
		for _, c := range []struct{ address, text, condition string }{
			{"q", "1", ""}, {"queue://q", "2", ""}, {"topic://t", "3", ""}, {"t", "4", ""}, {"q::q", "5", ""},
			{"", "6", "amqp:invalid-field"}, {"$cbs", "7", "amqp:not-found"},
		} {
			r := to(c.address, c.text)
			if want := map[bool]engine.OutcomeKind{true: engine.Accepted, false: engine.Rejected}[c.condition == ""]; r.Verdict != want || r.Condition != c.condition {
				t.Errorf("to %q: %+v, want %s %s", c.address, r, want, c.condition)
			}
		}
		expect(t, "queue", w.consumer("q").take(3), "1", "2", "5")
		expect(t, "topic", sub.take(2), "3", "4")
	})
}

func TestTopicWithoutSubscriberTakesMessages(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("topic://t").send(durable, "a")
		if w.Totals().Unrouted != 1 || w.Addresses()[0].Unrouted != 1 {
			t.Errorf("unrouted = %d, want 1", w.Totals().Unrouted)
		}
		c := w.consumer("t")
		expect(t, "later subscriber", c.rest())
	})
}

func TestCompetingConsumersTakeTurns(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		var all []*consumer
		for range 3 {
			c := w.consumer("q")
			c.credit(100)
			all = append(all, c)
		}
		p := w.producer("q")
		for range 10 {
			p.send(durable, "a", "b", "c")
			n := len(all[0].got)
			for _, c := range all {
				if len(c.got) != n {
					t.Fatalf("after a round: %d, %d, %d deliveries", len(all[0].got), len(all[1].got), len(all[2].got))
				}
			}
		}
		all[1].SetLimit(0)
		p.send(durable, "a", "b")
		if len(all[1].got) != 10 {
			t.Errorf("delivery without credit")
		}
	})
}

func TestPriorities(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		for i, text := range []string{"4a", "0a", "9a", "4b", "9b", "200", "0b"} {
			m := msg(text, durable)
			m.Priority = []uint8{4, 0, 9, 4, 9, 200, 0}[i]
			p.publish(m)
		}
		want := []string{"9a", "9b", "200", "4a", "4b", "0a", "0b"}
		w.expectQueue("q", want...)
		if durable {
			w.restart()
		}
		c := w.consumer("q")
		ds := c.take(3)
		c.settle(released, ds[2], ds[0], ds[1])
		if durable {
			expect(t, "after release", c.take(7), want...)
		}
	})
}

func TestBrowserLeavesTheQueueAlone(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		p.send(durable, "a", "b", "c")
		b := w.consumerOf(engine.ConsumerSpec{Address: "q", Browse: true})
		if !b.Browsing() {
			t.Error("not browsing")
		}
		expect(t, "first", b.take(2), "a", "b")
		b.settle(rejected, b.got...)
		expect(t, "rest", b.rest(), "c")
		expect(t, "end", b.rest())
		p.send(durable, "d")
		expect(t, "new", b.rest(), "d")
		c := w.consumer("q")
		ds := c.take(4)
		expect(t, "taken", ds, "a", "b", "c", "d")
		if !ds[0].FirstAcquirer {
			t.Error("a browser counts as acquirer")
		}
		c.settle(released, ds...)
		expect(t, "returned: seen before", b.rest())
		b.Close(engine.ClosingLost)
		w.expectQueue("q", "a", "b", "c", "d")
	})
}

func TestAutoDelete(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{AutoDeleteQueues: new(true)}), func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		p.send(durable, "a", "b")
		c := w.consumer("q")
		c.settle(accepted, c.take(1)...)
		c.Close(engine.ClosingClean)
		w.expectQueue("q", "b") // not empty: it stays. The browser that looked has gone since
		c = w.consumer("q")
		c.settle(accepted, c.take(1)...)
		c.Close(engine.ClosingClean)
		if _, err := w.Queue("q", ""); err == nil {
			t.Error("queue is still there, want it deleted")
		}
		p.send(durable, "c") // the producer makes it again
		expect(t, "made again", w.consumer("q").take(1), "c")
		if err := w.Declare(engine.QueueSpec{Address: "kept"}); err != nil {
			t.Fatal(err)
		}
		w.consumer("kept").Close(engine.ClosingClean)
		if _, err := w.Queue("kept", ""); err != nil {
			t.Errorf("declared queue: %v, want it kept", err)
		}
	})
}

func TestDeleteEndsConsumers(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		p.send(durable, "a", "b")
		c := w.consumer("q")
		ds := c.take(1)
		if err := w.Delete("q", ""); err != nil {
			t.Fatal(err)
		}
		wantErr(t, c.ended, engine.ErrDeleted)
		if !c.Gone() {
			t.Error("settlements would be taken to hold")
		}
		c.SetLimit(100)
		c.Drain(100)
		c.settle(accepted, ds...)
		c.Close(engine.ClosingClean)
		wantErr(t, w.Delete("q", ""), engine.ErrNotFound)
		p.send(durable, "c")
		w.expectQueue("q", "c")
		w.restart()
	})
}

func TestPurge(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b", "c")
		c := w.consumer("q")
		ds := c.take(1)
		if n, err := w.Purge("q", ""); n != 2 || err != nil {
			t.Errorf("purge = %d, %v, want 2", n, err)
		}
		c.settle(released, ds...)
		w.expectQueue("q", "a")
		if w.restart(); durable {
			w.expectQueue("q", "a")
		}
		_, err := w.Purge("nowhere", "")
		wantErr(t, err, engine.ErrNotFound)
	})
}

// Producers that come, send one message and go take turns at the queues of an anycast address as one producer does.
func TestTurnsOverProducers(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		w.consumer("two")
		w.consumer("two::audit")
		for range 6 {
			p := w.producer("two")
			p.send(false, "m")
			p.Close()
		}
		w.info("two") // all is done
		for _, name := range []string{"two", "audit"} {
			if q, err := w.Queue("two", name); err != nil || q.Messages != 3 {
				t.Errorf("queue %s: %d messages, %v, want 3", name, q.Messages, err)
			}
		}
	})
}
