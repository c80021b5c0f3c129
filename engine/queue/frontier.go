package queue

import "math/bits"

// What a queue has more than its budgets is not in memory: durable entries stay in the store alone, others are
// spilled. Each priority has at most one frontier for each of the two homes: its entries of that home are in memory
// below it, and only there from it on. Those are counted and not known one by one. Nothing is given that lies behind
// either frontier, for order's sake. When little is left, the queue asks for the next page of the home whose frontier
// comes first, with EffectLoad, goes on with what it may give, and moves the frontier when the page is Loaded.
//
// What is loaded from the store stays there until it is settled. What is loaded from the spill is gone from it: it is
// in memory from then on, with all that happens to it, until it leaves the queue.
//
// Browsers read through pages of their own, which are not kept. One that has passed the place of a message that is
// published late, and isn't kept in memory, doesn't come back for it.
//
// The store may know more than the queue: entries whose commit holds and that are not published yet. They have numbers
// above all of that home that the queue has counted, since durable messages are published in ascending order. Others
// may come late, and some of them wait in memory behind the frontier: those that a load on its way may miss.

// frontier is where the entries of one priority and home are not in memory.
type frontier struct {
	from, last uint64 // they have numbers of this range
	count      int    // how many there are, and
	bytes      int64  // their payloads; after Restore right only for all priorities together
	load       *Load  // on its way; nil for none
	since      int    // of count, came after load was asked for
	missed     uint64 // the first that load may have passed, since it waited for its time then; 0: none
	gone       gone   // numbers of this range that it doesn't have any more, and the store may still have
}

// Load is what a queue needs: the entries of a priority from a number on. It doesn't change.
type Load struct {
	Priority   uint8
	Stored     bool   // from the store
	Spilled    bool   // from the spill; from both only for a browser, in one order
	From, Last uint64 // more is not needed
	Entries    int    // at most so many
	Bytes      int    // and no more once their payloads have reached so many bytes
	Browser    *Consumer
	Lost       int   // of an EffectPurged from the spill
	reserved   int64 // of the budget
}

// Stored is what the store holds of a queue and priority when the queue is opened.
type Stored struct {
	Priority    uint8
	Entries     int    // without a time that they wait for
	Delayed     int    // with one
	First, Last uint64 // no entry has a number below First or above Last
}

// SetBudgets has entries beyond the budgets not be in memory. It is called before anything is published. The store must
// then have every durable message before it is published, if there is a budget of them, and they come in ascending
// order of their numbers.
func (q *Queue) SetBudgets(b *Budgets) { q.ready.budgets = b }

// Restore opens a queue with what the store holds of it, without loading anything; bytes is the size of all payloads.
// It is called once, after SetBudgets and before anything else.
func (q *Queue) Restore(levels []Stored, bytes int64) {
	for _, s := range levels {
		q.counters.Added += uint64(s.Delayed)
		if s.Delayed > 0 {
			p := &q.delaying().parked[InStore]
			p.count += s.Delayed
			p.last, p.ask = max(p.last, s.Last), 1
		}
		if s.Entries == 0 {
			continue
		}
		f := q.front(InStore, min(s.Priority, 9), s.First)
		f.last, f.count, f.bytes = s.Last, s.Entries, bytes
		q.waiting += s.Entries
		q.bytes += bytes
		bytes = 0 // the first has them all
	}
	q.counters.Added += uint64(q.waiting)
}

// front sets a frontier.
func (q *Queue) front(h Home, priority uint8, from uint64) *frontier {
	r := &q.ready
	f := &frontier{from: from}
	l := r.open(priority)
	if l.away == nil {
		l.away = &away{}
	}
	l.away.frontiers[h] = f
	r.paged |= 1 << priority
	return f
}

// unfront takes a frontier away.
func (q *Queue) unfront(h Home, priority uint8) {
	r := &q.ready
	l := r.level(priority)
	a := l.away
	bytes := a.frontiers[h].bytes
	a.passed[h] = max(a.passed[h], a.frontiers[h].from)
	a.frontiers[h] = nil
	if a.frontiers == [homes]*frontier{} {
		r.paged &^= 1 << priority
	}
	r.shrink(l, h)
	for paged := r.paged; h == InStore && paged != 0; paged &= paged - 1 {
		if f := r.level(uint8(bits.TrailingZeros16(paged))).frontier(h); f != nil {
			f.bytes += bytes
			return
		}
	}
	q.bytes -= bytes // what was counted and isn't there
}

// frontier returns that of a priority and home, or nil.
func (r *ready) frontier(priority uint8, h Home) *frontier {
	if r.paged&(1<<priority) == 0 {
		return nil
	}
	return r.level(priority).frontier(h)
}

