package engine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// watchedSpill is a spill in memory that says what becomes of it, and can be full, fail or be held.
type watchedSpill struct {
	memory.Spill
	opened, closed int
	mu             sync.Mutex
	full, broken   error // of a Commit that brings a message, of any Commit
	unreadable     error
	gate           chan struct{} // loads wait for it, after they have read
	writes         chan struct{} // commits wait for it, before they do anything
	enqueued       int
	told           []error
}

func (s *watchedSpill) open() (engine.Spill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return s, nil
}

func (s *watchedSpill) Commit(records []engine.Record) error {
	s.mu.Lock()
	writes := s.writes
	s.mu.Unlock()
	if writes != nil {
		<-writes
	}
	s.mu.Lock()
	err, n := s.broken, 0
	for i := range records {
		if records[i].Kind == engine.RecordEnqueue {
			n++
		}
	}
	if err == nil && n > 0 {
		err = s.full
	}
	if err == nil {
		s.enqueued += n
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Spill.Commit(records)
}

func (s *watchedSpill) Load(q engine.QueueID, priority uint8, from uint64, n, bytes int) ([]engine.Stored, error) {
	found, err := s.Spill.Load(q, priority, from, n, bytes)
	s.mu.Lock()
	gate := s.gate
	if s.unreadable != nil {
		found, err = nil, s.unreadable
	}
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return found, err
}

func (s *watchedSpill) Close() error {
	s.mu.Lock()
	s.closed++
	s.mu.Unlock()
	return s.Spill.Close()
}

func (s *watchedSpill) set(field *error, err error) { s.mu.Lock(); *field = err; s.mu.Unlock() }

// spilling runs a test with a broker of little memory.
func spilling(t *testing.T, test func(t *testing.T, w *world, s *watchedSpill)) {
	t.Helper()
	s := &watchedSpill{}
	opts := tiny
	opts.Spill = s.open
	opts.Settings = []engine.AddressSettings{{Match: "dropped", ExpiryAddress: new("")}}
	opts.Observer.Spilling = func(err error) { s.mu.Lock(); s.told = append(s.told, err); s.mu.Unlock() }
	inWorld(t, opts, func(t *testing.T, w *world) { test(t, w, s) })
	if s.opened != s.closed {
		t.Errorf("spill opened %d times, closed %d times", s.opened, s.closed)
	}
}

// flood publishes transient messages "from", "from+1", … of 100 bytes and a bit.
func (p *producer) flood(from, n int, priority uint8) {
	p.w.t.Helper()
	for i := range n {
		m := msg(fmt.Sprint(from+i, ":", strings.Repeat("x", 100)), false)
		m.Priority = priority
		if r := p.publish(m); r.Verdict != engine.Accepted {
			p.w.t.Fatalf("publish %d: %+v", i, r)
		}
	}
}

// numbers returns what flood has numbered.
func numbers(ds []engine.Delivery) []string {
	all := texts(ds)
	for i := range all {
		all[i], _, _ = strings.Cut(all[i], ":")
	}
	return all
}

// takeNumbers takes and accepts messages one by one, and expects them to be numbered from … on.
func (c *consumer) takeNumbers(from, n int) {
	c.w.t.Helper()
	for i := range n {
		d := c.take(1)[0]
		if got := numbers([]engine.Delivery{d})[0]; got != fmt.Sprint(from+i) {
			c.w.t.Fatalf("delivery %d = %s, want %d", i, got, from+i)
		}
		c.Settle(settlements(d), accepted, 0)
	}
}

func TestWhatFitsIntoMemoryIsNeverSpilled(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		p, c := w.producer("q"), w.consumer("q")
		for range 20 { // together they don't fit
			p.flood(0, 500, 4)
			c.takeNumbers(0, 500)
		}
		if i := w.info("q"); s.opened != 0 || i.Spilled != 0 {
			t.Errorf("spill opened %d times, queue = %+v", s.opened, i)
		}
	})
}

