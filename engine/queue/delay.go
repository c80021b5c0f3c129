package queue

import (
	"math"
	"slices"
)

// An entry may have to wait until a time of its own before it is given to anybody: it has failed and is to be tried
// later, or was sent for later. It is in nobody's way meanwhile, and then goes to its place by priority and number.
//
// Those whose time is near are in memory, in a heap. The others are at their home only, which knows their times: they
// aren't known here one by one, and no load brings them. When it is time for the first of them, whoever has asked their home
// calls Recall, and hands them to Ripen when they are at home without a time.

// delays is what a queue has that ever had an entry that waited for its time.
type delays struct {
	heap    []*Entry // in memory, the earliest first
	parked  [homes]parked
	leaving map[uint64]struct{} // have expired while they waited; their home may not know it before Finish
}

// parked is what waits at one home only.
type parked struct {
	count     int
	bytes     int64  // payloads of these, as far as they are known
	last      uint64 // of this home no entry with a higher number has ever waited for its time
	ask       int64  // when to ask for them, in unix milliseconds; 0: not known, or there are none
	recalling bool   // they are being asked for: nothing of heap moves
	joined    bool   // since then more have come, of which the answer needn't tell

	named  []uint64            // those that Waits has named; the home may have let go of their times already
	purged map[uint64]struct{} // were in memory since Recall, and the home may have them still
}

// vanishes notes that an entry is purged, of which a home that is being asked may still tell.
func (d *delays) vanishes(h Home, number uint64) {
	p := &d.parked[h]
	if !p.recalling {
		return
	}
	if p.purged == nil {
		p.purged = map[uint64]struct{}{}
	}
	p.purged[number] = struct{}{}
}

// awaits reports whether Ripen may bring a number: a load that does is too early.
func (d *delays) awaits(h Home, number uint64) bool {
	if d == nil || len(d.parked[h].named) == 0 {
		return false
	}
	_, named := slices.BinarySearch(d.parked[h].named, number)
	return named
}

// ended notes that a Recall has ended, and that the home is asked again at a unix millisecond, 0 if it has nothing.
func (p *parked) ended(next int64) {
	p.recalling, p.named, p.purged = false, nil, nil
	p.askAt(next)
}

// askAt has the home be asked at a unix millisecond at the latest, 0 for whenever.
func (p *parked) askAt(at int64) {
	if p.ask == 0 || at != 0 && at < p.ask {
		p.ask = at
	}
}

// wait is what an entry has that waits for its time.
type wait struct {
	until int64 // unix milliseconds
	place int   // in the heap
}

// The pause of a message that the same consumer has given back pauseAfter times uncounted, in milliseconds: so a client
// that releases whatever it gets can't make the broker spin.
const (
	pauseAfter = 3
	pauseFirst = 10
	pauseMost  = 1000
)

// delay returns how long, in milliseconds, an entry waits that has failed n times here.
func (p *Policy) delay(n uint32) int64 {
	if p.Delay <= 0 || n == 0 {
		return 0
	}
	most := float64(p.MaxDelay)
	if most <= 0 {
		most = 10 * float64(p.Delay)
	}
	d := math.Trunc(float64(p.Delay) * math.Pow(max(p.Multiplier, 0), float64(n-1)))
	if p.Spread > 0 && p.Random != nil && d <= math.MaxInt64/4 {
		d += math.Trunc(d * min(p.Spread, 1) * (2*p.Random() - 1))
	}
	return int64(max(min(d, most, MaxDelay), 0)) // a comparison with an infinite one is right as well
}

// MaxDelay is the longest delay in milliseconds: some 30,000 years. It can be added to any time of day.
const MaxDelay = 1 << 50

// due returns when an entry may be given to somebody that has just failed, 0 for at once.
func (q *Queue) due(e *Entry, o *Outcome, now int64) int64 {
	at := int64(0)
	switch {
	case o.DueAt != 0:
		at = min(o.DueAt, MaxDelay)
	case o.HasDelay:
		at = now + min(max(o.Delay, 0), MaxDelay)
	case q.policy != nil:
		at = now + q.policy.delay(e.count-e.base)
	}
	if at <= now {
		return 0
	}
	return at
}

