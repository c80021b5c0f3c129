package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a broker under test in a bubble of its own time, with a store that outlives it.
type world struct {
	*engine.Broker
	t        *testing.T
	store    engine.Store
	opts     engine.Options
	mu       sync.Mutex
	dropped  []engine.Dropped
	failures []error
}

// inWorld runs a test with a broker in a bubble: time stands still until everybody waits.
func inWorld(t *testing.T, opts engine.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	inWorldOn(t, opts, memory.New(), test)
}

func inWorldOn(t *testing.T, opts engine.Options, store engine.Store, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: store, opts: opts}
		w.opts.Observer.Dropped = func(d engine.Dropped) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dropped = append(w.dropped, d)
		}
		w.opts.Observer.StoreFailed = func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failures = append(w.failures, err)
		}
		w.open()
		test(t, w)
		w.finish()
	})
}

func (w *world) open() {
	w.t.Helper()
	b, err := engine.New(w.opts, w.store)
	if err != nil {
		w.t.Fatalf("new: %v", err)
	}
	w.Broker = b
}

// restart closes the broker and builds another one over the same store.
func (w *world) restart() {
	w.t.Helper()
	synctest.Wait()
	w.close()
	w.open()
}

func (w *world) close() {
	w.t.Helper()
	if err := w.Broker.Close(); err != nil {
		w.t.Fatalf("close: %v", err)
	}
}

// finish checks that the broker's memory is accounted for to the last byte, and closes it.
func (w *world) finish() {
	w.t.Helper()
	synctest.Wait()
	for _, a := range w.Addresses() {
		if err := w.Delete(a.Name, ""); err != nil && !errors.Is(err, engine.ErrNotFound) {
			w.t.Errorf("delete %s: %v", a.Name, err)
		}
	}
	synctest.Wait()
	if used := w.Totals().Memory; used != 0 && len(w.failures) == 0 {
		w.t.Errorf("memory: %d bytes used by nothing", used)
	}
	w.close()
}

// producer is a link that publishes, with the verdicts it got.
type producer struct {
	*engine.Producer
	w       *world
	mu      sync.Mutex
	next    uint64
	results map[uint64]engine.Result
	order   []uint64 // tickets as they were confirmed later
}

func (p *producer) Confirmed(ticket uint64, r engine.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.results[ticket]; twice {
		p.w.t.Errorf("ticket %d confirmed twice", ticket)
	}
	p.results[ticket] = r
	p.order = append(p.order, ticket)
}

func (w *world) tryProducer(spec engine.ProducerSpec) (*producer, error) {
	p := &producer{w: w, results: map[uint64]engine.Result{}}
	var err error
	p.Producer, err = w.Producer(spec, p)
	return p, err
}

func (w *world) producer(address string) *producer {
	w.t.Helper()
	return w.producerOf(engine.ProducerSpec{Address: address})
}

func (w *world) producerOf(spec engine.ProducerSpec) *producer {
	w.t.Helper()
	p, err := w.tryProducer(spec)
	if err != nil {
		w.t.Fatalf("producer %+v: %v", spec, err)
	}
	return p
}

// publish publishes and waits for the verdict.
func (p *producer) publish(m *engine.Message) engine.Result {
	p.w.t.Helper()
	return p.publishOnce(m, "")
}

// publishOnce publishes with an id and waits for the verdict.
func (p *producer) publishOnce(m *engine.Message, id string) engine.Result {
	p.w.t.Helper()
	ticket := p.startOnce(m, id)
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	r, decided := p.results[ticket]
	if !decided {
		p.w.t.Fatalf("publish %d: no verdict", ticket)
	}
	return r
}

// start publishes and doesn't wait.
func (p *producer) start(m *engine.Message) uint64 { return p.startOnce(m, "") }

// startOnce publishes with an id and doesn't wait.
func (p *producer) startOnce(m *engine.Message, id string) uint64 {
	p.next++
	var d engine.DuplicateID
	if id != "" {
		d = engine.NewDuplicateID([]byte(id))
	}
	if r, decided := p.PublishOnce(m, d, p.next); decided {
		p.mu.Lock()
		p.results[p.next] = r
		p.mu.Unlock()
	}
	return p.next
}

// send publishes messages with these payloads and expects them to be accepted.
func (p *producer) send(durable bool, payloads ...string) {
	p.w.t.Helper()
	for _, text := range payloads {
		if r := p.publish(msg(text, durable)); r.Verdict != engine.Accepted {
			p.w.t.Fatalf("publish %s: %+v, want accepted", text, r)
		}
	}
}

func msg(payload string, durable bool) *engine.Message {
	return &engine.Message{Payload: []byte(payload), Durable: durable, Priority: 4}
}

// consumer is a link that receives, with all it was given.
type consumer struct {
	*engine.Consumer
	w         *world
	mu        sync.Mutex
	got       []engine.Delivery
	taken     int // of got, by take
	limit     uint64
	drained   int
	settled   []uint64
	unsettled []uint64
	tickets   uint64
	ended     error
}

func (c *consumer) Deliver(d engine.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		c.w.t.Errorf("delivery of %s after the end", d.Message.Payload)
	}
	c.got = append(c.got, d)
}

func (c *consumer) Drained() { c.mu.Lock(); defer c.mu.Unlock(); c.drained++ }

func (c *consumer) Settled(ticket uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = append(c.settled, ticket)
}

func (c *consumer) Unsettled(ticket uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsettled = append(c.unsettled, ticket)
}

