package engine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// tiny is a memory limit of which a queue may use so little that nearly all of a backlog is in the store only.
var tiny = engine.Options{Limits: engine.Limits{MemoryBytes: 1 << 20, WindowRecords: 256}}

// slowStore is a memory store whose loads can be held, or fail.
type slowStore struct {
	memory.Store
	mu    sync.Mutex
	gate  chan struct{}
	fails int
	below engine.QueueID // queues with lower ones can't be read
	loads atomic.Int32
}

func (s *slowStore) Load(q engine.QueueID, priority uint8, from uint64, n, bytes int) ([]engine.Stored, error) {
	s.loads.Add(1)
	found, err := s.Store.Load(q, priority, from, n, bytes)
	s.mu.Lock()
	gate, fails := s.gate, s.fails > 0
	if fails {
		s.fails--
	}
	fails = fails || q < s.below
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if fails {
		return nil, errors.New("disk is gone")
	}
	return found, err
}

// hold makes loads wait, after they have read, until the returned function is called.
func (s *slowStore) hold() (resume func()) {
	gate := make(chan struct{})
	s.mu.Lock()
	s.gate = gate
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.gate = nil
		s.mu.Unlock()
		close(gate)
	}
}

// fill sends n messages without waiting for each: "0", "1", ... with the priority that is asked for.
func (p *producer) fill(n int, priority func(int) uint8) {
	p.w.t.Helper()
	for i := range n {
		m := msg(fmt.Sprint(i), true)
		m.Priority = priority(i)
		p.start(m)
	}
	synctest.Wait()
	for ticket, r := range p.results {
		if r.Verdict != engine.Accepted {
			p.w.t.Fatalf("publish %d: %+v", ticket, r)
		}
	}
}

func always(p uint8) func(int) uint8 { return func(int) uint8 { return p } }

func TestBacklogIsGivenInOrderAfterRestart(t *testing.T) {
	store := &slowStore{}
	inWorldOn(t, tiny, store, func(t *testing.T, w *world) {
		const n = 20_000
		w.producer("q").fill(n, func(i int) uint8 { return uint8(i % 3 * 4) })
		loads := store.loads.Load()
		w.restart()
		if i := w.info("q"); i.Messages != n || i.Stored != n {
			t.Fatalf("queue = %+v, want %d messages, all in the store", i, n)
		}
		if used, now := w.Totals().Memory, store.loads.Load(); used != 0 || now != loads {
			t.Errorf("after restart: %d bytes in memory, %d loads, want none", used, now-loads)
		}
		c := w.consumer("q")
		got := 0
		for priority := 2; priority >= 0; priority-- {
			for i := priority; i < n; i += 3 {
				d := c.take(1)[0]
				if want := fmt.Sprint(i); string(d.Message.Payload) != want {
					t.Fatalf("delivery %d = %s, want %s", got, d.Message.Payload, want)
				}
				c.Settle(settlements(d), accepted, 0)
				if got++; got%1000 == 0 {
					if used := w.Totals().Memory; used > 1<<19 {
						t.Fatalf("memory = %d", used)
					}
				}
			}
		}
		expect(t, "rest", c.rest())
		if i := w.info("q"); i.Messages != 0 || i.Bytes != 0 || w.Totals().Memory != 0 {
			t.Errorf("queue = %+v, memory %d, want nothing", i, w.Totals().Memory)
		}
	})
}

func TestHighPriorityComesFirstPastABacklog(t *testing.T) {
	inWorld(t, tiny, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.fill(5000, always(4))
		c := w.consumer("q")
		c.settle(accepted, c.take(10)...)
		m := msg("now", true)
		m.Priority = 9
		p.publish(m)
		expect(t, "next", c.take(1), "now")
		expect(t, "then", c.take(2), "10", "11")
	})
}

func TestReleasedMessagesKeepTheirPlaceBeforeTheBacklog(t *testing.T) {
	inWorld(t, tiny, func(t *testing.T, w *world) {
		w.producer("q").fill(3000, always(4))
		c := w.consumer("q")
		ds := c.take(1500)
		c.settle(accepted, ds[500:]...)
		c.settle(failed, ds[:250]...)
		c.Close(engine.ClosingClean)
		c = w.consumer("q")
		for i := range 2000 {
			d := c.take(1)[0]
			c.Settle(settlements(d), accepted, 0)
			if i >= 500 && string(d.Message.Payload) != fmt.Sprint(i+1000) || i < 500 && string(d.Message.Payload) != fmt.Sprint(i) {
				t.Fatalf("delivery %d = %s", i, d.Message.Payload)
			}
		}
		expect(t, "rest", c.rest())
	})
}