// back notes that c has given an entry back uncounted, and returns until when the entry pauses, 0 for not at all.
func (e *Entry) back(c *Consumer, now int64) int64 {
	if e.more == nil {
		e.more = &more{}
	}
	m := e.more
	n := m.returned.by(c.id)
	if n <= pauseAfter {
		return 0
	}
	return now + int64(min(pauseFirst<<min(n-pauseAfter-1, 10), pauseMost))
}

// returns counts how often an entry has come back from consumers uncounted: from the last few of them. It has their ids,
// so that a message that waits doesn't keep in memory who has left.
type returns [4]struct {
	from uint32
	n    int32
}

// by counts one more and returns how many that makes. Who isn't among the last few takes the place, and the count, of
// who has given it back least often: a message that is passed around by many and never taken pauses as well.
func (r *returns) by(c uint32) int32 {
	least := 0
	for i := range r {
		if r[i].from == c {
			r[i].n++
			return r[i].n
		}
		if r[i].n < r[least].n {
			least = i
		}
	}
	r[least].from = c
	r[least].n++
	return r[least].n
}

// delaying returns what the queue has of entries that wait for their time.
func (q *Queue) delaying() *delays {
	if q.delays == nil {
		q.delays = &delays{}
	}
	return q.delays
}

// schedule adds a message that was sent for later.
func (q *Queue) schedule(m *Message, number uint64, now int64, fx []Effect) []Effect {
	e := &Entry{number: number, message: m, priority: m.level(), more: &more{due: m.Due}}
	q.counters.Added++
	q.bytes += int64(m.Size())
	if m.Expiry != 0 {
		q.expiry.live++
		if m.Expiry <= now {
			return q.expire(e, fx)
		}
	}
	return q.hold(e, m.Due, now, fx)
}

// hold has an entry, which is nowhere, wait until a time.
func (q *Queue) hold(e *Entry, until int64, now int64, fx []Effect) []Effect {
	d := q.delaying()
	p := &d.parked[q.ready.home(e.message)]
	p.last = max(p.last, e.number)
	if q.parks(e, until, now) {
		return q.park(e, fx)
	}
	e.state = stateDelayed
	e.more.wait.until = until
	d.push(e)
	if e.message.Expiry != 0 {
		q.expiry.put(e)
	}
	return fx
}

// parks reports whether an entry is to wait at home: until a time that is known there, and far off or with memory
// short.
func (q *Queue) parks(e *Entry, until, now int64) bool {
	h := q.ready.home(e.message)
	b := q.ready.budget(h)
	return b != nil && e.more.due != 0 && until == e.more.due && (until-now > b.Park || b.Tight.Load()) &&
		!(h == InSpill && b.Closed.Load()) && !e.prune()
}

// park lets go of an entry that is nowhere: from now on it is at home only.
func (q *Queue) park(e *Entry, fx []Effect) []Effect {
	m := e.message
	h := q.ready.home(m)
	p := &q.delaying().parked[h]
	p.count++
	p.bytes += int64(m.Size())
	p.joined = true
	p.askAt(e.more.due)
	if m.Expiry != 0 {
		q.expiry.drop()
	}
	e.state, e.message = stateGone, nil
	kind := EffectStored
	if h == InSpill {
		kind = EffectSpill
	}
	return append(fx, Effect{Kind: kind, Cause: CausePaged, Entry: e, Message: m})
}

// Delayed returns how many entries wait for their time.
func (q *Queue) Delayed() int {
	if q.delays == nil {
		return 0
	}
	d := q.delays
	return len(d.heap) + d.parked[InStore].count + d.parked[InSpill].count
}

// parked returns how many entries wait for their time at a home only.
func (q *Queue) parked(h Home) int {
	if q.delays == nil {
		return 0
	}
	return q.delays.parked[h].count
}

// Spilled reports whether something of a priority may be in the spill.
func (q *Queue) Spilled(priority uint8) bool {
	return q.parked(InSpill) > 0 || q.ready.frontier(min(priority, 9), InSpill) != nil
}