func (c *consumer) Ended(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		c.w.t.Errorf("ended twice: %v, %v", c.ended, err)
	}
	c.ended = err
}

func (w *world) tryConsumer(spec engine.ConsumerSpec) (*consumer, error) {
	c := &consumer{w: w}
	var err error
	c.Consumer, err = w.Consumer(spec, c)
	return c, err
}

func (w *world) consumerOf(spec engine.ConsumerSpec) *consumer {
	w.t.Helper()
	c, err := w.tryConsumer(spec)
	if err != nil {
		w.t.Fatalf("consumer %+v: %v", spec, err)
	}
	return c
}

func (w *world) consumer(address string) *consumer {
	w.t.Helper()
	return w.consumerOf(engine.ConsumerSpec{Address: address})
}

// credit allows n more deliveries than were given so far.
func (c *consumer) credit(n int) {
	c.mu.Lock()
	c.limit = uint64(len(c.got) + n)
	c.mu.Unlock()
	c.SetLimit(c.limit)
	synctest.Wait()
}

// take grants credit and returns the next n deliveries, which must be there.
func (c *consumer) take(n int) []engine.Delivery {
	c.w.t.Helper()
	c.mu.Lock()
	missing := n - (len(c.got) - c.taken)
	c.mu.Unlock()
	if missing > 0 {
		c.credit(missing)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) < c.taken+n {
		c.w.t.Fatalf("%s: %d deliveries, want %d", c.Queue(), len(c.got)-c.taken, n)
	}
	c.taken += n
	return c.got[c.taken-n : c.taken]
}

// rest drains the queue and returns what came that take hasn't returned.
func (c *consumer) rest() []engine.Delivery {
	c.w.t.Helper()
	synctest.Wait()
	drained := c.drained
	c.Drain(uint64(len(c.got)) + 1000)
	synctest.Wait()
	if c.drained != drained+1 {
		c.w.t.Fatalf("%s: drained %d times, want once", c.Queue(), c.drained-drained)
	}
	rest := c.got[c.taken:]
	c.taken = len(c.got)
	return rest
}

// settle settles deliveries with one outcome and waits until it holds.
func (c *consumer) settle(o engine.Outcome, ds ...engine.Delivery) {
	c.w.t.Helper()
	c.tickets++
	holds := c.Settle(settlements(ds...), o, c.tickets)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if came := slices.Contains(c.settled, c.tickets); holds == came {
		c.w.t.Errorf("settle: held at once %v, came later %v: want one of them", holds, came)
	}
}

func settlements(ds ...engine.Delivery) []engine.Settlement {
	var batch []engine.Settlement
	for _, d := range ds {
		batch = append(batch, engine.Settlement{Handle: d.Handle, Acquisition: d.Acquisition})
	}
	return batch
}

var (
	accepted = engine.Outcome{Kind: engine.Accepted}
	released = engine.Outcome{Kind: engine.Released}
	rejected = engine.Outcome{Kind: engine.Rejected}
	modified = engine.Outcome{Kind: engine.Modified}
	failed   = engine.Outcome{Kind: engine.Modified, Failed: true}
	notHere  = engine.Outcome{Kind: engine.Modified, UndeliverableHere: true}
)

// texts returns payload and failed attempts of deliveries: "a" or "a+2".
func texts(ds []engine.Delivery) []string {
	all := []string{}
	for _, d := range ds {
		text := string(d.Message.Payload)
		if d.Count > 0 {
			text = fmt.Sprint(text, "+", d.Count)
		}
		all = append(all, text)
	}
	return all
}

// expect checks deliveries by payload and count.
func expect(t *testing.T, what string, ds []engine.Delivery, want ...string) {
	t.Helper()
	if got := texts(ds); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// contents returns what waits in a queue, in order, looking only.
func (w *world) contents(queue string) []string {
	w.t.Helper()
	c := w.consumerOf(engine.ConsumerSpec{Address: queue, Browse: true})
	defer c.Close(engine.ClosingClean)
	return texts(c.rest())
}

func (w *world) expectQueue(queue string, want ...string) {
	w.t.Helper()
	synctest.Wait()
	if got := w.contents(queue); !slices.Equal(got, want) {
		w.t.Errorf("queue %s: %q, want %q", queue, got, want)
	}
}

func (w *world) info(queue string) engine.QueueInfo {
	w.t.Helper()
	synctest.Wait()
	i, err := w.Queue(queue, "")
	if err != nil {
		w.t.Fatalf("queue %s: %v", queue, err)
	}
	return i
}

// annotation returns a delivery's annotation, nil when it has none of that key.
func annotation(d engine.Delivery, key string) any {
	for _, a := range d.Annotations {
		if a.Key == key {
			return a.Value
		}
	}
	return nil
}

// bothKinds runs a test with transient and with durable messages.
func bothKinds(t *testing.T, opts engine.Options, test func(t *testing.T, w *world, durable bool)) {
	for _, durable := range []bool{false, true} {
		name := "transient"
		if durable {
			name = "durable"
		}
		t.Run(name, func(t *testing.T) {
			inWorld(t, opts, func(t *testing.T, w *world) { test(t, w, durable) })
		})
	}
}

// set returns options with settings for all addresses.
func set(s engine.AddressSettings) engine.Options {
	s.Match = "#"
	return engine.Options{Settings: []engine.AddressSettings{s}}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error = %v, want %v", err, want)
	}
}

// later lets time pass.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
