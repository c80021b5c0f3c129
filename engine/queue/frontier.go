package queue

import "math/bits"

// What a queue has more than its budget stays in the store alone. Each priority has at most one frontier: its durable
// entries are in memory below it, and in the store only from there on. Those are counted and not known one by one.
// Transient entries are in memory on both sides; above the frontier they have to wait, for order's sake. When little
// is left below it, the queue asks for the next page with EffectLoad, goes on with what it may give, and moves the
// frontier when the page is Loaded.
//
// Browsers read the store through pages of their own, which are not kept. One that has passed the place of a message
// that is published late, and left to the store, doesn't come back for it.
//
// The store may know more than the queue: entries whose commit holds and that are not published yet. They have numbers
// above all that the queue has counted, since durable messages are published in ascending order.

// frontier is where the entries of one priority are in the store only.
type frontier struct {
	from, last uint64 // they have numbers of this range
	count      int    // how many there are, and
	bytes      int64  // their payloads; after Restore right only for all priorities together
	load       *Load  // on its way; nil for none
	since      int    // of count, came after load was asked for
	gone       gone   // numbers of this range that it doesn't have any more, and the store may still have
}

// Load is what a queue needs from the store: the entries of a priority from a number on. It doesn't change.
type Load struct {
	Priority   uint8
	From, Last uint64 // more is not needed
	Entries    int    // at most so many
	Bytes      int    // and no more once their payloads have reached so many bytes
	Browser    *Consumer
	reserved   int64 // of the budget
}

// Stored is what the store holds of a queue and priority when the queue is opened.
type Stored struct {
	Priority    uint8
	Entries     int
	First, Last uint64 // no entry has a number below First or above Last
}

// SetBudget has durable entries beyond the budget be kept by the store alone. It is called before anything is
// published. The store must then have every durable message before it is published, and they come in ascending order
// of their numbers.
func (q *Queue) SetBudget(b *Budget) { q.ready.budget = b }

// Restore opens a queue with what the store holds of it, without loading anything; bytes is the size of all payloads.
// It is called once, after SetBudget and before anything else.
func (q *Queue) Restore(levels []Stored, bytes int64) {
	for _, s := range levels {
		if s.Entries == 0 {
			continue
		}
		q.front(min(s.Priority, 9), s.First).last = s.Last
		f := q.ready.level(min(s.Priority, 9)).frontier
		f.count, f.bytes = s.Entries, bytes
		q.waiting += s.Entries
		q.bytes += bytes
		bytes = 0 // the first has them all
	}
	q.counters.Added += uint64(q.waiting)
}

// front sets a frontier.
func (q *Queue) front(priority uint8, from uint64) *frontier {
	r := &q.ready
	f := &frontier{from: from}
	r.open(priority).frontier = f
	r.paged |= 1 << priority
	return f
}

// unfront takes the frontier of a priority away.
func (q *Queue) unfront(priority uint8) {
	r := &q.ready
	l := r.level(priority)
	bytes := l.frontier.bytes
	l.frontier = nil
	r.paged &^= 1 << priority
	r.shrink(l)
	if r.paged != 0 {
		r.level(r.first()).frontier.bytes += bytes
	} else {
		q.bytes -= bytes // what was counted and isn't there
	}
}

// page leaves a new durable message to the store, if it has to; false when it is to be kept.
func (q *Queue) page(m *Message, number uint64, now int64) bool {
	r := &q.ready
	p := m.level()
	var f *frontier
	switch {
	case r.paged&(1<<p) != 0:
		if f = r.level(p).frontier; number < f.from {
			return false
		}
	case q.handsOver() || m.Expiry != 0 && m.Expiry <= now || r.admits(p, costOf(m)):
		return false
	default:
		f = q.front(p, number)
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

// stored returns how many entries are in the store only, and the bytes of their payloads.
func (r *ready) stored() (entries int, bytes int64) {
	for paged := r.paged; paged != 0; paged &= paged - 1 {
		f := r.level(uint8(bits.TrailingZeros16(paged))).frontier
		entries += f.count
		bytes += f.bytes
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
	return keyOf(p, r.level(p).frontier.from)
}

// refill asks for more if little can be given.
func (q *Queue) refill(fx []Effect) []Effect {
	r := &q.ready
	p := r.first()
	l := r.level(p)
	f, b := l.frontier, r.budget
	if f.load != nil || l.kept >= b.Low {
		return fx
	}
	tight := b.Tight.Load()
	if tight && q.acquired > 0 {
		return append(fx, Effect{Kind: EffectHeld})
	}
	load := &Load{Priority: p, From: f.from, Last: f.last, Entries: b.PageEntries, Bytes: b.PageBytes}
	load.reserved = int64(load.Bytes) + int64(load.Entries)*EntryCost
	if tight || !b.take(load.reserved) {
		load.Entries, load.Bytes = b.SmallEntries, b.SmallBytes
		load.reserved = int64(load.Bytes) + int64(load.Entries)*EntryCost
		b.used.Add(load.reserved)
	}
	l.lease += load.reserved
	f.load, f.since = load, 0
	return append(fx, loadEffect(EffectLoad, load))
}

// Resume goes on after an EffectHeld.
func (q *Queue) Resume(now int64, fx []Effect) []Effect { return q.dispatch(now, fx) }

// Loaded brings what an EffectLoad asked for, in ascending order. whole says that the store has no more of it. What
// the queue has no use for any more comes back as EffectStored.
func (q *Queue) Loaded(load *Load, entries []Arrival, whole bool, now int64, fx []Effect) []Effect {
	if load.Browser != nil {
		return q.shown(load, entries, whole, now, fx)
	}
	r := &q.ready
	var l *level
	if r.paged&(1<<load.Priority) != 0 {
		l = r.level(load.Priority)
	}
	if l == nil || l.frontier.load != load {
		return spare(entries, fx) // it was purged meanwhile
	}
	f := l.frontier
	f.load = nil
	page := make([]*Entry, 0, len(entries))
	for i := range entries {
		a := &entries[i]
		if a.Number > f.last {
			fx = spare(entries[i:], fx) // not published yet
			break
		}
		if a.Number < f.from || f.gone.has(a.Number) {
			fx = spare(entries[i:i+1], fx)
			continue
		}
		f.from = a.Number + 1
		f.count--
		if a.Number > load.Last {
			f.since--
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
	if whole {
		f.from = max(f.from, load.Last+1)
		q.correct(f, f.since)
	}
	f.gone.loaded(f.from)
	if len(page) > 0 {
		r.putAll(page)
	}
	if f.count <= 0 {
		q.correct(f, 0)
		q.unfront(load.Priority)
	} else {
		r.shrink(l)
	}
	return q.dispatch(now, fx)
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

// purgeStored removes what is in the store only.
func (q *Queue) purgeStored(fx []Effect) []Effect {
	r := &q.ready
	for r.paged != 0 {
		p := r.first()
		f := r.level(p).frontier
		// Those that have gone are on their way elsewhere.
		count, from := f.count, f.from
		for _, n := range f.gone.numbers() {
			if n > from {
				fx = append(fx, loadEffect(EffectPurged, &Load{Priority: p, From: from, Last: n - 1, Entries: count}))
				count = 0
			}
			from = n + 1
		}
		if from <= f.last {
			fx = append(fx, loadEffect(EffectPurged, &Load{Priority: p, From: from, Last: f.last, Entries: count}))
		}
		q.correct(f, 0)
		f.load = nil
		q.unfront(p)
	}
	return fx
}
