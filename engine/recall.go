package engine

import (
	"slices"
	"time"

	"github.com/letomq/leto/engine/queue"
)

const (
	// recallQuantum is how many entries come back with one commit, of all queues that take part in it.
	recallQuantum = 2048
	// recallQueues is how many queues take part: what of many is due at the same moment doesn't wait for a commit for each.
	recallQueues = 256
	// recallPause is how long those wait whose time has come for room in memory: what is ahead of them is to be
	// delivered first.
	recallPause = 20 * time.Millisecond
)

// recallLater has the queue brought what waits at home for its time, when that has come. It may be called under the queue's
// guard, once until recall.
func (s *sweeper) recallLater(q *boundQueue) {
	s.mu.Lock()
	s.recalls = append(s.recalls, q)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// nextRecalls takes out the first of those that have asked.
func (s *sweeper) nextRecalls() []*boundQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.recalls), recallQueues)
	first := s.recalls[:n:n]
	if s.recalls = s.recalls[n:]; len(s.recalls) == 0 {
		s.recalls = nil
	}
	return first
}

// recalled is what one queue is brought.
type recalled struct {
	queue   *boundQueue
	id      QueueID
	ripe    []queue.Arrival // in memory, also when err is set
	records []Record
	next    int64 // when the next one is due
	err     error
}

// recall brings some queues entries that have waited at home for their time, a bounded number of all: of each those that are
// due first. They are without a time at home before they can be given to anybody, so that no load and no restart takes them
// for waiting.
func (s *sweeper) recall(queues []*boundQueue) {
	s.leaving.Lock() // an entry that comes back is known to its home as one that doesn't wait before it is to the queue
	defer s.leaving.Unlock()
	b := s.broker
	now := b.now()
	all := make([]recalled, 0, len(queues))
	for _, q := range queues {
		if s.begins(q, now) {
			all = append(all, recalled{queue: q})
		}
	}
	if len(all) == 0 {
		return
	}
	if err := s.store.settled(); err != nil {
		for i := range all {
			all[i].err = err
		}
	} else {
		entries, bytes := min(recallQuantum, 2*b.paging.PageEntries), b.paging.PageBytes
		for i := range all {
			r := &all[i]
			bytes = s.ripe(r, now, entries, bytes)
			entries -= len(r.ripe)
		}
	}
	s.settleDues(all)
	said := false
	for i := range all {
		if err := all[i].err; err != nil && !said && !s.store.failed() { // of a store that has failed everybody hears
			s.complain(err)
			said = true
		}
		s.ends(&all[i])
	}
}

// begins begins to recall what of a queue waits at home, and returns whether it goes on.
func (s *sweeper) begins(q *boundQueue, now int64) bool {
	q.guard.enter()
	defer q.guard.leave()
	q.asking[s.home] = false
	if q.deleted {
		return false
	}
	q.core.Recall(s.home)
	if !q.core.Room(s.home) {
		q.core.Rest(s.home, now+recallPause.Milliseconds())
		q.arm()
		return false
	}
	return true
}

// ends hands a queue what it is brought.
func (s *sweeper) ends(r *recalled) {
	b, q := s.broker, r.queue
	q.guard.enter()
	if q.deleted || r.err != nil {
		for i := range r.ripe {
			b.memory.release(r.ripe[i].Message)
		}
	}
	if q.deleted {
		q.guard.leave()
		return
	}
	now := b.now()
	var fx []queue.Effect
	if r.err != nil {
		q.core.Rest(s.home, now+sweepStuck.Milliseconds())
	} else {
		fx = q.core.Ripen(s.home, r.ripe, r.next, now, nil)
	}
	after := q.carryOut(fx, nil)
	q.arm()
	q.guard.leave()
	q.after(&after, nil)
}

// settleDues has the store know that entries don't wait any more, with one commit, and returns when it does.
func (s *sweeper) settleDues(all []recalled) {
	if s.home != queue.InStore {
		return
	}
	c := s.broker.committer
	entered := false
	for i := range all {
		r := &all[i]
		if len(r.records) == 0 || r.err != nil {
			continue
		}
		c.await()
		r.queue.guard.enter() // so that the records stand before one that deletes the queue, or aren't written
		if !r.queue.deleted {
			r.err = c.enter(r.records, nil)
			entered = true
		}
		r.queue.guard.leave()
	}
	if !entered {
		return
	}
	if err := s.store.settled(); err != nil {
		for i := range all {
			if len(all[i].records) > 0 && all[i].err == nil {
				all[i].err = err
			}
		}
	}
}

// ripe brings into memory what a queue may be given, some entries with some bytes of payloads at most, and returns how many
// bytes are left.
func (s *sweeper) ripe(r *recalled, until int64, entries, bytes int) int {
	b, q := s.broker, r.queue
	if r.id = s.idOf(q); r.id == 0 {
		return bytes
	}
	sooner := func(at int64) {
		if r.next == 0 || at < r.next {
			r.next = at
		}
	}
	if entries <= 0 || bytes <= 0 {
		sooner(until) // others have taken all: it asks again
		return bytes
	}
	var due []Due
	if due, r.next, r.err = s.store.Delayed(r.id, Due{}, until, entries); r.err != nil || len(due) == 0 {
		return bytes
	}
	numbers := make([]uint64, len(due))
	for i := range due {
		numbers[i] = due[i].Number
	}
	slices.Sort(numbers)
	told := len(numbers)
	q.guard.enter()
	numbers = q.core.Waits(s.home, numbers)
	q.guard.leave()
	if len(numbers) < told {
		sooner(until + sweepRetry.Milliseconds()) // not published yet, or it is on its way already
	}
	for len(numbers) > 0 && len(due) > 0 {
		priority := due[0].Priority
		var page []uint64
		due = slices.DeleteFunc(due, func(d Due) bool {
			if d.Priority != priority {
				return false
			}
			if _, waits := slices.BinarySearch(numbers, d.Number); waits {
				page = append(page, d.Number)
			}
			return true
		})
		if len(page) == 0 {
			continue
		}
		slices.Sort(page)
		if bytes <= 0 {
			sooner(until)
			continue
		}
		found, err := s.store.Pick(r.id, priority, page, bytes)
		if err != nil {
			r.err = err
			return bytes
		}
		if len(found) > 0 && found[len(found)-1].Number < page[len(page)-1] {
			sooner(until) // there was no more room for it, or it is gone
		}
		for i := range found {
			if found[i].Due == 0 || found[i].Due > until {
				continue
			}
			m := found[i].Message
			b.memory.force(cost(m, 1))
			m.Hold(1)
			bytes -= m.Size()
			r.ripe = append(r.ripe, found[i].arrival())
			r.records = append(r.records, Record{Kind: RecordDue, Queue: r.id, Number: found[i].Number, Priority: priority})
		}
	}
	return bytes
}

// idOf returns what the home calls a queue, 0 if it doesn't know it.
func (s *sweeper) idOf(q *boundQueue) QueueID {
	if s.home == queue.InStore {
		return q.id
	}
	return s.broker.spiller.idOf(q)
}
