package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/letomq/leto/engine/queue"
)

// committer is the one goroutine that writes to the store. While it commits one window, the next one fills: the
// running commit is the timer. After a commit it carries out what waited for it, in order: it makes messages visible,
// ends moves, and confirms. Whatever promises durability leaves from here.
type committer struct {
	store    Store
	failed   func(error)
	finished chan struct{}
	stop     chan struct{} // closed when what has no space needn't be tried again

	maxSteps int
	maxBytes int64

	numbers atomic.Uint64 // given last: one sequence for all queues

	mu     sync.Mutex
	window *window    // being filled
	spare  *window    // empty, or nil while it is being committed
	room   *sync.Cond // the window was taken, or the committer ended
	wake   *sync.Cond // the window has something, or the broker closes
	closed bool       // nothing may enter any more
	ending bool       // to be closed when the window is empty
	err    error      // of the store
}

// window is what is committed next, at once or in few pieces.
type window struct {
	records []Record
	steps   []step
	bytes   int64 // of messages and annotations
	base    int   // where records begins, for what steps say of them: pieces of a window
}

// step is what follows when a window holds.
type step struct {
	kind     stepKind
	producer *Producer // stepPublish, stepDuplicate
	sink     Sink      // stepSettled, stepSync
	ticket   uint64

	message     *queue.Message // stepPublish, stepMove
	target      *boundQueue    // one target, or:
	targets     []*boundQueue
	number      uint64
	count       uint32 // stepMove
	annotations []queue.Annotation
	claim       *claim // stepPublish with an id; stepDuplicate: that of the message that came first
	source      *boundQueue
	entry       *queue.Entry
	reason      string     // stepDrop
	discharge   *discharge // stepDischarge
	from, to    int        // the records of the window that belong to it
}

// stored reports whether records belong to the step.
func (s *step) stored() bool { return s.to > s.from }

// refusable reports whether a full store refuses the step: it brings new messages.
func (s *step) refusable() bool {
	return s.kind == stepPublish || s.kind == stepDischarge && s.discharge.brings
}

type stepKind uint8

const (
	stepPublish   stepKind = iota + 1 // a message becomes visible and is confirmed
	stepDuplicate                     // a message hears what became of the one that came first
	stepMove                          // a message becomes visible elsewhere and leaves its source
	stepDrop                          // a message leaves its source for nowhere; in a discharge only
	stepDischarge                     // a transaction is carried out and confirmed
	stepSettled                       // a settlement is confirmed
	stepSync                          // somebody waits
)

// waiter is the sink of a stepSync.
type waiter struct{ held chan error }

func (waiter) Deliver(queue.Delivery) {}
func (waiter) Drained()               {}
func (w waiter) Settled(uint64)       { w.held <- nil }
func (w waiter) Unsettled(uint64)     {}
func (w waiter) Ended(err error)      { w.held <- err }

// sync waits until what has entered holds. It must not be called under a guard or an address's mu.
func (c *committer) sync() error {
	w := waiter{make(chan error, 1)}
	if err := c.enter(nil, &step{kind: stepSync, sink: w}); err != nil {
		return err
	}
	return <-w.held
}

func newCommitter(store Store, limits Limits, last uint64, failed func(error)) *committer {
	c := &committer{
		store: store, failed: failed, finished: make(chan struct{}), stop: make(chan struct{}),
		window: &window{}, spare: &window{},
		maxSteps: limits.WindowRecords, maxBytes: limits.WindowBytes,
	}
	if c.maxSteps <= 0 {
		c.maxSteps = 4096
	}
	if c.maxBytes <= 0 {
		c.maxBytes = 8 << 20
	}
	c.numbers.Store(last)
	c.room, c.wake = sync.NewCond(&c.mu), sync.NewCond(&c.mu)
	return c
}

// await waits while the window is full. It must not be called under a guard.
func (c *committer) await() {
	c.mu.Lock()
	for c.full() && !c.closed {
		c.room.Wait()
	}
	c.mu.Unlock()
}

