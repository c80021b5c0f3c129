package engine_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/letomq/leto/engine"
)

// transaction is one under test, with what was said of its end.
type transaction struct {
	*engine.Transaction
	w    *world
	ends []engine.Result
}

func (w *world) begin() *transaction { return &transaction{Transaction: w.Begin(), w: w} }

func (x *transaction) Confirmed(_ uint64, r engine.Result) { x.ends = append(x.ends, r) }

func (x *transaction) post(p *producer, durable bool, payloads ...string) {
	x.w.t.Helper()
	for _, text := range payloads {
		if r := x.Post(p.Producer, msg(text, durable)); r.Verdict != engine.Accepted {
			x.w.t.Fatalf("post %s: %+v", text, r)
		}
	}
}

func (x *transaction) retire(c *consumer, o engine.Outcome, ds ...engine.Delivery) {
	x.w.t.Helper()
	if !x.Retire(c.Consumer, settlements(ds...), o, true, failed) {
		x.w.t.Fatal("retire: the transaction is too large")
	}
}

// end waits for the end of a commit or a rollback.
func (x *transaction) end(r engine.Result, decided bool) engine.Result {
	x.w.t.Helper()
	synctest.Wait()
	if decided != (len(x.ends) == 0) {
		x.w.t.Fatalf("decided %v, confirmed %d times", decided, len(x.ends))
	}
	if !decided {
		r = x.ends[0]
	}
	return r
}

func (x *transaction) commit() {
	x.w.t.Helper()
	if r := x.end(x.Commit(x, 1)); r.Verdict != engine.Accepted {
		x.w.t.Fatalf("commit: %+v", r)
	}
}

func (x *transaction) refused() engine.Result {
	x.w.t.Helper()
	r := x.end(x.Commit(x, 1))
	if r.Verdict != engine.Rejected || r.Condition != engine.ConditionRollback {
		x.w.t.Fatalf("commit: %+v, want it rolled back", r)
	}
	return r
}

func (x *transaction) rollback() {
	x.w.t.Helper()
	if r := x.end(engine.Result{Verdict: engine.Accepted}, x.Rollback(x, 1)); r.Verdict != engine.Accepted {
		x.w.t.Fatalf("rollback: %+v", r)
	}
}

// What is posted is seen when the transaction commits, behind what came before that.
func TestTransactionPosts(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p, other := w.producer("q"), w.producer("r")
		x := w.begin()
		x.post(p, durable, "b", "c")
		x.post(other, !durable, "x")
		p.send(durable, "a")
		w.expectQueue("q", "a")
		w.expectQueue("r")
		x.commit()
		w.expectQueue("q", "a", "b", "c")
		w.expectQueue("r", "x")

		x = w.begin()
		x.post(p, durable, "d")
		x.rollback()
		w.expectQueue("q", "a", "b", "c")
		if durable {
			w.restart()
			w.expectQueue("q", "a", "b", "c")
		}
	})
}

// Retired deliveries are gone with the commit, and back at their places with one more attempt after a rollback.
func TestTransactionRetires(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p, c := w.producer("q"), w.consumer("q")
		p.send(durable, "a", "b", "c", "d", "e")
		ds := c.take(4)
		x := w.begin()
		x.retire(c, accepted, ds[0], ds[2])
		x.retire(c, released, ds[1])
		if i := w.info("q"); i.Delivering != 4 {
			t.Errorf("delivering %d, want 4", i.Delivering)
		}
		x.commit()
		c.settle(released, ds[3])
		w.expectQueue("q", "b", "d", "e")

		ds = c.take(3)
		x = w.begin()
		x.retire(c, accepted, ds[2], ds[0])
		x.retire(c, rejected, ds[1])
		c.settle(accepted, ds...) // not its any more
		x.rollback()
		w.expectQueue("q", "b+1", "d+1", "e+1")
		if durable {
			w.restart()
			w.expectQueue("q", "b+1", "d+1", "e+1")
		}
	})
}

