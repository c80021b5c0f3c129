package bench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
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
	sent        atomic.Uint64
	received    atomic.Uint64
	foreign     atomic.Uint64
	reported    []uint64 // by producer; each owns its own
	stopSending context.Context
	goal        atomic.Uint64 // messages to arrive; 0: not known yet
	complete    chan struct{}
	once        sync.Once
	lastArrival atomic.Int64
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1000, int64(10*time.Minute), 3) }

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
		r.ledger = newLedger(0)
		r.goal.Store(o.Count)
	}
	consumers, err := attachAll(r, o.Consumers, codec.RoleReceiver, newConsumer)
	if err != nil {
		return nil, err
	}
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
		stop, cancelSending = context.WithTimeout(ctx, o.Duration)
	}
	defer cancelSending()
	r.stopSending = stop

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
	sending.Wait()
	sendTime := r.clock.now()
	if len(consumers) > 0 {
		r.await(work, producers)
	}
	finish()
	receiving.Wait()
	progress()
	rep := r.result(producers, consumers, time.Duration(sendTime))
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
		r.goal.Store(max(sent, 1))
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

// Report is what a run measured.
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
	// Confirm is from a producer's send to the broker's outcome, Delivery to the consumer.
	Confirm  *Latency `json:"confirm,omitempty"`
	Delivery *Latency `json:"delivery,omitempty"`
}

func (r *run) result(producers []*producer, consumers []*consumer, sendTime time.Duration) *Report {
	rep := &Report{Foreign: r.foreign.Load() + r.ledger.foreign}
	confirm, delivery := newHistogram(), newHistogram()
	for _, p := range producers {
		rep.Sent += p.sent
		rep.Refused += p.refused
		confirm.Merge(p.latency)
	}
	for _, c := range consumers {
		rep.Received += c.received
		rep.OutOfOrder += c.disorder
		delivery.Merge(c.latency)
	}
	var once uint64
	for i := range r.ledger.producers {
		once += r.ledger.producers[i].received
		rep.Duplicates += r.ledger.producers[i].duplicates
	}
	if len(consumers) > 0 && len(producers) > 0 {
		rep.Lost = rep.Sent - rep.Refused - min(once, rep.Sent-rep.Refused)
	}
	rep.Seconds = max(sendTime.Seconds(), time.Duration(r.lastArrival.Load()).Seconds())
	if sendTime > 0 {
		rep.SendRate = math.Round(float64(rep.Sent) / sendTime.Seconds())
	}
	if last := time.Duration(r.lastArrival.Load()); last > 0 {
		rep.ReceiveRate = math.Round(float64(rep.Received) / last.Seconds())
	}
	rep.Confirm, rep.Delivery = latencyOf(confirm), latencyOf(delivery)
	return rep
}
