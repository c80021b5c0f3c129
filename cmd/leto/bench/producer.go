package bench

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// producer sends its share on one link.
type producer struct {
	*peer
	run     *run
	id      uint32
	share   uint64 // messages to send; 0: until the run's time is over
	sent    uint64
	settled uint64
	refused uint64
	latency *hdrhistogram.Histogram // from when it was due to the broker's outcome, nanoseconds
	late    *hdrhistogram.Histogram // from when it was due to Send, nanoseconds; with a rate only
	times   []int64                 // when a message was due, by sequence modulo inflight
	bodies  [][]byte                // in use until their outcome, by sequence modulo inflight
	pool    int
}

func newProducer(r *run, id int, p *peer) *producer {
	o := r.options
	b := &producer{peer: p, run: r, id: uint32(id), latency: newHistogram(), late: newHistogram()}
	if o.Rate > 0 {
		interval := time.Duration(float64(o.Producers) / o.Rate * float64(time.Second))
		b.pace = &pace{start: interval * time.Duration(id+1) / time.Duration(o.Producers), interval: max(interval, 1)}
	}
	if o.Count > 0 {
		b.share = o.Count / uint64(o.Producers)
		if uint64(id) < o.Count%uint64(o.Producers) {
			b.share++
		}
	}
	// Settled messages are encoded at once: as many bodies as may wait for that.
	b.pool = o.Inflight
	b.times = make([]int64, b.pool)
	b.bodies = make([][]byte, b.pool)
	for i := range b.bodies {
		b.bodies[i] = encode(o)
	}
	return b
}

// encode makes a message: header, and a data section whose stamp is filled in later.
func encode(o *Options) []byte {
	h := codec.Header{Durable: codec.Some(o.Durable)}
	b := h.Append(nil)
	body := make([]byte, o.Size)
	for i := range body {
		body[i] = byte(i)
	}
	return codec.AppendData(b, body)
}

// work sends until its share is out and settled, or the context ends.
func (b *producer) work(ctx context.Context) error {
	stop := b.run.stopSending
	if b.pace != nil {
		ticks, err := newTicker(b.pace.start, b.pace.interval)
		if err != nil {
			return err
		}
		var pacing sync.WaitGroup
		pacing.Go(func() { b.pace.run(ticks, b.socket) })
		defer pacing.Wait()
		defer ticks.close()
	}
	for ctx.Err() == nil {
		b.fill(stop)
		if b.finished(stop) {
			b.run.sent.Add(b.drainSent())
			return nil
		}
		patience := 100 * time.Millisecond
		if b.run.ahead() {
			patience = time.Millisecond // nothing arrives here when it no longer is
		}
		if err := b.step(time.Now().Add(patience), b.handle); err != nil && !errors.Is(err, errDeadline) {
			return err
		}
		b.run.sent.Add(b.drainSent())
	}
	return ctx.Err()
}

func (b *producer) drainSent() uint64 {
	n := b.sent - b.run.reported[b.id]
	b.run.reported[b.id] = b.sent
	return n
}

func (b *producer) over(stop context.Context) bool {
	return b.share > 0 && b.sent >= b.share || stop.Err() != nil
}

// end returns when the schedule ends, in nanoseconds since the run's start: what is due later isn't sent, however late it
// is when the producer is stopped.
func (b *producer) end() int64 {
	if b.run.options.Duration == 0 {
		return math.MaxInt64
	}
	return int64(b.run.options.Warmup + b.run.options.Duration)
}

func (b *producer) finished(stop context.Context) bool {
	if !b.over(stop) || b.link.Queued() > 0 {
		return false
	}
	if err := b.flush(); err != nil {
		return true
	}
	return b.run.options.Settled || b.settled == b.sent
}

// fill sends what credit, inflight and rate allow.
func (b *producer) fill(stop context.Context) {
	for !b.over(stop) && b.link.Credit() > 0 && !b.run.ahead() {
		if b.run.options.Settled {
			if b.link.Queued() >= b.pool {
				if b.flush() != nil || b.link.Queued() >= b.pool {
					return
				}
			}
		} else if b.sent-b.settled >= uint64(b.pool) {
			return
		}
		// A message is as old as its place in the schedule: what a broker that has
		// stalled keeps from being sent has waited all the same.
		now := b.run.clock.now()
		due := now
		if b.pace != nil {
			if due = b.pace.due(b.sent); due > now || due > b.end() {
				return
			}
			if b.run.measures(due) {
				_ = b.late.RecordValue(now - due)
			}
		}
		slot := b.sent % uint64(b.pool)
		body := b.bodies[slot]
		stamp{run: b.run.id, producer: b.id, sequence: b.sent, sent: due}.put(body[len(body)-b.run.options.Size:])
		b.times[slot] = due
		b.link.Send(amqp.Sending{Body: body, Settled: b.run.options.Settled, RefN: b.sent})
		b.sent++
		if b.run.options.Ahead > 0 {
			b.run.sent.Add(b.drainSent())
		}
		if b.sent%64 == 0 && b.machine.Encoded()+b.machine.Queued() > 64<<10 {
			if b.flush() != nil {
				return
			}
		}
	}
}

func (b *producer) handle(ev *amqp.Event) {
	if ev.Kind != amqp.EventOutcome {
		return
	}
	b.settled++
	if ev.State.Kind != codec.StateAccepted {
		b.refused++
	}
	if due := b.times[ev.RefN%uint64(b.pool)]; b.run.measures(due) {
		_ = b.latency.RecordValue(b.run.clock.now() - due)
	}
	if !ev.Settled {
		ev.Session.Settle(ev.DeliveryID, ev.State.Outcome)
	}
}