// Every outcome does in a transaction what it does outside of one, and is stored with it.
func TestTransactionOutcomes(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{MaxDeliveryAttempts: new(2)}), func(t *testing.T, w *world, durable bool) {
		p, c := w.producer("q"), w.consumer("q")
		p.send(durable, "old")
		c.settle(failed, c.take(1)...)
		p.send(durable, "a", "b", "c", "d", "e")
		ds := c.take(6)
		noted := failed
		noted.Annotations = []engine.Annotation{{Key: "x-opt-note", Value: "n"}}
		x := w.begin()
		x.retire(c, failed, ds[0])
		x.retire(c, accepted, ds[1])
		x.retire(c, rejected, ds[2])
		x.retire(c, released, ds[3])
		x.retire(c, noted, ds[4])
		x.retire(c, notHere, ds[5])
		w.expectQueue("DLQ")
		x.commit()
		w.expectQueue("DLQ", "old+2", "b+1")
		w.expectQueue("q", "c", "d+1", "e")
		expect(t, "not barred", c.rest(), "c", "d+1")
		if i := w.info("q"); i.Acknowledged != 1 || i.Killed != 2 {
			t.Errorf("acknowledged %d, killed %d, want 1 and 2", i.Acknowledged, i.Killed)
		}
		c.Close(engine.ClosingClean)
		if durable {
			w.restart()
		}
		w.expectQueue("DLQ", "old+2", "b+1")
		w.expectQueue("q", "c", "d+1", "e")
		c = w.consumer("q")
		if got := annotation(c.take(2)[1], "x-opt-note"); got != "n" {
			t.Errorf("annotation %v", got)
		}
	})
}

// A refused commit undoes all of it: what a message was before it was decided, and what was reserved for it.
func TestTransactionRefused(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{AutoCreateQueues: new(false), AutoCreateAddresses: new(false)}), func(t *testing.T, w *world, durable bool) {
		for _, name := range []string{"q", "r"} {
			if err := w.Declare(engine.QueueSpec{Address: name, Queue: name}); err != nil {
				t.Fatal(err)
			}
		}
		p, r, c := w.producer("q"), w.producer("r"), w.consumer("q")
		p.send(durable, "a", "b", "c")
		ds := c.take(3)
		x := w.begin()
		x.post(p, durable, "z")
		x.post(r, durable, "y")
		x.retire(c, accepted, ds[0])
		x.retire(c, rejected, ds[1])
		x.retire(c, failed, ds[2])
		if err := w.Delete("r", ""); err != nil {
			t.Fatal(err)
		}
		x.refused()
		w.expectQueue("q", "a+1", "b+1", "c+1")
	})
}

// A message that is refused when it is posted dooms the transaction.
func TestTransactionDoomed(t *testing.T) {
	inWorld(t, set(engine.AddressSettings{AutoCreateAddresses: new(false)}), func(t *testing.T, w *world) {
		if err := w.Declare(engine.QueueSpec{Address: "q", Queue: "q"}); err != nil {
			t.Fatal(err)
		}
		p, relay := w.producer("q"), w.producerOf(engine.ProducerSpec{Anonymous: true})
		x := w.begin()
		x.post(p, true, "a")
		m := msg("b", true)
		m.Address = "unknown"
		if r := x.Post(relay.Producer, m); r.Verdict != engine.Rejected || r.Condition != "amqp:not-found" {
			t.Errorf("post: %+v, want not-found", r)
		}
		x.refused()
		w.expectQueue("q")
	})
}

// Deliveries whose outcome wasn't settled are still the consumer's after a rollback, and count once when they come back.
func TestTransactionUnsettled(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p, c := w.producer("q"), w.consumer("q")
		p.send(durable, "a", "b", "c", "d", "e")
		ds := c.take(5)
		x := w.begin()
		x.Retire(c.Consumer, settlements(ds...), accepted, false, failed)
		x.Retire(c.Consumer, settlements(ds[4]), released, false, failed) // it thinks better of one
		x.rollback()
		w.expectQueue("q")
		if i := w.info("q"); i.Delivering != 5 {
			t.Errorf("delivering %d, want 5", i.Delivering)
		}
		c.settle(accepted, ds[0])
		c.settle(released, ds[1])
		c.settle(failed, ds[2])
		x = w.begin()
		x.Retire(c.Consumer, settlements(ds[3]), accepted, false, failed)
		x.commit()
		c.Close(engine.ClosingClean)
		w.expectQueue("q", "b+1", "c+1", "e+1")
	})
}

