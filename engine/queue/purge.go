package queue

import (
	"math/bits"
	"slices"
)

// PurgeElsewhere removes all waiting entries that aren't in memory, and returns how many there were. That is little
// work however many they are. PurgeUpTo follows.
func (q *Queue) PurgeElsewhere(fx []Effect) (removed int, _ []Effect) {
	before := q.waiting
	fx = q.purgeElsewhere(fx)
	return before - q.waiting, fx
}

// PurgeUpTo removes entries that wait in memory, also for their time, and whose number is at most last, max of them, and
// returns how many there were: less than max when there are no more.
func (q *Queue) PurgeUpTo(last uint64, max int, now int64, fx []Effect) (removed int, _ []Effect) {
	removed, fx = q.purgeUpTo(last, max, fx)
	return removed, q.dispatch(now, fx)
}

func (q *Queue) purgeUpTo(last uint64, max int, fx []Effect) (removed int, _ []Effect) {
	r := &q.ready
	for filled := r.filled; filled != 0; {
		p := uint8(15 - bits.LeadingZeros16(filled))
		filled &^= 1 << p
		l := r.level(p)
		for l.n > 0 {
			e := l.at(0)
			if e.state != stateReady {
				l.popFront()
				l.blanks--
				continue
			}
			if e.number > last {
				break
			}
			if removed == max {
				return removed, fx
			}
			removed++
			r.pop(e)
			q.waiting--
			fx = q.gone(e, CausePurged, fx)
		}
		if l.n == 0 {
			r.filled &^= 1 << p
		}
	}
	for i := uint32(0); q.barred != nil && i < q.barred.n; {
		e := q.barred.at(i)
		if e.number > last {
			i++
			continue
		}
		if removed == max {
			return removed, fx
		}
		removed++
		q.barred.remove(i)
		q.waiting--
		fx = q.gone(e, CausePurged, fx)
	}
	pausing, fx := q.purgeDelayed(last, max-removed, fx)
	return removed + pausing, fx
}

// purgeDelayed removes entries that wait in memory for their time. What waits for it at home only isn't known here one by
// one.
func (q *Queue) purgeDelayed(last uint64, max int, fx []Effect) (removed int, _ []Effect) {
	if q.delays == nil {
		return 0, fx
	}
	for _, e := range slices.Clone(q.delays.heap) {
		if e.number > last {
			continue
		}
		if removed == max {
			break
		}
		removed++
		fx = q.purgeHeld(e, fx)
	}
	return removed, fx
}

// purgeHeld removes an entry that waits in memory for its time.
func (q *Queue) purgeHeld(e *Entry, fx []Effect) []Effect {
	q.delays.remove(e)
	q.delays.vanishes(q.ready.home(e.message), e.number)
	return q.gone(e, CausePurged, fx)
}