func TestDrainIsAnsweredAfterWhatIsStored(t *testing.T) {
	store := &slowStore{}
	inWorldOn(t, tiny, store, func(t *testing.T, w *world) {
		w.producer("q").fill(2000, always(4))
		w.restart()
		resume := store.hold()
		c := w.consumer("q")
		c.Drain(10_000)
		synctest.Wait()
		if len(c.got) != 0 || c.drained != 0 {
			t.Fatalf("%d deliveries, drained %d times before anything is loaded", len(c.got), c.drained)
		}
		resume()
		synctest.Wait()
		if len(c.got) != 2000 || c.drained != 1 {
			t.Errorf("%d deliveries, drained %d times, want 2000, once", len(c.got), c.drained)
		}
	})
}

func TestBrowserReadsTheStoreAndKeepsNothing(t *testing.T) {
	inWorld(t, tiny, func(t *testing.T, w *world) {
		p := w.producer("q")
		p.fill(5000, always(4))
		b := w.consumerOf(engine.ConsumerSpec{Address: "q", Browse: true})
		before := w.Totals().Memory
		for i, d := range b.take(3000) {
			if string(d.Message.Payload) != fmt.Sprint(i) {
				t.Fatalf("browsed %s, want %d", d.Message.Payload, i)
			}
		}
		if used := w.Totals().Memory; used != before {
			t.Errorf("memory = %d, before browsing %d", used, before)
		}
		c := w.consumer("q")
		for range 4 {
			c.settle(accepted, c.take(1000)...)
		}
		expect(t, "next", b.take(1), "4000")
		if rest := b.take(999); len(rest) != 999 {
			t.Errorf("%d more, want 999", len(rest))
		}
		p.send(true, "new")
		expect(t, "new", b.rest(), "new")
		if i := w.info("q"); i.Messages != 1001 {
			t.Errorf("queue has %d messages, want 1001", i.Messages)
		}
	})
}

func TestPurgeAndDeleteWhileLoading(t *testing.T) {
	for _, what := range []string{"purge", "delete"} {
		t.Run(what, func(t *testing.T) {
			store := &slowStore{}
			inWorldOn(t, tiny, store, func(t *testing.T, w *world) {
				w.producer("q").fill(3000, always(4))
				w.restart()
				resume := store.hold()
				c := w.consumer("q")
				c.credit(100)
				b := w.consumerOf(engine.ConsumerSpec{Address: "q", Browse: true})
				b.credit(100)
				if what == "purge" {
					if n, err := w.Purge("q", ""); n != 3000 || err != nil {
						t.Errorf("purged %d, %v, want 3000", n, err)
					}
				} else if err := w.Delete("q", ""); err != nil {
					t.Error(err)
				}
				p := w.producer("q")
				p.send(true, "after")
				resume()
				synctest.Wait()
				if what == "purge" {
					expect(t, "after purge", c.got, "after")
					expect(t, "browsed", b.got)
					c.settle(released, c.got...)
					c.Close(engine.ClosingClean)
				}
				w.expectQueue("q", "after")
				if used := w.Totals().Memory; used != 5+192 {
					t.Errorf("memory = %d, want that of one message", used)
				}
				w.restart()
				w.expectQueue("q", "after")
			})
		})
	}
}

func TestFailedLoadIsTriedAgain(t *testing.T) {
	store := &slowStore{fails: 3}
	opts := tiny
	var reported atomic.Int32
	opts.Observer.LoadFailed = func(error) { reported.Add(1) }
	inWorldOn(t, opts, store, func(t *testing.T, w *world) {
		w.producer("q").fill(3000, always(4))
		w.restart()
		c := w.consumer("q")
		c.credit(5)
		c.mu.Lock()
		got := len(c.got)
		c.mu.Unlock()
		if n := reported.Load(); got != 0 || n != 1 {
			t.Errorf("%d deliveries, %d failures reported, want none and one", got, n)
		}
		later(10 * time.Second)
		expect(t, "once the store answers", c.got, "0", "1", "2", "3", "4")
		if n := reported.Load(); n != 3 {
			t.Errorf("%d failures reported, want 3", n)
		}
	})
}

// What reads an old backlog, however slowly, is in no producer's way: not on other queues, and not on its own.
func TestCase263_PublishedWhileABacklogIsRead(t *testing.T) {
	store := &slowStore{}
	inWorldOn(t, tiny, store, func(t *testing.T, w *world) {
		old := w.producer("old")
		old.fill(2000, always(4))
		c := w.consumer("old")
		resume := store.hold()
		c.credit(1000)
		synctest.Wait()
		if store.loads.Load() == 0 {
			t.Fatal("the backlog isn't read")
		}
		w.producer("new").send(true, "a", "b")
		old.send(true, "behind")
		fresh := w.consumer("new")
		expect(t, "of another queue", fresh.take(2), "a", "b")
		fresh.settle(accepted, fresh.got...)
		resume()
	})
}

