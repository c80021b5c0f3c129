package engine

import (
	"context"
	"fmt"
	"sync"
)

// Place is a place in the order of a queue: behind the message of this priority and number. The zero value is the
// beginning.
type Place struct {
	Priority uint8
	Number   uint64
}

// scanBytes is about what a scan looks at at once, in bytes of payloads.
const scanBytes = 1 << 20

// scan looks through what waits in a queue, some messages at a time, whatever consumers do to it meanwhile. Messages that
// come after it has begun are not for it.
type scan struct {
	queue    *boundQueue
	consumer *Consumer
	given    uint64
	largest  int // bytes of a payload, of those given last
	ended    chan error
	drained  chan struct{}

	mu    sync.Mutex
	batch []Delivery
}

func (s *scan) Deliver(d Delivery) {
	s.mu.Lock()
	s.batch = append(s.batch, d)
	s.mu.Unlock()
}

func (s *scan) Drained() { s.drained <- struct{}{} }

func (s *scan) Settled(uint64) {}

func (s *scan) Unsettled(uint64) {}

func (s *scan) Ended(err error) { s.ended <- err }

// scan begins to look through a queue from a place on. It must be closed.
func (q *boundQueue) scan(from Place) (*scan, error) {
	s := &scan{queue: q, ended: make(chan error, 1), drained: make(chan struct{}, 1), largest: scanBytes / 16}
	s.consumer = &Consumer{queue: q, sink: s, browse: true}
	if from == (Place{}) {
		from.Priority = 9
	}
	last := q.broker().committer.numbers.Load()
	q.guard.enter()
	defer q.guard.leave()
	if q.deleted {
		return nil, fmt.Errorf("queue %s::%s: %w", q.address.name, q.name, ErrDeleted)
	}
	s.consumer.core = q.core.Scan(min(from.Priority, 9), from.Number, last, s.consumer)
	return s, nil
}

// next returns the next messages, most at most, and whether there may be more. They are the caller's until next is
// called again.
func (s *scan) next(ctx context.Context, most int) (batch []Delivery, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	n := min(max(scanBytes/max(s.largest, 1), 1), most, clearQuantum)
	s.mu.Lock()
	s.batch = s.batch[:0]
	s.mu.Unlock()
	s.consumer.Drain(s.given + uint64(n))
	select {
	case <-s.drained:
	case err = <-s.ended:
		s.ended <- err // for whoever asks again
		return nil, false, fmt.Errorf("queue %s::%s: %w", s.queue.address.name, s.queue.name, err)
	case <-ctx.Done():
		return nil, false, ctx.Err()
	case <-s.queue.broker().closing: // nothing is loaded any more
		return nil, false, fmt.Errorf("queue %s::%s: %w", s.queue.address.name, s.queue.name, ErrClosed)
	}
	s.mu.Lock()
	batch = s.batch
	s.mu.Unlock()
	s.given += uint64(len(batch))
	s.largest = 0
	for i := range batch {
		s.largest = max(s.largest, batch[i].Message.Size())
	}
	return batch, len(batch) == n, nil
}

// close ends the scan. Unlike a consumer's, its end has nothing be deleted: it only looked.
func (s *scan) close() {
	q := s.queue
	q.guard.enter()
	if s.consumer.closed {
		q.guard.leave()
		return
	}
	s.consumer.closed = true
	after := q.carryOut(q.core.Detach(s.consumer.core, false, q.clock(), nil), nil)
	q.guard.leave()
	q.after(&after, nil)
}

// Selection says which of the messages that wait in a queue something is about.
type Selection struct {
	Count  int                  // so many at most; 0: all
	Number uint64               // this one only; 0: all
	Match  func(*Delivery) bool // nil: all. It must not keep what it is shown
}

// matches reports whether a message is selected.
func (s *Selection) matches(d *Delivery) bool {
	return (s.Number == 0 || d.Number == s.Number) && (s.Match == nil || s.Match(d))
}

// all reports whether it needn't be asked about any message.
func (s *Selection) all() bool { return s.Match == nil && s.Number == 0 }

// Browse shows messages that wait in a queue, from a place on, in the order in which they would be delivered, until see
// returns false. It returns how many it has looked at, and the place behind the last of them; more says whether there
// may be others. What see is shown is its own to read while it runs.
func (b *Broker) Browse(ctx context.Context, address, queueName string, from Place, sel Selection, see func(*Delivery) bool) (
	looked int, to Place, more bool, err error,
) {
	to = from
	q, err := b.lookup(address, queueName)
	if err != nil {
		return 0, to, false, err
	}
	s, err := q.scan(from)
	if err != nil {
		return 0, to, false, err
	}
	defer s.close()
	most := clearQuantum
	if sel.all() && sel.Count > 0 {
		most = sel.Count
	}
	for seen, more := 0, true; more; {
		var batch []Delivery
		if batch, more, err = s.next(ctx, most); err != nil {
			return looked, to, true, err
		}
		for i := range batch {
			d := &batch[i]
			looked++
			to = Place{min(d.Message.Priority, 9), d.Number}
			if !sel.matches(d) {
				continue
			}
			seen++
			if !see(d) || seen == sel.Count {
				return looked, to, more || i < len(batch)-1, nil
			}
		}
	}
	return looked, to, false, nil
}
