package bench

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// consumer takes and accepts what comes on one link.
type consumer struct {
	*peer
	run      *run
	received uint64
	disorder uint64
	last     map[uint32]uint64       // next sequence due, by producer
	latency  *hdrhistogram.Histogram // from the producer's Send to here, nanoseconds
	batch    []stamp
	body     []byte
}

func newConsumer(r *run, p *peer) *consumer {
	return &consumer{peer: p, run: r, last: make(map[uint32]uint64), latency: newHistogram()}
}

// work takes messages until the run is over.
func (b *consumer) work(ctx context.Context) error {
	b.grant()
	for ctx.Err() == nil {
		err := b.step(time.Now().Add(100*time.Millisecond), b.handle)
		if len(b.batch) > 0 {
			b.run.ledger.enter(b.batch)
			b.run.arrived(uint64(len(b.batch)))
			b.batch = b.batch[:0]
		}
		if err != nil && !errors.Is(err, errDeadline) {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	return nil
}

func (b *consumer) grant() {
	if b.link.Credit() <= int64(b.run.options.Credit/2) {
		b.link.Grant(uint32(b.run.options.Credit))
	}
}

func (b *consumer) handle(ev *amqp.Event) {
	if ev.Kind != amqp.EventTransfer {
		return
	}
	message := ev.Payload
	if !ev.First || !ev.Last {
		if ev.First {
			b.body = b.body[:0]
		}
		b.body = append(b.body, ev.Payload...)
		message = b.body
	}
	if !ev.Last {
		return
	}
	b.take(message)
	if !ev.Settled {
		ev.Session.Dispose(ev.DeliveryID, codec.Outcome{Kind: codec.StateAccepted})
	}
	b.grant()
}

func (b *consumer) take(message []byte) {
	b.received++
	if b.run.options.Producers == 0 { // only draining: whatever is there counts
		b.run.arrived(1)
		return
	}
	if len(message) < b.run.options.Size {
		b.run.foreign.Add(1)
		return
	}
	s, ok := readStamp(message[len(message)-b.run.options.Size:])
	if !ok || s.run != b.run.id {
		b.run.foreign.Add(1)
		return
	}
	_ = b.latency.RecordValue(b.run.clock.now() - s.sent)
	if s.sequence < b.last[s.producer] {
		b.disorder++
	}
	b.last[s.producer] = s.sequence + 1
	b.batch = append(b.batch, s)
}
