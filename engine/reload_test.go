package engine_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
)

// TestReload: queues, producers and consumers that are there go by the new settings from the next message on, and what
// is with consumers stays there.
func TestReload(t *testing.T) {
	inWorld(t, set(engine.AddressSettings{MaxDeliveryAttempts: new(5)}), func(t *testing.T, w *world) {
		p := w.producer("q")
		p.send(true, "a", "b", "held")
		c, other := w.consumer("q"), w.consumer("q")
		held := c.take(3)[2]
		c.settle(failed, c.all()[:2]...)
		w.Reload([]engine.AddressSettings{
			{Match: "#", AutoCreateAddresses: new(false)},
			{
				Match: "q", MaxDeliveryAttempts: new(3), DeadLetterAddress: new("dead"), RedeliveryDelay: new(time.Minute),
				ExpiryDelay: new(int64(1000)), ExpiryAddress: new("late"),
			},
		})
		expect(t, "under the new settings", other.take(2), "a+1", "b+1")
		other.settle(failed, other.all()...)
		if i := w.info("q"); i.Delayed != 2 || i.Delivering != 1 {
			t.Errorf("after a failure: %+v", i)
		}
		w.Reload([]engine.AddressSettings{{Match: "q", MaxDeliveryAttempts: new(3), DeadLetterAddress: new("dead"), ExpiryDelay: new(int64(1000))}})
		later(time.Minute) // for what was told to wait: that stays
		other.settle(failed, other.take(2)...)
		w.expectQueue("dead", "a+3", "b+3")
		p.send(true, "short")
		later(2 * time.Second)
		w.expectQueue("ExpiryQueue", "short")
		c.settle(accepted, held)
		if i := w.info("q"); i.Acknowledged != 1 || i.Messages+i.Delivering+i.Delayed != 0 || i.Consumers != 2 {
			t.Errorf("in the end: %+v", i)
		}

		w.Reload([]engine.AddressSettings{{Match: "#", AutoCreateAddresses: new(false)}})
		_, err := w.tryProducer(engine.ProducerSpec{Address: "new"})
		wantErr(t, err, engine.ErrNotFound)
		w.Reload(nil)
		if s := w.Settings("q"); *s != engine.DefaultSettings() || s != w.Settings("none") {
			t.Errorf("after all settings are gone: %+v", *s)
		}
		w.producer("new")
	})
}

// TestReloadOfIDs: what is remembered stays, as far as it is wanted, and is used no more while nothing is wanted.
func TestReloadOfIDs(t *testing.T) {
	size := func(n int) []engine.AddressSettings { return set(engine.AddressSettings{IDCacheSize: new(n)}).Settings }
	for _, restart := range []bool{false, true} {
		inWorld(t, engine.Options{Settings: size(100)}, func(t *testing.T, w *world) {
			p := w.producer("q")
			for i := range 60 {
				p.once(true, fmt.Sprint(i))
			}
			before := w.Totals().Memory
			w.Reload(size(4))
			p.once(true, "59", "56", "x")
			w.expectDuplicates(2)
			if now := w.Totals().Memory; now >= before {
				t.Errorf("%d bytes with 4 ids, %d with 60", now, before)
			}
			w.Reload(size(0))
			p.once(true, "x", "x")
			w.expectDuplicates(2)
			w.Reload(size(8))
			if restart {
				w.opts.Settings = size(8)
				w.restart()
				p = w.producer("q")
			}
			duplicates := w.Totals().Duplicates
			p.once(true, "57", "58", "59", "x")
			w.expectDuplicates(duplicates + 4)
			p.once(true, "56") // had gone when there were four
			w.expectDuplicates(duplicates + 4)
		})
	}
}

// TestReloadOfAutoDelete: a queue that idles when the setting comes stays until it runs empty, or loses a consumer, once more.
func TestReloadOfAutoDelete(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		if err := w.Declare(engine.QueueSpec{Address: "declared"}); err != nil {
			t.Fatal(err)
		}
		w.consumer("made").Close(engine.ClosingClean)
		w.Reload(set(engine.AddressSettings{AutoDeleteQueues: new(true)}).Settings)
		w.info("made")
		w.consumer("made").Close(engine.ClosingClean)
		synctest.Wait()
		_, err := w.Queue("made", "")
		wantErr(t, err, engine.ErrNotFound)
		w.consumer("declared").Close(engine.ClosingClean)
		w.info("declared")
	})
}

// TestReloadBesideAddresses: an address that is made, or deleted, meanwhile has the settings that are there in the end,
// and so it is when several reload at once.
func TestReloadBesideAddresses(t *testing.T) {
	b, err := engine.New(engine.Options{}, nullStore{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const n = 2000
	var making sync.WaitGroup
	for k := range 2 {
		making.Go(func() {
			for i := range n {
				address := fmt.Sprint("q.", i)
				if err := b.Declare(engine.QueueSpec{Address: address}); err != nil {
					t.Error(err)
				}
				if k == 0 && i%3 == 0 {
					_ = b.Delete(address, "") // the other one may have
				}
			}
		})
		making.Go(func() {
			for i := range 100 {
				b.Reload([]engine.AddressSettings{{Match: "#", MaxDeliveryAttempts: new(i + 1)}})
			}
		})
	}
	making.Wait()
	want := b.Settings("not there").MaxDeliveryAttempts
	for i := range n {
		if s := b.Settings(fmt.Sprint("q.", i)); s.MaxDeliveryAttempts != want {
			t.Fatalf("q.%d has %d attempts, want %d", i, s.MaxDeliveryAttempts, want)
		}
	}
}
