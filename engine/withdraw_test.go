package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// odd selects the messages whose payload is an odd number.
func odd(d *engine.Delivery) bool {
	n, err := strconv.Atoi(string(d.Message.Payload))
	return err == nil && n%2 == 1
}

// homes runs a test with messages in memory, in the store only, and in the spill only, as far as there is no room.
func homes(t *testing.T, test func(t *testing.T, w *world, durable bool)) {
	t.Helper()
	for _, small := range []bool{false, true} {
		for _, durable := range []bool{true, false} {
			opts := engine.Options{}
			if small {
				opts = tiny
				opts.Spill = func() (engine.Spill, error) { return &memory.Spill{}, nil }
			}
			opts.Settings = set(engine.AddressSettings{DeadLetterAddress: new("DLQ")}).Settings
			t.Run(fmt.Sprintf("small memory %v, durable %v", small, durable), func(t *testing.T) {
				inWorld(t, opts, func(t *testing.T, w *world) { test(t, w, durable) })
			})
		}
	}
}

// numbers publishes payloads 0 to n-1.
func (p *producer) numbers(n int, durable bool) {
	for i := range n {
		p.start(msg(strconv.Itoa(i), durable))
	}
	synctest.Wait()
}

// all returns the payloads in a queue in order, without taking them.
func (w *world) all(queue string) []int {
	w.t.Helper()
	var all []int
	_, _, more, err := w.Browse(context.Background(), queue, "", engine.Place{}, engine.Selection{}, func(d *engine.Delivery) bool {
		n, err := strconv.Atoi(string(d.Message.Payload))
		if err != nil {
			w.t.Errorf("payload %q", d.Message.Payload)
		}
		all = append(all, n)
		return true
	})
	if err != nil || more {
		w.t.Errorf("browse %s: %v, more %v", queue, err, more)
	}
	return all
}

// wantNumbers fails unless a queue has the numbers below n that want selects, in order.
func (w *world) wantNumbers(queue string, n int, want func(i int) bool) {
	w.t.Helper()
	var wanted []int
	for i := range n {
		if want(i) {
			wanted = append(wanted, i)
		}
	}
	if got := w.all(queue); !slices.Equal(got, wanted) {
		w.t.Errorf("%s has %d messages, want %d: %.200v", queue, len(got), len(wanted), got)
	}
	if i := w.info(queue); i.Messages != len(wanted) || i.Delivering != 0 {
		w.t.Errorf("%s = %+v, want %d messages", queue, i, len(wanted))
	}
}

const many = 2000

func TestMove(t *testing.T) {
	homes(t, func(t *testing.T, w *world, durable bool) {
		w.producer("q").numbers(many, durable)
		p, err := w.Move(t.Context(), "q", "", "other", engine.Selection{Match: odd, Count: 600}, nil)
		if err != nil || p.Done != 600 || p.Skipped != 0 {
			t.Fatalf("%+v, %v", p, err)
		}
		for range 2 {
			w.wantNumbers("q", many, func(i int) bool { return i%2 == 0 || i > 1200 })
			w.wantNumbers("other", many, func(i int) bool { return i%2 == 1 && i < 1200 })
			if !durable {
				break
			}
			w.restart()
		}
		if p, err := w.Retry(t.Context(), "other", "", engine.Selection{}, nil); err != nil || p.Done != 600 {
			t.Errorf("back again: %+v, %v", p, err)
		}
		got := w.all("q")
		if slices.Sort(got); len(got) != many || got[many-1] != many-1 {
			t.Errorf("%d messages are back", len(got))
		}
	})
}

func TestMoveRefuses(t *testing.T) {
	opts := engine.Options{Settings: []engine.AddressSettings{{Match: "no.#", AutoCreateAddresses: new(false)}}}
	inWorld(t, opts, func(t *testing.T, w *world) {
		w.producer("q").numbers(3, true)
		if err := w.Declare(engine.QueueSpec{Address: "news", Routing: engine.Multicast}); err != nil {
			t.Fatal(err)
		}
		for to, want := range map[string]error{
			"q": engine.ErrNotAllowed, "q::q": engine.ErrNotAllowed, "news": engine.ErrNotAllowed,
			"no.where": engine.ErrNotFound, "": engine.ErrInvalid,
		} {
			_, err := w.Move(t.Context(), "q", "q", to, engine.Selection{}, nil)
			wantErr(t, err, want)
		}
		w.wantNumbers("q", 3, func(int) bool { return true })
	})
}

