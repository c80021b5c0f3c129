//go:build linux

package powerloss

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/letomq/leto/interop/harness"
)

// brokerShare is how many power failures of a store there are for one of a whole broker, which takes longer.
const brokerShare = 8

var brokerQueues = []string{"loss.a", "loss.b"}

// TestBroker cuts the power while clients publish to a broker and consume from it. On each copy a broker starts by
// itself and shows all that was accepted and not asked to be settled, and nothing whose settlement was confirmed.
func TestBroker(t *testing.T) {
	n := (needed(t) + brokerShare - 1) / brokerShare
	if _, err := harness.Binary(); err != nil {
		t.Fatal(err)
	}
	s := newShelf(t)
	sum := tally{zero: map[string]int{}}
	for number := 0; sum.cuts < n && !t.Failed(); number++ {
		t.Run(fmt.Sprint("chain ", number), func(t *testing.T) {
			c := &brokerChain{
				tally: &sum, shelf: s, rng: rand.New(rand.NewPCG(seed(), 1<<32+uint64(number))), number: number, messages: map[string]*fate{},
			}
			c.run(t, min(generations-number%2, n-sum.cuts))
		})
	}
	sum.report(t)
}

// fate is what is known of a message.
type fate struct {
	accepted bool // the broker has said that it has it
	asked    bool // a consumer has asked to settle it
	settled  bool // the broker has confirmed that
}

// brokerChain is a series of power failures of a broker.
type brokerChain struct {
	*tally
	*shelf
	rng    *rand.Rand
	number int

	mu       sync.Mutex
	messages map[string]*fate
	made     int
}

func (c *brokerChain) run(t *testing.T, generations int) {
	d := c.newDisk(t, 2<<30)
	defer func() { d.drop(t) }()
	for generation := range generations {
		image := c.generation(t, d, generation)
		if t.Failed() {
			return
		}
		d.drop(t)
		d = c.use(t, image)
	}
	b, err := harness.Begin(filepath.Join(d.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	err = b.Ready()
	if err == nil {
		err = c.check(b)
	}
	if err := errors.Join(err, b.Stop()); err != nil {
		t.Errorf("the end: %v", err)
	}
	t.Logf("%d messages", c.made)
}

// generation lets a broker go on from a disk, and returns the image that is left when the power fails.
func (c *brokerChain) generation(t *testing.T, d *disk, generation int) string {
	pristine := c.name()
	if err := clone(d.image, pristine); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(pristine)
	data := filepath.Join(d.dir, "data")
	w, err := newWatcher(data, new(board))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	begun := time.Now()
	b, err := harness.Begin(data)
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	defer func() { // whatever happens
		cancel()
		b.Signal(syscall.SIGKILL)
		<-b.Ended()
		clients.Wait()
	}()
	if generation > 0 && c.rng.IntN(5) == 0 {
		time.Sleep(time.Duration(c.rng.IntN(200)) * time.Millisecond)
	} else {
		if err = b.Ready(); err == nil {
			w.board.open.Store(1)
			c.opening = max(c.opening, time.Since(begun))
			err = c.check(b)
		}
		if err != nil {
			t.Errorf("generation %d: %v\n%s", generation, err, b.Log())
			keep(t, pristine, fmt.Sprintf("broker%d-generation%d.img", c.number, generation))
			return ""
		}
		for i := range 6 {
			clients.Go(func() { c.produce(ctx, b, brokerQueues[i%2], fmt.Sprint(generation, ".", i)) })
		}
		for i := range 2 {
			clients.Go(func() { c.consume(ctx, b, brokerQueues[i], uint64(generation)) })
		}
		target := []happening{anything, checkpointBegins, checkpointBegins, positionMade, positionNamed, segmentNamed}[c.rng.IntN(6)]
		c.after[target]++
		c.await(w, target)
	}
	if c.rng.IntN(2) == 0 {
		c.stopped++
		b.Signal(syscall.SIGSTOP)
	}
	ignore := func(happening) {}
	_ = w.next(0, ignore)
	open, times := w.now()
	before := c.known()
	image := c.name()
	if err := clone(d.image, image); err != nil {
		t.Fatal(err)
	}
	_ = w.next(0, ignore)
	still, stillTimes := w.now()
	if err := b.Kill(); err != nil {
		t.Error(err)
	}
	cancel()
	clients.Wait()
	c.count(open, still, times, stillTimes)

	c.mu.Lock()
	defer c.mu.Unlock()
	for id, f := range c.messages {
		was := before[id]
		// What clients were told after the copy had begun needn't be in it; what they asked for may be.
		f.accepted, f.settled = was.accepted, was.settled
	}
	return image
}

// await waits for the moment.
func (c *brokerChain) await(w *watcher, target happening) {
	begin := time.Now()
	warm := time.Duration(300+c.rng.IntN(2000)) * time.Millisecond
	for seen := false; !seen; {
		_ = w.next(time.Millisecond, func(h happening) { seen = seen || h == target })
		switch past := time.Since(begin); {
		case past < warm:
			seen = false
		case target == anything || past > warm+2*longest:
			seen = true
		}
	}
}

// known is a copy of what is known.
func (c *brokerChain) known() map[string]fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]fate, len(c.messages))
	for id, f := range c.messages {
		all[id] = *f
	}
	return all
}