func (c *committer) full() bool {
	return max(len(c.window.steps), len(c.window.records)) >= c.maxSteps || c.window.bytes >= c.maxBytes
}

// enter puts records and what follows them into the window. It never waits, for it is also called under guards; who
// brings payloads calls await first. A step with a message is given its number, and so are its new entries among the
// records. It returns ErrClosed, or the store's error if there are records; then nothing has entered.
func (c *committer) enter(records []Record, s *step) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if c.err != nil && len(records) > 0 {
		return c.err
	}
	w := c.window
	if s != nil {
		if s.message != nil {
			s.number = c.numbers.Add(1)
			for i := range records {
				if r := &records[i]; r.Kind == RecordEnqueue || r.Kind == RecordMove || r.Kind == RecordRemember {
					r.Number = s.number
				}
			}
			w.bytes += int64(s.message.Size())
		}
		s.from, s.to = len(w.records), len(w.records)+len(records)
		w.steps = append(w.steps, *s)
	}
	for i := range records {
		if a := records[i].Annotations; len(a) > 0 {
			w.bytes += int64(queue.AnnotationBytes(a))
		}
	}
	w.records = append(w.records, records...)
	c.wake.Signal()
	return nil
}

// run commits windows until end is called and all are done.
func (c *committer) run() {
	defer close(c.finished)
	for {
		c.mu.Lock()
		for len(c.window.steps) == 0 && len(c.window.records) == 0 && !c.ending {
			c.wake.Wait()
		}
		w := c.window
		if len(w.steps) == 0 && len(w.records) == 0 {
			c.closed = true
			c.room.Broadcast()
			c.mu.Unlock()
			return
		}
		c.window, c.spare = c.spare, nil
		c.room.Broadcast()
		err := c.err
		c.mu.Unlock()

		for rest := *w; len(rest.steps) > 0 || len(rest.records) > 0; {
			piece := rest.cut(c.maxBytes)
			full := false
			if err == nil && len(piece.records) > 0 {
				if full, err = c.commit(&piece); err != nil {
					err = c.fail(err)
				}
			}
			piece.carryOut(full, err)
		}
		w.reset()

		c.mu.Lock()
		c.spare = w
		c.mu.Unlock()
	}
}

// cut takes the first piece off a window: whole steps with the records before them, until they are about as large as a
// window may be. Whoever settles doesn't wait for room, and may have large messages move or annotations written: a
// window may become much larger than a store can write at once. Small ones are one piece.
func (w *window) cut(maxBytes int64) (piece window) {
	const record = 64 // bytes that one takes in a store, or less
	if w.bytes+record*int64(len(w.records)) <= maxBytes {
		piece, *w = *w, window{}
		return piece
	}
	from, n, steps, bytes := w.base, 0, 0, int64(0)
	for {
		for steps < len(w.steps) && w.steps[steps].to <= from+n {
			steps++
		}
		if n == len(w.records) || bytes >= maxBytes {
			break
		}
		end := n + 1
		if steps < len(w.steps) && w.steps[steps].from == from+n {
			end = w.steps[steps].to - from
			if m := w.steps[steps].message; m != nil {
				bytes += int64(m.Size())
			}
			if d := w.steps[steps].discharge; d != nil {
				bytes += d.bytes
			}
		}
		for ; n < end; n++ {
			bytes += record + int64(queue.AnnotationBytes(w.records[n].Annotations))
		}
	}
	piece = window{records: w.records[:n], steps: w.steps[:steps], base: from}
	w.records, w.steps, w.base = w.records[n:], w.steps[steps:], from+n
	return piece
}

// commit writes a window. When the store is full, it writes what brings no new message: settlements free space.
func (c *committer) commit(w *window) (full bool, err error) {
	err = c.store.Commit(w.records)
	if !errors.Is(err, ErrStoreFull) {
		return false, err
	}
	rest := make([]Record, 0, len(w.records))
	next := 0
	for i := range w.steps {
		if s := &w.steps[i]; s.refusable() && s.stored() {
			rest = append(rest, w.records[next:s.from-w.base]...)
			next = s.to - w.base
		}
	}
	rest = append(rest, w.records[next:]...)
	if len(rest) == 0 {
		return true, nil
	}
	for {
		err = c.store.Commit(rest)
		if !errors.Is(err, ErrStoreFull) {
			return true, err
		}
		select { // not even for that: what has been settled can't be confirmed before it is
		case <-time.After(fullRetry):
		case <-c.stop:
			return true, err
		}
	}
}

