package queue

import (
	"maps"
	"slices"

	"pgregory.net/rapid"
)

// storeModel is the store and the spill beside a queue with tiny budgets. The store has what is committed, before the
// queue hears of it and for a while after it has left; the spill has what the queue has given it. Both read and answer
// loads late. A nil one is neither.
type storeModel struct {
	budget   *Budget
	spill    *Budget
	rows     map[uint64]*row
	spilled  map[uint64]*row
	unseen   []*modelEntry // committed, not visible yet
	removals []func()      // and counts: not committed yet
	applied  int           // of all removals, have been
	asking   [homes]*asking
	phantoms [homes]int   // were purged while they waited at home, and are counted still
	retry    [homes]int64 // when the home is asked again, it couldn't be
	unsure   int64        // bytes that may not be counted right
	loads    []*loading
	handing  *loading
	returned map[*Message]bool // came back in this step
	leaving  map[uint64]bool   // were in the store only when they left, and the store may still have them
	purged   map[uint64]bool   // while they waited in memory for their time
	unpurged int               // entries that were counted as purged, and weren't there yet
}

// row is an entry as it is committed.
type row struct {
	entry       *modelEntry
	count, base uint32
	annotations map[string]any
	due         int64
}

// asking is a home being asked for what waits there for its time.
type asking struct {
	sweep    bool // for what expires
	manage   managed
	ask      int64 // when it was to be asked before, and
	retry    int64 // why not sooner
	priority uint8
	step     int
	barrier  int // removals that must be committed before the next step
	until    int64
	numbers  []uint64
	next     int64
	picked   []Arrival
	joined   bool // others have begun to wait there
}

// managed is what an administrator does to what waits at a home for its time.
type managed int

const (
	leaves managed = iota
	cancels
	hastens
)

type loading struct {
	load    *Load
	read    bool
	entries []Arrival
	whole   bool
}

func newStoreModel(x *machine) *storeModel {
	s := &storeModel{
		rows: map[uint64]*row{}, spilled: map[uint64]*row{}, returned: map[*Message]bool{}, leaving: map[uint64]bool{}, purged: map[uint64]bool{},
	}
	s.open(x)
	return s
}

// open gives the queue its budgets.
func (s *storeModel) open(x *machine) {
	const one = EntryCost + 1
	draw := func() *Budget {
		return &Budget{
			Limit:   one * int64(rapid.SampledFrom([]int{100, 0, 3, 100}).Draw(x.t, "limit")),
			Ceiling: one * int64(rapid.IntRange(1, 10).Draw(x.t, "ceiling")),
			Floor:   one * int64(rapid.IntRange(0, 2).Draw(x.t, "floor")), Chunk: one, Low: 1 + one*int64(rapid.IntRange(0, 3).Draw(x.t, "low")),
			PageEntries: rapid.SampledFrom([]int{40, 1, 2, 5, 10, 40}).Draw(x.t, "page"), PageBytes: rapid.SampledFrom([]int{40, 2, 5, 40}).Draw(x.t, "bytes"),
			Park:         rapid.SampledFrom([]int64{1000, 0, 5, 20}).Draw(x.t, "park"),
			SmallEntries: rapid.IntRange(1, 3).Draw(x.t, "small"), SmallBytes: 3,
		}
	}
	s.budget, s.spill = draw(), draw()
	x.q.SetBudgets(NewBudgets(s.budget, s.spill))
}

func (s *storeModel) commit(e *modelEntry) {
	s.rows[e.number] = &row{entry: e, count: e.count, base: e.base, due: e.due}
	s.unseen = append(s.unseen, e)
}

// appear makes what is committed visible, n entries at most.
func (s *storeModel) appear(x *machine, n int) {
	for ; n > 0 && len(s.unseen) > 0; n-- {
		e := s.unseen[0]
		s.unseen = s.unseen[1:]
		x.appear(e)
	}
}

// count has the store know what the entry is now.
func (s *storeModel) count(e *modelEntry) {
	if s == nil || !e.message.Durable {
		return
	}
	count, base, due, annotations := e.count, e.base, e.due, maps.Clone(e.annotations)
	s.removals = append(s.removals, func() {
		if r := s.rows[e.number]; r != nil {
			r.count, r.base, r.due, r.annotations = count, base, due, annotations
		}
	})
}

func (s *storeModel) remove(e *modelEntry, now bool) {
	if s == nil || !e.message.Durable {
		return
	}
	if now {
		delete(s.rows, e.number)
		return
	}
	s.removals = append(s.removals, func() { delete(s.rows, e.number) })
}

