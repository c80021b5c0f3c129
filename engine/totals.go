package engine

import (
	"sync/atomic"

	"github.com/letomq/leto/engine/queue"
)

// totals are the broker's sums that can't be had by adding up what is there.
type totals struct {
	addresses, queues atomic.Int64
	dropped, unrouted atomic.Uint64
	duplicates        atomic.Uint64
	lost              atomic.Uint64 // spilled and not read again

	added, acknowledged, expired, killed atomic.Uint64 // of queues that have been deleted
}

// retire adds the counters of a queue that is deleted.
func (t *totals) retire(c queue.Counters) {
	t.added.Add(c.Added)
	t.acknowledged.Add(c.Acknowledged)
	t.expired.Add(c.Expired)
	t.killed.Add(c.Killed)
}
