package engine_test

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// tally counts what became of each message of a storm.
type tally struct {
	accepted []atomic.Int32
	left     atomic.Int64 // to be accepted
	done     chan struct{}
}

func (y *tally) accept(id uint32) bool {
	y.accepted[id].Add(1)
	if y.left.Add(-1) == 0 {
		close(y.done)
	}
	return true
}

// worker is a consumer of a storm: it takes deliveries from a mailbox, as a connection does.
type worker struct {
	mu      sync.Mutex
	mailbox []engine.Delivery
	wake    chan struct{}
	ended   bool
}

func (k *worker) notify() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *worker) Deliver(d engine.Delivery) {
	k.mu.Lock()
	k.mailbox = append(k.mailbox, d)
	k.mu.Unlock()
	k.notify()
}
func (k *worker) Drained()         {}
func (k *worker) Settled(uint64)   {}
func (k *worker) Unsettled(uint64) {}
func (k *worker) Ended(error) {
	k.mu.Lock()
	k.ended = true
	k.mu.Unlock()
	k.notify()
}

func (k *worker) take() ([]engine.Delivery, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ds := k.mailbox
	k.mailbox = nil
	return ds, k.ended
}

// work attaches, settles what comes in all ways, and goes away; again and again until the storm is over.
func work(t *testing.T, b *engine.Broker, address string, y *tally, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	for {
		k := &worker{wake: make(chan struct{}, 1)}
		c, err := b.Consumer(engine.ConsumerSpec{Address: address}, k)
		if err != nil {
			t.Errorf("consumer: %v", err)
			return
		}
		limit, given := uint64(20), uint64(0)
		c.SetLimit(limit)
		for rounds := random.IntN(50); rounds >= 0; rounds-- {
			select {
			case <-k.wake:
			case <-y.done:
				c.Close(engine.ClosingClean)
				return
			}
			ds, _ := k.take()
			for _, d := range ds {
				given++
				o := released
				switch random.IntN(8) {
				case 0:
				case 1:
					o = failed
				case 2:
					o = notHere
					rounds = 0 // and so go away soon: the others may not want it either
				default:
					o = accepted
					y.accept(binary.BigEndian.Uint32(d.Message.Payload))
				}
				c.Settle(settlements(d), o, 1)
			}
			if random.IntN(10) == 0 {
				c.Drain(given + 5)
			}
			limit = given + uint64(1+random.IntN(40))
			c.SetLimit(limit)
		}
		c.Close(engine.Closing(random.IntN(2)))
	}
}

// TestStorm has many producers and consumers at a few queues at once, which release, fail, drain and vanish, and
// browsers that look on. Every message is accepted exactly once, and nothing is left.
func TestStorm(t *testing.T) {
	const queues, producers, consumers, each = 3, 6, 9, 2000
	b, err := engine.New(engine.Options{Settings: []engine.AddressSettings{{Match: "#", MaxDeliveryAttempts: new(-1)}}}, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	y := &tally{accepted: make([]atomic.Int32, producers*each), done: make(chan struct{})}
	y.left.Store(producers * each)
	names := []string{"q0", "q1", "q2"}
	var running sync.WaitGroup
	for i := range producers {
		running.Go(func() {
			spec := engine.ProducerSpec{Address: names[i%queues]}
			if i >= producers/2 {
				spec = engine.ProducerSpec{Anonymous: true}
			}
			p, err := b.Producer(spec, ignoreResults{})
			if err != nil {
				t.Errorf("producer: %v", err)
				return
			}
			defer p.Close()
			for j := range each {
				m := msg("", j%3 == 0)
				m.Payload = binary.BigEndian.AppendUint32(nil, uint32(i*each+j))
				m.Priority = uint8(j % 3)
				m.Address = names[j%queues]
				if r, now := p.Publish(m, uint64(j)); now && r.Verdict != engine.Accepted {
					t.Errorf("publish: %+v", r)
				}
			}
		})
	}
	for i := range consumers {
		running.Go(func() { work(t, b, names[i%queues], y, uint64(i)) })
	}
	running.Go(func() {
		for {
			select {
			case <-y.done:
				return
			default:
			}
			k := &worker{wake: make(chan struct{}, 1)}
			c, err := b.Consumer(engine.ConsumerSpec{Address: names[0], Browse: true}, k)
			if err != nil {
				t.Errorf("browser: %v", err)
				return
			}
			c.Drain(100)
			c.Close(engine.ClosingClean)
			b.Queues()
		}
	})
	running.Wait()
	for id := range y.accepted {
		if n := y.accepted[id].Load(); n != 1 {
			t.Errorf("message %d accepted %d times", id, n)
		}
	}
	if totals := b.Totals(); totals.Messages+totals.Delivering != 0 || totals.Memory != 0 {
		t.Errorf("totals = %+v, want nothing left", totals)
	}
}

// TestStormOfQueues makes, uses and deletes queues of all kinds from many goroutines; nothing is left, nothing hangs.
func TestStormOfQueues(t *testing.T) {
	b, err := engine.New(engine.Options{
		Settings: []engine.AddressSettings{{Match: "#", AutoDeleteQueues: new(true)}}, Limits: engine.Limits{Queues: 40},
	}, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 2))
			names := []string{"a", "b", "topic://t", "topic://u", "a::x"}
			by := engine.Principal{Container: "c", Connection: string(rune('0' + i))}
			for j := range 400 {
				name := names[random.IntN(len(names))]
				spec := engine.ConsumerSpec{Address: name, By: by, Settled: random.IntN(2) == 0}
				switch random.IntN(4) {
				case 0:
					spec.Dynamic, spec.Lifetime = true, engine.Lifetime(random.IntN(4))
				case 1:
					spec.Subscription = engine.Subscription{Name: "s", Durable: true, Steal: true}
				}
				c, err := b.Consumer(spec, &sharedSink{})
				if err != nil {
					continue // no room: others have it
				}
				if p, err := b.Producer(engine.ProducerSpec{Address: c.Address()}, ignoreResults{}); err == nil {
					p.Publish(msg("x", random.IntN(2) == 0), uint64(j))
					c.Drain(10)
					p.Close()
				}
				if random.IntN(20) == 0 {
					_ = b.Delete(c.Address(), "")
				}
				c.CloseLink(random.IntN(3) == 0)
			}
			b.Disconnected(by.Connection)
		})
	}
	running.Wait()
	for _, a := range b.Addresses() {
		_ = b.Delete(a.Name, "")
	}
	if totals := b.Totals(); totals.Addresses != 0 || totals.Queues != 0 || totals.Consumers != 0 {
		t.Errorf("totals = %+v, want nothing left", totals)
	}
}