// takes reports whether the queue has left a new entry to the store or the spill, and notes it.
func (s *storeModel) takes(x *machine, e *modelEntry, fx []Effect) bool {
	if s == nil {
		return false
	}
	i := slices.IndexFunc(fx, func(f Effect) bool {
		return (f.Kind == EffectStored || f.Kind == EffectSpill) && f.Message == e.message
	})
	if i < 0 {
		return false
	}
	if e.due != 0 {
		e.real = fx[i].Entry
		s.park(x, &fx[i], e)
		return true
	}
	if f := &fx[i]; (f.Kind == EffectStored) != e.message.Durable {
		x.fatal("entry %d: durable %v, effect %d", e.number, e.message.Durable, f.Kind)
	} else if f.Kind == EffectSpill {
		if f.Entry.number != e.number || f.Entry.count != e.count || f.Entry.base != e.base || f.Entry.Had() != (e.acquisition > 0) {
			x.fatal("entry %d: spilled as %+v", e.number, f.Entry)
		}
		s.spilled[e.number] = &row{entry: e, count: e.count, base: e.base}
	}
	e.stored = true
	for _, c := range x.m.consumers {
		if c.mode != Browse {
			continue
		}
		if e.number < c.top[e.priority] { // a browser doesn't come back for it
			c.done[e] = true
		} else if e.number < x.next { // what follows it may have been read already
			c.unsure[e] = true
		}
	}
	return true
}

// of returns the entry of an effect. One that has been loaded is recognised by its number.
func (x *machine) of(f *Effect) *modelEntry {
	if e := x.m.of(f.Entry); e != nil || x.paged == nil {
		return e
	}
	for _, e := range x.m.entries {
		if e.number != f.Entry.number || !e.stored {
			continue
		}
		if h := x.paged.handing; h == nil || h.load.Browser == nil {
			e.real = f.Entry
		}
		return e
	}
	return nil
}

func (s *storeModel) judge(x *machine, f *Effect) {
	switch f.Kind {
	case EffectSpill:
		if e := x.m.of(f.Entry); e != nil {
			s.park(x, f, e)
		}
	case EffectStored:
		if f.Entry != nil {
			s.park(x, f, x.m.of(f.Entry))
		}
		if s.returned[f.Message] {
			x.fatal("message came back twice")
		}
		s.returned[f.Message] = true
	case EffectLoad:
		for _, l := range s.loads {
			if l.load.Browser == f.Load().Browser && l.load.Priority == f.Load().Priority && l.load.Stored == f.Load().Stored &&
				s.current(x, l.load) {
				x.fatal("two loads of priority %d", l.load.Priority)
			}
		}
		s.loads = append(s.loads, &loading{load: f.Load()})
	case EffectPurged:
		l := f.Load()
		n := 0
		for _, e := range slices.Clone(x.m.entries) {
			if e.stored && e.message.Durable == l.Stored && e.priority == l.Priority && e.number >= l.From && e.number <= l.Last {
				x.m.remove(e)
				n++
			}
			if e.parked && e.message.Durable == l.Stored && e.priority == l.Priority && e.number >= l.From && e.number <= l.Last {
				if x.cancelled[e] {
					delete(x.cancelled, e)
					x.m.remove(e)
					continue
				}
				if !x.purging {
					x.fatal("entry %d waits there for its time, and %+v is gone", e.number, l)
				}
				x.m.remove(e)
				s.phantoms[homeOf(e)]++
			}
		}
		if l.Spilled {
			if x.purging && n != l.Entries || !x.purging && (n > 0 || l.Lost > 0) {
				x.fatal("purged %+v, there were %d", l, n)
			}
		} else {
			s.unpurged += l.Entries - n
			for number := range s.leaving {
				if r := s.rows[number]; r != nil && r.entry.priority == l.Priority && number >= l.From && number <= l.Last {
					x.fatal("entry %d is leaving and purged", number)
				}
			}
		}
		remove := func(rows map[uint64]*row) {
			for number, r := range rows {
				if r.entry.priority == l.Priority && number >= l.From && number <= l.Last {
					delete(rows, number)
				}
			}
		}
		switch {
		case l.Spilled && l.From < l.Last:
			remove(s.spilled)
		case l.Spilled: // it may have expired: a load may still find it, but nothing that is spilled anew goes with it
			was := s.spilled[l.From]
			s.removals = append(s.removals, func() {
				if s.spilled[l.From] == was {
					remove(s.spilled)
				}
			})
		default:
			s.removals = append(s.removals, func() { remove(s.rows) })
		}
	}
}

