package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/letomq/leto/engine/queue"
)

// Messages that wait for their time, sent for later or failed and to be tried later, are looked through and seen to in
// the order in which they are due, a bounded number at a time: in memory, in the store and in the spill as if they were
// in one place. A batch that is removed or made due is done when the store has it.

// Slot is the place of a message among those of a queue that wait for their time. The zero value is before all.
type Slot = queue.Slot

// Scheduled is a message that waits for its time.
type Scheduled struct {
	Delivery       // nobody can settle it
	At       int64 // when its time comes, a unix millisecond; the past if it had no room in memory
}

// lookQuantum is how many are looked at at once if their payloads needn't be.
const lookQuantum = 1024

// delayed is an entry that waits for its time, wherever it does.
type delayed struct {
	Slot
	bytes int
	here  bool // in memory; else in home only
	home  queue.Home
	Delivery
}

// homes are both places where messages may wait without being in memory, with who asks them.
func (b *Broker) homes() [2]*sweeper {
	return [2]*sweeper{queue.InStore: b.sweeper, queue.InSpill: b.spiller.sweeper}
}

// delayed returns entries that wait for their time, n at most, in order: the first behind a slot. Those that are in memory
// have their messages. It also returns behind which slot to go on, whether there is more, and which homes have nothing.
func (q *boundQueue) delayed(after Slot, n int) (found []delayed, to Slot, more bool, bare [2]bool, err error) {
	last := Slot{At: math.MaxInt64} // up to there all is known
	cut := func(s Slot) {
		more = true
		if s.Compare(last) < 0 {
			last = s
		}
	}
	var away [2][]Due
	for h, s := range q.broker().homes() {
		q.guard.enter()
		parks := q.core.Parks(queue.Home(h))
		q.guard.leave()
		id := s.idOf(q)
		if !parks || id == 0 {
			continue
		}
		if err := s.store.settled(); err != nil {
			return nil, after, true, bare, err
		}
		from := Due{At: after.At, Priority: after.Priority, Number: after.Number}
		due, next, err := s.store.Delayed(id, from, math.MaxInt64, n)
		if err != nil {
			return nil, after, true, bare, fmt.Errorf("queue %s::%s: %w", q.address.name, q.name, err)
		}
		if next != 0 && len(due) > 0 {
			cut(slotOf(&due[len(due)-1]))
		}
		away[h] = due
		bare[h] = after == Slot{} && len(due) == 0 && next == 0
	}
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		return nil, after, false, bare, fmt.Errorf("queue %s::%s: %w", q.address.name, q.name, ErrDeleted)
	}
	held, others := q.core.Held(after, n)
	for h, due := range away {
		numbers := make([]uint64, len(due))
		for i := range due {
			numbers[i] = due[i].Number
		}
		slices.Sort(numbers)
		numbers = q.core.Away(queue.Home(h), numbers)
		for i := range due {
			if _, waits := slices.BinarySearch(numbers, due[i].Number); waits {
				found = append(found, delayed{Slot: slotOf(&due[i]), bytes: due[i].Bytes, home: queue.Home(h)})
			}
		}
	}
	q.guard.leave()
	if others {
		cut(held[len(held)-1].Slot)
	}
	for i := range held {
		found = append(found, delayed{Slot: held[i].Slot, bytes: held[i].Message.Size(), here: true, Delivery: held[i].Delivery})
	}
	slices.SortFunc(found, func(a, b delayed) int { return a.Slot.Compare(b.Slot) })
	known := slices.IndexFunc(found, func(w delayed) bool { return w.Slot.Compare(last) > 0 })
	if known < 0 {
		known = len(found)
	}
	if found = found[:known]; len(found) > n {
		return found[:n], found[n-1].Slot, true, bare, nil
	}
	if !more && len(found) > 0 {
		last = found[len(found)-1].Slot
	}
	return found, last, more, bare, nil
}

func slotOf(d *Due) Slot { return Slot{At: d.At, Priority: d.Priority, Number: d.Number} }

// within returns as many of some entries as have no more than so many bytes of payloads, but at least one.
func within(found []delayed, bytes int) []delayed {
	for i := range found {
		if bytes -= found[i].bytes; bytes < 0 && i > 0 {
			return found[:i]
		}
	}
	return found
}

