package bench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/letomq/leto/codec"
)

// run is one measurement under way.
type run struct {
	options     *Options
	id          uint64
	clock       clock
	ledger      *ledger
	ledgers     []*ledger     // of a topic: one for each consumer
	filled      atomic.Uint64 // the run whose messages are drained
	sent        atomic.Uint64
	received    atomic.Uint64
	consumers   []*consumer
	foreign     atomic.Uint64
	reported    []uint64 // by producer; each owns its own
	stopSending context.Context
	goal        atomic.Uint64 // messages to arrive; 0: not known yet
	complete    chan struct{}
	once        sync.Once
	lastArrival atomic.Int64
}

// measures reports whether what was due then belongs to the measurement.
func (r *run) measures(due int64) bool { return due >= int64(r.options.Warmup) }

// ahead reports whether producers have to wait for consumers.
func (r *run) ahead() bool {
	limit := uint64(r.options.Ahead)
	if limit == 0 {
		return false
	}
	arrived := r.received.Load()
	if r.options.Topic {
		arrived = math.MaxUint64
		for _, c := range r.consumers {
			arrived = min(arrived, c.arrived.Load())
		}
	}
	return r.sent.Load() >= arrived+limit
}

// moment is what had come to pass at one time of the run.
type moment struct {
	at             time.Duration // since its start
	sent, received uint64
	broker, client usage
}

func (r *run) moment() moment {
	return moment{
		at: time.Duration(r.clock.now()), sent: r.sent.Load(), received: r.received.Load(),
		broker: usageOf(r.options.PID), client: usageOfOne(os.Getpid()),
	}
}

// newHistogram counts nanoseconds; what is quicker than one counts as one.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(10*time.Minute), 3) }

func (r *run) arrived(n uint64) {
	total := r.received.Add(n)
	r.lastArrival.Store(r.clock.now())
	if goal := r.goal.Load(); goal > 0 && total >= goal {
		r.once.Do(func() { close(r.complete) })
	}
}

// Run puts the load on the broker and measures until all is sent and received,
// or ctx ends. It returns a report also with an error.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &run{options: &o, id: rand.Uint64(), ledger: newLedger(o.Producers), complete: make(chan struct{}), reported: make([]uint64, o.Producers)}
	if o.Producers == 0 {
		r.ledger.open = true
		r.goal.Store(o.Count)
	}
	consumers, err := attachAll(r, o.Consumers, codec.RoleReceiver, newConsumer)
	if err != nil {
		return nil, err
	}
	r.consumers = consumers
	id := 0
	producers, err := attachAll(r, o.Producers, codec.RoleSender, func(r *run, p *peer) *producer {
		id++
		return newProducer(r, id-1, p)
	})
	if err != nil {
		return nil, err
	}
	return r.measure(ctx, producers, consumers)
}

func attachAll[T any](r *run, n int, role codec.Role, build func(*run, *peer) T) ([]T, error) {
	var all []T
	for i := range n {
		p, err := dial(r.options, role, r.options.queue(i))
		if err != nil {
			return nil, err
		}
		all = append(all, build(r, p))
	}
	return all, nil
}

func (r *run) measure(ctx context.Context, producers []*producer, consumers []*consumer) (*Report, error) {
	o := r.options
	work, finish := context.WithCancel(ctx)
	defer finish()
	r.clock = clock{start: time.Now()}
	stop, cancelSending := ctx, context.CancelFunc(func() {})
	if o.Duration > 0 {
		stop, cancelSending = context.WithTimeout(ctx, o.Warmup+o.Duration)
	}
	defer cancelSending()
	r.stopSending = stop
	first := r.moment()
	peak := watchResident(o.PID)

	var failures []error
	var mu sync.Mutex
	note := func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			mu.Lock()
			failures = append(failures, err)
			mu.Unlock()
			finish()
		}
	}
	var sending, receiving sync.WaitGroup
	for _, c := range consumers {
		receiving.Go(func() { note(c.work(work)) })
	}
	for _, p := range producers {
		sending.Go(func() { note(p.work(work)) })
	}
	progress := r.report()
	begin := first
	if o.Warmup > 0 {
		select {
		case <-time.After(o.Warmup):
			begin = r.moment()
		case <-work.Done():
		}
	}
	sending.Wait()
	sendTime := time.Duration(r.clock.now())
	if len(consumers) > 0 {
		r.await(work, producers)
	}
	end := r.moment()
	finish()
	receiving.Wait()
	progress()
	rep := r.result(producers, consumers)
	rep.rates(begin, end, sendTime, time.Duration(r.lastArrival.Load()))
	if o.PID > 0 {
		rep.Broker = brokerOf(begin, end)
		rep.Broker.ResidentBefore, rep.Broker.ResidentPeak = first.broker.resident, peak()
	}
	for _, p := range producers {
		p.close()
	}
	for _, c := range consumers {
		c.close()
	}
	if len(failures) == 0 && ctx.Err() != nil {
		failures = append(failures, ctx.Err())
	}
	return rep, errors.Join(failures...)
}

