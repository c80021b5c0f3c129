package engine

import (
	"sync"
	"time"
)

// expireQuantum is how many messages of one queue expire under its guard at once.
const expireQuantum = 256

// clockCheck is how long whoever waits for a time of day waits at most before looking at the clock again: it may be set,
// or go on while the machine sleeps.
const clockCheck = time.Minute

// keeper is the one goroutine that waits for time to pass: for the next expiry of any queue, in a heap of those that
// have one. It also passes on that memory has been relieved.
type keeper struct {
	mu   sync.Mutex
	heap []*boundQueue // by due, the earliest first
	wake chan struct{} // the earliest has changed
}

func newKeeper() *keeper { return &keeper{wake: make(chan struct{}, 1)} }

// arm has a queue called at a unix millisecond, or not at all for 0. It may be called under the queue's guard.
func (k *keeper) arm(q *boundQueue, at int64) {
	k.mu.Lock()
	switch {
	case q.due == at:
	case at == 0:
		k.remove(q)
	case q.due == 0:
		q.due, q.place = at, len(k.heap)
		k.heap = append(k.heap, q)
		k.up(q.place)
	default:
		q.due = at
		k.up(q.place)
		k.down(q.place)
	}
	first := len(k.heap) > 0 && k.heap[0] == q
	k.mu.Unlock()
	if first {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// next takes out a queue that is due, or else says when the next one will be: 0 for none.
func (k *keeper) next(now int64) (*boundQueue, int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.heap) == 0 {
		return nil, 0
	}
	q := k.heap[0]
	if q.due > now {
		return nil, q.due
	}
	k.remove(q)
	return q, 0
}

func (k *keeper) remove(q *boundQueue) {
	i, last := q.place, len(k.heap)-1
	k.swap(i, last)
	k.heap[last] = nil
	k.heap = k.heap[:last]
	if i < last {
		k.up(i)
		k.down(i)
	}
	q.due, q.place = 0, 0
}

func (k *keeper) swap(i, j int) {
	k.heap[i], k.heap[j] = k.heap[j], k.heap[i]
	k.heap[i].place, k.heap[j].place = i, j
}

func (k *keeper) up(i int) {
	for i > 0 {
		up := (i - 1) / 2
		if k.heap[up].due <= k.heap[i].due {
			return
		}
		k.swap(i, up)
		i = up
	}
}

func (k *keeper) down(i int) {
	for {
		least := 2*i + 1
		if least >= len(k.heap) {
			return
		}
		if least+1 < len(k.heap) && k.heap[least+1].due < k.heap[least].due {
			least++
		}
		if k.heap[i].due <= k.heap[least].due {
			return
		}
		k.swap(i, least)
		i = least
	}
}

// keep runs until the broker closes.
func (b *Broker) keep() {
	timer := time.NewTimer(clockCheck)
	defer timer.Stop()
	for {
		q, at := b.keeper.next(b.now())
		if q != nil {
			b.committer.await()
			q.pass()
			continue
		}
		wait := clockCheck
		if left := at - b.now(); at != 0 && left < wait.Milliseconds() { // in milliseconds: it may be too far away to be a Duration
			wait = time.Duration(left) * time.Millisecond
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-b.keeper.wake:
		case <-b.memory.wake:
			b.memory.relieve()
		case <-b.memory.ample:
			b.loader.resume()
		case <-b.closing:
			return
		}
	}
}