func TestTransientBacklogIsSpilledAndGivenInOrder(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		const n = 20_000
		p := w.producer("q")
		p.flood(0, n, 4)
		i, used := w.info("q"), w.Totals().Memory
		if i.Messages != n || i.Spilled < n*9/10 || used > 400_000 || w.Pressure() {
			t.Fatalf("queue = %+v, memory %d, want nearly all of it spilled", i, used)
		}
		if size := s.Size(); size < n*80 {
			t.Errorf("spill has %d bytes", size)
		}
		c := w.consumer("q")
		c.takeNumbers(0, 10)
		p.flood(100_000, 1, 9)
		c.takeNumbers(100_000, 1)
		c.takeNumbers(10, n-10)
		expect(t, "rest", c.rest())
		if i := w.info("q"); i.Messages != 0 || i.Bytes != 0 || w.Totals().Memory != 0 || s.Size() != 0 {
			t.Errorf("queue = %+v, memory %d, spill %d bytes, want nothing", i, w.Totals().Memory, s.Size())
		}
	})
}

func TestEmptySpillIsClosedAfterAWhile(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		p, c := w.producer("q"), w.consumer("q")
		expectOpened := func(when string, opened, closed int) {
			t.Helper()
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.opened != opened || s.closed != closed {
				t.Errorf("%s: opened %d times, closed %d times, want %d, %d", when, s.opened, s.closed, opened, closed)
			}
		}
		for round := range 2 {
			p.flood(0, 5000, 4)
			later(time.Minute)
			expectOpened("while it holds something", round+1, round)
			c.takeNumbers(0, 5000)
			later(5 * time.Second)
			expectOpened("empty for a moment", round+1, round)
			p.flood(0, 5000, 4)
			later(20 * time.Second)
			expectOpened("while it holds something again", round+1, round)
			c.takeNumbers(0, 5000)
			later(20 * time.Second)
			expectOpened("empty for a while", round+1, round+1)
			if i := w.Spill(); i.Disk != 0 || i.Pending != 0 {
				t.Errorf("spill = %+v, want nothing", i)
			}
		}
	})
}

func TestDurableAndTransientBacklogAreOneOrder(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		const n = 9000
		p := w.producer("q")
		var want [10][]int
		for i := range n {
			m := msg(fmt.Sprint(i, ":", strings.Repeat("x", 100)), i%3 != 0 && i%1000 > 200)
			m.Priority = uint8(i / 100 % 3 * 4)
			want[m.Priority] = append(want[m.Priority], i)
			if r := p.publish(m); r.Verdict != engine.Accepted {
				t.Fatalf("publish %d: %+v", i, r)
			}
		}
		if i := w.info("q"); i.Stored < n/3 || i.Spilled < n/3 || i.Messages != n {
			t.Fatalf("queue = %+v, want a good part in both", i)
		}
		b := w.consumerOf(engine.ConsumerSpec{Address: "q", Browse: true})
		c := w.consumer("q")
		for p := 9; p >= 0; p-- {
			for _, i := range want[p] {
				if got := numbers(b.take(1))[0]; got != fmt.Sprint(i) {
					t.Fatalf("browsed %s, want %d", got, i)
				}
			}
		}
		for p := 9; p >= 0; p-- {
			for _, i := range want[p] {
				c.takeNumbers(i, 1)
			}
		}
		expect(t, "rest", c.rest())
	})
}

func TestRestartForgetsWhatIsSpilledAndNothingElse(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		p := w.producer("q")
		p.flood(0, 5000, 4)
		p.send(true, "durable 1", "durable 2")
		w.restart()
		if s.closed != 1 {
			t.Errorf("spill closed %d times, want once", s.closed)
		}
		w.expectQueue("q", "durable 1", "durable 2")
		w.producer("q").flood(0, 5000, 4)
		c := w.consumer("q")
		expect(t, "first", c.take(2), "durable 1", "durable 2")
		c.settle(accepted, c.got...)
		c.takeNumbers(0, 5000)
	})
}

