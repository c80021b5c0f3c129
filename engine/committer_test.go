package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
)

func TestDurableMessagesAreVisibleAndConfirmedOnlyOnceCommitted(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p, other := w.producer("q"), w.producer("q")
		synctest.Wait()
		resume := store.hold()
		c := w.consumer("q")
		c.credit(100)
		p.start(msg("a", true))
		synctest.Wait()
		p.start(msg("b", true))
		p.start(msg("c", false)) // waits behind its own link's
		other.start(msg("d", false))
		synctest.Wait()
		expect(t, "before the commit", c.got, "d")
		if len(p.order) != 0 {
			t.Errorf("confirmed %v before the commit", p.order)
		}
		if other.results[1].Verdict != engine.Accepted {
			t.Errorf("other link's transient message: %+v, want accepted at once", other.results[1])
		}
		resume()
		synctest.Wait()
		expect(t, "after the commit", c.got, "d", "a", "b", "c")
		if !slices.Equal(p.order, []uint64{1, 2, 3}) {
			t.Errorf("confirmed %v, want 1, 2, 3", p.order)
		}
		p.send(false, "e") // nothing is pending any more
		if len(p.order) != 3 {
			t.Error("a transient message was confirmed late although nothing was pending")
		}
	})
}

func TestWindowCollectsWhileTheStoreIsBusy(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.send(true, "first")
		before := len(store.batches)
		resume := store.hold()
		for i := range 100 {
			p.start(msg(fmt.Sprint(i), true))
			if i == 0 {
				synctest.Wait() // the first is on its way alone
			}
		}
		resume()
		synctest.Wait()
		if n := len(store.batches) - before; n != 2 {
			t.Errorf("%d commits for 100 messages, want 2", n)
		}
		if len(store.batches[before+1]) != 99 {
			t.Errorf("second commit has %d records, want 99", len(store.batches[before+1]))
		}
		if len(p.order) != 101 {
			t.Errorf("%d confirmed, want all", len(p.order))
		}
	})
}

func TestFullWindowHoldsPublishersBack(t *testing.T) {
	for name, limits := range map[string]engine.Limits{"records": {WindowRecords: 4}, "bytes": {WindowBytes: 8}} {
		t.Run(name, func(t *testing.T) {
			store := &watchedStore{}
			inWorldOn(t, engine.Options{Limits: limits}, store, func(t *testing.T, w *world) {
				p := w.producer("q")
				p.send(true, "--")
				resume := store.hold()
				sent := 0
				done := make(chan struct{})
				go func() {
					defer close(done)
					for range 50 {
						p.start(msg("--", true))
						sent++
					}
				}()
				synctest.Wait()
				if sent < 5 || sent > 8 { // the committer takes a window that has one, or up to four
					t.Errorf("%d messages went in while the store was busy, want a window and the next one of 4", sent)
				}
				// settlements are not held back: they are bounded by what was delivered
				c := w.consumer("q")
				if c.Settle(settlements(c.take(1)...), accepted, 1) {
					t.Error("settlement of a durable message holds before its commit")
				}
				resume()
				<-done
				synctest.Wait()
				if len(p.order) != 51 || !slices.Equal(c.settled, []uint64{1}) {
					t.Errorf("%d confirmed, settled %v", len(p.order), c.settled)
				}
			})
		})
	}
}

func TestSettlementHoldsOnceCommitted(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		w.producer("q").send(true, "a", "b", "c", "d")
		w.producer("q").send(false, "e", "f")
		c := w.consumer("q")
		ds := c.take(6)
		resume := store.hold()
		if c.Settle(settlements(ds[0]), accepted, 1) || c.Settle(settlements(ds[1]), failed, 2) || c.Settle(settlements(ds[2]), rejected, 3) {
			t.Error("settlements of durable messages hold before their commit")
		}
		if !c.Settle(settlements(ds[3]), released, 4) || !c.Settle(settlements(ds[4]), accepted, 5) || !c.Settle(settlements(ds[5]), failed, 6) {
			t.Error("settlements that change nothing in the store wait for it")
		}
		c.Close(engine.ClosingClean) // they are still confirmed
		synctest.Wait()
		if len(c.settled) != 0 {
			t.Errorf("settled %v before the commit", c.settled)
		}
		resume()
		synctest.Wait()
		if !slices.Equal(c.settled, []uint64{1, 2, 3}) {
			t.Errorf("settled %v, want 1, 2, 3", c.settled)
		}
		w.expectQueue("q", "b+1", "d", "f+1")
	})
}