// Queues that can't be read don't keep others from being loaded, however many they are, and are told of once a second.
func TestFailedLoadsLeaveOthersAlone(t *testing.T) {
	store := &slowStore{}
	opts := tiny
	var reported atomic.Int32
	opts.Observer.LoadFailed = func(error) { reported.Add(1) }
	inWorldOn(t, opts, store, func(t *testing.T, w *world) {
		const bad = 20
		for i := range bad + 1 {
			w.producer(fmt.Sprint("q", i)).fill(50, always(4))
		}
		w.restart()
		store.mu.Lock()
		store.below = bad + 1 // queues are numbered from 1
		store.mu.Unlock()
		var failing []*consumer
		for i := range bad {
			c := w.consumer(fmt.Sprint("q", i))
			c.credit(1)
			failing = append(failing, c)
		}
		c := w.consumer(fmt.Sprint("q", bad))
		c.credit(1)
		expect(t, "of the queue that can be read", c.got, "0")
		later(5*time.Second + 500*time.Millisecond)
		if n := reported.Load(); n != 6 {
			t.Errorf("%d failures reported in five seconds, want one each second", n)
		}
		store.mu.Lock()
		store.below = 0
		store.mu.Unlock()
		later(time.Second)
		for i, c := range failing {
			expect(t, fmt.Sprint("of q", i, " once the store answers"), c.got, "0")
		}
	})
}

// A consumer with endless credit that settles nothing gets no more than memory has room for, and others go on.
func TestUnsettledDeliveriesAreBounded(t *testing.T) {
	inWorld(t, tiny, func(t *testing.T, w *world) {
		w.producer("q").fill(10_000, always(4))
		w.producer("other").fill(1000, always(4))
		c := w.consumer("q")
		c.credit(1 << 30)
		if used := w.Totals().Memory; len(c.got) < 1000 || used < 500_000 || used > 700_000 || w.Pressure() {
			t.Errorf("%d deliveries in %d bytes, pressure %v, want about 60 %% of the limit used", len(c.got), used, w.Pressure())
		}
		c.Drain(1 << 30)
		synctest.Wait()
		if c.drained != 1 {
			t.Error("a drain isn't answered while there is no memory")
		}
		c.credit(1 << 30)
		other := w.consumer("other")
		for range 1000 {
			other.settle(accepted, other.take(1)...)
		}
		w.producer("third").send(true, "x")
		c.settle(accepted, c.got...)
		for len(c.got) < 10_000 {
			n := len(c.got)
			c.settle(accepted, c.got[c.taken:]...)
			c.taken = n
			if len(c.got) == n && n < 10_000 {
				t.Fatalf("%d deliveries, and no more after all are settled", n)
			}
		}
		c.settle(accepted, c.got[c.taken:]...)
		c.taken = len(c.got)
	})
}

// TestStormOnABacklog has 200,000 durable messages go through a tiny budget with competing consumers that release and
// vanish, browsers, and two restarts of the broker. Every message is accepted once, at the end nothing is left, and
// memory has stayed small.
func TestStormOnABacklog(t *testing.T) {
	const total, producers = 200_000, 4
	store := memory.New()
	opts := engine.Options{
		Settings: []engine.AddressSettings{{Match: "#", MaxDeliveryAttempts: new(-1)}}, Limits: engine.Limits{MemoryBytes: 4 << 20, WindowBytes: 256 << 10},
	}
	open := func() *engine.Broker {
		b, err := engine.New(opts, store)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := open()
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
				m := msg("", true)
				m.Payload = binary.BigEndian.AppendUint32(nil, uint32(i*total/producers+j))
				m.Priority = uint8(j % 2 * 5)
				confirmed <- struct{}{}
				if r, now := p.Publish(m, uint64(j)); now {
					t.Errorf("publish: %+v", r)
					return
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
	running.Wait()
	b.Close()
	y := &tally{accepted: make([]atomic.Int32, total), done: make(chan struct{})}
	y.left.Store(total)
	b = open()
	if q, err := b.Queue("q", ""); err != nil || q.Messages != total || q.Bytes != 4*total {
		t.Fatalf("queue = %+v, %v, want all messages", q, err)
	}
	for i := range 4 {
		running.Go(func() { work(t, b, "q", y, uint64(i)) })
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
			if used := b.Totals().Memory; used > 2<<20 {
				t.Errorf("memory = %d", used)
			}
		}
	})
	running.Wait()
	for id := range y.accepted {
		if n := y.accepted[id].Load(); n != 1 {
			t.Fatalf("message %d accepted %d times", id, n)
		}
	}
	if totals := b.Totals(); totals.Messages+totals.Delivering != 0 || totals.Memory != 0 {
		t.Errorf("totals = %+v, want nothing left", totals)
	}
	b.Close()
	b = open()
	defer b.Close()
	if q, err := b.Queue("q", ""); err != nil || q.Messages != 0 {
		t.Errorf("after restart: %+v, %v, want nothing", q, err)
	}
}
