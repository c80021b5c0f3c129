package queue

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"
)

// What waits for its time at a home only, and how whoever asks the home brings it back.

func homeOf(e *modelEntry) Home {
	if e.message.Durable {
		return InStore
	}
	return InSpill
}

func (s *storeModel) budgetOf(e *modelEntry) *Budget {
	if homeOf(e) == InStore {
		return s.budget
	}
	return s.spill
}

func (s *storeModel) rowsOf(h Home) map[uint64]*row {
	if h == InStore {
		return s.rows
	}
	return s.spilled
}

// arrival returns the entry as it is read.
func (r *row) arrival() Arrival {
	a := Arrival{Message: r.entry.message.Fresh(), Number: r.entry.number, Count: r.count, Base: r.base, Acquired: r.count > 0}
	for k, v := range r.annotations {
		a.Annotations = append(a.Annotations, Annotation{k, v})
	}
	return a
}

// park notes that the queue has let go of an entry that waits for its time.
func (s *storeModel) park(x *machine, f *Effect, e *modelEntry) {
	if e.parked {
		return
	}
	awake := x.home[e]
	delete(x.home, e)
	if e.place != delayed && e.place != returning || f.Entry.Due() != e.due || f.Cause != CausePaged || !awake && !x.parks(e) {
		x.fatal("entry %d: parked until %d, want %d, place %d", e.number, f.Entry.Due(), e.due, e.place)
	}
	h := homeOf(e)
	if (f.Kind == EffectStored) != (h == InStore) {
		x.fatal("entry %d: durable %v, effect %d", e.number, e.message.Durable, f.Kind)
	}
	if h == InSpill {
		r := &row{entry: e, count: f.Entry.count, base: f.Entry.base, due: f.Entry.Due(), annotations: map[string]any{}}
		for _, a := range f.Entry.Annotations() {
			r.annotations[a.Key] = a.Value
		}
		s.spilled[e.number] = r
	}
	if a := s.asking[h]; a != nil {
		a.joined = true
	}
	if e.count > 0 { // it has been seen
		for _, c := range x.m.consumers {
			if c.mode == Browse && !c.done[e] {
				c.unsure[e] = true
			}
		}
	}
	e.place, e.owner, e.parked, e.returned, e.until = delayed, nil, true, nil, 0
	e.acquisition = min(e.count, 1)
}

// stats adds what the queue can't know.
func (s *storeModel) stats(want *Stats) {
	if s == nil {
		return
	}
	for h := range homes {
		want.Delayed += s.phantoms[h]
		want.Bytes += int64(s.phantoms[h])
	}
}

func (s *storeModel) picked() bool {
	return s != nil && slices.ContainsFunc(s.asking[:], func(a *asking) bool { return a != nil && a.step == 2 })
}

// waiting checks that what waits at a home is there and will be asked for.
func (s *storeModel) waiting(x *machine, h Home) {
	first, n := int64(0), 0
	for _, e := range x.m.entries {
		if !e.parked || homeOf(e) != h {
			continue
		}
		n++
		if first == 0 || e.due < first {
			first = e.due
		}
		if r := s.rowsOf(h)[e.number]; r == nil || h == InSpill && r.due != e.due {
			x.fatal("entry %d waits for its time at home, and isn't there", e.number)
		}
	}
	if got := x.q.parked(h); got != n+s.phantoms[h] {
		x.fatal("%d wait at home for their time, want %d and %d", got, n, s.phantoms[h])
	}
	at := x.q.NextAsk(h)
	if a := s.asking[h]; a != nil {
		if at != 0 {
			x.fatal("home is to be asked twice")
		}
		return
	}
	if n > 0 && (at == 0 || at > max(first, s.retry[h])) {
		x.fatal("home is asked at %d, want %d", at, first)
	}
	if h == InSpill {
		for p := range uint8(10) {
			left := slices.ContainsFunc(x.m.entries, func(e *modelEntry) bool {
				return (e.stored || e.parked) && homeOf(e) == h && e.priority == p
			})
			if left && !x.q.Spilled(p) {
				x.fatal("priority %d: something is spilled", p)
			}
		}
	}
}

// ask goes on with asking a home, or begins to.
func (s *storeModel) ask(x *machine) {
	h := rapid.SampledFrom([]Home{InStore, InStore, InSpill}).Draw(x.t, "home")
	a := s.asking[h]
	if a == nil {
		s.recall(x, h)
		return
	}
	s.flushTo(a.barrier)
	if a.step < 2 && rapid.IntRange(0, 9).Draw(x.t, "error") == 0 {
		s.rest(x, h, x.m.now+5)
		return
	}
	switch a.step {
	case 0:
		s.tell(x, h, a)
	case 1:
		if a.manage != leaves {
			s.manage(x, h, a)
			return
		}
		s.pick(x, h, a)
	case 2:
		if a.sweep {
			s.expire(x, h, a)
		} else {
			s.ripen(x, h, a)
		}
		return
	}
	a.step++
}