func TestSpilledMessagesKeepTheirHistory(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		p := w.producer("q")
		p.flood(0, 4000, 4)
		c := w.consumer("q")
		ds := c.take(1000)
		c.settle(failed, ds[:500]...)
		c.settle(released, ds[500:]...)
		ds = c.take(500)
		for i, d := range ds {
			if d.Count != 1 || d.FirstAcquirer {
				t.Fatalf("returned %d: count %d", i, d.Count)
			}
		}
		c.settle(rejected, ds...)
		c.takeNumbers(500, 3500)
		// The dead ones fill the dead-letter queue with what came before, and are spilled there with their past.
		dead := w.consumer("DLQ")
		for i := range 500 {
			d := dead.take(1)[0]
			if got := strings.Split(string(d.Message.Payload), ":")[0]; got != fmt.Sprint(i) || d.Count != 2 ||
				annotation(d, engine.OrigQueue) != "q" || annotation(d, engine.DeathReason) != "rejected" {
				t.Fatalf("dead letter %d = %s, count %d, annotations %v", i, got, d.Count, d.Annotations)
			}
			dead.Settle(settlements(d), accepted, 0)
		}
	})
}

func TestDeadLettersAreSpilledWithTheirPast(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		p, c := w.producer("q"), w.consumer("q")
		const n = 4000
		for i := range n {
			p.flood(i, 1, 4)
			c.settle(rejected, c.take(1)...)
		}
		if i := w.info("DLQ"); i.Messages != n || i.Spilled < n/2 {
			t.Fatalf("dead-letter queue = %+v, want most of it spilled", i)
		}
		dead := w.consumer("DLQ")
		for i := range n {
			d := dead.take(1)[0]
			if got := strings.Split(string(d.Message.Payload), ":")[0]; got != fmt.Sprint(i) || d.Count != 1 ||
				annotation(d, engine.OrigQueue) != "q" || annotation(d, engine.DeathReason) != "rejected" {
				t.Fatalf("dead letter %d = %s, count %d, annotations %v", i, got, d.Count, d.Annotations)
			}
			dead.Settle(settlements(d), accepted, 0)
		}
	})
}

// Nobody takes from the queue: what is in the spill only, or is to be written to it, expires all the same.
func TestSpilledMessagesExpireInTime(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		const n = 6000
		for _, address := range []string{"q", "topic://dropped"} {
			var sub *consumer
			if address != "q" {
				sub = w.consumerOf(engine.ConsumerSpec{Address: address, Subscription: engine.Subscription{Name: "s"}})
			}
			p := w.producer(address)
			for i := range n {
				m := msg(fmt.Sprint(i, ":", strings.Repeat("x", 100)), false)
				if i%3 != 0 {
					m.Expiry = time.Now().Add(time.Duration(1+i%2) * time.Minute).UnixMilli()
				}
				m.Priority = uint8(i % 2 * 5)
				p.publish(m)
			}
			spilled := w.Totals().Spilled
			later(90 * time.Second)
			if totals := w.Totals(); totals.Expired < n/4 || spilled < n/2 {
				t.Errorf("%s: %d spilled, %d expired after a minute and a half", address, spilled, totals.Expired)
			}
			later(time.Minute)
			if address == "q" {
				if i := w.info("ExpiryQueue"); i.Messages != n*2/3 {
					t.Errorf("expiry queue = %+v, want %d", i, n*2/3)
				}
				w.Purge("ExpiryQueue", "")
			}
			if totals := w.Totals(); totals.Messages != n/3 || totals.Lost != 0 {
				t.Errorf("%s: totals = %+v, want %d messages", address, totals, n/3)
			}
			c := sub
			if c == nil {
				c = w.consumer("q")
			}
			for priority := 1; priority >= 0; priority-- {
				for i := 0; i < n; i += 3 {
					if i%2 == priority {
						c.takeNumbers(i, 1)
					}
				}
			}
			expect(t, "rest", c.rest())
			synctest.Wait()
			if totals := w.Totals(); totals.Messages != 0 || totals.Memory != 0 || s.Size() != 0 {
				t.Errorf("%s: totals = %+v, spill %d bytes, want nothing", address, totals, s.Size())
			}
			c.Close(engine.ClosingClean)
		}
	})
}

