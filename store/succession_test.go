package store_test

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
)

// ledger is what brokers have promised: published and settled messages, by number.
type ledger struct {
	mu        sync.Mutex
	next      uint64
	accepted  map[uint64]bool
	tried     map[uint64]bool // settlements that were asked for
	settled   map[uint64]bool // and hold
	delivered map[uint64]int  // since the last broker
}

// sender is a producer's link, and a Confirmer. Its tickets are the numbers of its messages.
type sender struct{ l *ledger }

func (s sender) Confirmed(ticket uint64, r engine.Result) {
	if r.Verdict == engine.Accepted {
		s.l.mu.Lock()
		s.l.accepted[ticket] = true
		s.l.mu.Unlock()
	}
}

// receiver is a consumer's link that passes on what it gets.
type receiver struct {
	l    *ledger
	came chan engine.Delivery
	done chan struct{} // closed when the consumer has ended
}

func (r receiver) Deliver(d engine.Delivery) { r.came <- d }
func (receiver) Drained()                    {}
func (receiver) Unsettled(uint64)            {}
func (r receiver) Ended(error)               { close(r.done) }
func (r receiver) Settled(ticket uint64) {
	r.l.mu.Lock()
	r.l.settled[ticket] = true
	r.l.mu.Unlock()
}

const receiverCredit = 100

// work publishes and consumes until the broker is closed.
func (l *ledger) work(t *testing.T, b *engine.Broker, running *sync.WaitGroup) {
	for range 2 {
		p, err := b.Producer(engine.ProducerSpec{Address: "q"}, sender{l})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			for {
				l.mu.Lock()
				l.next++
				n := l.next
				behind := len(l.accepted) - len(l.settled)
				l.mu.Unlock()
				payload := make([]byte, 300)
				binary.BigEndian.PutUint64(payload, n)
				r, decided := p.Publish(&engine.Message{Payload: payload, Durable: true, Priority: 4}, n)
				if decided && r.Verdict != engine.Accepted {
					return
				}
				if behind > 2000 {
					time.Sleep(time.Millisecond) // the backlog is there; what matters is what is under way
				}
			}
		})
	}
	r := receiver{l, make(chan engine.Delivery, receiverCredit), make(chan struct{})}
	c, err := b.Consumer(engine.ConsumerSpec{Address: "q"}, r)
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() {
		c.SetLimit(receiverCredit)
		for got := uint64(1); ; got++ {
			select {
			case d := <-r.came:
				n := binary.BigEndian.Uint64(d.Message.Payload)
				l.mu.Lock()
				if l.settled[n] {
					t.Errorf("%d comes again after its settlement", n)
				}
				l.tried[n] = n%100 != 0 // some are left for the end
				l.mu.Unlock()
				c.SetLimit(got + receiverCredit)
				if n%100 == 0 {
					continue
				}
				// That it holds at once says of a durable message that it is the consumer's no more.
				c.Settle([]engine.Settlement{{Handle: d.Handle, Acquisition: d.Acquisition}}, engine.Outcome{Kind: engine.Accepted}, n)
			case <-r.done:
				return
			}
		}
	})
}

// TestSuccession drops brokers at full speed and builds the next ones over the same open store: nothing that was
// accepted is lost, and nothing comes back whose settlement held.
func TestSuccession(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	o := small(t, t.TempDir())
	s := open(t, o)
	l := &ledger{accepted: map[uint64]bool{}, tried: map[uint64]bool{}, settled: map[uint64]bool{}, delivered: map[uint64]int{}}
	begin := func() *engine.Broker {
		limits := engine.Limits{MemoryBytes: 32 << 20, WindowBytes: o.SegmentSize / 4}
		b, err := engine.New(engine.Options{Limits: limits}, s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	goroutines := 0
	for round := range 12 {
		if round == 1 {
			goroutines = runtime.NumGoroutine()
		}
		b := begin()
		var running sync.WaitGroup
		l.work(t, b, &running)
		time.Sleep(time.Duration(10+rng.IntN(60)) * time.Millisecond) // let it work: the moment of the end is random
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		running.Wait()
	}
	// The index has some that come and go.
	eventually(t, "no more goroutines than after the first broker", func() bool { return runtime.NumGoroutine() <= goroutines })

	b := begin()
	waiting, err := b.Queue("q", "q")
	if err != nil {
		t.Fatal(err)
	}
	r := receiver{l, make(chan engine.Delivery, receiverCredit), make(chan struct{})}
	c, err := b.Consumer(engine.ConsumerSpec{Address: "q", Browse: true}, r)
	if err != nil {
		t.Fatal(err)
	}
	c.SetLimit(receiverCredit)
	last := uint64(0)
	for got := uint64(1); got <= uint64(waiting.Messages); got++ {
		select {
		case d := <-r.came:
			n := binary.BigEndian.Uint64(d.Message.Payload)
			if l.delivered[n]++; l.delivered[n] > 1 || l.settled[n] {
				t.Errorf("%d is there %d times, settled %v", n, l.delivered[n], l.settled[n])
			}
			c.SetLimit(got + receiverCredit)
			last = n
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing behind %d: %d of %d", last, got, waiting.Messages)
		}
	}
	for n := range l.accepted {
		if l.delivered[n] == 0 && !l.tried[n] {
			t.Errorf("%d was accepted and is lost", n)
		}
	}
	t.Logf("%d accepted, %d settled, %d left", len(l.accepted), len(l.settled), waiting.Messages)
	if len(l.settled) == 0 || waiting.Messages == 0 {
		t.Error("not everything happened")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