// NextDue returns the unix millisecond at which Wake has something to do, 0 for none.
func (q *Queue) NextDue() int64 {
	if q.recalling() || q.delays == nil || len(q.delays.heap) == 0 {
		return 0
	}
	return q.delays.heap[0].more.wait.until
}

// NextAsk returns the unix millisecond at which a home has to be asked for entries that wait there for their time, 0
// for none.
func (q *Queue) NextAsk(h Home) int64 {
	if q.delays == nil || q.delays.parked[h].recalling {
		return 0
	}
	return q.delays.parked[h].ask
}

// Wake has entries in memory be given whose time has come, max of them at most; NextDue says whether there are more.
func (q *Queue) Wake(max int, now int64, fx []Effect) []Effect {
	d := q.delays
	if d == nil || q.recalling() {
		return fx
	}
	few := make([]*Entry, 0, min(max, len(d.heap), 64))
	for ; max > 0 && len(d.heap) > 0 && d.heap[0].more.wait.until <= now; max-- {
		e := d.heap[0]
		d.remove(e)
		h := q.ready.home(e.message)
		if f := q.ready.frontier(e.priority, h); h == InStore && f != nil && e.number >= f.from && e.more.due != 0 {
			fx = q.park(e, fx) // a load would bring it once more: it has to come by way of its home
			continue
		}
		if e.more.due != 0 {
			e.more.due = 0
			fx = append(fx, Effect{Kind: EffectDue, Entry: e, Message: e.message})
		}
		few = append(few, e)
	}
	if len(few) == 0 {
		return fx
	}
	for _, e := range few {
		if e.acquisition == 0 && e.count == 0 { // a browser can't have seen it
			for _, b := range q.browsers {
				b.view.late(e)
			}
		}
	}
	return q.dispatch(now, q.giveBack(few, now, fx))
}

// Recall begins to bring back entries that wait at a home only: until Ripen, or Rest, nothing of what is in memory moves that
// waits for its time. What the home knows when all holds that has been asked of it up to now is the truth of those that
// Waits reports to be there.
func (q *Queue) Recall(h Home) {
	p := &q.delaying().parked[h]
	p.recalling, p.joined, p.ask = true, false, 0
}

// Waits returns those of some numbers, in ascending order, whose entries wait at home only, by what the home knows. It
// changes the slice.
func (q *Queue) Waits(h Home, numbers []uint64) []uint64 {
	d := q.delays
	if d == nil || !d.parked[h].recalling {
		return nil
	}
	numbers = q.Away(h, numbers)
	d.parked[h].named = slices.Clone(numbers)
	return numbers
}

// recalling reports whether a home is being asked.
func (q *Queue) recalling() bool {
	return q.delays != nil && (q.delays.parked[InStore].recalling || q.delays.parked[InSpill].recalling)
}

// Room returns whether entries that wait at a home may come into memory: while there is little of it in the queue, or ample.
func (q *Queue) Room(h Home) bool {
	b := q.ready.budget(h)
	if b == nil || q.waiting == 0 {
		return true
	}
	kept := int64(0)
	for i := range q.ready.levels {
		kept += q.ready.levels[i].sides[h].kept
	}
	return kept < b.Low || !b.Tight.Load() && kept < b.Ceiling/2 && b.used.Load() < b.Limit
}