// await waits until everything sent has arrived, or nothing has for too long.
func (r *run) await(ctx context.Context, producers []*producer) {
	if len(producers) > 0 {
		var sent uint64
		for _, p := range producers {
			sent += p.sent - p.refused
		}
		r.goal.Store(max(r.options.goal(sent), 1))
		r.arrived(0)
	}
	start := r.clock.now()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-r.complete:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
			quiet := r.clock.now() - max(start, r.lastArrival.Load())
			if quiet > int64(r.options.Idle) || r.options.Producers == 0 && r.stopSending.Err() != nil {
				return
			}
		}
	}
}

// report calls Progress once a second until the returned function is called.
func (r *run) report() func() {
	if r.options.Progress == nil {
		return func() {}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				r.options.Progress(r.sent.Load(), r.received.Load())
			}
		}
	})
	return func() { close(stop); wg.Wait() }
}

// Latency is a distribution in microseconds.
type Latency struct {
	P50  float64 `json:"p50_us"`
	P90  float64 `json:"p90_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`
	Max  float64 `json:"max_us"`
}

func latencyOf(h *hdrhistogram.Histogram) *Latency {
	if h.TotalCount() == 0 {
		return nil
	}
	us := func(ns int64) float64 { return math.Round(float64(ns)/100) / 10 }
	return &Latency{P50: us(h.ValueAtQuantile(50)), P90: us(h.ValueAtQuantile(90)), P99: us(h.ValueAtQuantile(99)), P999: us(h.ValueAtQuantile(99.9)), Max: us(h.Max())}
}

// Report is what a run measured. Counts are of the whole run, its warm-up
// included; rates, latencies and costs are of what came after that.
type Report struct {
	Sent        uint64  `json:"sent"`
	Received    uint64  `json:"received"`
	Refused     uint64  `json:"refused"`
	Lost        uint64  `json:"lost"`
	Duplicates  uint64  `json:"duplicates"`
	OutOfOrder  uint64  `json:"out_of_order"`
	Foreign     uint64  `json:"foreign"` // of another run, or not of this program
	Seconds     float64 `json:"seconds"`
	SendRate    float64 `json:"send_per_second"`
	ReceiveRate float64 `json:"receive_per_second"`
	// Confirm is from a producer's send to the broker's outcome, Delivery to the
	// consumer; with a rate both begin when the message was due, and Late is from
	// then to the send.
	Confirm  *Latency `json:"confirm,omitempty"`
	Delivery *Latency `json:"delivery,omitempty"`
	Late     *Latency `json:"late,omitempty"`
	// ClientCPU is what this program took per message, in microseconds.
	ClientCPU float64 `json:"client_cpu_us_per_message"`
	Broker    *Broker `json:"broker,omitempty"`
}

// Broker is what the broker's processes took.
type Broker struct {
	CPU            float64 `json:"cpu_us_per_message"` // of those sent or received, whichever are more
	User           float64 `json:"user_us_per_message"`
	System         float64 `json:"system_us_per_message"`
	ResidentBefore int64   `json:"resident_before_bytes"`
	ResidentPeak   int64   `json:"resident_peak_bytes"`
}

func perMessage(d time.Duration, n uint64) float64 {
	if n == 0 {
		return 0
	}
	return math.Round(float64(d.Nanoseconds())/float64(n)/10) / 100
}

// handled is how many messages there were between two moments.
func handled(begin, end moment) uint64 { return max(end.sent-begin.sent, end.received-begin.received) }

func brokerOf(begin, end moment) *Broker {
	n, took := handled(begin, end), end.broker.less(begin.broker)
	return &Broker{CPU: perMessage(took.cpu(), n), User: perMessage(took.user, n), System: perMessage(took.system, n)}
}

// rates fills in what is per second and per message between two moments.
func (rep *Report) rates(begin, end moment, lastSend, lastArrival time.Duration) {
	rep.Seconds = max(lastSend, lastArrival).Seconds()
	if d := lastSend - begin.at; d > 0 {
		rep.SendRate = math.Round(float64(end.sent-begin.sent) / d.Seconds())
	}
	if d := lastArrival - begin.at; d > 0 {
		rep.ReceiveRate = math.Round(float64(end.received-begin.received) / d.Seconds())
	}
	rep.ClientCPU = perMessage(end.client.less(begin.client).cpu(), handled(begin, end))
}

func (r *run) result(producers []*producer, consumers []*consumer) *Report {
	rep := &Report{Foreign: r.foreign.Load()}
	confirm, delivery, late := newHistogram(), newHistogram(), newHistogram()
	for _, p := range producers {
		rep.Sent += p.sent
		rep.Refused += p.refused
		confirm.Merge(p.latency)
		late.Merge(p.late)
	}
	for _, c := range consumers {
		rep.Received += c.received
		rep.OutOfOrder += c.disorder
		delivery.Merge(c.latency)
	}
	var once uint64
	for _, l := range append(r.ledgers, r.ledger) {
		rep.Foreign += l.foreign
		for i := range l.producers {
			once += l.producers[i].received
			rep.Duplicates += l.producers[i].duplicates
		}
	}
	switch goal := r.options.goal(rep.Sent - rep.Refused); {
	case len(producers) == 0:
		rep.Lost = r.ledger.gaps()
	case len(consumers) > 0:
		rep.Lost = goal - min(once, goal)
	}
	rep.Confirm, rep.Delivery, rep.Late = latencyOf(confirm), latencyOf(delivery), latencyOf(late)
	return rep
}