// current reports whether a load is waited for.
func (s *storeModel) current(x *machine, l *Load) bool {
	if l.Browser != nil {
		return !l.Browser.gone && l.Browser.view.load == l
	}
	h := InStore
	if l.Spilled {
		h = InSpill
	}
	f := x.q.ready.frontier(l.Priority, h)
	return f != nil && f.load == l
}

// held reports whether an entry isn't loaded for want of memory.
func (s *storeModel) held(x *machine, e *modelEntry) bool {
	return s != nil && (s.budget.Tight.Load() || s.spill.Tight.Load()) && x.q.acquired > 0 && e.key() >= x.q.ready.limit()
}

// awaits reports whether c may be kept waiting for e, or for the queue to find out what there is.
func (s *storeModel) awaits(x *machine, c *modelConsumer, e *modelEntry) bool {
	if s == nil {
		return false
	}
	if c.mode != Browse && e != nil && s.held(x, e) {
		return true
	}
	for _, l := range s.loads {
		if c.mode == Browse && l.load.Browser == c.real || c.mode != Browse && l.load.Browser == nil && e != nil && e.stored && l.load.Priority == e.priority {
			return true
		}
		// what has expired is found out when it is loaded
		if c.mode != Browse && l.load.Browser == nil && (e == nil || l.load.Priority >= e.priority) {
			return true
		}
	}
	return false
}

func (s *storeModel) structure(x *machine) {
	if s == nil {
		return
	}
	s.side(x, InStore, s.budget)
	s.side(x, InSpill, s.spill)
	for h := range homes {
		s.waiting(x, h)
	}
}

// side checks the part of a queue that has one home.
func (s *storeModel) side(x *machine, h Home, b *Budget) {
	q := &x.q
	if s.unpurged != 0 {
		x.fatal("purged %d more than there were", s.unpurged)
	}
	lease := int64(0)
	for p := range uint8(10) {
		if q.ready.used&(1<<p) == 0 {
			continue
		}
		l := q.ready.level(p)
		f, side := l.frontier(h), &l.sides[h]
		kept := int64(0)
		for j := range l.n {
			e := l.at(j)
			if e.state != stateReady || q.ready.home(e.message) != h {
				continue
			}
			kept += costOf(e.message)
			if h == InStore && f != nil && e.number >= f.from {
				x.fatal("durable entry %d is in memory above the frontier %d", e.number, f.from)
			}
		}
		if kept != side.kept || side.lease < kept-b.Floor {
			x.fatal("level keeps %d, counts %d, has borrowed %d", kept, side.kept, side.lease)
		}
		if kept == 0 && side.lease > 0 && (f == nil || f.load == nil) {
			x.fatal("level keeps nothing and has borrowed %d", side.lease)
		}
		lease += side.lease
		n := 0
		for _, e := range x.m.entries {
			if e.stored && e.priority == p && e.message.Durable == (h == InStore) {
				n++
				if f == nil || e.number < f.from || e.number > f.last {
					x.fatal("entry %d is in the store only, and not behind a frontier", e.number)
				}
			}
		}
		if f != nil && f.count != n || f != nil && n == 0 || l.loading() && q.ready.paged&(1<<p) == 0 {
			x.fatal("frontier %+v, want %d entries behind it", f, n)
		}
		if paged := l.frontier(InStore) != nil || l.frontier(InSpill) != nil; paged != (q.ready.paged&(1<<p) != 0) {
			x.fatal("priority %d: paged %v, want %v", p, !paged, paged)
		}
	}
	if used := b.Used(); used != lease {
		x.fatal("budget: %d used, %d borrowed", used, lease)
	}
}

