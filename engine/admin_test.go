package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/letomq/leto/engine"
)

func TestWhatIsCreatedSurvivesARestart(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		for _, spec := range []engine.QueueSpec{
			{Address: "news", Routing: engine.Multicast},
			{Address: "orders"},
			{Address: "prices", Queue: "audit", Routing: engine.Multicast},
		} {
			for i, want := range []bool{true, false} {
				if made, err := w.Create(spec); made != want || err != nil {
					t.Errorf("create %+v for the %d. time: %v, %v", spec, i+1, made, err)
				}
			}
		}
		for range 2 {
			if a, queues, err := w.Address("news"); err != nil || a.Routing != engine.Multicast || len(queues) != 0 {
				t.Errorf("news = %+v, %v, %v", a, queues, err)
			}
			if _, queues, err := w.Address("prices"); err != nil || len(queues) != 1 || queues[0].Name != "audit" {
				t.Errorf("prices has %v, %v", queues, err)
			}
			w.restart()
		}
		w.producer("news").send(true, "x")
		if a, _, _ := w.Address("news"); a.Unrouted != 1 {
			t.Errorf("news = %+v, want one message that found no queue", a)
		}
		if err := w.Delete("news", ""); err != nil {
			t.Error(err)
		}
		w.restart()
		_, _, err := w.Address("news")
		wantErr(t, err, engine.ErrNotFound)
	})
}

func TestDeleteIf(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.send(true, "x")
		wantErr(t, w.DeleteIf("q", "q", engine.Condition{Empty: true}), engine.ErrInUse)
		wantErr(t, w.DeleteIf("q", "", engine.Condition{Unused: true}), engine.ErrInUse)
		p.Close()
		c := w.consumer("q")
		wantErr(t, w.DeleteIf("q", "q", engine.Condition{Unused: true}), engine.ErrInUse)
		c.settle(accepted, c.take(1)...)
		c.Close(engine.ClosingClean)
		if err := w.DeleteIf("q", "", engine.Condition{Empty: true, Unused: true}); err != nil {
			t.Error(err)
		}
	})
}

// TestPurgeInPieces stops a purge half way, and lets it leave alone what comes meanwhile and what a consumer has.
func TestPurgeInPieces(t *testing.T) {
	for _, durable := range []bool{true, false} {
		inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
			p := w.producer("q")
			for range 1000 {
				p.start(msg("x", durable))
			}
			synctest.Wait()
			c := w.consumer("q")
			c.take(3)
			ctx, cancel := context.WithCancel(t.Context())
			got, err := w.PurgeAll(ctx, "q", "q", func(engine.Progress) { cancel() })
			wantErr(t, err, context.Canceled)
			if i := w.info("q"); got.Done == 0 || got.Done >= 997 || i.Messages != 997-got.Done {
				t.Errorf("%+v purged when it was stopped, the queue is %+v", got, i)
			}
			first := true
			rest, err := w.PurgeAll(t.Context(), "q", "q", func(engine.Progress) {
				if first {
					first = false
					p.start(msg("later", durable))
					synctest.Wait()
				}
			})
			if err != nil || rest.Done != 997-got.Done {
				t.Errorf("%+v purged, %v", rest, err)
			}
			if i := w.info("q"); i.Messages != 1 || i.Delivering != 3 {
				t.Errorf("queue = %+v, want what came later, and what the consumer has", i)
			}
		})
	}
}

func TestEffectiveSettings(t *testing.T) {
	all := []engine.AddressSettings{
		{Match: "#", MaxDeliveryAttempts: new(3), RejectPolicy: new(engine.RejectRedeliver)},
		{Match: "orders.#", DeadLetterAddress: new("orders.dead")},
		{Match: "orders.eu", MaxDeliveryAttempts: new(5)},
	}
	got := map[string]engine.EffectiveSetting{}
	for _, s := range engine.EffectiveSettings(all, "orders.eu") {
		got[s.Key] = s
	}
	for _, want := range []engine.EffectiveSetting{
		{Key: "max-delivery-attempts", Value: 5, Match: "orders.eu"},
		{Key: "dead-letter-address", Value: "orders.dead", Match: "orders.#"},
		{Key: "reject-policy", Value: "redeliver", Match: "#"},
		{Key: "expiry-address", Value: "ExpiryQueue"},
		{Key: "default-queue-routing-type", Value: "anycast"},
		{Key: "count-on-loss", Value: true},
	} {
		if got[want.Key] != want {
			t.Errorf("%+v, want %+v", got[want.Key], want)
		}
	}
}
