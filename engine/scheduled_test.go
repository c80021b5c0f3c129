package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
)

// later sends messages that are due n seconds from now, n being their payload.
func (p *producer) later(durable bool, seconds ...int) {
	p.w.t.Helper()
	for _, n := range seconds {
		m := msg(fmt.Sprint(n), durable)
		m.Due = time.Now().Add(time.Duration(n) * time.Second).UnixMilli()
		if r := p.publish(m); r.Verdict != engine.Accepted {
			p.w.t.Fatalf("publish %d: %+v, want accepted", n, r)
		}
	}
}

// scheduled returns what waits in q for its time, by pages of some size.
func (w *world) scheduled(page int, sel engine.Selection) []string {
	w.t.Helper()
	all := []string{}
	var at engine.Slot
	for more := true; more; {
		sel.Count = page
		var err error
		_, at, more, err = w.Scheduled(context.Background(), "q", "", at, sel, func(s *engine.Scheduled) bool {
			text := string(s.Message.Payload)
			if s.Count > 0 {
				text += fmt.Sprint("+", s.Count)
			}
			all = append(all, text)
			return true
		})
		if err != nil {
			w.t.Fatalf("scheduled: %v", err)
		}
	}
	return all
}

func (w *world) expectScheduled(want ...string) {
	w.t.Helper()
	for _, page := range []int{1, 2, 1000} {
		if got := w.scheduled(page, engine.Selection{}); !slices.Equal(got, want) {
			w.t.Errorf("scheduled, %d a page: %q, want %q", page, got, want)
		}
	}
}

// with returns a selection of the messages whose payloads have a digit.
func with(digit string) engine.Selection {
	return engine.Selection{Match: func(d *engine.Delivery) bool { return strings.Contains(string(d.Message.Payload), digit) }}
}

// inKinds runs a test with messages that wait in memory and at home, durable and not. Restart does so in the middle, if
// that is wanted.
func inKinds(t *testing.T, test func(t *testing.T, w *world, durable bool, restart func())) {
	for _, kind := range []struct {
		name             string
		durable, restart bool
	}{{"durable", true, false}, {"durable, restart", true, true}, {"transient", false, false}} {
		for name, opts := range map[string]engine.Options{"ample": {}, "little": littleMemory()} {
			opts.Settings = append(opts.Settings, engine.AddressSettings{Match: "#", RedeliveryDelay: new(25 * time.Second)})
			t.Run(kind.name+", "+name, func(t *testing.T) {
				inWorld(t, opts, func(t *testing.T, w *world) {
					test(t, w, kind.durable, func() {
						if kind.restart {
							w.restart()
						}
					})
				})
			})
		}
	}
}

// What waits for its time is listed in the order of it, whatever keeps it.
func TestScheduledIsListed(t *testing.T) {
	inKinds(t, func(t *testing.T, w *world, durable bool, restart func()) {
		p := w.producer("q")
		p.send(durable, "bad")
		p.later(durable, 30, 1, 20, 300, 2, 3)
		p.later(!durable, 21, 4)
		c := w.consumer("q")
		c.settle(failed, c.take(1)...)
		w.expectScheduled("1", "2", "3", "4", "20", "21", "bad+1", "30", "300")
		if got := w.scheduled(2, with("3")); !slices.Equal(got, []string{"3", "30", "300"}) {
			t.Errorf("selected: %q", got)
		}
		later(2500 * time.Millisecond)
		w.expectScheduled("3", "4", "20", "21", "bad+1", "30", "300")
		if c.Close(engine.ClosingClean); t.Failed() {
			return
		}
		restart()
		left := w.scheduled(100, engine.Selection{})
		later(18 * time.Second)
		want := left[slices.Index(left, "bad+1"):]
		if got := w.scheduled(1, engine.Selection{}); !slices.Equal(got, want) && !slices.Equal(got, append([]string{"21"}, want...)) {
			t.Errorf("listed: %q, want %q", got, want)
		}
	})
}

