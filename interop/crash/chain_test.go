package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
)

type broker = harness.Broker

const producers = 4

// chain is one data folder and all that happens to it. Each round starts from what the one before has left.
type chain struct {
	t          *testing.T
	seed       uint64
	rng        *rand.Rand
	ledger     *ledger
	data       string
	args       []string
	tight      bool // so little memory that messages may be refused, and that a backlog is in the store only
	pause      int  // of producers now and then, at most: in ms
	subscribed bool
	producers  []*producer
	bytes      atomic.Int64 // delivered
	figures    figures
}

func newChain(t *testing.T, seed uint64, number int) *chain {
	t.Helper()
	folder, err := os.MkdirTemp("", "leto-crash-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d: the data folder is kept: %s", seed, folder)
			return
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	c := &chain{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), ledger: newLedger(seed), data: filepath.Join(folder, "data"), pause: 30,
		args: []string{
			"--log-level", "warn",
			"--set", fmt.Sprintf("address-settings[%s].max-delivery-attempts=%d", sources[queueC], fewAttempts),
		},
	}
	if number%2 == 1 {
		c.tight = true
		c.args = append(c.args, "--set", "limits.memory=48MiB", "--set", "store.apply-max=4MiB")
	}
	for i := range uint16(producers) {
		c.producers = append(c.producers, &producer{c: c, number: i})
	}
	return c
}

// run kills the broker n times while it works, and then takes everything out. What else happens to it comes in between:
// it is killed while it starts, or stopped in order.
func (c *chain) run(n int) {
	c.subscribe()
	for c.figures.killed < n && !c.ledger.failed() {
		c.interrupt()
		b := c.start()
		if c.rng.IntN(2) == 0 {
			c.look(b)
		}
		c.load(b, c.rng.IntN(8) == 0)
	}
	if !c.ledger.failed() {
		c.settle()
	}
	for _, fault := range c.ledger.faults {
		c.t.Error(fault)
	}
	c.figures.tally = c.ledger.tally
	c.figures.bytes = c.bytes.Load()
	c.t.Logf("seed %d: %v", c.seed, &c.figures)
}

// start starts the broker on the chain's folder.
func (c *chain) start() *broker {
	c.t.Helper()
	begin := time.Now()
	b, err := harness.Begin(c.data, c.args...)
	if err == nil {
		err = b.Ready()
	}
	if err != nil {
		c.t.Fatalf("seed %d, round %d: start: %v", c.seed, c.ledger.round, err)
	}
	c.figures.starts = append(c.figures.starts, time.Since(begin))
	return b
}

// interrupt kills the broker while it starts, now and then more than once.
func (c *chain) interrupt() {
	c.t.Helper()
	for c.rng.IntN(5) == 0 {
		b, err := harness.Begin(c.data, c.args...)
		if err != nil {
			c.t.Fatal(err)
		}
		time.Sleep(time.Duration(c.rng.IntN(120)) * time.Millisecond)
		if err := b.Kill(); err != nil {
			c.t.Fatalf("seed %d, round %d: killed while it starts: %v", c.seed, c.ledger.round, err)
		}
		c.figures.interrupted++
	}
}