func TestMoveIsOneBatchAndLeavesTheSourceLast(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		w.producer("q").send(true, "a")
		w.producer("DLQ").send(true, "x")
		c := w.consumer("q")
		ds := c.take(1)
		resume := store.hold()
		c.Settle(settlements(ds...), rejected, 1)
		synctest.Wait()
		if q, dlq := w.info("q"), w.info("DLQ"); q.Delivering != 1 || q.Messages != 0 || dlq.Messages != 1 {
			t.Errorf("before the commit: %+v, %+v, want it leaving", q, dlq)
		}
		resume()
		synctest.Wait()
		if q, dlq := w.info("q"), w.info("DLQ"); q.Delivering != 0 || dlq.Messages != 2 {
			t.Errorf("after the commit: %+v, %+v, want it moved", q, dlq)
		}
		if store.count(engine.RecordMove) != 1 || store.count(engine.RecordRemove) != 0 {
			t.Errorf("%d moves and %d removes, want one move", store.count(engine.RecordMove), store.count(engine.RecordRemove))
		}
	})
}

func TestTransientMessagesLeaveNoRecords(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.send(false, "a", "b", "c", "d")
		c := w.consumer("q")
		ds := c.take(4)
		c.settle(accepted, ds[0])
		c.settle(failed, ds[1])
		c.settle(rejected, ds[2])
		c.Close(engine.ClosingLost)
		synctest.Wait()
		if all, defines := store.count(0), store.count(engine.RecordDefine); all != defines || defines != 2 {
			t.Errorf("%d records, %d of them definitions, want those of two queues only", all, defines)
		}
	})
}

// A queue made on first use is in the store before its first message is confirmed.
func TestCase239_AutoCreatedQueueIsStoredBeforeItsFirstMessage(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		m := msg("a", true)
		m.Address = "new"
		w.producerOf(engine.ProducerSpec{Anonymous: true}).publish(m)
		var kinds []engine.RecordKind
		for _, batch := range store.batches {
			for _, r := range batch {
				kinds = append(kinds, r.Kind)
			}
		}
		if !slices.Equal(kinds, []engine.RecordKind{engine.RecordDefine, engine.RecordEnqueue}) {
			t.Errorf("records = %v, want define, enqueue", kinds)
		}
		w.restart()
		w.expectQueue("new", "a")
	})
}

func TestFailedStore(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.send(true, "a", "b")
		c := w.consumer("q")
		ds := c.take(2)
		broken := errors.New("disk is gone")
		store.fail(broken)
		if c.Settle(settlements(ds[0]), accepted, 7) {
			t.Error("settlement holds without the store")
		}
		for range 2 { // the one that finds out, and one after that
			r := p.publish(msg("c", true))
			if r.Verdict != engine.Rejected || r.Condition != "amqp:internal-error" || r.Reason != "store" {
				t.Errorf("publish = %+v, want rejected: store", r)
			}
		}
		if len(c.settled) != 0 || !slices.Equal(c.unsettled, []uint64{7}) {
			t.Errorf("settled %v, unsettled %v, want 7 unsettled: nothing is known", c.settled, c.unsettled)
		}
		if len(w.failures) != 1 || !errors.Is(w.failures[0], broken) {
			t.Errorf("failures reported: %v, want one", w.failures)
		}
		if r := p.publish(msg("d", false)); r.Verdict != engine.Accepted {
			t.Errorf("transient message = %+v, want accepted", r)
		}
		expect(t, "transient", c.take(1), "d")
	})
}

// goneStore is a store that is read no more when it is broken.
type goneStore struct {
	watchedStore
	loads atomic.Int32
}

func (s *goneStore) Load(q engine.QueueID, priority uint8, from uint64, n, bytes int) ([]engine.Stored, error) {
	s.loads.Add(1)
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if broken != nil {
		return nil, broken
	}
	return s.watchedStore.Load(q, priority, from, n, bytes)
}