func TestPurgeAndDeleteOfWhatIsSpilled(t *testing.T) {
	for _, what := range []string{"purge", "delete"} {
		t.Run(what, func(t *testing.T) {
			spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
				w.producer("q").flood(0, 5000, 4)
				gate := make(chan struct{})
				s.mu.Lock()
				s.gate = gate
				s.mu.Unlock()
				c := w.consumer("q")
				c.credit(3000)
				b := w.consumerOf(engine.ConsumerSpec{Address: "q", Browse: true})
				b.credit(3000)
				c.settle(accepted, c.got...)
				had := len(c.got)
				if what == "purge" {
					if n, err := w.Purge("q", ""); n != 5000-had || err != nil {
						t.Errorf("purged %d, %v, want %d", n, err, 5000-had)
					}
				} else if err := w.Delete("q", ""); err != nil {
					t.Error(err)
				}
				p := w.producer("q")
				p.flood(10_000, 1, 4)
				close(gate)
				s.mu.Lock()
				s.gate = nil
				s.mu.Unlock()
				synctest.Wait()
				if what == "delete" {
					c, had = w.consumer("q"), 0
					c.credit(3000)
				}
				if got := numbers(c.got[had:]); len(got) != 1 || got[0] != "10000" {
					t.Errorf("after %s: %q", what, got)
				}
				c.settle(accepted, c.got[had:]...)
				if what == "purge" && len(b.got) > 1 {
					t.Errorf("browsed after the purge: %q", numbers(b.got))
				}
				if i, used := w.info("q"), w.Totals().Memory; i.Messages+i.Delivering != 0 || used != 0 || s.Size() != 0 {
					t.Errorf("queue = %+v, memory %d, spill %d bytes, want nothing", i, used, s.Size())
				}
			})
		})
	}
}

func TestTemporaryQueuesAndSubscriptionsSpill(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		reply := w.consumerOf(engine.ConsumerSpec{Dynamic: true, By: mine})
		sub := w.consumerOf(engine.ConsumerSpec{Address: "topic://t", Subscription: engine.Subscription{Name: "s"}})
		for _, address := range []string{reply.Address(), "topic://t"} {
			p := w.producer(address)
			for i := range 4000 { // durable ones as well: the store has nothing of such a queue
				m := msg(fmt.Sprint(i, ":", strings.Repeat("x", 100)), i%2 == 0)
				if r := p.publish(m); r.Verdict != engine.Accepted {
					t.Fatalf("publish: %+v", r)
				}
			}
		}
		if totals := w.Totals(); totals.Spilled < 6000 {
			t.Fatalf("totals = %+v, want most of 8000 spilled", totals)
		}
		reply.takeNumbers(0, 4000)
		sub.takeNumbers(0, 2000)
		sub.Close(engine.ClosingClean)
		reply.Close(engine.ClosingClean)
		synctest.Wait()
		if used, size := w.Totals().Memory, s.Size(); used != 0 || size != 0 {
			t.Errorf("memory %d, spill %d bytes after the queues are gone", used, size)
		}
	})
}

func TestWithoutSpaceTransientMessagesStayInMemory(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		p := w.producer("q")
		p.flood(0, 2000, 4)
		s.set(&s.full, fmt.Errorf("no space: %w", engine.ErrStoreFull))
		sent := 2000
		for ; !w.Pressure(); sent++ {
			p.flood(sent, 1, 4)
			if sent > 10_000 {
				t.Fatal("no pressure although nothing is spilled")
			}
		}
		if i := w.Spill(); i.Pending > 64<<10 {
			t.Errorf("spill = %+v, want what comes next to stay in the queue", i)
		}
		if i := w.Spill(); !i.Stopped || len(s.told) != 1 || !errors.Is(s.told[0], engine.ErrStoreFull) {
			t.Errorf("spill = %+v, told %v, want it stopped, and to be told once", i, s.told)
		}
		c := w.consumer("q")
		c.takeNumbers(0, 2500) // what is spilled already, and what isn't, in order
		later(5 * time.Second) // it is tried again and again, and nothing has changed
		if len(s.told) != 1 {
			t.Errorf("told %v, want it once", s.told)
		}
		s.set(&s.full, nil)
		later(5 * time.Second)
		if i := w.Spill(); i.Stopped {
			t.Errorf("spill = %+v, want it to go on", i)
		}
		p.flood(sent, 5000, 4)
		if len(s.told) != 2 || s.told[1] != nil {
			t.Errorf("told %v, want that it goes on", s.told)
		}
		if i := w.info("q"); i.Spilled < 3000 {
			t.Errorf("queue = %+v, want most of it spilled", i)
		}
		c.takeNumbers(2500, sent+5000-2500)
		expect(t, "rest", c.rest())
	})
}