func (s *storeModel) recall(x *machine, h Home) {
	a := &asking{sweep: rapid.IntRange(0, 3).Draw(x.t, "sweep") == 0, until: x.m.now, barrier: s.applied + len(s.removals)}
	a.ask, a.retry = x.q.NextAsk(h), s.retry[h]
	if rapid.IntRange(0, 3).Draw(x.t, "manage") == 0 {
		a.sweep, a.until = false, 1<<60
		a.manage = rapid.SampledFrom([]managed{cancels, hastens}).Draw(x.t, "what")
	}
	if at := a.ask; a.manage == leaves && (at == 0 || at > x.m.now) && rapid.IntRange(0, 3).Draw(x.t, "early") > 0 {
		x.t.Skip("it isn't time")
	}
	a.priority = uint8(rapid.SampledFrom([]int{4, 4, 0, 5, 9}).Draw(x.t, "priority"))
	x.begin()
	x.q.Recall(h)
	s.asking[h], s.retry[h] = a, 0
	x.end()
}

func (s *storeModel) rest(x *machine, h Home, next int64) {
	x.begin()
	x.q.Rest(h, next)
	s.asking[h], s.retry[h] = nil, next
	x.end()
}

// tell reads the numbers of what is due.
func (s *storeModel) tell(x *machine, h Home, a *asking) {
	var all []*row
	for _, r := range s.rowsOf(h) {
		switch {
		case r.due == 0:
		case a.sweep && (r.entry.priority != a.priority || r.entry.expiry == 0 || r.entry.expiry > x.m.now):
		default:
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.entry.key(), b.entry.key()))
	})
	most := rapid.SampledFrom([]int{100, 1, 3}).Draw(x.t, "most")
	for _, r := range all {
		if !a.sweep && r.due > a.until || len(a.numbers) == most {
			a.next = r.due
			break
		}
		a.numbers = append(a.numbers, r.entry.number)
	}
	slices.Sort(a.numbers)
}

// pick asks the queue which of them wait at home only, and reads these.
func (s *storeModel) pick(x *machine, h Home, a *asking) {
	waits := x.q.Waits(h, slices.Clone(a.numbers))
	for _, n := range a.numbers {
		if s.purged[n] && slices.Contains(waits, n) {
			x.fatal("entry %d waits, and was purged", n)
		}
		at := slices.IndexFunc(x.m.entries, func(e *modelEntry) bool { return e.number == n })
		here := at >= 0 && !x.m.entries[at].parked || slices.ContainsFunc(s.unseen, func(e *modelEntry) bool { return e.number == n })
		if parked := at >= 0 && x.m.entries[at].parked; slices.Contains(waits, n) && here || !slices.Contains(waits, n) && parked {
			x.fatal("entry %d waits at home only: %v, want %v", n, !parked, parked)
		}
	}
	n := len(waits)
	if n > 0 && rapid.IntRange(0, 3).Draw(x.t, "few") == 0 {
		n = rapid.IntRange(0, n-1).Draw(x.t, "fewer")
		if a.next == 0 || a.until < a.next {
			a.next = a.until
		}
		s.retry[h] = a.until
	}
	for _, n := range waits[:n] {
		r := s.rowsOf(h)[n]
		if r == nil || r.due == 0 || !slices.ContainsFunc(x.m.entries, func(e *modelEntry) bool { return e == r.entry }) {
			continue // it has been purged
		}
		if r.count != r.entry.count || r.due != r.entry.due {
			x.fatal("entry %d: home has %+v", n, r)
		}
		a.picked = append(a.picked, r.arrival())
		if h == InStore && !a.sweep {
			s.removals = append(s.removals, func() { r.due = 0 })
		}
	}
	a.barrier = s.applied + len(s.removals)
}