func (s *storeModel) actions(x *machine) map[string]func(*rapid.T) {
	if s == nil {
		return map[string]func(*rapid.T){}
	}
	pick := func(t *rapid.T, read bool) *loading {
		var all []*loading
		for _, l := range s.loads {
			if l.read == read {
				all = append(all, l)
			}
		}
		if len(all) == 0 {
			t.Skip("no load")
		}
		return rapid.SampledFrom(all).Draw(t, "load")
	}
	read := func(t *rapid.T) { x.t = t; s.read(pick(t, false)) }
	hand := func(t *rapid.T) { x.t = t; s.hand(x, pick(t, true)) }
	return map[string]func(*rapid.T){
		"read": read, "read2": read, "hand": hand, "hand2": hand,
		"flush": func(t *rapid.T) { x.t = t; s.flush(x) },
		"some":  func(t *rapid.T) { x.t = t; s.flushTo(s.applied + rapid.IntRange(0, len(s.removals)).Draw(t, "some")) },
		"ask":   func(t *rapid.T) { x.t = t; s.ask(x) },
		"ask2":  func(t *rapid.T) { x.t = t; s.ask(x) },
		"ask3":  func(t *rapid.T) { x.t = t; s.ask(x) },
		"tight": func(t *rapid.T) {
			x.t = t
			tight := rapid.IntRange(0, 3).Draw(t, "tight") == 0
			s.budget.Tight.Store(tight)
			s.spill.Tight.Store(tight)
			if !tight {
				x.begin()
				x.judge(x.q.Resume(x.m.now, nil))
				x.end()
			}
		},
		"overdue":  func(t *rapid.T) { x.t = t; s.overdue(x) },
		"overdue2": func(t *rapid.T) { x.t = t; s.overdue(x) },
		"seen":     func(t *rapid.T) { x.t = t; s.appear(x, rapid.IntRange(1, 10).Draw(t, "seen")) },
		"close": func(t *rapid.T) {
			x.t = t
			s.spill.Closed.Store(rapid.IntRange(0, 3).Draw(t, "closed") == 0)
		},
		"flood": func(t *rapid.T) {
			x.t = t
			for range rapid.IntRange(5, 30).Draw(t, "flood") {
				x.add(false)
			}
		},
		"restart": func(t *rapid.T) {
			x.t = t
			if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
				t.Skip("seldom")
			}
			s.restart(x)
		},
	}
}

// flush commits what has been removed.
func (s *storeModel) flush(x *machine) {
	s.flushTo(s.applied + len(s.removals))
	for number := range s.leaving {
		if s.rows[number] == nil {
			delete(s.leaving, number)
		}
	}
	if len(s.leaving) == 0 {
		x.q.Released(InStore)
	}
	x.q.Released(InSpill)
}

// flushTo commits up to a number of removals.
func (s *storeModel) flushTo(n int) {
	for ; s.applied < n; s.applied++ {
		s.removals[0]()
		s.removals = s.removals[1:]
	}
}

// overdue tells the queue of entries that have expired, as the store has them.
func (s *storeModel) overdue(x *machine) {
	priority := uint8(rapid.SampledFrom([]int{4, 4, 0, 5, 9}).Draw(x.t, "priority"))
	hollow := rapid.Bool().Draw(x.t, "hollow")
	most := rapid.SampledFrom([]int{1, 3, 100}).Draw(x.t, "most")
	h, rows := InStore, s.rows
	if rapid.Bool().Draw(x.t, "spilled") {
		h, rows = InSpill, s.spilled
	}
	if s.asking[h] != nil {
		x.t.Skip("who asks a home has nothing leave it meanwhile")
	}
	var numbers []uint64
	for number, r := range rows {
		if e := r.entry; e.priority == priority && r.due == 0 && e.expiry != 0 && e.expiry <= x.m.now {
			numbers = append(numbers, number)
		}
	}
	if len(numbers) == 0 {
		x.t.Skip("nothing is due")
	}
	slices.Sort(numbers)
	numbers = numbers[:min(len(numbers), most)]
	var due []Overdue
	for _, number := range numbers {
		r := rows[number]
		m := r.entry.message.Fresh()
		if hollow {
			m.Payload = nil
		}
		a := Arrival{Message: m, Number: number, Count: r.count, Base: r.base, Acquired: r.count > 0}
		for k, v := range r.annotations {
			a.Annotations = append(a.Annotations, Annotation{k, v})
		}
		due = append(due, Overdue{Arrival: a, Bytes: 1})
	}
	x.begin()
	clear(s.returned)
	late, fx := x.q.ExpireAway(h, priority, due, x.m.now, nil)
	back := map[*Message]bool{}
	for _, f := range fx {
		if f.Kind == EffectStored {
			back[f.Message] = true
		}
	}
	for _, d := range due {
		at := slices.IndexFunc(x.m.entries, func(e *modelEntry) bool { return e.number == d.Number && e.stored })
		switch {
		case at < 0 && !back[d.Message]:
			x.fatal("entry %d isn't in the store only, and leaves", d.Number)
		case at < 0 && slices.ContainsFunc(s.unseen, func(e *modelEntry) bool { return e.number == d.Number }):
			late--
		case at >= 0 && back[d.Message]:
			x.fatal("entry %d is in the store only, and stays", d.Number)
		case at >= 0:
			e := x.m.entries[at]
			e.stored, e.overdue, e.hollow = false, true, hollow
			e.real = x.find(e.number, fx)
			if h == InStore {
				s.leaving[e.number] = true
			}
		}
	}
	if late > 0 {
		x.fatal("%d entries are late that are published", late)
	}
	x.judge(fx)
	x.end()
}