// check looks at all that the broker has. What isn't there must never come back; what is there has to stay.
func (c *brokerChain) check(b *harness.Broker) error {
	seen := map[string]bool{}
	for _, queue := range brokerQueues {
		if err := c.browse(b, queue, seen); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var lost, back []string
	for id, f := range c.messages {
		switch {
		case seen[id] && f.settled:
			back = append(back, id)
		case !seen[id] && f.accepted && !f.asked:
			lost = append(lost, id)
		}
		*f = fate{accepted: seen[id], settled: !seen[id]}
	}
	if len(lost)+len(back) > 0 {
		slices.Sort(lost)
		slices.Sort(back)
		return fmt.Errorf("%d of %d messages are lost: %.200v; %d came back: %.200v", len(lost), len(c.messages), lost, len(back), back)
	}
	return nil
}

// missing says whether something of a queue has to be there that hasn't been seen.
func (c *brokerChain) missing(queue string, seen map[string]bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, f := range c.messages {
		if f.accepted && !f.asked && !seen[id] && id[:len(queue)] == queue {
			return true
		}
	}
	return false
}

func (c *brokerChain) browse(b *harness.Broker, queue string, seen map[string]bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	conn, err := amqp.Dial(ctx, b.URL(), nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return err
	}
	from, err := session.NewReceiver(ctx, queue, &amqp.ReceiverOptions{Credit: 500, SourceDistributionMode: amqp.SourceDistributionModeCopy})
	if err != nil {
		return err
	}
	for {
		wait, done := context.WithTimeout(ctx, 400*time.Millisecond)
		m, err := from.Receive(wait, nil)
		done()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			if !c.missing(queue, seen) {
				return nil
			}
			wait, done = context.WithTimeout(ctx, 5*time.Second)
			m, err = from.Receive(wait, nil)
			done()
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				return nil // it isn't there
			}
		}
		if err != nil {
			return fmt.Errorf("browse %s: %w", queue, err)
		}
		id := string(m.GetData()[:bytesOfID])
		c.mu.Lock()
		f := c.messages[id]
		c.mu.Unlock()
		switch {
		case f == nil:
			return fmt.Errorf("browse %s: %q was never sent", queue, id)
		case seen[id]:
			return fmt.Errorf("browse %s: %q is there twice", queue, id)
		case string(m.GetData()) != body(id):
			return fmt.Errorf("browse %s: %q has another body", queue, id)
		}
		seen[id] = true
		if err := from.AcceptMessage(ctx, m); err != nil {
			return fmt.Errorf("browse %s: %w", queue, err)
		}
	}
}

const bytesOfID = 32

// body is an id and bytes that follow from it, from 0 to 4,000.
func body(id string) string {
	sum := uint64(14695981039346656037)
	for _, b := range []byte(id) {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	more := make([]byte, (sum>>20)%400*(1+9*((sum>>40)%20/19)))
	for i := range more {
		sum = sum*6364136223846793005 + 1442695040888963407
		more[i] = byte(sum >> 56)
	}
	return id + string(more)
}

func (c *brokerChain) produce(ctx context.Context, b *harness.Broker, queue, name string) {
	conn, err := amqp.Dial(ctx, b.URL(), nil)
	if err != nil {
		return
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return
	}
	to, err := session.NewSender(ctx, queue, nil)
	if err != nil {
		return
	}
	for i := 0; ; i++ {
		id := fmt.Sprintf("%-*s", bytesOfID, fmt.Sprint(queue, ".", name, ".", i))
		f := new(fate)
		c.mu.Lock()
		c.messages[id] = f
		c.made++
		c.mu.Unlock()
		m := amqp.NewMessage([]byte(body(id)))
		m.Header = &amqp.MessageHeader{Durable: true, Priority: uint8(i % 10)}
		if err := to.Send(ctx, m, nil); err != nil {
			return
		}
		c.mu.Lock()
		f.accepted = true
		c.mu.Unlock()
	}
}

// consume settles most of what it gets, and gives back some.
func (c *brokerChain) consume(ctx context.Context, b *harness.Broker, queue string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 12))
	conn, err := amqp.Dial(ctx, b.URL(), nil)
	if err != nil {
		return
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return
	}
	from, err := session.NewReceiver(ctx, queue, &amqp.ReceiverOptions{
		Credit: 20, SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(), // so that settlements are confirmed
	})
	if err != nil {
		return
	}
	for {
		var some []*amqp.Message
		m, err := from.Receive(ctx, nil)
		for ; err == nil && m != nil; m = from.Prefetched() {
			some = append(some, m)
		}
		if err != nil {
			return
		}
		var settling sync.WaitGroup // together, as a client does that isn't slow
		for _, m := range some {
			give := rng.IntN(10) == 0
			settling.Go(func() {
				if give {
					_ = from.ReleaseMessage(ctx, m)
					return
				}
				c.mu.Lock()
				f := c.messages[string(m.GetData()[:bytesOfID])]
				f.asked = true
				c.mu.Unlock()
				if err := from.AcceptMessage(ctx, m); err == nil {
					c.mu.Lock()
					f.settled = true
					c.mu.Unlock()
				}
			})
		}
		settling.Wait()
	}
}