// What is cancelled is gone, and nothing else.
func TestScheduledIsCancelled(t *testing.T) {
	inKinds(t, func(t *testing.T, w *world, durable bool, restart func()) {
		p := w.producer("q")
		p.send(durable, "now")
		p.later(durable, 30, 1, 20, 300, 2, 3, 33)
		ctx := context.Background()
		sel := with("3")
		sel.Count = 2
		if done, err := w.CancelScheduled(ctx, "q", "", sel, nil); err != nil || done.Done != 2 {
			t.Fatalf("cancel: %+v, %v, want 2", done, err)
		}
		w.expectScheduled("1", "2", "20", "33", "300")
		restart()
		w.expectScheduled("1", "2", "20", "33", "300")
		number := uint64(0)
		_, _, _, _ = w.Scheduled(ctx, "q", "", engine.Slot{}, with("20"), func(s *engine.Scheduled) bool { number = s.Number; return true })
		if done, err := w.CancelScheduled(ctx, "q", "", engine.Selection{Number: number}, nil); err != nil || done.Done != 1 {
			t.Fatalf("cancel %d: %+v, %v, want 1", number, done, err)
		}
		if done, err := w.CancelScheduled(ctx, "q", "", engine.Selection{Number: number}, nil); err != nil || done.Done != 0 {
			t.Fatalf("cancel %d once more: %+v, %v, want none", number, done, err)
		}
		w.expectScheduled("1", "2", "33", "300")
		later(1500 * time.Millisecond)
		w.expectQueue("q", "now", "1")
		if done, err := w.CancelScheduled(ctx, "q", "", engine.Selection{}, nil); err != nil || done.Done != 3 {
			t.Fatalf("cancel all: %+v, %v, want 3", done, err)
		}
		if i := w.info("q"); i.Delayed != 0 || i.Messages != 2 {
			t.Errorf("queue = %+v, want 2 messages", i)
		}
		w.expectScheduled()
		restart()
		later(10 * time.Minute)
		w.expectQueue("q", "now", "1")
		if _, err := w.CancelScheduled(ctx, "none", "", engine.Selection{}, nil); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("no queue: %v", err)
		}
	})
}

// What is delivered now comes to its place by number, whenever it was due.
func TestScheduledIsDelivered(t *testing.T) {
	inKinds(t, func(t *testing.T, w *world, durable bool, restart func()) {
		p := w.producer("q")
		p.later(durable, 30, 3, 20, 300, 4, 40)
		ctx := context.Background()
		if done, err := w.DeliverScheduled(ctx, "q", "", with("3"), nil); err != nil || done.Done != 3 {
			t.Fatalf("deliver: %+v, %v, want 3", done, err)
		}
		restart()
		later(100 * time.Millisecond)
		w.expectScheduled("4", "20", "40")
		w.expectQueue("q", "30", "3", "300")
		if done, err := w.DeliverScheduled(ctx, "q", "", engine.Selection{}, nil); err != nil || done.Done != 3 {
			t.Fatalf("deliver: %+v, %v, want 3", done, err)
		}
		later(100 * time.Millisecond)
		w.expectQueue("q", "30", "3", "20", "300", "4", "40")
		c := w.consumer("q")
		c.settle(accepted, c.take(6)...)
		restart()
		later(10 * time.Minute)
		if i := w.info("q"); i.Delayed+i.Messages != 0 {
			t.Errorf("queue = %+v, want none", i)
		}
	})
}

// A purge takes what waits for its time, and the counts say so at once.
func TestPurgeTakesScheduled(t *testing.T) {
	for _, sel := range []engine.Selection{{}, {Match: func(*engine.Delivery) bool { return true }}, {Count: 1000}} {
		inKinds(t, func(t *testing.T, w *world, durable bool, restart func()) {
			p := w.producer("q")
			p.send(durable, "0", "0", "0")
			p.later(durable, 30, 1, 20)
			p.send(durable, "0", "0")
			restart()
			c := w.consumer("q")
			c.settle(failed, c.take(2)...)
			done, err := w.PurgeSome(context.Background(), "q", "", sel, nil)
			if err != nil || done.Done != 8 {
				t.Errorf("purged: %+v, %v, want 8", done, err)
			}
			if i, err := w.Queue("q", ""); err != nil || i.Delayed+i.Messages != 0 || i.Bytes != 0 {
				t.Errorf("queue = %+v, %v, want none", i, err)
			}
			c.Close(engine.ClosingClean)
			restart()
			later(time.Minute)
			if i := w.info("q"); i.Delayed+i.Messages != 0 {
				t.Errorf("queue = %+v, want none", i)
			}
		})
	}
}