// A retirement stays in its transaction when its consumer goes.
func TestTransactionOutlivesConsumer(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		for _, commit := range []bool{true, false} {
			p, c := w.producer("q"), w.consumer("q")
			p.send(durable, "a", "b", "c")
			ds := c.take(3)
			x := w.begin()
			x.retire(c, accepted, ds[0])
			x.Retire(c.Consumer, settlements(ds[1]), accepted, false, failed)
			c.Close(engine.ClosingClean)
			w.expectQueue("q", "c")
			want := []string{"c"}
			if commit {
				x.commit()
			} else {
				x.rollback()
				want = []string{"a+1", "b+1", "c"}
			}
			w.expectQueue("q", want...)
			if err := w.Delete("q", ""); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What was acquired under a transaction goes back with a rollback, and stays acquired with a commit.
func TestTransactionAcquires(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p, c := w.producer("q"), w.consumer("q")
		p.send(durable, "a", "b", "c", "d")
		acquire := func() (*transaction, []engine.Delivery) {
			x, ds := w.begin(), c.take(4)
			for _, d := range ds {
				x.Acquire(c.Consumer, settlements(d)[0])
			}
			x.retire(c, accepted, ds[0])
			x.Retire(c.Consumer, settlements(ds[1]), accepted, false, failed)
			x.Retire(c.Consumer, settlements(ds[2]), engine.Outcome{}, true, released) // settled without an outcome
			return x, ds
		}
		x, _ := acquire()
		x.rollback()
		w.expectQueue("q", "a+1", "b+1", "c+1", "d+1")
		x, ds := acquire()
		x.commit()
		w.expectQueue("q", "c+1")
		if i := w.info("q"); i.Delivering != 1 {
			t.Errorf("delivering %d, want 1", i.Delivering)
		}
		c.settle(accepted, ds[3])
		if i := w.info("q"); i.Delivering != 0 {
			t.Errorf("delivering %d, want 0", i.Delivering)
		}

		x = w.begin() // whose consumer goes before it commits
		x.Acquire(c.Consumer, settlements(c.take(1)...)[0])
		c.Close(engine.ClosingClean)
		w.expectQueue("q")
		x.commit()
		w.expectQueue("q", "c+1")
	})
}

// A queue that is deleted takes what is in a transaction along.
func TestTransactionQueueDeleted(t *testing.T) {
	for _, commit := range []bool{true, false} {
		bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
			p, c := w.producer("q"), w.consumer("q")
			p.send(durable, "a", "b", "c", "d")
			ds := c.take(4)
			x := w.begin()
			x.post(w.producer("r"), durable, "x")
			x.retire(c, accepted, ds[0])
			x.retire(c, failed, ds[1])
			x.Retire(c.Consumer, settlements(ds[2]), accepted, false, failed)
			x.Acquire(c.Consumer, settlements(ds[3])[0])
			if err := w.Delete("q", ""); err != nil {
				t.Fatal(err)
			}
			if commit {
				x.commit()
				w.expectQueue("r", "x")
			} else {
				x.rollback()
				w.expectQueue("r")
			}
			w.expectQueue("q")
		})
	}
}

// Topics have a posted message in all their queues, or have had it.
func TestTransactionTopic(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		topic := engine.ConsumerSpec{Address: "topic://t"}
		p := w.producer("topic://t")
		x := w.begin()
		x.post(p, durable, "a")
		x.commit() // to nobody
		one, two := w.consumerOf(topic), w.consumerOf(topic)
		x = w.begin()
		x.post(p, durable, "b", "c")
		x.commit()
		expect(t, "one", one.rest(), "b", "c")
		expect(t, "two", two.rest(), "b", "c")
		one.settle(accepted, one.got...)
		two.settle(accepted, two.got...)
	})
}

// What comes behind a discharge on the same producer doesn't pass it.
func TestTransactionOrder(t *testing.T) {
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		p := w.producer("q")
		x := w.begin()
		x.post(p, false, "a")
		_, decided := x.Commit(x, 1)
		p.start(msg("b", false))
		x.end(engine.Result{}, decided)
		w.expectQueue("q", "a", "b")
	})
}

