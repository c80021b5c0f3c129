package churn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/letomq/leto/interop/harness"
)

// The queues that messages are sent to.
const (
	brisk   = iota // consumed as fast as it goes: accepted, rejected, failed until dead
	brisker        // the same, each settlement confirmed
	lapsing        // nobody consumes, all expires
	slow           // consumed by one who is far behind: keeps a few messages in many segments
	queues
	deadLetters = "DLQ"
	expiry      = "ExpiryQueue"
	kept        = "churn.kept" // published in between and not consumed
)

var names = [queues]string{"churn.brisk", "churn.brisker", "churn.lapsing", "churn.slow"}

const (
	window    = 64 // sends under way for each producer
	attempts  = 2
	keptCount = 500
	segment   = 64 << 20

	// What stays when the queues are drained: the segment that is written, the next one, two spares, and one or two
	// that the messages kept are in; and what the index hasn't compacted.
	diskBase = 6*segment + 64<<20
	// Memory that comes and goes with load, and isn't back with the system yet.
	memorySlack = 32 << 20
)

// limits are how many messages a queue may hold: the backlog breathes, so that it's in memory and beyond.
func limit(queue int, begun time.Time) int {
	if queue == slow {
		return 2000
	}
	if int(time.Since(begun)/(5*time.Second))%3 == 2 {
		return 20_000
	}
	return 2000
}

type churn struct {
	t      *testing.T
	book   *book
	broker *harness.Broker
	begun  time.Time
	ended  atomic.Bool // nothing more is sent
}

