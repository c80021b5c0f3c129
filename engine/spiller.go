package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/letomq/leto/engine/queue"
)

const (
	// spillRetry is how long the spill is left alone after it had no space or didn't open.
	spillRetry = time.Second
	// spillTries is how often a page is read before what the spill has is given up.
	spillTries = 3
	// spillRecords bounds what is committed at once.
	spillRecords = 4096
	// spillIdle is how long a spill that is empty stays open: to open it takes some 50 ms.
	spillIdle = 10 * time.Second
)

// errSpillBroken says that the spill isn't used any more.
var errSpillBroken = errors.New("spill is given up: what it had is lost")

// spiller writes to the spill what queues have no memory for, and reads it for the loader. What it has taken waits in
// a window until that is worth a write, and is found there meanwhile: what is wanted back soon is never written. Its
// goroutine runs while there is something to write. The spill is opened when something is written for the first time.
//
// It has nothing to do with the committer, and neither waits for the other.
type spiller struct {
	broker  *Broker
	sweeper *sweeper
	open    func() (Spill, error)
	budget  *queue.Budget // what is kept in memory
	batch   int64         // bytes that are worth a write
	most    int64         // bytes that wait, beyond which publishers do

	crowded atomic.Bool // publishers wait
	written atomic.Uint64

	mu               sync.Mutex
	room             *sync.Cond
	spill            Spill                   // nil: not opened
	filling          *spillWindow            // what comes
	writing          *spillWindow            // is being written; nil: nothing is
	top              map[spillKey]uint64     // highest number of a level that may be in the spill
	defined          map[QueueID]struct{}    // queues that the spill knows
	ids              map[*boundQueue]QueueID // of queues that something has been spilled of
	lastID           QueueID
	taken, settledTo uint64 // windows, and up to which of them the facts are written
	working          bool
	stopped          bool // no space
	said             bool // that nothing more is spilled
	broken           bool
	closed           bool
	resting          bool
	reading          sync.RWMutex // held by who reads from the spill; taken before mu
	worker           sync.WaitGroup
}

// newSpiller returns one for a memory limit. Small ones are for tests.
func newSpiller(b *Broker, limit int64, open func() (Spill, error)) *spiller {
	s := &spiller{
		broker: b, open: open, filling: newSpillWindow(),
		top: map[spillKey]uint64{}, defined: map[QueueID]struct{}{}, ids: map[*boundQueue]QueueID{},
		batch: min(max(limit/128, 4<<10), 1<<20), most: min(max(limit/32, 16<<10), 8<<20),
	}
	s.room = sync.NewCond(&s.mu)
	if open != nil && limit > 0 {
		s.budget = newBudget(limit)
		s.budget.Limit = limit / spillShare
		s.budget.Ceiling = s.budget.Limit // a write costs more than to wait: one queue may have all
	}
	return s
}

// enter takes an entry over from its queue, with the memory it has. It is called under the queue's guard.
func (s *spiller) enter(q *boundQueue, e *queue.Entry, m *Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.broker.memory.release(m)
		return
	}
	id := s.ids[q]
	if id == 0 {
		s.lastID++
		id = s.lastID
		s.ids[q] = id
		s.sweeper.add(id, q)
	}
	s.filling.put(spillKey{id, e.Priority()}, Record{
		Kind: RecordEnqueue, Queue: id, Number: e.Number(), Priority: e.Priority(),
		Count: e.Count(), Base: e.Base(), Due: e.Due(), Annotations: e.Annotations(), Message: m,
	})
	if s.filling.bytes >= s.batch {
		s.start()
	}
	if s.filling.bytes >= s.most && !s.stopped && !s.broken {
		s.crowded.Store(true)
	}
}

// purge forgets what is in memory again, or isn't wanted any more. It is called under the queue's guard.
func (s *spiller) purge(q *boundQueue, l *queue.Load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.ids[q]
	k := spillKey{id, l.Priority}
	s.filling.cut(k, l.From, l.Last, s.broker.memory.release)
	s.relieve()
	top, known := s.top[k]
	switch {
	case !known:
	case !q.core.Spilled(l.Priority): // this is the first of several effects, perhaps, that say so together
		delete(s.top, k)
		s.filling.facts = append(s.filling.facts, Record{Kind: RecordPurge, Queue: id, Priority: l.Priority, Number: top})
	case top >= l.From && l.From <= l.Last:
		r := Record{Kind: RecordPurge, Queue: id, Priority: l.Priority, FromNumber: l.From, Number: l.Last}
		if l.From == l.Last {
			r.Kind = RecordRemove
		}
		s.filling.facts = append(s.filling.facts, r)
	}
	s.start()
}

// delay has an entry that has been spilled wait for another time. It is called under the queue's guard.
func (s *spiller) delay(q *boundQueue, priority uint8, number uint64, until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.ids[q]
	k := spillKey{id, priority}
	if s.filling.delay(k, number, until) {
		return
	}
	if top, known := s.top[k]; known && top >= number {
		s.filling.facts = append(s.filling.facts, Record{Kind: RecordDue, Queue: id, Priority: priority, Number: number, Due: until})
		s.start()
	}
}