func TestPurgeSome(t *testing.T) {
	homes(t, func(t *testing.T, w *world, durable bool) {
		w.producer("q").numbers(many, durable)
		p, err := w.PurgeSome(t.Context(), "q", "", engine.Selection{Match: odd}, nil)
		if err != nil || p.Done != many/2 || p.Looked != many {
			t.Fatalf("%+v, %v", p, err)
		}
		w.wantNumbers("q", many, func(i int) bool { return i%2 == 0 })
		if durable {
			w.restart()
			w.wantNumbers("q", many, func(i int) bool { return i%2 == 0 })
		}
		c := w.consumer("q")
		c.settle(accepted, c.take(10)...)
		c.Close(engine.ClosingClean)
		w.wantNumbers("q", many, func(i int) bool { return i%2 == 0 && i >= 20 })
	})
}

// TestRetry sends dead letters back: counts and what was written on them are gone, and they may fail as often again.
func TestRetry(t *testing.T) {
	homes(t, func(t *testing.T, w *world, durable bool) {
		w.producer("q").numbers(many, durable)
		c := w.consumer("q")
		for range many / 100 {
			c.settle(engine.Outcome{Kind: engine.Rejected, Description: "no"}, c.take(100)...)
		}
		c.Close(engine.ClosingClean)
		w.wantNumbers("DLQ", many, func(int) bool { return true })
		p, err := w.Retry(t.Context(), "DLQ", "", engine.Selection{Match: func(d *engine.Delivery) bool {
			return odd(d) && d.Count == 1 && annotation(*d, engine.DeathReason) == "rejected: no"
		}, Count: 100}, nil)
		if err != nil || p.Done != 100 {
			t.Fatalf("%+v, %v", p, err)
		}
		for range 2 {
			w.wantNumbers("q", many, func(i int) bool { return i%2 == 1 && i < 200 })
			w.wantNumbers("DLQ", many, func(i int) bool { return i%2 == 0 || i >= 200 })
			if !durable {
				break
			}
			w.restart()
		}
		c = w.consumer("q")
		for _, d := range c.take(100) {
			if d.Count != 0 || len(d.Annotations) != 0 {
				t.Fatalf("given back with count %d and %v", d.Count, d.Annotations)
			}
			c.settle(engine.Outcome{Kind: engine.Rejected}, d)
		}
		synctest.Wait()
		if got := len(w.all("DLQ")); got != many {
			t.Errorf("%d dead letters, want all again", got)
		}
	})
}

// TestRetryWithoutOrigin: what doesn't say where it came from stays, and so does what came from a queue that is gone and
// may not be made again.
func TestRetryWithoutOrigin(t *testing.T) {
	opts := engine.Options{Settings: []engine.AddressSettings{
		{Match: "#", DeadLetterAddress: new("DLQ")},
		{Match: "strict", AutoCreateQueues: new(false)},
	}}
	inWorld(t, opts, func(t *testing.T, w *world) {
		if err := w.Declare(engine.QueueSpec{Address: "strict"}); err != nil {
			t.Fatal(err)
		}
		for i, address := range []string{"strict", "loose", "topic://news"} {
			spec := engine.ConsumerSpec{Address: address}
			if i == 2 {
				spec.Subscription = engine.Subscription{Name: "s", Durable: true}
				spec.By.Container = "c"
			}
			c := w.consumerOf(spec)
			w.producer(address).send(true, strconv.Itoa(i))
			c.settle(engine.Outcome{Kind: engine.Rejected}, c.take(1)...)
			c.CloseLink(true)
		}
		w.producer("DLQ").send(true, "3")
		synctest.Wait()
		for _, address := range []string{"strict", "loose"} {
			if err := w.Delete(address, address); err != nil {
				t.Fatal(err)
			}
		}
		p, err := w.Retry(t.Context(), "DLQ", "DLQ", engine.Selection{}, nil)
		if err != nil || p.Done != 1 || p.Skipped != 3 || p.Looked != 4 {
			t.Errorf("%+v, %v", p, err)
		}
		w.wantNumbers("loose", 4, func(i int) bool { return i == 1 })
		w.wantNumbers("DLQ", 4, func(i int) bool { return i != 1 })
	})
}

// TestClearingIsInterrupted: what has been moved by then is moved, and the rest is where it was.
func TestClearingIsInterrupted(t *testing.T) {
	homes(t, func(t *testing.T, w *world, durable bool) {
		w.producer("q").numbers(many, durable)
		ctx, cancel := context.WithCancel(t.Context())
		p, err := w.Move(ctx, "q", "", "other", engine.Selection{}, func(p engine.Progress) {
			if p.Done > many/4 {
				cancel()
			}
		})
		wantErr(t, err, context.Canceled)
		if p.Done <= many/4 || p.Done == many {
			t.Errorf("%+v", p)
		}
		w.wantNumbers("other", many, func(i int) bool { return i < p.Done })
		w.wantNumbers("q", many, func(i int) bool { return i >= p.Done })
	})
}