// A transaction has limits: of what it does, and of the memory that all of them have together.
func TestTransactionLimits(t *testing.T) {
	inWorld(t, engine.Options{Limits: engine.Limits{MemoryBytes: 4 << 20}}, func(t *testing.T, w *world) {
		p := w.producer("q")
		one, two := w.begin(), w.begin()
		large := &engine.Message{Payload: make([]byte, 700<<10), Durable: true}
		if r := one.Post(p.Producer, large); r.Verdict != engine.Accepted {
			t.Fatalf("post: %+v", r)
		}
		if r := two.Post(p.Producer, &engine.Message{Payload: make([]byte, 700<<10)}); r.Condition != "amqp:resource-limit-exceeded" {
			t.Errorf("post beyond the memory of transactions: %+v", r)
		}
		two.refused()
		one.commit()
		if i := w.info("q"); i.Messages != 1 {
			t.Errorf("%d messages, want 1", i.Messages)
		}
	})
	inWorld(t, engine.Options{}, func(t *testing.T, w *world) {
		p, x := w.producer("q"), w.begin()
		refused := 0
		for range 65_537 {
			if r := x.Post(p.Producer, msg("m", false)); r.Verdict != engine.Accepted {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d messages refused, want 1", refused)
		}
		x.refused()
		x = w.begin()
		body := make([]byte, 200<<10)
		for x.Post(p.Producer, &engine.Message{Payload: body}).Verdict == engine.Accepted {
			refused++
		}
		if refused < 100 || refused > 200 {
			t.Errorf("%d messages of 200 KiB in one transaction", refused)
		}
		x.rollback()
	})
}

// A discharge is one commit, whatever else is in the window, and is never cut.
func TestTransactionIsOneCommit(t *testing.T) {
	// with a small window, so that what the committer has is cut into pieces
	store := &watchedStore{}
	opts := engine.Options{Limits: engine.Limits{WindowRecords: 4, WindowBytes: 512}}
	inWorldOn(t, opts, store, func(t *testing.T, w *world) {
		p, c := w.producer("q"), w.consumer("q")
		for range 20 {
			p.send(true, "m")
		}
		ds := c.take(20)
		x := w.begin()
		for i, d := range ds {
			x.retire(c, accepted, d)
			x.post(w.producer([]string{"r", "s"}[i%2]), true, "n")
		}
		resume := store.hold()
		other := w.producer("t")
		for range 3 { // so that there is something before it in the same window
			other.start(msg("o", true))
		}
		_, decided := x.Commit(x, 1)
		resume()
		if r := x.end(engine.Result{}, decided); r.Verdict != engine.Accepted {
			t.Fatalf("commit: %+v", r)
		}
		whole := slices.ContainsFunc(store.batches, func(batch []engine.Record) bool {
			posted := slices.DeleteFunc(slices.Clone(batch), func(r engine.Record) bool {
				return r.Kind != engine.RecordEnqueue || string(r.Message.Payload) != "n"
			})
			retired := slices.DeleteFunc(slices.Clone(batch), func(r engine.Record) bool { return r.Kind != engine.RecordRemove })
			return len(posted) == 20 && len(retired) == 20
		})
		if !whole {
			t.Error("no commit has all of the transaction")
		}
	})
}

// A full store refuses a discharge that brings messages, which undoes what was decided for it; one that only retires goes on.
func TestTransactionStoreFull(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p, c := w.producer("q"), w.consumer("q")
		p.send(true, "a", "b", "c", "d")
		noted := failed
		noted.Annotations = []engine.Annotation{{Key: "x-opt-note", Value: "n"}}
		ds := c.take(4)
		x := w.begin()
		x.post(p, true, "z")
		x.retire(c, accepted, ds[0])
		x.retire(c, rejected, ds[1])
		x.retire(c, noted, ds[2])
		x.retire(c, released, ds[3])
		store.fail(engine.ErrStoreFull)
		x.refused()
		store.fail(nil)
		w.expectQueue("q", "a+1", "b+1", "c+1", "d+1")
		w.expectQueue("DLQ")
		if i := w.info("q"); i.Acknowledged != 0 || i.Killed != 0 {
			t.Errorf("acknowledged %d, killed %d, want none", i.Acknowledged, i.Killed)
		}
		w.restart()
		w.expectQueue("q", "a+1", "b+1", "c+1", "d+1")

		c = w.consumer("q")
		ds = c.take(4)
		if got := annotation(ds[2], "x-opt-note"); got != nil {
			t.Errorf("annotation %v of an outcome that was undone", got)
		}
		x = w.begin()
		x.retire(c, accepted, ds...)
		store.fail(engine.ErrStoreFull)
		x.commit()
		store.fail(nil)
		w.expectQueue("q")
	})
}

// When the store fails under a discharge, it isn't known whether it holds, and nobody is told that it does.
func TestTransactionStoreFails(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p, c := w.producer("q"), w.consumer("q")
		p.send(true, "a")
		x := w.begin()
		x.post(p, true, "b")
		x.retire(c, accepted, c.take(1)...)
		store.fail(errors.New("device is gone"))
		if r := x.end(x.Commit(x, 1)); r.Verdict != engine.Rejected || r.Reason != "store" {
			t.Errorf("commit: %+v", r)
		}
		x = w.begin()
		x.post(p, true, "c")
		if r := x.end(x.Commit(x, 1)); r.Verdict != engine.Rejected || r.Reason != "store" {
			t.Errorf("commit to a failed store: %+v", r)
		}
	})
}