// holdWrites makes commits wait until the returned function is called.
func (s *watchedSpill) holdWrites() (resume func()) {
	gate := make(chan struct{})
	s.mu.Lock()
	s.writes = gate
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.writes = nil
		s.mu.Unlock()
		close(gate)
	}
}

func TestWhatIsBeingWrittenIsGivenMeanwhile(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		p := w.producer("q")
		resume := s.holdWrites()
		n := 0
		for ; w.info("q").Spilled < 70; n++ {
			p.flood(n, 1, 4)
		}
		c := w.consumer("q")
		c.takeNumbers(0, n)
		resume()
		expect(t, "rest", c.rest())
		if used, size := w.Totals().Memory, s.Size(); used != 0 || size != 0 {
			t.Errorf("memory %d, spill %d bytes, want nothing", used, size)
		}
	})
}

// Who waits because too much waits to be written goes on as soon as that isn't wanted any more, whether it is written or
// not: in the meantime there may be nothing left that would be.
func TestWhoWaitsForAWriteGoesOnWithoutIt(t *testing.T) {
	for name, forget := range map[string]func(w *world) error{
		"purge":  func(w *world) error { _, err := w.Purge("q", ""); return err },
		"delete": func(w *world) error { return w.Delete("q", "") },
		"consume": func(w *world) error {
			c := w.consumer("q")
			for range 700 { // nearly all of them
				c.Settle(settlements(c.take(1)...), accepted, 0)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
				p := w.producer("q")
				resume := s.holdWrites()
				var sent atomic.Int64
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for range 2000 {
						p.Publish(msg(strings.Repeat("x", 100), false), 0)
						sent.Add(1)
					}
				}()
				synctest.Wait()
				waits := sent.Load()
				if waits == 2000 {
					t.Fatal("nobody waits")
				}
				if err := forget(w); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if sent.Load() == waits {
					t.Errorf("%d are sent, and then no more", waits)
				}
				resume()
				<-ended
			})
		})
	}
}

// What isn't wanted any more doesn't come back with what couldn't be written.
func TestPurgeWhileAWriteFails(t *testing.T) {
	spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
		p := w.producer("q")
		resume := s.holdWrites()
		n := 0
		for ; w.info("q").Spilled < 70; n++ {
			p.flood(n, 1, 4)
		}
		if purged, err := w.Purge("q", ""); purged != n || err != nil {
			t.Errorf("purged %d, %v, want %d", purged, err, n)
		}
		s.set(&s.full, engine.ErrStoreFull)
		resume()
		later(3 * time.Second)
		if i, used := w.Spill(), w.Totals().Memory; i.Pending != 0 || used != 0 || i.Stopped {
			t.Errorf("spill = %+v, memory %d, want nothing, and to go on", i, used)
		}
		s.set(&s.full, nil)
		p.flood(n, 1000, 4)
		w.consumer("q").takeNumbers(n, 1000)
	})
}