// behind reports whether a frontier has passed a number that might be spilled.
func (l *level) behind(number uint64) bool { return l.away != nil && number < l.away.passed[InSpill] }

// from returns the number from which on nothing of the level can be given before more is loaded.
func (l *level) from() uint64 {
	from := uint64(endKey)
	for h := range homes {
		if f := l.frontier(h); f != nil {
			from = min(from, f.from)
		}
	}
	return from
}

// last returns the highest number of the level that isn't in memory, 0 for none.
func (l *level) last() uint64 {
	last := uint64(0)
	for h := range homes {
		if f := l.frontier(h); f != nil {
			last = max(last, f.last)
		}
	}
	return last
}

// loading reports whether something of the level is on its way.
func (l *level) loading() bool {
	for h := range homes {
		if f := l.frontier(h); f != nil && f.load != nil {
			return true
		}
	}
	return false
}

// page leaves a new message to its home, if it has to; false when it is to be kept in memory.
func (q *Queue) page(h Home, m *Message, number uint64, now int64) bool {
	r := &q.ready
	p := m.level()
	f := r.frontier(p, h)
	switch {
	case h == InSpill && r.budget(h).Closed.Load():
		return false
	case f != nil:
		if number < f.from || h == InSpill && f.load != nil && number <= f.last {
			return false
		}
	case q.handsOver() || m.Expiry != 0 && m.Expiry <= now || r.admits(h, p, costOf(m)):
		return false
	case h == InSpill && r.level(p).behind(number): // who has read that part already knows of nothing there
		return false
	default:
		f = q.front(h, p, number)
	}
	f.last = max(f.last, number)
	f.count++
	if f.load != nil {
		f.since++
	}
	q.counters.Added++
	q.bytes += int64(m.Size())
	f.bytes += int64(m.Size())
	q.waiting++
	return true
}

// elsewhere returns how many entries are at a home only, and the bytes of their payloads.
func (r *ready) elsewhere(h Home) (entries int, bytes int64) {
	for paged := r.paged; paged != 0; paged &= paged - 1 {
		if f := r.level(uint8(bits.TrailingZeros16(paged))).frontier(h); f != nil {
			entries += f.count
			bytes += f.bytes
		}
	}
	return entries, bytes
}

// first returns the highest priority that has a frontier, of which there must be one. Nothing behind that can be given.
func (r *ready) first() uint8 { return uint8(15 - bits.LeadingZeros16(r.paged)) }

// limit returns the key from which on nothing can be given before more is loaded.
func (r *ready) limit() uint64 {
	if r.paged == 0 {
		return endKey
	}
	p := r.first()
	return keyOf(p, r.level(p).from())
}

// refill asks for more if little can be given.
func (q *Queue) refill(fx []Effect) []Effect {
	r := &q.ready
	p := r.first()
	l := r.level(p)
	h := InStore
	for o := range homes {
		if f := l.frontier(o); f != nil && f.from == l.from() {
			h = o
		}
	}
	s, b := &l.sides[h], r.budget(h)
	f := l.frontier(h)
	// What is kept lies below the frontier, but for what came late, or couldn't be spilled.
	if f.load != nil || s.kept >= b.Low && r.head() != nil {
		return fx
	}
	tight := b.Tight.Load()
	if tight && q.acquired > 0 {
		return append(fx, Effect{Kind: EffectHeld})
	}
	load := &Load{
		Priority: p, Stored: h == InStore, Spilled: h == InSpill,
		From: f.from, Last: f.last, Entries: b.PageEntries, Bytes: b.PageBytes,
	}
	load.reserved = int64(load.Bytes) + int64(load.Entries)*EntryCost
	if tight || !b.take(load.reserved) {
		load.Entries, load.Bytes = b.SmallEntries, b.SmallBytes
		load.reserved = int64(load.Bytes) + int64(load.Entries)*EntryCost
		b.used.Add(load.reserved)
	}
	s.lease += load.reserved
	f.load, f.since, f.missed = load, 0, 0
	return append(fx, loadEffect(EffectLoad, load))
}

// pageFor returns what a browser needs of a priority that has a frontier.
func (r *ready) pageFor(priority uint8, from, last uint64) *Load {
	load := &Load{Priority: priority, From: from, Last: last}
	l := r.level(priority)
	load.Stored, load.Spilled = l.frontier(InStore) != nil, l.frontier(InSpill) != nil
	for h := range homes {
		if b := r.budget(h); b != nil {
			load.Entries, load.Bytes = b.PageEntries, b.PageBytes
		}
	}
	return load
}

// Resume goes on after an EffectHeld.
func (q *Queue) Resume(now int64, fx []Effect) []Effect { return q.dispatch(now, fx) }