// Ripen has entries be given that Waits has named. Their time is over, in the store as well, before it is called; from the
// spill they are gone then, as an EffectPurged says. next is the time of the first that the home has told to stay there, 0
// if none does.
func (q *Queue) Ripen(h Home, ripe []Arrival, next int64, now int64, fx []Effect) []Effect {
	if q.delays == nil || !q.delays.parked[h].recalling {
		return spare(ripe, fx)
	}
	r, p := &q.ready, &q.delays.parked[h]
	p.ended(next)
	back := make([]*Entry, 0, len(ripe))
	for i := range ripe {
		a := &ripe[i]
		m := a.Message
		q.unpark(h, int64(m.Size()))
		if h == InSpill {
			fx = append(fx, loadEffect(EffectPurged, &Load{
				Priority: m.level(), Spilled: true, From: a.Number, Last: a.Number,
			}))
		} else if f := r.frontier(m.level(), h); f != nil && a.Number >= f.from {
			q.settleDown(f, a)
			fx = append(fx, Effect{Kind: EffectStored, Message: m})
			continue
		}
		if m.Expiry != 0 {
			q.expiry.live++
		}
		back = append(back, a.entry())
	}
	if next == 0 && !p.joined {
		q.bytes -= p.bytes // what was counted and isn't there
		p.count, p.bytes = 0, 0
	}
	for _, e := range back {
		if e.acquisition == 0 && e.count == 0 {
			for _, b := range q.browsers {
				b.view.late(e)
			}
		}
	}
	return q.dispatch(now, q.giveBack(back, now, fx))
}

// settleDown counts an entry that stays where it is behind a frontier. A load on its way may have passed it.
func (q *Queue) settleDown(f *frontier, a *Arrival) {
	if f.load != nil {
		if a.Number > f.load.Last {
			f.since++
		}
		if f.missed == 0 || a.Number < f.missed {
			f.missed = a.Number
		}
	}
	f.count++
	f.bytes += int64(a.Message.Size())
	f.last = max(f.last, a.Number)
	q.waiting++
}

// unpark takes an entry out of those at a home, whose payload has some size.
func (q *Queue) unpark(h Home, size int64) {
	p := &q.delays.parked[h]
	p.count--
	known := min(size, p.bytes) // those that Restore has told of aren't
	p.bytes -= known
	q.bytes += size - known
}

// Rest ends a Recall that brings nothing. The home is asked again at next, a unix millisecond.
func (q *Queue) Rest(h Home, next int64) {
	if q.delays == nil || !q.delays.parked[h].recalling {
		return
	}
	q.delays.parked[h].ended(next)
}

// before orders entries by time, then as they are delivered.
func (e *Entry) before(o *Entry) bool {
	if e.more.wait.until != o.more.wait.until {
		return e.more.wait.until < o.more.wait.until
	}
	return e.key() < o.key()
}

func (d *delays) push(e *Entry) {
	e.more.wait.place = len(d.heap)
	d.heap = append(d.heap, e)
	d.up(e.more.wait.place)
}

// remove takes an entry out.
func (d *delays) remove(e *Entry) {
	i, last := e.more.wait.place, len(d.heap)-1
	d.swap(i, last)
	d.heap[last] = nil
	d.heap = d.heap[:last]
	if i < last {
		d.up(i)
		d.down(i)
	}
	e.more.wait = wait{}
	if last == 0 {
		d.heap = nil
	}
}

func (d *delays) swap(i, j int) {
	h := d.heap
	h[i], h[j] = h[j], h[i]
	h[i].more.wait.place, h[j].more.wait.place = i, j
}

func (d *delays) up(i int) {
	for i > 0 {
		up := (i - 1) / 2
		if !d.heap[i].before(d.heap[up]) {
			return
		}
		d.swap(i, up)
		i = up
	}
}

func (d *delays) down(i int) {
	for {
		least := 2*i + 1
		if least >= len(d.heap) {
			return
		}
		if least+1 < len(d.heap) && d.heap[least+1].before(d.heap[least]) {
			least++
		}
		if !d.heap[least].before(d.heap[i]) {
			return
		}
		d.swap(i, least)
		i = least
	}
}

// departs notes that an entry leaves whose home takes it for waiting until Finish.
func (q *Queue) departs(number uint64) {
	d := q.delaying()
	if d.leaving == nil {
		d.leaving = map[uint64]struct{}{}
	}
	d.leaving[number] = struct{}{}
}

// departed notes that Finish has been called for an entry.
func (q *Queue) departed(number uint64) {
	d := q.delays
	if d == nil || d.leaving == nil {
		return
	}
	if delete(d.leaving, number); len(d.leaving) == 0 {
		d.leaving = nil
	}
}