// Many are listed, cancelled and delivered in steps, whatever the size of a page at home, while others come and go.
func TestManyScheduled(t *testing.T) {
	for _, durable := range []bool{true, false} {
		t.Run(fmt.Sprint("durable ", durable), func(t *testing.T) {
			inWorld(t, littleMemory(), func(t *testing.T, w *world) {
				const n = 3000
				p := w.producer("q")
				for i := range n {
					m := msg(fmt.Sprint(i), durable)
					m.Due, m.Priority = time.Now().Add(time.Hour+time.Duration(i%7)*time.Second).UnixMilli(), uint8(i%3)
					p.start(m)
					if i%100 == 0 {
						synctest.Wait()
					}
				}
				synctest.Wait()
				if got := len(w.scheduled(100, engine.Selection{})); got != n {
					t.Fatalf("%d are listed, want %d", got, n)
				}
				if used := w.Totals().Memory; used > 300<<10 {
					t.Errorf("%d bytes of memory are used", used)
				}
				c := w.consumer("q")
				c.SetLimit(n)
				ctx, cancel := context.WithCancel(context.Background())
				steps := 0
				done, err := w.CancelScheduled(ctx, "q", "", with("1"), func(engine.Progress) {
					if steps++; steps == 2 {
						cancel()
					}
				})
				if !errors.Is(err, context.Canceled) || steps != 2 {
					t.Fatalf("cancel: %v after %d steps", err, steps)
				}
				cancelled := done.Done
				if done, err = w.CancelScheduled(context.Background(), "q", "", with("1"), nil); err != nil {
					t.Fatal(err)
				}
				cancelled += done.Done
				want := 0
				for i := range n {
					if strings.Contains(fmt.Sprint(i), "1") {
						want++
					}
				}
				if cancelled != want {
					t.Fatalf("%d cancelled, want %d", cancelled, want)
				}
				done, err = w.DeliverScheduled(context.Background(), "q", "", engine.Selection{}, nil)
				if err != nil || done.Done != n-want {
					t.Fatalf("deliver: %+v, %v, want %d", done, err, n-want)
				}
				for range 2000 {
					later(10 * time.Millisecond)
					c.settle(accepted, c.fresh()...)
					c.taken = len(c.all())
					if c.taken == n-want {
						break
					}
				}
				if i := w.info("q"); i.Delayed+i.Messages+i.Delivering != 0 || c.taken != n-want {
					t.Errorf("%d came, want %d; queue = %+v", c.taken, n-want, i)
				}
			})
		})
	}
}

// TestSpillForgetsAllThatComesBackAtOnce: what has come back from the spill, been taken and settled isn't there any more when
// others wait there later.
func TestSpillForgetsAllThatComesBackAtOnce(t *testing.T) {
	homes(t, func(t *testing.T, w *world, durable bool) {
		wait := func(address string, n int, d time.Duration) {
			t.Helper()
			p := w.producer(address)
			for range n {
				m := msg(strings.Repeat("x", 1000), durable)
				m.Due = time.Now().Add(d).UnixMilli()
				if r := p.publish(m); r.Verdict != engine.Accepted {
					t.Fatalf("publish: %+v", r)
				}
			}
		}
		wait("other", 100, 24*time.Hour) // so that the spill is in use all the time
		c := w.consumer("q")
		for n := 40; n < 60; n++ { // the last of some have been written, and of others not yet
			wait("q", n, time.Minute)
			c.credit(1000)
			later(2 * time.Minute)
			got := c.rest()
			if len(got) != n {
				t.Fatalf("%d messages came, want %d", len(got), n)
			}
			c.settle(accepted, got...)
		}
		w.expectQueue("q")
	})
}
