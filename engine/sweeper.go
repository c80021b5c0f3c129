package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/letomq/leto/engine/queue"
)

// sweeper has messages expire that are in the store, or in the spill, only, and brings those back that have waited there
// for their time. It asks when the first of them is due, a bounded number at a time, so that many that expire at once take
// no more memory than few. Those that are in memory are the keeper's.
type sweeper struct {
	broker *Broker
	home   queue.Home
	store  swept
	at     atomic.Int64 // when to ask, in unix milliseconds; 0: not before something expires
	told   atomic.Int64 // up to when it has asked
	afresh atomic.Bool  // something that the store has told of has to be told again
	wake   chan struct{}

	leaving sync.Mutex // held while entries leave queues, until their home has let go of them

	mu      sync.Mutex
	queues  map[QueueID]*boundQueue
	recalls []*boundQueue // to be brought what has waited for its time, each once
}

const (
	// sweepQuantum is how many messages expire with one commit.
	sweepQuantum = 1024
	// sweepPause gathers what expires one after the other.
	sweepPause = 20 * time.Millisecond
	// sweepRetry is how long what isn't in its queue yet waits.
	sweepRetry = 200 * time.Millisecond
	// sweepStuck is how long those wait that can't be read, or have no room where they go.
	sweepStuck = 5 * time.Second
)

// swept is what a sweeper asks, a store or the spill. Settled returns when what has entered is gone from there.
type swept interface {
	Expiries() Expiries
	Pick(q QueueID, priority uint8, numbers []uint64, bytes int) ([]Stored, error)
	Delayed(q QueueID, after Due, until int64, n int) (due []Due, next int64, err error)
	Room() bool
	settled() error
	failed() bool
}

// sweptStore is the store of a broker.
type sweptStore struct {
	Store
	committer *committer
}

func (s sweptStore) settled() error { return s.committer.sync() }

func (s sweptStore) failed() bool { return s.committer.broken() }

func newSweeper(b *Broker, home queue.Home, store swept) *sweeper {
	s := &sweeper{broker: b, home: home, store: store, wake: make(chan struct{}, 1), queues: map[QueueID]*boundQueue{}}
	s.at.Store(1) // what has expired while nobody was here
	return s
}

// add makes a queue known.
func (s *sweeper) add(id QueueID, q *boundQueue) {
	s.mu.Lock()
	s.queues[id] = q
	s.mu.Unlock()
}

func (s *sweeper) remove(id QueueID) {
	s.mu.Lock()
	delete(s.queues, id)
	s.mu.Unlock()
}

func (s *sweeper) queue(id QueueID) *boundQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[id]
}

// expect says that a message has been left there that expires at a unix millisecond. It may be called under a
// guard.
func (s *sweeper) expect(at int64) {
	if told := s.told.Load(); at <= told {
		s.afresh.Store(true)
		at = min(told, s.broker.now()) + sweepRetry.Milliseconds() // the clock may have been set back
	}
	s.ask(at)
}

