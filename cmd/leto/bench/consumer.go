package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// drained is how many producers of an earlier run a draining one tells apart.
const drained = 1 << 16

// consumer takes and accepts what comes on one link.
type consumer struct {
	*peer
	run      *run
	ledger   *ledger // the run's, or its own where every consumer gets everything
	received uint64
	arrived  atomic.Uint64 // of those, what producers that wait for it know of
	disorder uint64
	owed     []uint32                // deliveries taken and not yet settled
	last     map[uint32]uint64       // next sequence due, by producer
	latency  *hdrhistogram.Histogram // from the producer's Send to here, nanoseconds
	batch    []stamp
	body     []byte
}

func newConsumer(r *run, p *peer) *consumer {
	books := r.ledger
	if r.options.Topic {
		books = newLedger(r.options.Producers)
		r.ledgers = append(r.ledgers, books)
	}
	return &consumer{peer: p, run: r, ledger: books, last: make(map[uint32]uint64), latency: newHistogram()}
}

// work takes messages until the run is over.
func (b *consumer) work(ctx context.Context) error {
	b.grant()
	for ctx.Err() == nil {
		err := b.step(time.Now().Add(100*time.Millisecond), b.handle)
		if len(b.batch) > 0 {
			b.ledger.enter(b.batch)
			b.arrived.Add(uint64(len(b.batch)))
			if b.run.options.Producers > 0 {
				b.run.arrived(uint64(len(b.batch)))
			}
			b.batch = b.batch[:0]
		}
		if errors.Is(err, errDeadline) {
			b.settle() // nobody fills the rest of the range
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	b.settle()
	return b.flush()
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
		b.owed = append(b.owed, ev.DeliveryID)
		if every := b.run.options.AckEvery; every == 0 {
			b.settle()
		} else if len(b.owed) >= every {
			b.settle()
			b.encode()
		}
	}
	b.grant()
}

// settle accepts what was taken since the last time. The machine joins
// neighbours into one disposition until it is asked to encode.
func (b *consumer) settle() {
	for _, id := range b.owed {
		b.link.Session().Dispose(id, codec.Outcome{Kind: codec.StateAccepted})
	}
	b.owed = b.owed[:0]
}

func (b *consumer) take(message []byte) {
	b.received++
	draining := b.run.options.Producers == 0
	if draining { // whatever is there counts
		b.run.arrived(1)
	}
	var s stamp
	ok := len(message) >= b.run.options.Size
	if ok {
		s, ok = readStamp(message[len(message)-b.run.options.Size:])
	}
	if ok && draining { // the first message says which run filled the queue
		b.run.filled.CompareAndSwap(0, s.run)
		ok = s.run == b.run.filled.Load() && s.producer < drained
	}
	if !ok || !draining && s.run != b.run.id {
		b.run.foreign.Add(1)
		return
	}
	if !draining && b.run.measures(s.sent) {
		_ = b.latency.RecordValue(b.run.clock.now() - s.sent)
	}
	if s.sequence < b.last[s.producer] {
		b.disorder++
	}
	b.last[s.producer] = s.sequence + 1
	b.batch = append(b.batch, s)
}