// read reads what a load asks for, as it is stored now.
func (s *storeModel) read(l *loading) {
	found := map[uint64]*row{}
	if l.load.Stored {
		maps.Copy(found, s.rows)
	}
	if l.load.Spilled {
		maps.Copy(found, s.spilled)
	}
	var numbers []uint64
	for number, r := range found {
		if r.entry.priority == l.load.Priority && r.due == 0 && number >= l.load.From {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	n := min(len(numbers), l.load.Entries, l.load.Bytes)
	for _, number := range numbers[:n] {
		l.entries = append(l.entries, found[number].arrival())
	}
	l.read, l.whole = true, n < l.load.Entries && n < l.load.Bytes
}

// hand gives the queue what has been read for it.
func (s *storeModel) hand(x *machine, l *loading) {
	s.loads = slices.DeleteFunc(s.loads, func(o *loading) bool { return o == l })
	x.begin()
	clear(s.returned)
	s.handing = l
	stale := !s.current(x, l.load)
	fx := x.q.Loaded(l.load, l.entries, l.whole, x.m.now, nil)
	back := map[*Message]bool{}
	for _, f := range fx {
		if f.Kind == EffectStored {
			back[f.Message] = true
		}
	}
	for _, a := range l.entries {
		if back[a.Message] {
			continue
		}
		if stale || l.load.Browser != nil {
			x.fatal("entry %d of a load that nobody waits for was kept", a.Number)
		}
		for _, e := range x.m.entries {
			if e.number == a.Number && e.stored {
				e.stored, e.message = false, a.Message
				e.real = x.find(e.number, fx) // what it was before it waited there is another one
			}
		}
	}
	for _, f := range fx {
		// What says nothing new would say it for ever.
		if f.Kind == EffectLoad && l.load.Browser != nil && f.Load().Browser == l.load.Browser &&
			f.Load().Priority == l.load.Priority && f.Load().From <= l.load.From {
			x.fatal("a browser that was given a page from %d on asks for one from %d on", l.load.From, f.Load().From)
		}
	}
	x.judge(fx)
	s.handing = nil
	x.end()
}

// restart drops the queue and opens it again with what is stored.
func (s *storeModel) restart(x *machine) {
	s.flush(x)
	clear(s.leaving)
	clear(s.spilled)
	policy := x.m.policy
	x.q = Queue{}
	x.q.SetPolicy(&policy)
	s.open(x)
	s.loads, s.unseen = nil, nil
	s.asking, s.phantoms, s.retry, s.unsure = [homes]*asking{}, [homes]int{}, [homes]int64{}, 0
	x.drained = map[*modelConsumer]int{}
	eager, now := x.m.eager, x.m.now
	x.m = model{policy: policy, now: now, eager: eager, round: nil}
	levels := map[uint8]*Stored{}
	bytes := int64(0)
	for number, r := range s.rows {
		e := r.entry
		e.real, e.owner, e.place, e.stored, e.overdue, e.hollow = nil, nil, waiting, true, false, false
		e.count, e.base, e.acquisition = r.count, r.base, 0
		if e.count > 0 {
			e.acquisition = 1
		}
		e.due, e.until, e.parked, e.returned = r.due, 0, false, nil
		if e.due != 0 {
			e.place, e.stored, e.parked = delayed, false, true
			s.unsure++
		}
		e.barred, e.annotations = map[*modelConsumer]bool{}, map[string]any{}
		for k, v := range r.annotations {
			e.annotations[k] = v
		}
		x.m.entries = append(x.m.entries, e)
		l := levels[e.priority]
		if l == nil {
			l = &Stored{Priority: e.priority, First: number, Last: x.next}
			levels[e.priority] = l
		}
		l.First = min(l.First, number)
		if r.due != 0 {
			l.Delayed++
		} else {
			l.Entries++
		}
		bytes++
	}
	x.m.added = uint64(len(x.m.entries))
	var all []Stored
	for _, l := range levels {
		all = append(all, *l)
	}
	x.q.Restore(all, bytes)
	x.begin()
	x.end()
}