// subscribe makes both subscriptions. From then on they have to be there.
func (c *chain) subscribe() {
	c.t.Helper()
	b := c.start()
	for _, from := range []uint8{queueFirst, queueSlow} {
		r, err := consume(c, b, from, false, false, c.rng)
		if err == nil {
			err = r.hangup()
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	c.subscribed = true
	if err := b.Kill(); err != nil {
		c.t.Fatal(err)
	}
}

// look browses all queues; the ones that messages leave for come last.
func (c *chain) look(b *broker) {
	c.t.Helper()
	c.ledger.beginLook()
	for from := range uint8(allQueues) {
		if err := browse(c, b, from, c.rng); err != nil {
			c.ledger.complain("browsing %s: %v\n%s", sources[from], err, b.Log())
			return
		}
	}
	c.ledger.endLook()
	c.figures.most = max(c.figures.most, c.ledger.waiting())
}

// moment is how long a broker works before it is killed: mostly less than it takes to write the index, sometimes longer
// than from one checkpoint to the next.
func moment(rng *rand.Rand) time.Duration {
	longest := 400
	switch k := rng.IntN(20); {
	case k == 0:
		longest = 4000
	case k < 5:
		longest = 1500
	}
	return time.Duration(5+rng.IntN(longest)) * time.Millisecond
}

// load has clients work until the broker is killed, or told to stop.
func (c *chain) load(b *broker, stop bool) {
	c.t.Helper()
	var dying atomic.Bool
	var clients sync.WaitGroup
	failed := make(chan error, 64)
	client := func(what string, run func(rng *rand.Rand) error) {
		rng := rand.New(rand.NewPCG(c.rng.Uint64(), 2))
		clients.Go(func() {
			if err := run(rng); !dying.Load() {
				failed <- fmt.Errorf("%s: %w", what, err)
			}
		})
	}
	for _, p := range c.producers {
		client("producer", func(rng *rand.Rand) error { return p.run(b, rng) })
	}
	take := func(kind func(*chain, *broker, uint8, *rand.Rand) error, from uint8) {
		client(sources[from], func(rng *rand.Rand) error { return kind(c, b, from, rng) })
	}
	take(eager, queueA)
	take(coming, queueA)
	take(eager, queueB)
	take(drainer, queueB)
	take(drainer, queueC)
	take(coming, queueC)
	take(eager, queueFirst)
	if c.rng.IntN(2) == 0 {
		take(drainer, queueSlow)
	}
	if c.rng.IntN(2) == 0 {
		take(drainer, deadLetters)
	}
	if c.rng.IntN(2) == 0 {
		take(eager, expired)
	}
	select {
	case err := <-failed:
		c.ledger.complain("%v\n%s", err, b.Log())
	case <-time.After(moment(c.rng)):
	}
	dying.Store(true)
	var err error
	if stop {
		c.figures.stopped++
		c.ledger.end()
		err = b.Stop()
	} else {
		c.figures.killed++
		err = b.Kill()
	}
	if err != nil {
		c.ledger.complain("%v", err)
	}
	clients.Wait()
	c.ledger.restart()
}

// settle takes out all messages, and sees that they stay away.
func (c *chain) settle() {
	c.t.Helper()
	b := c.start()
	c.look(b)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		for from := range uint8(allQueues) {
			if _, err := empty(c, b, from, c.rng); err != nil {
				c.ledger.complain("emptying %s: %v\n%s", sources[from], err, b.Log())
				return
			}
		}
		if c.ledger.waiting() == 0 || time.Now().After(deadline) {
			break
		}
	}
	c.ledger.finish()
	c.bare(b)
	if err := b.Kill(); err != nil {
		c.ledger.complain("%v", err)
	}
	c.ledger.restart()
	b = c.start()
	c.look(b)
	c.bare(b)
	for _, from := range []uint8{queueFirst, queueSlow} {
		if err := present(b, subscribed(from)); err != nil {
			c.ledger.complain("subscription %s: %v", subscribed(from), err)
		}
	}
	if err := b.Stop(); err != nil {
		c.ledger.complain("%v", err)
	}
}

// bare wants every queue to be empty by the broker's own account.
func (c *chain) bare(b *broker) {
	c.t.Helper()
	text, err := b.Get("/api/v1/queues")
	if err != nil {
		c.t.Fatal(err)
	}
	var all []struct {
		Name       string
		Messages   int
		Delivering int
		Bytes      int64
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		c.t.Fatal(err)
	}
	var found []string
	for _, q := range all {
		found = append(found, q.Name)
		if q.Messages != 0 || q.Delivering != 0 || q.Bytes != 0 {
			c.ledger.complain("queue %s is not empty: %d messages, %d in delivery, %d bytes", q.Name, q.Messages, q.Delivering, q.Bytes)
		}
	}
	for _, want := range names {
		if !slices.Contains(found, want) {
			c.ledger.complain("queue %s is gone; there are %q", want, found)
		}
	}
}

// present finds a durable subscription by its name alone.
func present(b *broker, name string) error {
	conn, refusal, err := attach(b, container, terms{name: name})
	if err != nil {
		return err
	}
	if refusal != "" {
		return errors.New(refusal)
	}
	return conn.Hangup()
}

// figures are what the closing line says.
type figures struct {
	tally
	killed, stopped, interrupted int
	starts                       []time.Duration
	bytes                        int64
	most                         int // messages waiting at a restart
}

func (f *figures) add(g *figures) {
	f.sent += g.sent
	f.accepted += g.accepted
	f.refused += g.refused
	f.delivered += g.delivered
	f.redelivered += g.redelivered
	f.claimed += g.claimed
	f.confirmed += g.confirmed
	f.dead += g.dead
	f.lapsed += g.lapsed
	f.looked += g.looked
	f.lost += g.lost
	f.killed += g.killed
	f.stopped += g.stopped
	f.interrupted += g.interrupted
	f.starts = append(f.starts, g.starts...)
	f.bytes += g.bytes
	f.most = max(f.most, g.most)
}

func (f *figures) String() string {
	slices.Sort(f.starts)
	var median, longest time.Duration
	if n := len(f.starts); n > 0 {
		median, longest = f.starts[n/2], f.starts[n-1]
	}
	return fmt.Sprintf("%d kills under load, %d while starting, %d stops; %d messages sent, %d accepted, %d refused; "+
		"%d delivered (%d again, %d MiB), %d settled, %d of them confirmed, %d lost with their connection; %d dead letters, %d expired; "+
		"%d looked at, at most %d waiting at a restart; %d starts: p50 %v, max %v",
		f.killed, f.interrupted, f.stopped, f.sent, f.accepted, f.refused,
		f.delivered, f.redelivered, f.bytes>>20, f.claimed, f.confirmed, f.lost, f.dead, f.lapsed,
		f.looked, f.most, len(f.starts), median.Round(time.Millisecond), longest.Round(time.Millisecond))
}