// TestCommandsAtOnce has commands go through one queue at the same time: each message is moved by one of them.
func TestCommandsAtOnce(t *testing.T) {
	homes(t, func(t *testing.T, w *world, durable bool) {
		w.producer("q").numbers(many, durable)
		const commands = 4
		done := make(chan int, commands)
		for range commands {
			go func() {
				p, err := w.Move(t.Context(), "q", "", "other", engine.Selection{}, nil)
				if err != nil {
					t.Error(err)
				}
				done <- p.Done
			}()
		}
		moved := 0
		for range commands {
			moved += <-done
		}
		if moved != many {
			t.Errorf("%d moved, want %d", moved, many)
		}
		w.wantNumbers("q", many, func(int) bool { return false })
		w.wantNumbers("other", many, func(int) bool { return true })
	})
}

func TestPause(t *testing.T) {
	homes(t, func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		p.numbers(10, durable)
		c := w.consumer("q")
		had := c.take(2)
		if err := w.Pause("q", "", true); err != nil {
			t.Fatal(err)
		}
		c.credit(5)
		if i := w.info("q"); i.Delivering != 2 {
			t.Errorf("%d given while it is paused", i.Delivering-2)
		}
		p.start(msg("10", durable))
		synctest.Wait()
		c.settle(engine.Outcome{Kind: engine.Released}, had...)
		c.Drain(100)
		synctest.Wait()
		if c.drained != 1 {
			t.Errorf("a drain is answered %d times while it is paused", c.drained)
		}
		w.wantNumbers("q", 11, func(int) bool { return true })
		c.Close(engine.ClosingClean)
		if durable {
			w.restart()
		}
		if !w.info("q").Paused {
			t.Error("it isn't paused any more")
		}
		c = w.consumer("q")
		c.credit(3)
		synctest.Wait()
		if len(c.got) != 0 {
			t.Errorf("%d given while it is paused", len(c.got))
		}
		if err := w.Pause("q", "", false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expect(t, "given", c.got, "0", "1", "2")
	})
}

// TestBrowseFromAPlace shows a queue in pages, with what comes meanwhile left out.
func TestBrowseFromAPlace(t *testing.T) {
	homes(t, func(t *testing.T, w *world, durable bool) {
		p := w.producer("q")
		for i := range 300 {
			m := msg(strconv.Itoa(i), durable)
			m.Priority = uint8(9 - i/100)
			p.start(m)
		}
		synctest.Wait()
		var got []int
		var at engine.Place
		for more, pages := true, 0; more; pages++ {
			var err error
			_, at, more, err = w.Browse(t.Context(), "q", "q", at, engine.Selection{Count: 70}, func(d *engine.Delivery) bool {
				n, _ := strconv.Atoi(string(d.Message.Payload))
				got = append(got, n)
				return true
			})
			if err != nil || pages > 5 {
				t.Fatalf("page %d: %v", pages, err)
			}
		}
		if len(got) != 300 || !slices.IsSorted(got) {
			t.Errorf("%d messages, in order: %v", len(got), slices.IsSorted(got))
		}
	})
}

// TestScanBesideConsumers moves to and fro while consumers take, release and settle, and messages expire: each is in one
// place, and none is lost.
func TestScanBesideConsumers(t *testing.T) {
	homes(t, func(t *testing.T, w *world, durable bool) {
		w.producer("q").numbers(many, durable)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan int)
		go func() {
			moved := 0
			for ctx.Err() == nil {
				p, err := w.Move(t.Context(), "q", "", "other", engine.Selection{Match: odd}, nil)
				if err != nil {
					t.Error(err)
				}
				moved += p.Done
				if p, err = w.Retry(t.Context(), "other", "", engine.Selection{Count: 300}, nil); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Millisecond)
			}
			done <- moved
		}()
		c := w.consumer("q")
		seen := map[string]int{}
		for round := range 40 {
			ds := c.take(30)
			o := accepted
			if round%3 == 0 {
				o = engine.Outcome{Kind: engine.Modified, Failed: round%2 == 0}
			} else {
				for _, d := range ds {
					seen[string(d.Message.Payload)]++
				}
			}
			c.settle(o, ds...)
			time.Sleep(time.Millisecond)
		}
		c.Close(engine.ClosingClean)
		stop()
		if moved := <-done; moved == 0 {
			t.Error("nothing was moved")
		}
		synctest.Wait()
		for _, queue := range []string{"q", "other"} {
			for _, n := range w.all(queue) {
				seen[strconv.Itoa(n)]++
			}
		}
		for i := range many {
			if n := seen[strconv.Itoa(i)]; n != 1 {
				t.Fatalf("%d is there %d times", i, n)
			}
		}
	})
}