// read reads the messages of those that aren't in memory, and returns all but those that are gone.
func (q *boundQueue) read(found []delayed) ([]delayed, error) {
	at := map[uint64]int{}
	for h, s := range q.broker().homes() {
		id := s.idOf(q)
		var of [10][]uint64
		for i := range found {
			if w := &found[i]; !w.here && w.home == queue.Home(h) {
				of[min(w.Priority, 9)] = append(of[min(w.Priority, 9)], w.Slot.Number)
				at[w.Slot.Number] = i
			}
		}
		for priority, numbers := range of {
			slices.Sort(numbers)
			for len(numbers) > 0 {
				stored, err := s.store.Pick(id, uint8(priority), numbers, scanBytes)
				if err != nil {
					return nil, fmt.Errorf("queue %s::%s: %w", q.address.name, q.name, err)
				}
				if len(stored) == 0 {
					break
				}
				for i := range stored {
					if e := &stored[i]; e.Due != 0 {
						found[at[e.Number]].Delivery = Delivery{
							Message: e.Message, Number: e.Number, Count: e.Count, Annotations: e.Annotations,
						}
					}
				}
				read, _ := slices.BinarySearch(numbers, stored[len(stored)-1].Number+1)
				numbers = numbers[read:]
			}
		}
	}
	return slices.DeleteFunc(found, func(w delayed) bool { return w.Message == nil }), nil
}

// Scheduled shows messages of a queue that wait for their time, from a slot on, in the order in which they are due, until
// see returns false. It returns how many it has looked at, and the slot of the last of them; more says whether there may
// be others. What see is shown is its own to read while it runs.
func (b *Broker) Scheduled(ctx context.Context, address, queueName string, after Slot, sel Selection, see func(*Scheduled) bool) (
	looked int, to Slot, more bool, err error,
) {
	q, err := b.lookup(address, queueName)
	if err != nil {
		return 0, after, false, err
	}
	most := clearQuantum
	if sel.all() && sel.Count > 0 {
		most = min(most, sel.Count)
	}
	to = after
	for seen, more := 0, true; more; {
		if err := ctx.Err(); err != nil {
			return looked, to, true, err
		}
		var found []delayed
		var last Slot
		if found, last, more, _, err = q.delayed(to, most); err != nil {
			return looked, to, true, err
		}
		if some := within(found, scanBytes); len(some) < len(found) {
			found, last, more = some, some[len(some)-1].Slot, true
		}
		if found, err = q.read(found); err != nil {
			return looked, to, true, err
		}
		for i := range found {
			looked++
			to = found[i].Slot
			if !sel.matches(&found[i].Delivery) {
				continue
			}
			seen++
			if !see(&Scheduled{found[i].Delivery, found[i].At}) || seen == sel.Count {
				return looked, to, more || i < len(found)-1, nil
			}
		}
		to = last
	}
	return looked, to, false, nil
}

// CancelScheduled removes those of the messages that wait for their time in a queue now that are selected, until ctx
// ends. They go nowhere.
func (b *Broker) CancelScheduled(ctx context.Context, address, queueName string, sel Selection, report func(Progress)) (Progress, error) {
	c, err := b.rescheduling(address, queueName)
	if err != nil {
		return Progress{}, err
	}
	err = c.run(ctx, sel, report, c.cancel)
	return c.Progress, err
}

// DeliverScheduled has those of the messages that wait for their time in a queue now, and that are selected, be due,
// until ctx ends. Each is given when it has come to its place by priority and number, at once if there is room in memory.
func (b *Broker) DeliverScheduled(ctx context.Context, address, queueName string, sel Selection, report func(Progress)) (Progress, error) {
	c, err := b.rescheduling(address, queueName)
	if err != nil {
		return Progress{}, err
	}
	err = c.run(ctx, sel, report, c.deliver)
	return c.Progress, err
}

// rescheduling is a command over the messages of a queue that wait for their time, while it runs.
type rescheduling struct {
	Progress
	queue *boundQueue
	last  uint64 // messages with higher numbers have come since
	now   int64
	bare  [2]bool  // by queue.Home: it has told that it has nothing
	next  [2]int64 // by queue.Home: when it is to be asked for what it has; 0: not known
}

func (b *Broker) rescheduling(address, queueName string) (*rescheduling, error) {
	q, err := b.lookup(address, queueName)
	if err != nil {
		return nil, err
	}
	return &rescheduling{queue: q, last: b.committer.numbers.Load(), now: b.now()}, nil
}

// run goes through the queue, and has act see to what is selected.
func (c *rescheduling) run(ctx context.Context, sel Selection, report func(Progress), act func([]delayed) []queue.Effect) error {
	if sel.Number != 0 {
		sel.Count = 1
	}
	var at Slot
	for more := true; more && (sel.Count == 0 || c.Done < sel.Count); {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if at, more, err = c.step(at, sel, act); err != nil {
			return err
		}
		if report != nil && c.Looked > 0 {
			report(c.Progress)
		}
	}
	return nil
}