// A store that has failed isn't asked for messages again and again: nothing comes of that but lines in the log.
func TestFailedStoreIsLeftAlone(t *testing.T) {
	store := &goneStore{}
	opts := tiny
	reported := 0
	opts.Observer.LoadFailed = func(error) { reported++ }
	inWorldOn(t, opts, store, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.fill(2000, always(4))
		w.restart()
		store.fail(errors.New("disk is gone"))
		p = w.producer("q")
		p.publish(msg("finds out", true))
		before := store.loads.Load()
		c := w.consumer("q")
		c.credit(100)
		later(time.Minute)
		if loads := store.loads.Load() - before; loads > 2 || reported > 0 {
			t.Errorf("%d loads within a minute, %d reports", loads, reported)
		}
		if got := len(c.got); got != 0 {
			t.Errorf("%d deliveries from a store that can't be read", got)
		}
		store.fail(nil) // the engine that has seen the failure stays as it is
		if r := p.publish(msg("after", true)); r.Verdict != engine.Rejected {
			t.Errorf("publish = %+v, want it rejected for good", r)
		}
	})
}

// A store without space refuses messages and takes settlements, which make space; then it goes on.
func TestFullStore(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.send(true, "a", "b", "c")
		c := w.consumer("q")
		ds := c.take(3)
		resume := store.hold()
		store.fail(engine.ErrStoreFull)
		p.start(msg("first", true)) // a window of its own
		synctest.Wait()
		c.Settle(settlements(ds[0]), accepted, 1)
		p.start(msg("x", true))
		c.Settle(settlements(ds[1]), rejected, 2)
		p.start(msg("y", false)) // transient, but behind the others
		c.Settle(settlements(ds[2]), failed, 3)
		resume()
		synctest.Wait()
		for ticket, want := range map[uint64]engine.OutcomeKind{4: engine.Rejected, 5: engine.Rejected, 6: engine.Accepted} {
			if got := p.results[ticket]; got.Verdict != want || want == engine.Rejected &&
				(got.Condition != "amqp:resource-limit-exceeded" || got.Reason != "store-full" || got.Queue != "q") {
				t.Errorf("publish %d = %+v, want %s", ticket, got, want)
			}
		}
		if !slices.Equal(c.settled, []uint64{1, 2, 3}) {
			t.Errorf("settled %v, want all", c.settled)
		}
		if len(w.failures) != 0 {
			t.Errorf("failures: %v, want none", w.failures)
		}
		w.expectQueue("q", "c+1", "y")
		w.expectQueue("DLQ", "b+1")
		store.fail(nil)
		p.send(true, "z")
		w.restart()
		w.expectQueue("q", "c+1", "z")
		w.expectQueue("DLQ", "b+1")
	})
}

// With no space at all what has been settled waits for some, and so does its confirmation.
func TestStoreFullForSettlements(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.send(true, "a", "b")
		c := w.consumer("q")
		ds := c.take(2)
		store.fail(errNoSpace)
		c.Settle(settlements(ds[0]), rejected, 1)
		c.Settle(settlements(ds[1]), accepted, 2)
		later(10 * time.Second)
		if len(c.settled) != 0 {
			t.Errorf("settled %v, and nothing can be written", c.settled)
		}
		store.fail(nil)
		later(time.Second)
		if !slices.Equal(c.settled, []uint64{1, 2}) || len(w.failures) != 0 {
			t.Errorf("settled %v, failures %v, want both settled", c.settled, w.failures)
		}
		w.restart()
		w.expectQueue("q")
		w.expectQueue("DLQ", "a+1")
	})
}

func TestClosedBrokerTakesNothing(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		p, c := w.producer("q"), w.consumer("q")
		p.start(msg("a", true))
		c.credit(1)
		ds := slices.Clone(c.got)
		w.close()
		w.close()
		wantErr(t, c.ended, engine.ErrClosed)
		if r, now := p.Publish(msg("b", true), 9); !now || r.Verdict != engine.Released {
			t.Errorf("publish = %+v, %v, want released", r, now)
		}
		c.Settle(settlements(ds...), accepted, 1)
		c.SetLimit(50)
		c.Drain(50)
		c.Close(engine.ClosingClean)
		p.Close()
		_, err := w.tryConsumer(engine.ConsumerSpec{Address: "q"})
		wantErr(t, err, engine.ErrClosed)
		_, err = w.tryProducer(engine.ProducerSpec{Address: "q"})
		wantErr(t, err, engine.ErrClosed)
		w.open()
		w.expectQueue("q", "a")
	})
}

