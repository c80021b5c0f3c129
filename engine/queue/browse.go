package queue

import "slices"

// view is what a browser has seen: per priority all up to a number, but those that came late.
type view struct {
	seen   [10]uint64
	missed []*Entry // numbers below seen that became visible only afterwards
}

// late notes a new entry if the browser has passed its place. Entries that go back to their place are not new: the
// browser has seen them, or they were with a consumer when it came by.
func (v *view) late(e *Entry) {
	if e.number > v.seen[e.priority] {
		return
	}
	if len(v.missed) >= 64 {
		v.missed = slices.DeleteFunc(v.missed, func(e *Entry) bool { return e.state == stateGone })
	}
	v.missed = append(v.missed, e)
}

// show gives a browser what its credit allows.
func (q *Queue) show(b *Consumer, now int64, fx []Effect) []Effect {
	for b.given < b.limit {
		e := q.look(b.view, now)
		if e == nil {
			break
		}
		b.given++
		fx = append(fx, Effect{Kind: EffectDeliver, Consumer: b, Entry: e, Message: e.message})
	}
	return fx
}

// look returns the first entry that a browser hasn't seen, nil at the end, and notes it as seen.
func (q *Queue) look(v *view, now int64) *Entry {
	live := func(e *Entry) bool { return e.waiting() && (e.message.Expiry == 0 || e.message.Expiry > now) }
	for p := 9; p >= 0; p-- {
		p := uint8(p)
		var best *Entry
		for e := q.ready.after(p, v.seen[p]); e != nil; e = q.ready.after(p, e.number) {
			if live(e) {
				best = e
				break
			}
		}
		if q.barred != nil {
			for i := q.barred.search(keyOf(p, v.seen[p]) + 1); i < q.barred.n && q.barred.at(i).priority == p; i++ {
				if e := q.barred.at(i); live(e) {
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
		if best == nil {
			continue
		}
		if missed >= 0 {
			v.missed = slices.Delete(v.missed, missed, missed+1)
		} else {
			v.seen[p] = best.number
		}
		return best
	}
	return nil
}
