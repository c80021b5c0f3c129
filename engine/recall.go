package engine

import (
	"slices"
	"time"

	"github.com/letomq/leto/engine/queue"
)

const (
	// recallQuantum is how many entries of one queue come back with one commit.
	recallQuantum = 1024
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

// nextRecall takes out the first of those that have asked.
func (s *sweeper) nextRecall() *boundQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recalls) == 0 {
		return nil
	}
	q := s.recalls[0]
	s.recalls[0] = nil
	if s.recalls = s.recalls[1:]; len(s.recalls) == 0 {
		s.recalls = nil
	}
	return q
}

// recall brings a queue entries that have waited at home for their time, a bounded number: those that are due first. They are without
// a time at home before they can be given to anybody, so that no load and no restart takes them for waiting.
func (s *sweeper) recall(q *boundQueue) {
	s.leaving.Lock() // an entry that comes back is known to its home as one that doesn't wait before it is to the queue
	defer s.leaving.Unlock()
	q.guard.enter()
	q.asking[s.home] = false
	if q.deleted {
		q.guard.leave()
		return
	}
	now := s.broker.now()
	q.core.Recall(s.home)
	if !q.core.Room(s.home) {
		q.core.Rest(s.home, now+recallPause.Milliseconds())
		q.arm()
		q.guard.leave()
		return
	}
	q.guard.leave()

	ripe, next, err := s.ripe(q, now)
	if err != nil {
		for i := range ripe {
			s.broker.memory.release(ripe[i].Message)
		}
		if !s.store.failed() { // of a store that has failed everybody hears
			s.complain(err)
		}
		ripe = nil
	}
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		for i := range ripe {
			s.broker.memory.release(ripe[i].Message)
		}
		return
	}
	now = s.broker.now()
	var fx []queue.Effect
	if err != nil {
		q.core.Rest(s.home, now+sweepStuck.Milliseconds())
	} else {
		fx = q.core.Ripen(s.home, ripe, next, now, nil)
	}
	after := q.carryOut(fx, nil)
	q.arm()
	q.guard.leave()
	q.after(&after, nil)
}

// ripe returns the entries that a queue may be given, in memory, and when the next one is due. Also with an error it may
// return some.
func (s *sweeper) ripe(q *boundQueue, until int64) (ripe []queue.Arrival, next int64, err error) {
	b := s.broker
	if err := s.store.settled(); err != nil {
		return nil, 0, err
	}
	id := s.idOf(q)
	if id == 0 {
		return nil, 0, nil
	}
	due, next, err := s.store.Delayed(id, Due{}, until, min(recallQuantum, b.paging.PageEntries))
	if err != nil || len(due) == 0 {
		return nil, next, err
	}
	sooner := func(at int64) {
		if next == 0 || at < next {
			next = at
		}
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
	var records []Record
	bytes := b.paging.PageBytes
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
		found, err := s.store.Pick(id, priority, page, bytes)
		if err != nil {
			return ripe, 0, err
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
			ripe = append(ripe, found[i].arrival())
			records = append(records, Record{Kind: RecordDue, Queue: id, Number: found[i].Number, Priority: priority})
		}
	}
	if len(ripe) == 0 || s.home != queue.InStore {
		return ripe, next, nil
	}
	b.committer.await()
	q.guard.enter() // so that the records stand before one that deletes the queue, or aren't written
	if !q.deleted {
		err = b.committer.enter(records, nil)
	}
	q.guard.leave()
	if err == nil {
		err = s.store.settled()
	}
	return ripe, next, err
}

// idOf returns what the home calls a queue, 0 if it doesn't know it.
func (s *sweeper) idOf(q *boundQueue) QueueID {
	if s.home == queue.InStore {
		return q.id
	}
	return s.broker.spiller.idOf(q)
}
