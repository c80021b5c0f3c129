package thrash

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/letomq/leto/interop/harness"
)

const orders = "orders"

// patience bounds one run.
const patience = 3 * time.Minute

// crowd is a broker with messages, and consumers that come for them all at once.
type crowd struct {
	t      *testing.T
	size   size
	ctx    context.Context
	broker *harness.Broker

	good     atomic.Int64 // accepted
	came     atomic.Int64 // deliveries of bad ones
	done     chan struct{}
	mu       sync.Mutex
	attempts map[uint32][]uint32 // of each bad one, the delivery-counts it came with
	faults   []string
}

// gather starts a broker with settings, as YAML, and fills its queue.
func gather(t *testing.T, s size, durable bool, settings string) *crowd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "leto.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	c := &crowd{
		t: t, size: s, ctx: ctx, broker: harness.Start(t, "--config", file, "--log-level", "warn"),
		done: make(chan struct{}), attempts: map[uint32][]uint32{},
	}
	c.fill(durable)
	return c
}

// fill sends everything, the bad ones evenly among the others.
func (c *crowd) fill(durable bool) {
	c.t.Helper()
	conn, s := c.session()
	defer conn.Close()
	to, err := s.NewSender(c.ctx, orders, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	total := c.size.good + c.size.bad
	var receipts []amqp.SendReceipt
	settled := func(leave int) {
		for len(receipts) > leave {
			if state, err := receipts[0].Wait(c.ctx); err != nil {
				c.t.Fatal(err)
			} else if _, ok := state.(*amqp.StateAccepted); !ok {
				c.t.Fatalf("a message was not accepted: %v", state)
			}
			receipts = receipts[1:]
		}
	}
	bad := 0
	for i := range total {
		body := make([]byte, 256)
		if c.size.bad > 0 && (i+1)*c.size.bad/total > bad {
			bad++
			binary.BigEndian.PutUint32(body, uint32(bad))
		}
		m := amqp.NewMessage(body)
		m.Header = &amqp.MessageHeader{Durable: durable}
		r, err := to.SendWithReceipt(c.ctx, m, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		receipts = append(receipts, r)
		settled(1000)
	}
	settled(0)
}

func (c *crowd) session() (*amqp.Conn, *amqp.Session) {
	c.t.Helper()
	conn, err := amqp.Dial(c.ctx, c.broker.URL(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := conn.NewSession(c.ctx, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return conn, s
}

// consumer is one of the crowd, with a connection of its own.
type consumer struct {
	*amqp.Receiver
	conn *amqp.Conn
	ctx  context.Context
}

func (c *crowd) attach() *consumer {
	c.t.Helper()
	conn, s := c.session()
	r, err := s.NewReceiver(c.ctx, orders, &amqp.ReceiverOptions{Credit: 100})
	if err != nil {
		c.t.Fatal(err)
	}
	return &consumer{r, conn, c.ctx}
}

// fails is what a consumer does with a bad message. It returns whether the consumer is still there.
type fails func(*consumer, *amqp.Message) (there bool, err error)

// run has the crowd take everything, and returns how long the good ones took.
func (c *crowd) run(fail fails) time.Duration {
	c.t.Helper()
	crowd := make([]*consumer, c.size.consumers)
	for i := range crowd {
		crowd[i] = c.attach()
	}
	begun := time.Now()
	var group sync.WaitGroup
	ctx, end := context.WithCancel(c.ctx)
	for _, one := range crowd {
		group.Go(func() {
			for one != nil {
				m, err := one.Receive(ctx, nil)
				if err == nil {
					one, err = c.take(one, m, fail)
				}
				if err != nil && ctx.Err() == nil {
					c.fault("consumer: %v", err)
				}
				if err != nil {
					break
				}
			}
			if one != nil {
				_ = one.conn.Close()
			}
		})
	}
	c.t.Cleanup(func() { end(); group.Wait() })
	select {
	case <-c.done:
	case <-ctx.Done():
		c.t.Fatalf("%d of %d good messages after %v", c.good.Load(), c.size.good, time.Since(begun))
	}
	return time.Since(begun)
}

// take does what is to be done with a message, and returns who goes on: the consumer, or the next one in its place.
func (c *crowd) take(one *consumer, m *amqp.Message, fail fails) (*consumer, error) {
	id := binary.BigEndian.Uint32(m.GetData())
	if id == 0 {
		err := one.AcceptMessage(c.ctx, m)
		c.accepted()
		return one, err
	}
	count := uint32(0)
	if m.Header != nil {
		count = m.Header.DeliveryCount
	}
	c.attempted(id, count)
	there, err := fail(one, m)
	if err != nil || there {
		return one, err
	}
	return c.again(), nil
}

// accepted notes that a good message has come.
func (c *crowd) accepted() {
	if c.good.Add(1) == int64(c.size.good) {
		close(c.done)
	}
}

// attempted notes that a bad message has come.
func (c *crowd) attempted(id, count uint32) {
	c.came.Add(1)
	c.mu.Lock()
	c.attempts[id] = append(c.attempts[id], count)
	c.mu.Unlock()
}

// again attaches in the place of one who has gone.
func (c *crowd) again() *consumer {
	conn, err := amqp.Dial(c.ctx, c.broker.URL(), nil)
	if err != nil {
		return nil // the test is over
	}
	s, err := conn.NewSession(c.ctx, nil)
	if err != nil {
		return nil
	}
	r, err := s.NewReceiver(c.ctx, orders, &amqp.ReceiverOptions{Credit: 100})
	if err != nil {
		return nil
	}
	return &consumer{r, conn, c.ctx}
}

func (c *crowd) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.faults) < 5 {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

// dead waits until every bad message is in the dead-letter queue, for the reason, and was tried n times before, counted
// one by one.
func (c *crowd) dead(n int, reason string) {
	c.t.Helper()
	conn, s := c.session()
	defer conn.Close()
	from, err := s.NewReceiver(c.ctx, "DLQ", &amqp.ReceiverOptions{Credit: 100})
	if err != nil {
		c.t.Fatal(err)
	}
	there := map[uint32]bool{}
	for len(there) < c.size.bad {
		m, err := from.Receive(c.ctx, nil)
		if err != nil {
			c.t.Fatalf("%d of %d dead letters: %v", len(there), c.size.bad, err)
		}
		id := binary.BigEndian.Uint32(m.GetData())
		if there[id] {
			c.t.Fatalf("message %d is dead twice", id)
		}
		there[id] = true
		if got := m.Annotations["x-opt-death-reason"]; got != reason {
			c.t.Fatalf("message %d died of %v, want %q", id, got, reason)
		}
		if got := m.Annotations["x-opt-ORIG-QUEUE"]; got != orders {
			c.t.Fatalf("message %d came from %v, want %q", id, got, orders)
		}
		if m.Header == nil || m.Header.DeliveryCount != uint32(n) {
			c.t.Fatalf("message %d is dead with header %+v, want count %d", id, m.Header, n)
		}
		if err := from.AcceptMessage(c.ctx, m); err != nil {
			c.t.Fatal(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := uint32(1); id <= uint32(c.size.bad); id++ {
		counts := c.attempts[id]
		if len(counts) != n {
			c.t.Errorf("message %d came %d times, want %d", id, len(counts), n)
			return
		}
		for i, count := range counts {
			if count != uint32(i) {
				c.t.Errorf("message %d came with counts %v", id, counts)
				return
			}
		}
	}
}

// idle returns how much the broker works, in processors, and how many bad messages a second come to the crowd, once only
// these are left.
func (c *crowd) idle(span time.Duration) (cpu, rate float64) {
	c.t.Helper()
	begun, came := time.Now(), c.came.Load()
	before, err := c.broker.CPU()
	if err != nil {
		c.t.Fatal(err)
	}
	time.Sleep(span)
	after, err := c.broker.CPU()
	if err != nil {
		c.t.Fatal(err)
	}
	took := time.Since(begun)
	return (after - before).Seconds() / took.Seconds(), float64(c.came.Load()-came) / took.Seconds()
}

func (c *crowd) check() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		c.t.Error(f)
	}
}
