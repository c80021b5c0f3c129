package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/letomq/leto/engine"
)

// durableAt is a durable subscription of container c.
func durableAt(address, name string) engine.ConsumerSpec {
	return engine.ConsumerSpec{
		Address: address, Subscription: engine.Subscription{Name: name, Durable: true}, By: engine.Principal{Container: "c"},
	}
}

func TestSubscribersEachGetAll(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		one, two := w.consumer("topic://t"), w.consumerOf(engine.ConsumerSpec{Address: "t", Browse: true})
		if two.Browsing() {
			t.Error("distribution-mode copy on a topic browses, want it to consume")
		}
		p := w.producer("t")
		p.send(durable, "a", "b")
		expect(t, "one", one.take(2), "a", "b")
		expect(t, "two", two.take(2), "a", "b")
		two.settle(accepted, two.got...)
		queue := one.Queue()
		one.Close(engine.ClosingLost)
		two.CloseLink(false)
		if n := len(w.Queues()); n != 0 {
			t.Errorf("%d queues are left of subscribers that are gone, want 0", n)
		}
		_, err := w.tryConsumer(engine.ConsumerSpec{Address: "t::" + queue})
		if err != nil {
			t.Errorf("a queue of that name: %v", err) // it is made: names of subscriptions are not reserved
		}
	})
}

func TestDurableSubscriptionOutlivesItsLink(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		c := w.consumerOf(durableAt("topic://t", "s"))
		p := w.producer("t")
		p.send(durable, "a", "b")
		c.take(1)
		c.CloseLink(false)
		p.send(durable, "c")
		if durable {
			w.restart()
		}
		c = w.consumerOf(durableAt("topic://t", "s"))
		expect(t, "back again", c.take(3), "a", "b", "c")
		c.Close(engine.ClosingLost)
		c = w.consumerOf(durableAt("", "s")) // recovery of a subscription by its identity alone
		expect(t, "recovered", c.take(3), "a+1", "b+1", "c+1")
		if c.Address() != "t" {
			t.Errorf("address = %q, want t", c.Address())
		}
		c.CloseLink(true)
		if n := len(w.Queues()); n != 0 {
			t.Errorf("%d queues are left after a closing detach, want 0", n)
		}
		w.restart()
		_, err := w.tryConsumer(durableAt("", "s"))
		wantErr(t, err, engine.ErrNotFound)
	})
}

func TestSecondActiveConsumerOfADurableSubscription(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		first := w.consumerOf(durableAt("topic://t", "s"))
		w.producer("t").send(durable, "a", "b")
		ds := first.take(1)
		_, err := w.tryConsumer(durableAt("topic://t", "s"))
		wantErr(t, err, engine.ErrLocked)
		steal := durableAt("topic://t", "s")
		steal.Subscription.Steal = true
		second := w.consumerOf(steal)
		wantErr(t, first.ended, engine.ErrStolen)
		first.settle(accepted, ds...) // too late
		first.credit(5)
		first.CloseLink(true) // and no way to delete what isn't its own any more
		expect(t, "thief", second.take(2), "a", "b")
		expect(t, "robbed", first.got, "a")
	})
}

func TestDurableSubscriptionForAnotherTopicReplacesTheOld(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		old := w.consumerOf(durableAt("topic://t", "s"))
		w.producer("t").send(durable, "a")
		_, err := w.tryConsumer(durableAt("topic://u", "s"))
		wantErr(t, err, engine.ErrLocked)
		old.CloseLink(false)
		c := w.consumerOf(durableAt("topic://u", "s"))
		w.producer("u").send(durable, "b")
		expect(t, "new topic", c.take(1), "b")
		if qs := w.Queues(); len(qs) != 1 || qs[0].Address != "u" {
			t.Errorf("queues = %+v, want only the one at u", qs)
		}
	})
}

func TestSubscriptionNamesDoNotCollide(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		seen := map[string]bool{}
		for _, id := range [][2]string{{"a", "b.c"}, {"a.b", "c"}, {`a\`, ".b"}, {`a\.`, "b"}, {`a\.b`, "c"}, {"", "a.b"}, {"a", "b"}} {
			spec := durableAt("topic://t", id[1])
			spec.By.Container = id[0]
			c := w.consumerOf(spec)
			if seen[c.Queue()] {
				t.Errorf("container %q, link %q: queue %q is another's", id[0], id[1], c.Queue())
			}
			seen[c.Queue()] = true
		}
		_, err := w.tryConsumer(durableAt("topic://t", ""))
		wantErr(t, err, engine.ErrInvalid)
		_, err = w.tryConsumer(durableAt("topic://t", strings.Repeat("x", 2000)))
		wantErr(t, err, engine.ErrInvalid)
	})
}

func TestDurableMessagesForPassingSubscribersAreNotStored(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		c := w.consumer("topic://t")
		p := w.producer("t")
		if r, now := p.Publish(msg("a", true), 1); !now || r.Verdict != engine.Accepted {
			t.Errorf("publish = %+v, %v, want accepted at once", r, now)
		}
		c.settle(accepted, c.take(1)...)
		if n := store.count(0); n != 0 {
			t.Errorf("%d records for a queue that ends with its link", n)
		}
	})
}

// TestSubscriptionsHoldBeforeAnybodyIsTold has the store stand still while a durable subscription is made and deleted.
func TestSubscriptionsHoldBeforeAnybodyIsTold(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		waits := func(what string, do func()) {
			t.Helper()
			resume := store.hold()
			done := false
			go func() { do(); done = true }()
			synctest.Wait()
			if done {
				t.Errorf("%s before the commit", what)
			}
			resume()
			synctest.Wait()
			if !done {
				t.Fatalf("not %s after the commit", what)
			}
		}
		var c *consumer
		waits("attached", func() { c = w.consumerOf(durableAt("topic://t", "s")) })
		resume := store.hold()
		c.CloseLink(false)
		c = w.consumerOf(durableAt("topic://t", "s")) // one that holds needs no commit
		resume()
		waits("deleted", func() { c.CloseLink(true) })

		store.fail(errors.New("broken"))
		if _, err := w.tryConsumer(durableAt("topic://t", "s")); err == nil {
			t.Error("a subscription that can't hold")
		}
	})
}