// ask has the store asked at a unix millisecond.
func (s *sweeper) ask(at int64) {
	for {
		planned := s.at.Load()
		if planned != 0 && planned <= at {
			return
		}
		if s.at.CompareAndSwap(planned, at) {
			break
		}
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// sweep runs until the broker closes, or what it asks has failed.
func (s *sweeper) sweep() {
	b := s.broker
	timer := time.NewTimer(clockCheck)
	defer timer.Stop()
	expiries := s.store.Expiries()
	stuck := false // some couldn't expire
	for {
		asked := s.nextRecalls()
		if len(asked) > 0 {
			s.recall(asked)
		}
		at, now := s.at.Load(), b.now()
		if at == 0 || at > now {
			if len(asked) > 0 {
				select {
				case <-b.closing:
					return
				default:
				}
				continue
			}
			wait := clockCheck
			if left := at - now; at != 0 && left < wait.Milliseconds() {
				wait = time.Duration(left) * time.Millisecond
			}
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-s.wake:
			case <-b.closing:
				return
			}
			continue
		}
		s.at.Store(0)
		if s.afresh.Swap(false) {
			expiries = s.store.Expiries()
		}
		s.told.Store(now)
		due, next, err := expiries.Due(now, sweepQuantum)
		if err != nil {
			next = 0
		} else if len(due) > 0 {
			err = s.expire(due)
		}
		select {
		case <-b.closing:
			return
		default:
		}
		if err != nil {
			if s.store.failed() {
				return
			}
			s.complain(fmt.Errorf("expiry: %w", err))
			stuck = true
		}
		switch {
		case next != 0 && next <= now:
			s.ask(next) // there is more, also of other queues
		case stuck:
			stuck = false
			s.afresh.Store(true)
			s.ask(now + sweepStuck.Milliseconds())
		case next != 0:
			s.ask(max(next, now+sweepPause.Milliseconds()))
		}
	}
}

// complain tells of what couldn't be read.
func (s *sweeper) complain(err error) {
	if f := s.broker.observer.LoadFailed; f != nil && !errors.Is(err, ErrStoreFull) && !errors.Is(err, ErrClosed) {
		f(err)
	}
}

// expire has entries expire, and returns when their home has let go of them. With an error some stay where they are.
func (s *sweeper) expire(due []Due) error {
	s.leaving.Lock()
	defer s.leaving.Unlock()
	var queues []*boundQueue
	var failed error
	due, failed = s.expireDelayed(due)
	for len(due) > 0 {
		n := 1
		for n < len(due) && due[n].Queue == due[0].Queue && due[n].Priority == due[0].Priority {
			n++
		}
		if q := s.queue(due[0].Queue); q != nil {
			if len(queues) == 0 || queues[len(queues)-1] != q {
				queues = append(queues, q)
			}
			if err := s.level(q, due[:n]); err != nil {
				failed = err
			}
		}
		due = due[n:]
	}
	if err := s.store.settled(); err != nil {
		return err
	}
	for _, q := range queues {
		q.guard.enter()
		q.core.Released(s.home)
		q.guard.leave()
	}
	return failed
}

// level has entries of one queue and priority expire. Only for those that go somewhere it reads their payloads.
func (s *sweeper) level(q *boundQueue, due []Due) error {
	b := s.broker
	priority := due[0].Priority
	bytes := make(map[uint64]int, len(due))
	numbers := make([]uint64, len(due))
	for i, d := range due {
		numbers[i], bytes[d.Number] = d.Number, d.Bytes
	}
	overdue := make([]queue.Overdue, 0, min(len(due), expireQuantum))
	if q.address.settings().ExpiryAddress == "" {
		now := b.now()
		for len(numbers) > 0 {
			overdue = overdue[:0]
			for _, n := range numbers[:min(len(numbers), expireQuantum)] {
				m := &Message{Durable: s.home == queue.InStore, Priority: priority, Expiry: now}
				overdue = append(overdue, queue.Overdue{Arrival: queue.Arrival{Message: m, Number: n}, Bytes: bytes[n]})
			}
			numbers = numbers[len(overdue):]
			s.depart(q, priority, overdue)
		}
		return nil
	}
	if !s.store.Room() {
		return ErrStoreFull // a message that moves takes space before it gives back as much
	}
	for len(numbers) > 0 {
		page := numbers[:min(len(numbers), expireQuantum)]
		stored, err := s.store.Pick(due[0].Queue, priority, page, b.paging.PageBytes)
		if err != nil {
			return err
		}
		overdue = overdue[:0]
		last := page[len(page)-1]
		for i := range stored {
			overdue = append(overdue, queue.Overdue{Arrival: stored[i].arrival(), Bytes: bytes[stored[i].Number]})
			last = stored[i].Number
		}
		for len(numbers) > 0 && numbers[0] <= last {
			numbers = numbers[1:]
		}
		s.depart(q, priority, overdue)
	}
	return nil
}

// expireDelayed has those entries expire that wait at home for their time, and returns the others.
func (s *sweeper) expireDelayed(due []Due) (others []Due, failed error) {
	others = due[:0]
	for len(due) > 0 {
		n := 1
		for n < len(due) && due[n].Queue == due[0].Queue && due[n].Priority == due[0].Priority {
			n++
		}
		var numbers []uint64
		for _, d := range due[:n] {
			if d.At == 0 {
				others = append(others, d)
			} else {
				numbers = append(numbers, d.Number)
			}
		}
		first := due[0]
		due = due[n:]
		q := s.queue(first.Queue)
		if len(numbers) == 0 || q == nil {
			continue
		}
		if err := s.expireWaiting(q, first.Queue, first.Priority, numbers); err != nil {
			failed = err
		}
	}
	return others, failed
}

// expireWaiting has entries of one queue and priority expire that wait at home for their time.
func (s *sweeper) expireWaiting(q *boundQueue, id QueueID, priority uint8, numbers []uint64) error {
	b := s.broker
	if q.address.settings().ExpiryAddress != "" && !s.store.Room() {
		return ErrStoreFull
	}
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		return nil
	}
	q.core.Recall(s.home)
	q.guard.leave()
	err := s.store.settled()
	var overdue []queue.Overdue
	late := false
	if err == nil {
		q.guard.enter()
		told := len(numbers)
		numbers = q.core.Waits(s.home, numbers)
		late = len(numbers) < told
		q.guard.leave()
		for len(numbers) > 0 && err == nil {
			page := numbers[:min(len(numbers), expireQuantum)]
			var found []Stored
			if found, err = s.store.Pick(id, priority, page, b.paging.PageBytes); err != nil {
				break
			}
			last := page[len(page)-1]
			if len(found) > 0 {
				last = found[len(found)-1].Number
			}
			for len(numbers) > 0 && numbers[0] <= last {
				numbers = numbers[1:]
			}
			for i := range found {
				if m := found[i].Message; found[i].Due != 0 && m.Expiry != 0 && m.Expiry <= b.now() {
					b.memory.force(cost(m, 1))
					m.Hold(1)
					overdue = append(overdue, queue.Overdue{Arrival: found[i].arrival(), Bytes: m.Size(), Delayed: true})
				}
			}
			if len(overdue) >= expireQuantum { // the others are told again
				late = late || len(numbers) > 0
				break
			}
		}
	}
	b.committer.await()
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		for i := range overdue {
			b.memory.release(overdue[i].Message)
		}
		return err
	}
	_, fx := q.core.ExpireAway(s.home, priority, overdue, b.now(), nil)
	q.core.Rest(s.home, b.now())
	after := q.carryOut(fx, nil)
	q.arm()
	q.guard.leave()
	q.after(&after, nil)
	if late {
		s.afresh.Store(true)
		s.ask(b.now() + sweepRetry.Milliseconds())
	}
	if err == nil && len(overdue) > 0 {
		err = s.store.settled()
	}
	return err
}

// depart has entries leave their queue, and enters what becomes of them into the commit window.
func (s *sweeper) depart(q *boundQueue, priority uint8, overdue []queue.Overdue) {
	b := s.broker
	b.committer.await()
	for i := range overdue {
		m := overdue[i].Message
		b.memory.force(cost(m, 1))
		m.Hold(1)
	}
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		for i := range overdue {
			b.memory.release(overdue[i].Message)
		}
		return
	}
	late, fx := q.core.ExpireAway(s.home, priority, overdue, b.now(), nil)
	after := q.carryOut(fx, nil)
	q.guard.leave()
	q.after(&after, nil)
	if late > 0 {
		s.afresh.Store(true)
		s.ask(b.now() + sweepRetry.Milliseconds())
	}
}