// fullRetry is how long the committer waits for space when there is none at all.
const fullRetry = 100 * time.Millisecond

// broken reports whether the store has failed.
func (c *committer) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

func (c *committer) fail(err error) error {
	err = fmt.Errorf("store: commit: %w", err)
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	if c.failed != nil {
		c.failed(err)
	}
	return err
}

// end has run finish what has entered, and waits for it.
func (c *committer) end() {
	c.mu.Lock()
	c.ending = true
	close(c.stop)
	c.wake.Signal()
	c.mu.Unlock()
	<-c.finished
}

// reset empties a window and keeps its space, unless that was used for something unusually big.
func (w *window) reset() {
	const keep = 16384
	clear(w.records)
	clear(w.steps)
	w.records, w.steps, w.bytes = w.records[:0], w.steps[:0], 0
	if cap(w.records) > keep {
		w.records = nil
	}
	if cap(w.steps) > keep {
		w.steps = nil
	}
}

// batchMax is how many messages for one queue become visible under one hold of its guard.
const batchMax = 64

// carryOut does what waited for the commit. With a full store new messages that were to be stored are given up, with an
// error all that has records.
func (w *window) carryOut(full bool, err error) {
	lost := func(s *step) bool {
		return s.stored() && (err != nil || full && s.refusable()) || err != nil && s.kind >= stepDischarge
	}
	for steps := w.steps; len(steps) > 0; {
		n := 1
		s := &steps[0]
		switch {
		case lost(s):
			s.giveUp(err)
		case s.kind == stepDischarge:
			s.discharge.carryOut()
		case s.kind >= stepSettled:
			s.sink.Settled(s.ticket)
		case s.kind == stepMove:
			s.move()
		case s.kind == stepDuplicate:
			s.producer.confirm(s.ticket, s.producer.broker.duplicates.verdict(s.claim))
		case s.target == nil:
			for _, q := range s.targets {
				q.arrive(queue.Arrival{Message: s.message, Number: s.number})
			}
			s.published()
		default:
			for n < len(steps) && n < batchMax && steps[n].kind == stepPublish && steps[n].target == s.target &&
				!lost(&steps[n]) {
				n++
			}
			s.target.appear(steps[:n])
			for i := range n {
				steps[i].published()
			}
		}
		steps = steps[n:]
	}
}

// published confirms a message that holds and is visible.
func (s *step) published() {
	if s.claim != nil {
		s.producer.broker.duplicates.held(s.claim)
	}
	s.producer.confirm(s.ticket, Result{Verdict: Accepted})
}

// giveUp ends a step whose commit failed, or that a full store refused. A settlement isn't confirmed: whether it holds
// is unknown.
func (s *step) giveUp(err error) {
	switch s.kind {
	case stepPublish:
	case stepSync:
		s.sink.Ended(err)
		return
	case stepSettled:
		s.sink.Unsettled(s.ticket)
		return
	case stepDischarge:
		s.discharge.giveUp(err)
		return
	default:
		return
	}
	for _, q := range s.targets {
		q.forgo(s.message)
	}
	if s.target != nil {
		s.target.forgo(s.message)
	}
	reason := reasonStore
	if err == nil {
		reason = reasonStoreFull
	}
	r := rejected(s.at(), reason, nil)
	if s.claim != nil {
		s.producer.broker.duplicates.failed(s.claim, r)
	}
	s.producer.confirm(s.ticket, r)
}

// at returns the name of the first queue that a step's message is for.
func (s *step) at() string {
	if s.target != nil {
		return s.target.name
	}
	return s.targets[0].name
}
