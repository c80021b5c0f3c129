package engine

import (
	"context"
	"fmt"

	"github.com/letomq/leto/engine/queue"
)

// Progress is what a command over the messages of a queue has come to.
type Progress struct {
	Looked  int // messages looked at
	Done    int // of those, purged, moved or sent back
	Skipped int // of those that it was about, left where they were
}

// clearQuantum is how many messages of one queue an administrator's command takes at once: what others wait for its
// guard, or for the window, stays a matter of a millisecond.
const clearQuantum = 256

// Purge is PurgeAll without an end, and returns how many messages there were.
func (b *Broker) Purge(address, queueName string) (int, error) {
	p, err := b.PurgeAll(context.Background(), address, queueName, nil)
	return p.Done, err
}

// PurgeAll removes the messages that wait in a queue now, also for their time, a bounded number at a time, until ctx
// ends: what is gone by then is gone. An empty queue name means the queue of the address's name. It returns when the
// store has let go of them. report, which may be nil, hears how far it is.
func (b *Broker) PurgeAll(ctx context.Context, address, queueName string, report func(Progress)) (Progress, error) {
	c, err := b.rescheduling(address, queueName)
	if err != nil {
		return Progress{}, err
	}
	if err := c.run(ctx, Selection{}, report, c.cancel); err != nil {
		return c.Progress, err
	}
	p, q := &c.Progress, c.queue
	for first, more := true, true; more; first = false {
		if err := ctx.Err(); err != nil {
			return *p, err
		}
		b.committer.await()
		var fx []queue.Effect
		q.guard.enter()
		if q.deleted {
			q.guard.leave()
			return *p, fmt.Errorf("queue %s::%s: %w", address, q.name, ErrDeleted)
		}
		elsewhere, n := 0, 0
		if first {
			elsewhere, fx = q.core.PurgeElsewhere(fx)
		}
		n, fx = q.core.PurgeUpTo(c.last, clearQuantum, q.clock(), fx)
		after := q.carryOut(fx, nil)
		q.guard.leave()
		q.after(&after, nil)
		more = n == clearQuantum
		p.Done += elsewhere + n
		p.Looked = p.Done
		if report != nil {
			report(*p)
		}
	}
	if err := b.committer.sync(); err != nil {
		return *p, err
	}
	_, _, err = c.step(Slot{}, Selection{}, c.cancel) // what has begun to wait for its time meanwhile
	return *p, err
}