// Who settles doesn't wait for room, and may have any number of large messages move at once.
func TestLargeWindowsAreWrittenInPieces(t *testing.T) {
	const limit = 4 << 10
	opts := set(engine.AddressSettings{DeadLetterAddress: new("DLQ")})
	opts.Limits.WindowBytes = limit
	size := func(batch []engine.Record) (bytes int) {
		for _, r := range batch {
			if r.Message != nil {
				bytes += len(r.Message.Payload)
			}
			for _, a := range r.Annotations {
				if v, is := a.Value.(string); is {
					bytes += len(v)
				}
			}
		}
		return bytes
	}
	large := func() *engine.Message { return msg(strings.Repeat("x", 1<<10), true) }
	for name, o := range map[string]engine.Outcome{
		"moves": rejected,
		"annotations": {
			Kind: engine.Modified, Annotations: []engine.Annotation{{Key: "x-opt-note", Value: strings.Repeat("y", 1<<10)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &watchedStore{}
			inWorldOn(t, opts, store, func(t *testing.T, w *world) {
				p := w.producer("q")
				for range 50 {
					p.publish(large())
				}
				c := w.consumer("q")
				ds := c.take(50)
				before := len(store.batches)
				resume := store.hold()
				p.start(large())
				synctest.Wait() // on its way: all that follows is one window
				c.SetLimit(0)
				if c.Settle(settlements(ds...), o, 1) {
					t.Error("it holds before it is committed")
				}
				resume()
				synctest.Wait()
				if !slices.Equal(c.settled, []uint64{1}) {
					t.Errorf("settled %v, want 1", c.settled)
				}
				records := 0
				for _, batch := range store.batches[before:] {
					for _, r := range batch {
						if r.Kind != engine.RecordDefine {
							records++
						}
					}
					if n := size(batch); n > limit+2<<10 {
						t.Errorf("%d records of %d bytes in one commit", len(batch), n)
					}
				}
				if records != 51 {
					t.Errorf("%d records, want 51", records)
				}
				c.Close(engine.ClosingClean)
				for address, want := range map[string]int{"q": 1, "DLQ": 50} {
					if name == "annotations" {
						want = map[string]int{"q": 51}[address]
					}
					if info, err := w.Queue(address, address); want > 0 && (err != nil || info.Messages != want) {
						t.Errorf("%s: %d messages, %v, want %d", address, info.Messages, err, want)
					}
				}
			})
		})
	}
}

// A piece that the store refuses takes what comes after it along.
func TestFailureInTheMiddleOfALargeWindow(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{Limits: engine.Limits{WindowBytes: 2 << 10}}, store, func(t *testing.T, w *world) {
		p := w.producer("q")
		for range 20 {
			p.publish(msg(strings.Repeat("x", 1<<10), true))
		}
		c := w.consumer("q")
		ds := c.take(20)
		resume := store.hold()
		p.start(msg("one", true))
		synctest.Wait()
		note := func(n int) engine.Outcome {
			return engine.Outcome{
				Kind: engine.Modified, UndeliverableHere: true,
				Annotations: []engine.Annotation{{Key: "x-opt-note", Value: strings.Repeat("y", n)}},
			}
		}
		c.Settle(settlements(ds[:10]...), note(1<<10), 1)
		c.Settle(settlements(ds[10:]...), note(1<<10), 2)
		store.failAfter(3, errors.New("the disk is gone"))
		resume()
		synctest.Wait()
		if len(p.order) != 21 {
			t.Errorf("confirmed %v, want all", p.order)
		}
		if len(c.settled) != 0 {
			t.Errorf("settled %v, want none: the fourth commit failed", c.settled)
		}
		if len(w.failures) != 1 {
			t.Errorf("failures: %v, want one", w.failures)
		}
	})
}