func TestChurn(t *testing.T) {
	d := span(t)
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	args := []string{
		"--log-level", "warn", "--set", "limits.disk-free=512MiB",
		"--set", fmt.Sprintf("address-settings[churn.#].max-delivery-attempts=%d", attempts),
	}
	c := &churn{t: t, book: newBook()}
	c.start(data, args)
	c.warm()
	base, disk := c.quiet(), usage(t, data)

	sum := c.run(d, data)
	c.drain()
	c.rest(data)
	after, rest := c.quiet(), usage(t, data)
	t.Logf("%v: %v", d, sum)
	t.Logf("anonymous memory: %.1f MiB at base, at most %.1f, %.1f drained; disk: %d MiB at base, at most %d, %d drained", mib(base),
		mib(sum.memory), mib(after), disk>>20, sum.disk>>20, rest>>20)
	if after > base+memorySlack {
		t.Errorf("anonymous memory: %.1f MiB when drained, %.1f at base", mib(after), mib(base))
	}
	if rest > diskBase {
		t.Errorf("disk: %d MiB when drained, at most %d MiB are base", rest>>20, diskBase>>20)
	}
	c.metrics()

	for _, kill := range []bool{false, true} {
		end := c.broker.Stop
		if kill {
			end = c.broker.Kill
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		c.start(data, args)
		c.left(keptCount)
	}
	c.consume(context.Background(), kept, keptCount)
	c.left(0)
	if n := c.book.missing(); n > 0 {
		t.Errorf("%d messages that were accepted are missing", n)
	}
	for _, fault := range c.book.faults {
		t.Error(fault)
	}
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func (c *churn) start(data string, args []string) {
	c.t.Helper()
	b, err := harness.Begin(data, args...)
	if err == nil {
		err = b.Ready()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.broker = b
	c.t.Cleanup(func() { _ = b.Stop() })
}

// session connects.
func (c *churn) session(ctx context.Context) (*amqp.Conn, *amqp.Session, error) {
	conn, err := amqp.Dial(ctx, c.broker.URL(), nil)
	if err != nil {
		return nil, nil, err
	}
	s, err := conn.NewSession(ctx, nil)
	return conn, s, err
}

// warm brings about what is there once.
func (c *churn) warm() {
	ctx := context.Background()
	for i := range names {
		c.publish(ctx, names[i], 200)
		c.consume(ctx, names[i], 200)
	}
}

// publish sends messages that the book knows nothing of.
func (c *churn) publish(ctx context.Context, address string, n int) {
	c.t.Helper()
	conn, s, err := c.session(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	to, err := s.NewSender(ctx, address, nil)
	for i := 0; i < n && err == nil; i++ {
		err = to.Send(ctx, amqp.NewMessage(fmt.Appendf(nil, "%d", i)), nil)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// consume takes messages that publish has sent, in order.
func (c *churn) consume(ctx context.Context, address string, n int) {
	c.t.Helper()
	conn, s, err := c.session(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	from, err := s.NewReceiver(ctx, address, &amqp.ReceiverOptions{Credit: 50, SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()})
	for i := 0; i < n && err == nil; i++ {
		wait, done := context.WithTimeout(ctx, 20*time.Second)
		var m *amqp.Message
		if m, err = from.Receive(wait, nil); err == nil {
			if want := fmt.Sprint(i); string(m.GetData()) != want {
				c.t.Errorf("%s: %q comes where %s should", address, m.GetData(), want)
			}
			err = from.AcceptMessage(wait, m)
		}
		done()
	}
	if err != nil {
		c.t.Fatalf("%s: %v", address, err)
	}
}

// quiet is the anonymous memory that stays: a quiet broker gives back what it doesn't need within seconds.
func (c *churn) quiet() int64 {
	c.t.Helper()
	least := int64(-1)
	for range 12 {
		now, err := c.broker.Anonymous()
		if err != nil {
			c.t.Fatal(err)
		}
		if least < 0 || now < least {
			least = now
		}
		time.Sleep(500 * time.Millisecond)
	}
	return least
}

// usage is what a folder takes of the device in bytes.
func usage(t *testing.T, folder string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		n += info.Sys().(*syscall.Stat_t).Blocks * 512
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ignoreGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// summary is what happened.
type summary struct {
	accepted, settled, dead, expired int
	took                             time.Duration
	memory, disk                     int64 // at most
}

func (s summary) String() string {
	rate := func(n int) string { return fmt.Sprintf("%d (%.0f/s)", n, float64(n)/s.took.Seconds()) }
	return fmt.Sprintf("%s accepted, %s settled, of them %s dead letters and %s expired", rate(s.accepted), rate(s.settled),
		rate(s.dead), rate(s.expired))
}

// run has messages come and go. Dead and expired ones are consumed as they come, and consumers go on when nothing
// more is sent, until all is gone.
func (c *churn) run(d time.Duration, data string) summary {
	c.begun = time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var producers, consumers sync.WaitGroup
	failed := make(chan error, 16)
	run := func(group *sync.WaitGroup, what string, f func() error) {
		group.Go(func() {
			if err := f(); err != nil && ctx.Err() == nil {
				failed <- fmt.Errorf("%s: %w", what, err)
			}
		})
	}
	for q := range queues {
		run(&producers, "producer of "+names[q], func() error { return c.produce(ctx, q) })
	}
	take := func(address string, second bool, pause time.Duration) {
		run(&consumers, "consumer of "+address, func() error { return c.settle(ctx, address, second, pause) })
	}
	take(names[brisk], false, 0)
	take(names[brisker], true, 0)
	take(names[slow], false, 20*time.Millisecond)
	take(deadLetters, false, 0)
	take(expiry, false, 0)

	sum := summary{}
	look := func() {
		now, err := c.broker.Anonymous()
		if err != nil {
			c.t.Fatal(err)
		}
		sum.memory, sum.disk = max(sum.memory, now), max(sum.disk, usage(c.t, data))
	}
	between := false
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for time.Since(c.begun) < d {
		select {
		case err := <-failed:
			c.t.Fatalf("%v\n%s", err, c.broker.Log())
		case <-tick.C:
			look()
		}
		if !between && time.Since(c.begun) > d/2 {
			between = true
			c.publish(ctx, kept, keptCount)
		}
	}
	c.ended.Store(true)
	c.book.end()
	producers.Wait()
	sum.took = time.Since(c.begun)
	for deadline := time.Now().Add(60 * time.Second); c.book.missing() > 0; time.Sleep(50 * time.Millisecond) {
		look()
		select {
		case err := <-failed:
			c.t.Fatalf("%v\n%s", err, c.broker.Log())
		default:
		}
		if time.Now().After(deadline) {
			c.t.Errorf("%d messages are not delivered 60 s after the last was sent", c.book.missing())
			break
		}
	}
	cancel()
	consumers.Wait()
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	for q := range queues {
		sum.accepted += c.book.accepted[q].size()
		sum.settled += c.book.gone[q].size()
	}
	sum.dead, sum.expired = c.book.dead, c.book.expired
	return sum
}

// produce sends until the end, window messages at a time.
func (c *churn) produce(ctx context.Context, queue int) error {
	conn, s, err := c.session(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	to, err := s.NewSender(ctx, names[queue], nil)
	if err != nil {
		return err
	}
	var sequence atomic.Uint64
	errs := make(chan error, window)
	for range window {
		go func() {
			for c.book.send(queue, limit(queue, c.begun), c.ended.Load) {
				m := mark{queue, sequence.Add(1)}
				message := amqp.NewMessage(m.body())
				message.Header = &amqp.MessageHeader{Durable: true, Priority: uint8(m.hash() >> 60)}
				if queue == lapsing {
					message.Header.TTL = time.Duration(50+m.hash()>>50%500) * time.Millisecond
				}
				if err := to.Send(ctx, message, nil); err != nil {
					errs <- err
					return
				}
				c.book.accept(m)
			}
			errs <- nil
		}()
	}
	for range window {
		err = errors.Join(err, <-errs)
	}
	return err
}

// settle decides about what comes from a queue until ctx ends.
func (c *churn) settle(ctx context.Context, address string, second bool, pause time.Duration) error {
	conn, s, err := c.session(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	o := &amqp.ReceiverOptions{Credit: 400}
	if second {
		o.SettlementMode = amqp.ReceiverSettleModeSecond.Ptr()
	}
	from, err := s.NewReceiver(ctx, address, o)
	if err != nil {
		return err
	}
	var settling sync.WaitGroup
	defer settling.Wait()
	turns := make(chan struct{}, 256) // settlements under way
	for {
		message, err := from.Receive(ctx, nil)
		if err != nil {
			return err
		}
		m, err := read(message.GetData())
		if err != nil {
			return err
		}
		c.book.arrive(m, address)
		if pause > 0 && !c.ended.Load() {
			time.Sleep(pause)
		}
		if !second {
			if err := c.decide(ctx, from, message, m, address); err != nil {
				return err
			}
			continue
		}
		turns <- struct{}{}
		settling.Go(func() {
			defer func() { <-turns }()
			if err := c.decide(ctx, from, message, m, address); err != nil && ctx.Err() == nil {
				c.book.mu.Lock()
				c.book.fault("message %v: %v", m, err)
				c.book.mu.Unlock()
			}
		})
	}
}

func (c *churn) decide(ctx context.Context, from *amqp.Receiver, message *amqp.Message, m mark, address string) error {
	if address != deadLetters && address != expiry {
		switch m.hash() >> 40 % 10 {
		case 0:
			return from.RejectMessage(ctx, message, nil)
		case 1:
			return from.ModifyMessage(ctx, message, &amqp.ModifyMessageOptions{DeliveryFailed: true})
		}
	}
	c.book.take(m, address)
	return from.AcceptMessage(ctx, message)
}

// drain waits until the broker says that only what is kept is there.
func (c *churn) drain() {
	c.t.Helper()
	var waiting string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if waiting = c.waiting(keptCount); waiting == "" {
			return
		}
	}
	c.t.Errorf("not drained: %s", waiting)
}

// left compares what the broker has with what should be there: n messages that are kept, nothing else.
func (c *churn) left(n int) {
	c.t.Helper()
	if waiting := c.waiting(n); waiting != "" {
		c.t.Errorf("after a restart, or at the end: %s", waiting)
	}
}

// waiting says what is there besides n messages that are kept; "" for nothing.
func (c *churn) waiting(n int) (what string) {
	c.t.Helper()
	text, err := c.broker.Get("/api/v1/queues")
	if err != nil {
		c.t.Fatal(err)
	}
	var all []struct {
		Name     string
		Messages int
		Bytes    int64
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		c.t.Fatal(err)
	}
	for _, q := range all {
		if want := n; q.Name == kept && q.Messages != want || q.Name != kept && q.Messages != 0 {
			what += fmt.Sprintf("%s has %d messages of %d bytes; ", q.Name, q.Messages, q.Bytes)
		}
	}
	return what
}

// rest waits until the store has given back what it doesn't need.
func (c *churn) rest(data string) {
	for deadline := time.Now().Add(60 * time.Second); usage(c.t, data) > diskBase && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
}

// metrics logs what the store has done.
func (c *churn) metrics() {
	c.t.Helper()
	line := ""
	for _, name := range []string{
		"segments", "segments_freed_total", "relocated_total", "written_bytes_total", "checkpoints_total", "waited_seconds_total",
		"flush_seconds_max", "bad_bodies_total", "alarms_total",
	} {
		v, err := c.broker.Metric("leto_store_" + name)
		if err != nil {
			c.t.Fatal(err)
		}
		line += fmt.Sprintf("%s %.6g, ", name, v)
	}
	c.t.Log(line)
}
