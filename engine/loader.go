package engine

import (
	"fmt"
	"sync"
	"time"

	"github.com/letomq/leto/engine/queue"
)

const (
	// loadsInFlight is how many pages are read at once: enough to keep a disk busy, and they bound what is read and not
	// counted yet to some MiB.
	loadsInFlight = 4
	// loadRetry is how long a load that failed waits for the next try.
	loadRetry = time.Second
)

// loader brings from the store and the spill what queues ask for. Its goroutines run while there is something to load,
// loadsInFlight at most, and one more while something waits to be tried again. A queue asks for one page of each priority
// at a time, and one for each browser, so that what waits is bounded by what is there.
type loader struct {
	broker *Broker
	store  Store

	mu      sync.Mutex
	jobs    []loadJob // first come, first served
	running int
	failed  []loadJob                // wait for the next try
	held    map[*boundQueue]struct{} // load nothing for want of memory
	closed  bool
	workers sync.WaitGroup
}

type loadJob struct {
	queue *boundQueue
	load  *queue.Load
	tries int // that have failed
}

// enter takes a job. It may be called under a guard.
func (l *loader) enter(job loadJob) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.jobs = append(l.jobs, job)
	if l.running < loadsInFlight {
		l.running++
		l.workers.Go(l.work)
	}
}

// next takes out a job. When there is none, the goroutine that asked counts as ended.
func (l *loader) next() (loadJob, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.jobs) == 0 || l.closed {
		l.jobs = nil
		l.running--
		return loadJob{}, false
	}
	job := l.jobs[0]
	l.jobs[0] = loadJob{}
	l.jobs = l.jobs[1:]
	return job, true
}

func (l *loader) work() {
	for job, ok := l.next(); ok; job, ok = l.next() {
		l.carryOut(job)
	}
}

// carryOut loads a page and hands it to its queue. A load that fails is tried again until it succeeds, the queue is
// deleted or the broker closes: what the queue counts must not be taken for gone. What is in the spill only is given
// up in the end, and what is in a store that has failed at once: it returns nothing any more.
func (l *loader) carryOut(job loadJob) {
	l.broker.committer.await() // what has expired will enter the window
	p, err := l.read(job)
	if err != nil {
		if job.load.Stored && l.broker.committer.broken() {
			return // for good, and that has been said
		}
		job.tries++
		l.postpone(job, err)
		return
	}
	job.queue.loaded(job.load, p)
}

// postpone has a load wait for the next try, so that queues that can't be read don't keep others from being loaded. Of
// those that fail in the same second the first is reported.
func (l *loader) postpone(job loadJob, err error) {
	l.mu.Lock()
	first := len(l.failed) == 0 && !l.closed
	if !l.closed {
		l.failed = append(l.failed, job)
	}
	if first {
		l.workers.Go(l.retry)
	}
	l.mu.Unlock()
	if report := l.broker.observer.LoadFailed; first && report != nil {
		q := job.queue
		report(fmt.Errorf("queue %s::%s: load: %w", q.address.name, q.name, err))
	}
}

// retry has what failed be loaded again, a while later.
func (l *loader) retry() {
	select {
	case <-time.After(loadRetry):
	case <-l.broker.closing:
		return
	}
	l.mu.Lock()
	again := l.failed
	l.failed = nil
	l.mu.Unlock()
	for _, job := range again {
		if !job.queue.isDeleted() {
			l.enter(job)
		}
	}
}

// read reads what is asked for from where it is.
func (l *loader) read(job loadJob) (p page, err error) {
	load := job.load
	p.whole = true
	if load.Stored {
		found, err := l.store.Load(job.queue.id, load.Priority, load.From, load.Entries, load.Bytes)
		if err != nil {
			return p, fmt.Errorf("store: %w", err)
		}
		p = pageOf(found, load.Entries, load.Bytes)
	}
	if load.Spilled {
		spilled, err := l.broker.spiller.load(job.queue, load, job.tries+1)
		if err != nil {
			return p, fmt.Errorf("spill: %w", err)
		}
		p = p.with(spilled)
	}
	return p, nil
}

// close ends the goroutines and waits for them. What waits to be loaded stays where it is.
func (l *loader) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.workers.Wait()
}

// hold notes a queue that waits for memory. It may be called under a guard.
func (l *loader) hold(q *boundQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[*boundQueue]struct{}{}
	}
	l.held[q] = struct{}{}
}

// resume has those that wait for memory go on.
func (l *loader) resume() {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	for q := range held {
		q.resume()
	}
}

func (q *boundQueue) resume() {
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		return
	}
	after := q.carryOut(q.core.Resume(q.clock(), nil), nil)
	q.guard.leave()
	q.after(&after, nil)
}

func (q *boundQueue) isDeleted() bool {
	q.guard.enter()
	defer q.guard.leave()
	return q.deleted
}

// loaded hands a page to the queue that asked for it.
func (q *boundQueue) loaded(load *queue.Load, p page) {
	b := q.broker()
	arrivals := make([]queue.Arrival, len(p.entries))
	for i := range p.entries {
		s := &p.entries[i]
		b.memory.force(cost(s.Message, 1))
		s.Message.Hold(1)
		arrivals[i] = s.arrival()
	}
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		for i := range arrivals {
			b.memory.release(arrivals[i].Message)
		}
		return
	}
	after := q.carryOut(q.core.Loaded(load, arrivals, p.whole, b.now(), nil), nil)
	q.guard.leave()
	q.after(&after, nil)
}

// arrival returns the entry as it comes to its queue. A consumer that has had it without failing is forgotten.
func (s *Stored) arrival() queue.Arrival {
	return queue.Arrival{
		Message: s.Message, Number: s.Number, Count: s.Count, Base: s.Base, Annotations: s.Annotations,
		Acquired: s.Count > 0,
	}
}