// idOf returns what the spill calls a queue, 0 if nothing of it has been spilled.
func (s *spiller) idOf(q *boundQueue) QueueID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[q]
}

// drop forgets a queue that is deleted. It is called under the queue's guard.
func (s *spiller) drop(q *boundQueue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, known := s.ids[q]
	if !known {
		return
	}
	delete(s.ids, q)
	s.sweeper.remove(id)
	for p := range uint8(10) {
		k := spillKey{id, p}
		s.filling.cut(k, 0, ^uint64(0), s.broker.memory.release)
		delete(s.top, k)
	}
	s.relieve()
	if _, defined := s.defined[id]; defined {
		delete(s.defined, id)
		s.filling.facts = append(s.filling.facts, Record{Kind: RecordDelete, Queue: id})
		s.start()
	}
}

// await waits while what waits to be written is too much. It must not be called under a guard, nor by the committer.
func (s *spiller) await() {
	s.mu.Lock()
	for s.crowded.Load() {
		s.room.Wait()
	}
	s.mu.Unlock()
}

// relieve has nobody wait any more unless too much waits to be written, which may have become less by a write, or because
// it isn't wanted any more: then maybe nothing will be written. Under mu.
func (s *spiller) relieve() {
	if s.crowded.Load() && (s.stopped || s.broken || s.filling.bytes < s.most) {
		s.crowded.Store(false)
		s.room.Broadcast()
	}
}

// start has the goroutine run. Under mu.
func (s *spiller) start() {
	if !s.working && !s.closed && !s.broken && (len(s.filling.facts) > 0 || s.filling.bytes >= s.batch || s.idle()) {
		s.working = true
		s.worker.Go(s.work)
	}
}

func (s *spiller) work() {
	for s.next() {
		held, rest, err := s.write()
		s.mu.Lock()
		s.done(held, rest, err)
		stopped := s.stopped && !s.closed
		s.mu.Unlock()
		if !stopped {
			continue
		}
		select {
		case <-time.After(spillRetry):
		case <-s.broker.closing:
			s.mu.Lock()
			s.end()
			s.mu.Unlock()
			return
		}
	}
}

// end has nobody wait for a write any more. Under mu.
func (s *spiller) end() {
	s.closed = true
	s.crowded.Store(false)
	s.room.Broadcast()
}

// next takes what there is to be written. When there is nothing, the goroutine counts as ended.
func (s *spiller) next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped && s.filling.bytes == 0 {
		s.resume() // the next ones will show whether there is space
	}
	worth := s.filling.bytes >= s.batch || s.stopped
	if s.closed || s.broken || len(s.filling.facts) == 0 && !worth {
		s.working = false
		if s.idle() && !s.resting && !s.closed {
			s.resting = true
			s.worker.Go(s.rest)
		}
		return false
	}
	w := s.filling
	s.writing, s.filling = w, newSpillWindow()
	s.taken++
	if !worth {
		s.filling.levels, s.filling.bytes = w.levels, w.bytes
		w.levels, w.bytes = nil, 0
	}
	for k, all := range w.levels {
		s.top[k] = max(s.top[k], all[len(all)-1].Number)
		if _, defined := s.defined[k.queue]; !defined {
			s.defined[k.queue] = struct{}{}
			w.facts = append(w.facts, Record{Kind: RecordDefine, Queue: k.queue, Definition: &Definition{ID: k.queue}})
		}
	}
	return true
}

// idle reports whether the spill is open and empty. Under mu.
func (s *spiller) idle() bool {
	return s.spill != nil && len(s.top) == 0 && s.filling.bytes == 0 && len(s.filling.facts) == 0 && !s.broken
}

// rest closes a spill that has been empty for a while: it takes memory and space.
func (s *spiller) rest() {
	select {
	case <-time.After(spillIdle):
	case <-s.broker.closing:
		return
	}
	s.mu.Lock()
	s.resting = false
	if !s.idle() || s.working || s.closed {
		s.mu.Unlock()
		return // who empties it again will see to it
	}
	spill := s.spill
	s.spill, s.working = nil, true // nothing is written meanwhile
	clear(s.defined)
	s.mu.Unlock()

	s.reading.Lock()
	_ = spill.Close() // it is made anew when it is needed, and says then what is wrong
	s.reading.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = false
	s.start()
}

// resume has more be spilled. Under mu.
func (s *spiller) resume() {
	s.stopped = false
	s.budget.Closed.Store(false)
}

// write commits what has been taken. It returns what of that it has committed, and the rest. The window doesn't change
// but for its facts: it is read meanwhile.
func (s *spiller) write() (held, rest []Record, err error) {
	w := s.writing
	for _, entries := range w.levels {
		rest = append(rest, entries...)
	}
	if s.spill == nil {
		opened, err := s.open()
		if err != nil {
			return nil, rest, fmt.Errorf("%w: %w", ErrStoreFull, err) // it is tried again
		}
		s.mu.Lock()
		s.spill = opened
		s.mu.Unlock()
	}
	if len(w.facts) > 0 {
		if err := s.spill.Commit(w.facts); err != nil {
			return nil, rest, err
		}
		w.facts = nil
	}
	all := rest
	for n := 0; len(rest) > 0; rest = all[n:] {
		end, bytes := n, int64(0)
		for end < len(all) && end-n < spillRecords && bytes < s.batch {
			bytes += int64(all[end].Message.Size())
			end++
		}
		if err := s.spill.Commit(all[n:end]); err != nil {
			return all[:n], rest, err
		}
		n = end
	}
	return all, nil, nil
}