// manage has what was told leave, or be due.
func (s *storeModel) manage(x *machine, h Home, a *asking) {
	waits := x.q.Waits(h, slices.Clone(a.numbers))
	if len(waits) > 0 && rapid.IntRange(0, 3).Draw(x.t, "few") == 0 {
		waits = waits[:rapid.IntRange(0, len(waits)-1).Draw(x.t, "fewer")]
	}
	x.begin()
	clear(s.returned)
	s.asking[h] = nil
	if len(a.numbers) == 0 && a.next == 0 {
		x.judge(x.q.Ripen(h, nil, 0, x.m.now, nil))
		if !a.joined {
			s.phantoms[h] = 0
		}
		x.end()
		return
	}
	var fx []Effect
	ask, retry := a.ask, a.retry
	for _, n := range waits {
		at := slices.IndexFunc(x.m.entries, func(e *modelEntry) bool { return e.number == n })
		switch {
		case a.manage == hastens:
			ask, retry = x.m.now, x.m.now
			if at >= 0 && x.m.entries[at].due > x.m.now {
				s.hasten(x.m.entries[at], x.m.now)
			}
			continue
		case at < 0: // it was purged with a range since it was told
			s.phantoms[h]--
			fx = x.q.CancelAway(h, s.purgedPriority(n), n, 1, fx)
			continue
		}
		e := x.m.entries[at]
		if !e.parked || homeOf(e) != h {
			x.fatal("entry %d waits at home only, and doesn't", n)
		}
		x.cancelled[e] = true
		fx = x.q.CancelAway(h, e.priority, n, 1, fx)
	}
	x.judge(fx)
	x.q.Rest(h, ask)
	s.retry[h] = retry
	x.end()
}

// purgedPriority returns a priority for an entry that is gone, of which nothing is known.
func (s *storeModel) purgedPriority(number uint64) uint8 {
	if r := s.rows[number]; r != nil {
		return r.entry.priority
	}
	return 4
}

// hasten has an entry that waits at home be due.
func (s *storeModel) hasten(e *modelEntry, now int64) {
	e.due = now
	if homeOf(e) == InSpill {
		s.spilled[e.number].due = now
		return
	}
	s.removals = append(s.removals, func() {
		if r := s.rows[e.number]; r != nil {
			r.due = now
		}
	})
}

// ripen brings what has been read.
func (s *storeModel) ripen(x *machine, h Home, a *asking) {
	x.begin()
	clear(s.returned)
	s.asking[h] = nil
	entries := map[*Message]*modelEntry{}
	stays := map[*modelEntry]bool{}
	for _, arrival := range a.picked {
		e := x.m.entries[slices.IndexFunc(x.m.entries, func(e *modelEntry) bool { return e.number == arrival.Number })]
		entries[arrival.Message] = e
		e.message, e.parked, e.due, e.until, e.place = arrival.Message, false, 0, 0, returning
		if f := x.q.ready.frontier(e.priority, h); h == InStore && f != nil && e.number >= f.from {
			stays[e], e.stored, e.place = true, true, waiting
		}
	}
	fx := x.q.Ripen(h, a.picked, a.next, x.m.now, nil)
	for i := range fx {
		if f := &fx[i]; f.Kind == EffectStored && f.Entry == nil {
			if e := entries[f.Message]; !stays[e] {
				x.fatal("entry %d isn't given", e.number)
			}
			delete(entries, f.Message)
		}
	}
	for _, e := range entries {
		if stays[e] {
			x.fatal("entry %d is given although a load brings it", e.number)
		}
		e.real = x.find(e.number, fx)
		x.shows(e)
	}
	for e := range stays {
		for _, c := range x.m.consumers {
			switch {
			case c.mode != Browse:
			case e.number < c.top[e.priority]:
				c.done[e] = true
			default:
				c.unsure[e] = true
			}
		}
	}
	if a.next == 0 && !a.joined {
		s.phantoms[h] = 0
	}
	x.judge(fx)
	x.end()
}

// expire has what has been read leave, since its time is over.
func (s *storeModel) expire(x *machine, h Home, a *asking) {
	x.begin()
	clear(s.returned)
	hollow := rapid.Bool().Draw(x.t, "hollow")
	var due []Overdue
	var entries []*modelEntry
	for _, arrival := range a.picked {
		e := x.m.entries[slices.IndexFunc(x.m.entries, func(e *modelEntry) bool { return e.number == arrival.Number })]
		if hollow {
			arrival.Message.Payload = nil
		}
		e.parked, e.overdue, e.hollow = false, true, hollow
		entries = append(entries, e)
		due = append(due, Overdue{Arrival: arrival, Bytes: 1, Delayed: true})
	}
	late, fx := x.q.ExpireAway(h, a.priority, due, x.m.now, nil)
	if late > 0 {
		x.fatal("%d are late that wait at home", late)
	}
	for _, e := range entries {
		e.real = x.find(e.number, fx)
	}
	x.judge(fx)
	for _, e := range entries {
		if e.place == delayed {
			x.fatal("entry %d: not expired", e.number)
		}
	}
	x.q.Rest(h, x.m.now)
	s.asking[h], s.retry[h] = nil, x.m.now
	x.end()
}