// Loaded brings what an EffectLoad asked for, in ascending order. whole says that there is no more of it. What the
// queue has no use for any more comes back as EffectStored. What it has taken from the spill is gone from there, as an
// EffectPurged says, whose Lost are those that should have been there and weren't.
func (q *Queue) Loaded(load *Load, entries []Arrival, whole bool, now int64, fx []Effect) []Effect {
	if load.Browser != nil {
		return q.shown(load, entries, whole, now, fx)
	}
	r := &q.ready
	h := InStore
	if load.Spilled {
		h = InSpill
	}
	f := r.frontier(load.Priority, h)
	if f == nil || f.load != load {
		return spare(entries, fx) // it was purged meanwhile
	}
	f.load = nil
	if f.missed != 0 && f.missed <= load.Last {
		whole = false
	}
	page := make([]*Entry, 0, len(entries))
	var taken []uint64 // one by one, where others wait between them for their time
	apart := h == InSpill && q.parked(InSpill) > 0
	for i := range entries {
		a := &entries[i]
		if a.Number > f.last || f.missed != 0 && a.Number >= f.missed {
			fx = spare(entries[i:], fx) // not published yet, or to be loaded once more
			break
		}
		if a.Number < f.from || f.gone.has(a.Number) || q.delays.awaits(h, a.Number) {
			fx = spare(entries[i:i+1], fx)
			continue
		}
		f.from = a.Number + 1
		f.count--
		if a.Number > load.Last {
			f.since--
		}
		if apart {
			taken = append(taken, a.Number)
		}
		f.bytes -= int64(a.Message.Size())
		e := a.entry()
		if expiry := e.message.Expiry; expiry != 0 {
			q.expiry.live++
			if expiry <= now {
				q.waiting--
				fx = q.expire(e, fx)
				continue
			}
			q.expiry.put(e)
		}
		page = append(page, e)
	}
	lost := 0
	if whole {
		f.from = max(f.from, load.Last+1)
		lost = f.count - f.since
		q.correct(f, f.since)
	}
	f.gone.loaded(f.from)
	switch {
	case h == InSpill && apart && (len(taken) > 0 || lost > 0):
		fx = unspill(load.Priority, taken, max(lost, 0), fx)
	case h == InSpill && !apart && f.from > load.From:
		fx = append(fx, loadEffect(EffectPurged, &Load{
			Priority: load.Priority, Spilled: true, From: load.From, Last: f.from - 1, Lost: max(lost, 0),
		}))
	}
	if len(page) > 0 {
		r.putAll(page)
	}
	if f.count <= 0 {
		q.correct(f, 0)
		q.unfront(h, load.Priority)
	} else {
		r.shrink(r.level(load.Priority), h)
	}
	return q.dispatch(now, fx)
}

// unspill says that entries are gone from the spill, and nothing of what lies between them.
func unspill(priority uint8, numbers []uint64, lost int, fx []Effect) []Effect {
	l := &Load{Priority: priority, Spilled: true, From: 1, Last: 0, Lost: lost}
	for _, n := range numbers {
		if l.From > l.Last {
			l.From, l.Last = n, n
		} else if n == l.Last+1 {
			l.Last = n
		} else {
			fx = append(fx, loadEffect(EffectPurged, l))
			l = &Load{Priority: priority, Spilled: true, From: n, Last: n}
		}
	}
	return append(fx, loadEffect(EffectPurged, l))
}

// correct sets how many entries lie behind a frontier: what was counted and isn't there can't be had, and mustn't be
// waited for.
func (q *Queue) correct(f *frontier, count int) {
	q.waiting += count - f.count
	f.count = count
}

// spare gives back loaded messages that the queue has no use for.
func spare(entries []Arrival, fx []Effect) []Effect {
	for i := range entries {
		fx = append(fx, Effect{Kind: EffectStored, Message: entries[i].Message})
	}
	return fx
}

// purgeElsewhere removes what isn't in memory.
func (q *Queue) purgeElsewhere(fx []Effect) []Effect {
	r := &q.ready
	for r.paged != 0 {
		p := r.first()
		for h := range homes {
			f := r.frontier(p, h)
			if f == nil {
				continue
			}
			purged := func(from, last uint64, count int) {
				fx = append(fx, loadEffect(EffectPurged, &Load{
					Priority: p, Stored: h == InStore, Spilled: h == InSpill, From: from, Last: last, Entries: count,
				}))
			}
			// Those that have gone from the store are on their way elsewhere.
			count, from := f.count, f.from
			for _, n := range f.gone.numbers() {
				if h == InSpill {
					break
				}
				if n > from {
					purged(from, n-1, count)
					count = 0
				}
				from = n + 1
			}
			if from <= f.last {
				purged(from, f.last, count)
			}
			q.correct(f, 0)
			f.load, f.from = nil, f.last+1
			q.unfront(h, p)
		}
	}
	return fx
}