// A spill that breaks loses what is in it alone: that is counted, and the queue goes on with what it has.
func TestBrokenSpillLosesOnlyWhatItHas(t *testing.T) {
	for _, on := range []string{"commit", "load"} {
		t.Run(on, func(t *testing.T) {
			spilling(t, func(t *testing.T, w *world, s *watchedSpill) {
				p := w.producer("q")
				p.flood(0, 3000, 4)
				if on == "commit" {
					s.set(&s.broken, errors.New("input/output error"))
				}
				s.set(&s.unreadable, errors.New("input/output error"))
				p.flood(3000, 1000, 4)
				p.send(true, "4000:durable")
				c := w.consumer("q")
				c.credit(1 << 20)
				for n := -1; n < len(c.got); later(5 * time.Second) {
					n = len(c.got)
					c.settle(accepted, c.got[c.taken:]...)
					c.taken = n
				}
				got := numbers(c.got)
				last := -1
				for _, text := range got {
					var n int
					if fmt.Sscan(text, &n); n <= last {
						t.Fatalf("%d after %d", n, last)
					}
					last = n
				}
				s.mu.Lock()
				enqueued, told := s.enqueued, len(s.told)
				s.mu.Unlock()
				totals := w.Totals()
				if last != 4000 || totals.Lost == 0 || int(totals.Lost) > enqueued || len(got)+int(totals.Lost) != 4001 {
					t.Errorf("%d deliveries, the last is %d, %d lost, %d had been spilled, want all others", len(got), last, totals.Lost, enqueued)
				}
				if told != 1 || !w.Spill().Stopped {
					t.Errorf("told %d times, spill = %+v", told, w.Spill())
				}
				if i := w.info("q"); i.Messages != 0 || totals.Memory != 0 {
					t.Errorf("queue = %+v, memory %d, want nothing", i, totals.Memory)
				}
				c.taken = len(c.got)
				p.flood(5000, 10, 4)
				c.takeNumbers(5000, 10)
			})
		})
	}
}

// TestStormOnASpill has transient and durable messages of several producers go through a tiny memory, with competing
// consumers that release and vanish, browsers, and priorities. Every message is accepted once, and memory stays small.
func TestStormOnASpill(t *testing.T) {
	const total, producers = 100_000, 4
	b, err := engine.New(engine.Options{
		Settings: []engine.AddressSettings{{Match: "#", MaxDeliveryAttempts: new(-1)}},
		Limits:   engine.Limits{MemoryBytes: 4 << 20, WindowBytes: 256 << 10},
		Spill:    func() (engine.Spill, error) { return &memory.Spill{}, nil },
	}, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var running sync.WaitGroup
	for i := range producers {
		running.Go(func() {
			confirmed := make(window, 200)
			p, err := b.Producer(engine.ProducerSpec{Address: "q"}, confirmed)
			if err != nil {
				t.Errorf("producer: %v", err)
				return
			}
			for j := range total / producers {
				m := msg("", i == 3 && j%2 == 0)
				m.Payload = binary.BigEndian.AppendUint32(nil, uint32(i*total/producers+j))
				m.Priority = uint8(j % 2 * 5)
				confirmed <- struct{}{}
				if r, now := p.Publish(m, uint64(j)); now {
					if <-confirmed; r.Verdict != engine.Accepted {
						t.Errorf("publish: %+v", r)
						return
					}
				}
				if j%1000 == 0 && b.Totals().Memory > 3<<20 {
					t.Errorf("memory = %d", b.Totals().Memory)
				}
			}
			for range cap(confirmed) {
				confirmed <- struct{}{}
			}
		})
	}
	y := &tally{accepted: make([]atomic.Int32, total), done: make(chan struct{})}
	y.left.Store(total)
	for i := range 3 {
		running.Go(func() {
			if i > 0 { // some come when there is a backlog
				for q, err := b.Queue("q", ""); err != nil || q.Spilled < 5000; q, err = b.Queue("q", "") {
					select {
					case <-y.done:
						return
					case <-time.After(time.Millisecond):
					}
				}
			}
			work(t, b, "q", y, uint64(i))
		})
	}
	running.Go(func() {
		for {
			select {
			case <-y.done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			c, err := b.Consumer(engine.ConsumerSpec{Address: "q", Browse: true}, &sharedSink{})
			if err != nil {
				t.Errorf("browser: %v", err)
				return
			}
			c.Drain(100)
			c.Close(engine.ClosingClean)
		}
	})
	running.Wait()
	for id := range y.accepted {
		if n := y.accepted[id].Load(); n != 1 {
			t.Fatalf("message %d accepted %d times", id, n)
		}
	}
	if totals := b.Totals(); totals.Messages+totals.Delivering != 0 || totals.Memory != 0 || totals.Lost != 0 {
		t.Errorf("totals = %+v, want nothing left", totals)
	}
}
