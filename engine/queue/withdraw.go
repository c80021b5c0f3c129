package queue

// An administrator looks through a queue as a browser does, and takes out of it what waits, wherever in the queue that
// is. What consumers have, or what is on its way already, isn't to be had.

// Scan adds a browser that begins behind an entry of a priority, or at the beginning with 9 and 0, and goes no further
// than to entries of the number last.
func (q *Queue) Scan(priority uint8, number, last uint64, tag any) *Consumer {
	v := &view{last: last}
	for p := range v.seen {
		switch {
		case p > int(priority):
			v.seen[p] = last
		case p == int(priority):
			v.seen[p] = number
		}
	}
	c := &Consumer{Tag: tag, view: v}
	q.browsers = append(q.browsers, c)
	return c
}

// Withdrawn is an entry that is leaving because somebody has taken it out: Finish, once that holds.
type Withdrawn struct {
	Entry *Entry
	Away  bool // it wasn't in memory: its message is Entry's own, which nobody has held yet
	Home  Home // where it was then; Released follows when it has let go of it
}

// Withdraw begins the way out of an entry that a browser was given; false when it doesn't wait any more. Resume follows.
func (q *Queue) Withdraw(e *Entry, fx []Effect) (Withdrawn, bool, []Effect) {
	switch e.state {
	case stateReady:
	case stateBarred:
		q.barred.remove(q.barred.search(e.key()))
		return q.withdraw(e), true, fx
	default:
		return Withdrawn{}, false, fx
	}
	r := &q.ready
	if r.used&(1<<e.priority) == 0 {
		return Withdrawn{}, false, fx
	}
	// What it was given may be a page's: the queue has loaded it since, or it is still elsewhere.
	l := r.level(e.priority)
	if i := l.search(e.key()); i < l.n && l.at(i).number == e.number {
		e = l.at(i)
		if e.state != stateReady {
			return Withdrawn{}, false, fx
		}
		w := q.withdraw(e)
		r.blank(e)
		return w, true, fx
	}
	if q.barred != nil {
		if i := q.barred.search(e.key()); i < q.barred.n && q.barred.at(i).number == e.number {
			e = q.barred.at(i)
			q.barred.remove(i)
			return q.withdraw(e), true, fx
		}
	}
	h := r.home(e.message)
	f := r.frontier(e.priority, h)
	if f == nil || e.number < f.from || e.number > f.last || f.gone.has(e.number) || len(f.gone) >= maxGone {
		return Withdrawn{}, false, fx
	}
	fx = q.desert(h, f, e, e.message.Size(), fx)
	if e.message.Expiry != 0 {
		q.expiry.live++
	}
	w := q.withdraw(e)
	w.Away, w.Home = true, h
	q.emptied(h, f, e.priority)
	return w, true, fx
}

func (q *Queue) withdraw(e *Entry) Withdrawn {
	q.waiting--
	q.leaving++
	e.state = stateLeaving
	return Withdrawn{Entry: e}
}