// done ends a write. After an error what wasn't committed stays in memory. Under mu.
func (s *spiller) done(held, rest []Record, err error) {
	facts := s.writing.facts
	s.writing = nil
	if len(facts) == 0 {
		s.settledTo = s.taken
	}
	for i := range held {
		s.broker.memory.release(held[i].Message)
	}
	s.written.Add(uint64(len(held)))
	if err != nil {
		s.takeBack(facts, rest)
	}
	switch {
	case err == nil:
		if s.stopped && len(held) > 0 {
			s.resume()
		}
		if s.said && len(held) > 0 {
			s.said = false
			s.tell(nil)
		}
	case !errors.Is(err, ErrStoreFull):
		s.giveUp(err)
	case !s.stopped:
		s.stopped = true
		s.budget.Closed.Store(true)
		if !s.said {
			s.said = true
			s.tell(fmt.Errorf("spill: %w", err))
		}
	}
	s.relieve()
	s.room.Broadcast() // also who waits until all is written
}

// takeBack puts what couldn't be written before what has come since, but for what isn't wanted any more. Under mu.
func (s *spiller) takeBack(facts, rest []Record) {
	back, release := newSpillWindow(), s.broker.memory.release
	for _, r := range rest {
		back.put(spillKey{r.Queue, r.Priority}, r)
	}
	for i := range s.filling.facts {
		switch r := &s.filling.facts[i]; r.Kind {
		case RecordRemove:
			back.cut(spillKey{r.Queue, r.Priority}, r.Number, r.Number, release)
		case RecordDue:
			back.delay(spillKey{r.Queue, r.Priority}, r.Number, r.Due)
		case RecordPurge:
			back.cut(spillKey{r.Queue, r.Priority}, r.FromNumber, r.Number, release)
		case RecordDelete:
			for p := range uint8(10) {
				back.cut(spillKey{r.Queue, p}, 0, ^uint64(0), release)
			}
		}
	}
	for k, all := range s.filling.levels {
		for _, r := range all {
			back.put(k, r)
		}
	}
	back.facts = append(facts, s.filling.facts...)
	s.filling = back
}

// giveUp has all stay in memory from now on. What is in the spill is lost. Under mu.
func (s *spiller) giveUp(err error) {
	if s.broken {
		return
	}
	s.broken = true
	s.filling.facts = nil
	clear(s.top)
	s.budget.Closed.Store(true)
	s.tell(fmt.Errorf("spill: %w: %w", errSpillBroken, err))
}

func (s *spiller) tell(err error) {
	if f := s.broker.observer.Spilling; f != nil {
		f(err)
	}
}

// load returns entries of a queue that have a priority. try counts how often that has failed.
func (s *spiller) load(q *boundQueue, l *queue.Load, try int) (page, error) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	s.mu.Lock()
	id := s.ids[q]
	k := spillKey{id, l.Priority}
	p := s.filling.load(k, l.From, l.Entries, l.Bytes)
	if s.writing != nil {
		p = p.with(s.writing.load(k, l.From, l.Entries, l.Bytes))
	}
	top, spill, broken := s.top[k], s.spill, s.broken
	s.mu.Unlock()
	if spill == nil || broken || top < l.From {
		return p.trim(l.Entries, l.Bytes), nil
	}
	found, err := spill.Load(id, l.Priority, l.From, l.Entries, l.Bytes)
	if err != nil {
		if try >= spillTries {
			s.mu.Lock()
			s.giveUp(err)
			s.mu.Unlock()
		}
		return page{}, err
	}
	return pageOf(found, l.Entries, l.Bytes).with(p).trim(l.Entries, l.Bytes), nil
}

// info returns what the spill is now.
func (s *spiller) info() SpillInfo {
	s.reading.RLock()
	defer s.reading.RUnlock()
	s.mu.Lock()
	i := SpillInfo{Pending: s.filling.bytes, Written: s.written.Load(), Stopped: s.stopped || s.broken}
	if s.writing != nil {
		i.Pending += s.writing.bytes
	}
	spill := s.spill
	closed := s.closed
	s.mu.Unlock()
	if spill != nil && !closed {
		i.Disk = spill.Size()
	}
	return i
}

// close ends the goroutine and the spill, with what is in it. Nobody reads from it any more.
func (s *spiller) close() error {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.worker.Wait()
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.spill == nil {
		return nil
	}
	if err := s.spill.Close(); err != nil {
		return fmt.Errorf("spill: close: %w", err)
	}
	return nil
}

// Spill returns what the spill is now.
func (b *Broker) Spill() SpillInfo { return b.spiller.info() }
