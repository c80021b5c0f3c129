package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/letomq/leto/engine"
)

// postOnce posts messages whose payloads are their ids.
func (x *transaction) postOnce(p *producer, durable bool, ids ...string) {
	x.w.t.Helper()
	for _, id := range ids {
		m := msg(id, durable)
		if r := x.PostOnce(p.Producer, m, engine.NewDuplicateID(m.Payload)); r.Verdict != engine.Accepted {
			x.w.t.Fatalf("post %s: %+v, want accepted", id, r)
		}
	}
}

// The commit takes ids, and a rollback leaves them free.
func TestCase241_InATransaction(t *testing.T) {
	bothKinds(t, engine.Options{}, func(t *testing.T, w *world, durable bool) {
		p, other := w.producer("q"), w.producer("r")
		x := w.begin()
		x.postOnce(p, durable, "a", "b")
		x.postOnce(other, durable, "a")
		x.rollback()
		w.expectQueue("q")
		x = w.begin()
		x.postOnce(p, durable, "a", "b", "a")
		x.postOnce(other, durable, "a")
		p.once(durable, "b") // before the commit: that is the one that counts
		x.commit()
		w.expectQueue("q", "b", "a")
		w.expectQueue("r", "a")
		w.expectDuplicates(2)
		p.once(durable, "a", "b")
		x = w.begin()
		x.postOnce(p, durable, "a", "b", "c")
		x.commit()
		w.expectQueue("q", "b", "a", "c")
		if durable {
			w.restart()
			w.producer("q").once(durable, "a", "b", "c")
			w.producer("r").once(durable, "a")
			w.expectQueue("q", "b", "a", "c")
			w.expectQueue("r", "a")
		}
	})
}

// A commit that doesn't hold yet, and one that fails, are to the ids of a transaction what they are to others.
func TestCase241_TransactionsThatWait(t *testing.T) {
	for _, full := range []bool{false, true} {
		store := &watchedStore{}
		inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
			p, other := w.producer("q"), w.producer("q")
			synctest.Wait()
			resume := store.hold()
			if full {
				store.fail(engine.ErrStoreFull)
			}
			x := w.begin()
			x.postOnce(p, true, "a", "b")
			if r, decided := x.Commit(x, 1); decided {
				t.Fatalf("commit: %+v, want it to wait", r)
			}
			other.startOnce(msg("b", true), "b")
			synctest.Wait()
			if len(x.ends)+len(other.results) != 0 {
				t.Errorf("confirmed before the commit: %v, %v", x.ends, other.results)
			}
			resume()
			synctest.Wait()
			store.fail(nil)
			if got, want := other.results[1].Verdict, x.ends[0].Verdict; got != want || (got == engine.Accepted) == full {
				t.Errorf("transaction %v, duplicate %v: want both the same, accepted %v", want, got, !full)
			}
			if full {
				w.expectQueue("q")
				other.once(true, "b", "a")
				w.expectQueue("q", "b", "a")
			} else {
				w.expectQueue("q", "a", "b")
				w.expectDuplicates(1)
			}
			// the other way round: the transaction waits for the message that is in the window
			synctest.Wait()
			resume = store.hold()
			p.startOnce(msg("c", true), "c")
			synctest.Wait()
			done := make(chan engine.Result)
			go func() {
				x := w.begin()
				x.postOnce(other, true, "c", "d")
				r, decided := x.Commit(x, 1)
				if !decided {
					synctest.Wait()
					r = x.ends[0]
				}
				done <- r
			}()
			synctest.Wait()
			resume()
			if r := <-done; r.Verdict != engine.Accepted {
				t.Errorf("transaction: %+v, want accepted", r)
			}
			got := w.contents("q")
			if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
				t.Errorf("queue has %q, want a, b, c, d", got)
			}
		})
	}
}