// step sees to what comes behind a slot, a bounded number, and returns when that holds. Nothing comes back from the homes
// meanwhile, and nothing leaves them.
func (c *rescheduling) step(after Slot, sel Selection, act func([]delayed) []queue.Effect) (to Slot, more bool, err error) {
	q, b := c.queue, c.queue.broker()
	if q.info().Delayed == 0 {
		return after, false, nil
	}
	b.sweeper.leaving.Lock()
	defer b.sweeper.leaving.Unlock()
	b.spiller.sweeper.leaving.Lock()
	defer b.spiller.sweeper.leaving.Unlock()
	b.committer.await()
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		return after, false, fmt.Errorf("queue %s::%s: %w", q.address.name, q.name, ErrDeleted)
	}
	var asked [2]bool
	var ask [2]int64
	for h := range asked {
		if asked[h] = q.core.Parks(queue.Home(h)); asked[h] {
			ask[h] = q.core.NextAsk(queue.Home(h))
			q.core.Recall(queue.Home(h))
		}
	}
	q.guard.leave()

	found, to, more, err := c.look(after, sel)
	q.guard.enter()
	var done aftermath
	if !q.deleted {
		var fx []queue.Effect
		c.next = ask
		if err == nil {
			fx = act(c.named(found))
		}
		for h := range asked {
			switch {
			case !asked[h]:
			case err == nil && c.bare[h]: // the queue may have counted on more
				fx = q.core.Ripen(queue.Home(h), nil, 0, c.now, fx)
			default:
				q.core.Rest(queue.Home(h), c.next[h])
			}
		}
		done = q.carryOut(fx, nil)
		q.arm()
	}
	q.guard.leave()
	q.after(&done, nil)
	if err != nil {
		return after, more, err
	}
	if err := b.committer.sync(); err != nil {
		return to, more, err
	}
	return to, more, b.spiller.settled()
}

// look returns what is selected of what comes behind a slot.
func (c *rescheduling) look(after Slot, sel Selection) (found []delayed, to Slot, more bool, err error) {
	most, left := lookQuantum, sel.Count-c.Done
	switch {
	case sel.Match != nil:
		most = clearQuantum
	case sel.all() && sel.Count > 0:
		most = min(most, left)
	}
	if found, to, more, c.bare, err = c.queue.delayed(after, most); err != nil {
		return nil, after, more, err
	}
	found = slices.DeleteFunc(found, func(w delayed) bool { return w.Slot.Number > c.last })
	if sel.Match == nil {
		c.Looked += len(found)
		if sel.Number != 0 {
			found = slices.DeleteFunc(found, func(w delayed) bool { return w.Slot.Number != sel.Number })
		}
		return found, to, more, nil
	}
	if some := within(found, scanBytes); len(some) < len(found) {
		found, to, more = some, some[len(some)-1].Slot, true
	}
	if found, err = c.queue.read(found); err != nil {
		return nil, after, more, err
	}
	selected := found[:0]
	for i := range found {
		if sel.Count > 0 && len(selected) == left {
			break
		}
		c.Looked++
		if sel.matches(&found[i].Delivery) {
			selected = append(selected, found[i])
		}
	}
	return selected, to, more, nil
}

// named returns those that still are where they were found, in memory or at a home. Under the guard.
func (c *rescheduling) named(found []delayed) []delayed {
	var away [2][]uint64
	for i := range found {
		if w := &found[i]; !w.here {
			away[w.home] = append(away[w.home], w.Slot.Number)
		}
	}
	for h, numbers := range away {
		slices.Sort(numbers)
		away[h] = c.queue.core.Waits(queue.Home(h), numbers)
	}
	return slices.DeleteFunc(found, func(w delayed) bool {
		_, waits := slices.BinarySearch(away[w.home], w.Slot.Number)
		return !w.here && !waits
	})
}

// cancel has messages leave. Under the guard.
func (c *rescheduling) cancel(found []delayed) []queue.Effect {
	core := &c.queue.core
	n, fx := core.Cancel(here(found), nil)
	for i := range found {
		if w := &found[i]; !w.here {
			n++
			fx = core.CancelAway(w.home, w.Priority, w.Slot.Number, w.bytes, fx)
		}
	}
	c.Done += n
	return fx
}

// deliver has messages be due. At home they still wait for their time then, which has come. Under the guard.
func (c *rescheduling) deliver(found []delayed) []queue.Effect {
	q := c.queue
	n, fx := q.core.Hasten(here(found), c.now, nil)
	var records []Record
	for i := range found {
		w := &found[i]
		if w.here || w.At <= c.now {
			continue
		}
		n++
		c.next[w.home] = c.now
		if w.home == queue.InSpill {
			q.broker().spiller.delay(q, w.Priority, w.Slot.Number, c.now)
			continue
		}
		records = append(records, Record{Kind: RecordDue, Queue: q.id, Number: w.Slot.Number, Priority: w.Priority, Due: c.now})
	}
	if len(records) > 0 && q.broker().committer.enter(records, nil) != nil {
		n -= len(records) // the store has failed or closes, which its sync says
	}
	c.Done += n
	return fx
}

// here returns the numbers of those that are in memory, in ascending order.
func here(found []delayed) []uint64 {
	var numbers []uint64
	for i := range found {
		if found[i].here {
			numbers = append(numbers, found[i].Slot.Number)
		}
	}
	slices.Sort(numbers)
	return numbers
}
