package queue

import "slices"

// view is what a browser has seen: per priority all up to a number, but those that came late.
type view struct {
	seen   [10]uint64
	last   uint64     // nothing with a higher number is looked for
	passed [10]uint64 // up to there it has all that is in the store or the spill only
	missed []*Entry   // numbers below seen that became visible only afterwards
	load   *Load      // what it waits for; nil for nothing
	page   page
}

// page is what was loaded for a browser, while it is looked at: it is not kept. It has what is not in memory of a
// priority, from a number on up to another one.
type page struct {
	priority uint8
	from, to uint64
	entries  []*Entry
}

// first returns the first entry of the page whose number is at least from; known is false if there may be one that
// isn't in the page.
func (p *page) first(priority uint8, from, last uint64) (e *Entry, known bool) {
	if p.to == 0 || priority != p.priority || from < p.from {
		return nil, false
	}
	for _, e := range p.entries {
		if e.number >= from {
			return e, true
		}
	}
	return nil, p.to >= last
}

// late notes a new entry if the browser has passed its place. Entries that go back to their place are not new: the
// browser has seen them, or they were with a consumer when it came by. Nor are those that have been loaded.
func (v *view) late(e *Entry) {
	if e.number > v.seen[e.priority] || e.number > v.last {
		return
	}
	if len(v.missed) >= 64 {
		v.missed = slices.DeleteFunc(v.missed, func(e *Entry) bool { return e.state == stateGone })
	}
	v.missed = append(v.missed, e)
}

// show gives a browser what its credit allows. When it comes to where entries aren't in memory, it asks for a page of
// them.
func (q *Queue) show(b *Consumer, now int64, fx []Effect) []Effect {
	if b.view.load != nil {
		return fx
	}
	for b.given < b.limit {
		e, load := q.look(b.view, now)
		if load != nil {
			load.Browser = b
			load.Entries = int(min(b.limit-b.given, uint64(load.Entries)))
			b.view.load = load
			return append(fx, loadEffect(EffectLoad, load))
		}
		if e == nil {
			break
		}
		b.given++
		fx = append(fx, Effect{Kind: EffectDeliver, Consumer: b, Entry: e, Message: e.message})
	}
	return fx
}

// look returns the first entry that a browser hasn't seen, nil at the end, and notes it as seen. What it has to know
// before it can say that is load.
func (q *Queue) look(v *view, now int64) (e *Entry, load *Load) {
	live := func(e *Entry) bool { return e.waiting() && (e.message.Expiry == 0 || e.message.Expiry > now) }
	for p := 9; p >= 0; p-- {
		p := uint8(p)
		var best *Entry
		for e := q.ready.after(p, v.seen[p]); e != nil && e.number <= v.last; e = q.ready.after(p, e.number) {
			if live(e) {
				best = e
				break
			}
		}
		if q.barred != nil {
			for i := q.barred.search(keyOf(p, v.seen[p]) + 1); i < q.barred.n && q.barred.at(i).priority == p; i++ {
				e := q.barred.at(i)
				if e.number > v.last {
					break
				}
				if live(e) {
					if best == nil || e.number < best.number {
						best = e
					}
					break
				}
			}
		}
		missed := -1
		for i, e := range v.missed {
			if e.priority == p && live(e) && (best == nil || e.number < best.number) {
				best, missed = e, i
			}
		}
		if q.ready.paged&(1<<p) != 0 {
			l := q.ready.level(p)
			last := min(l.last(), v.last)
			from := max(l.from(), v.seen[p]+1, v.passed[p]+1)
			for from <= last && (best == nil || from < best.number) {
				e, known := v.page.first(p, from, last)
				if !known {
					if v.page.to >= from && v.page.priority == p { // it had nothing that is still there, and isn't asked for again
						v.passed[p] = v.page.to
						from = v.page.to + 1
					}
					return nil, q.ready.pageFor(p, from, last)
				}
				if e == nil {
					v.passed[p] = v.page.to
					break
				}
				if best != nil && best.number < e.number {
					break
				}
				v.passed[p] = e.number
				if live(e) {
					best, missed = e, -1
					break
				}
				from = e.number + 1
			}
		}
		if best == nil {
			continue
		}
		if missed >= 0 {
			v.missed = slices.Delete(v.missed, missed, missed+1)
		} else {
			v.seen[p] = best.number
		}
		return best, nil
	}
	return nil, nil
}

// shown goes on for a browser with a page that has been loaded for it. Nothing of it is kept: all comes back as
// EffectStored.
func (q *Queue) shown(load *Load, entries []Arrival, whole bool, now int64, fx []Effect) []Effect {
	b := load.Browser
	if b.gone || b.view.load != load {
		return spare(entries, fx)
	}
	v := b.view
	v.load = nil
	v.page = page{priority: load.Priority, from: load.From}
	for i := range entries {
		a := &entries[i]
		if a.Number > load.Last { // there may be more of the other home, which hasn't been asked
			whole = true // up to there
			break
		}
		v.page.to = a.Number
		// What has come into memory meanwhile is seen there, and what isn't published yet isn't there yet.
		h := q.ready.home(a.Message)
		if f := q.ready.frontier(load.Priority, h); f != nil && a.Number >= f.from && a.Number <= f.last && !f.gone.has(a.Number) && !q.delays.awaits(h, a.Number) {
			v.page.entries = append(v.page.entries, a.entry())
		}
	}
	if whole {
		v.page.to = max(v.page.to, load.Last)
	}
	fx = q.show(b, now, fx)
	v.page = page{}
	if q.draining > 0 {
		fx = q.answer(fx)
	}
	return spare(entries, fx)
}
