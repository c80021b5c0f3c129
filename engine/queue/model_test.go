package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is a queue as anybody would write it who needn't be fast: one list of entries, searched for everything. It
// doesn't decide what the queue does, it judges each effect by what holds at that moment.
type model struct {
	entries   []*modelEntry // in the queue, in no order
	consumers []*modelConsumer
	round     []*modelConsumer // those with credit, whose turn it is first
	policy    Policy
	now       int64
	eager     bool // everything expired has left, so that the order of turns is known

	added, acknowledged, expired, killed uint64
}

type modelEntry struct {
	real        *Entry
	number      uint64
	priority    uint8
	expiry      int64
	payload     int
	count, base uint32
	place       place
	owner       *modelConsumer
	acquisition uint32
	barred      map[*modelConsumer]bool
	annotations map[string]any
	message     *Message
	stored      bool  // it waits and isn't in memory, but in the store or, if the store doesn't hold it, in the spill
	due         int64 // before that it isn't to be given, as is to be kept; 0: it has no such time
	until       int64 // before that it isn't given
	parked      bool  // it waits for its time and isn't in memory
	returned    []modelReturn
	overdue     bool // it has left without having been in memory
	hollow      bool // and without its payload
}

type place int

const (
	waiting place = iota
	owned
	returning // taken from its owner, or awake, not yet back: only inside a step
	delayed   // until its time has come
	leaving
)

type modelConsumer struct {
	real         *Consumer
	mode         Mode
	limit, given uint64
	gone         bool
	done         map[*modelEntry]bool // a browser's: seen, or not there when it came by
	unsure       map[*modelEntry]bool // a browser's: came late and not into memory, so that it may miss it
	top          [10]uint64           // a browser's: highest number seen
	deliveries   []modelDelivery      // all it ever had
}

type modelReturn struct {
	from  *modelConsumer
	times int
}

type modelDelivery struct {
	entry       *modelEntry
	real        *Entry
	acquisition uint32
}

func (e *modelEntry) key() uint64 { return uint64(9-e.priority)<<60 | e.number }

// best returns the first entry that c may have now.
func (m *model) best(c *modelConsumer) *modelEntry {
	var best *modelEntry
	for _, e := range m.entries {
		if e.place != waiting || e.expiry != 0 && e.expiry <= m.now || e.barred[c] || c.done[e] || c.unsure[e] {
			continue
		}
		if best == nil || e.key() < best.key() {
			best = e
		}
	}
	return best
}

// ready reports whether c may be given something now, and needn't wait for what is being loaded.
func (x *machine) ready(c *modelConsumer) bool {
	best := x.m.best(c)
	return best != nil && best.key() < x.q.ready.limit()
}

func (m *model) hungry(c *modelConsumer) bool { return !c.gone && c.limit > c.given }

// enlist puts c into the round, at the end, or takes it out.
func (m *model) enlist(c *modelConsumer) {
	if c.mode == Browse {
		return
	}
	i := slices.Index(m.round, c)
	if m.hungry(c) && i < 0 {
		m.round = append(m.round, c)
	} else if !m.hungry(c) && i >= 0 {
		m.round = slices.Delete(m.round, i, i+1)
	}
}

func (m *model) remove(e *modelEntry) {
	i := slices.Index(m.entries, e)
	m.entries = slices.Delete(m.entries, i, i+1)
}

func (m *model) of(real *Entry) *modelEntry {
	for _, e := range m.entries {
		if e.real == real {
			return e
		}
	}
	return nil
}

// fail counts an attempt and says whether the entry dies of it.
func (m *model) fail(e *modelEntry) bool {
	e.count++
	return m.policy.MaxAttempts > 0 && int64(e.count)-int64(e.base) >= int64(m.policy.MaxAttempts)
}

// machine runs the real queue beside the model.
type machine struct {
	t     *rapid.T
	q     Queue
	m     model
	next  uint64   // number
	late  []uint64 // numbers that were given and not used yet
	dying map[*modelEntry]Cause
	// what the step may bring
	accepted  map[*modelEntry]bool
	counted   map[*modelEntry]bool
	purging   bool
	drained   map[*modelConsumer]int // drains that are to be answered; over all steps
	resetting *modelConsumer         // its drains may be answered before all is given
	paged     *storeModel            // nil: all is kept in memory
	random    float64                // what chance says next
	cancelled map[*modelEntry]bool   // are to leave the home where they wait
	hastened  map[*modelEntry]bool   // are due at once
	home      map[*modelEntry]bool   // awake in this step, and to go on by way of their home
}

func (x *machine) fatal(format string, args ...any) {
	if x.t == nil {
		panic(fmt.Sprintf(format, args...))
	}
	x.t.Helper()
	x.t.Fatalf(format, args...)
}

func (x *machine) begin() {
	x.dying, x.accepted, x.counted = map[*modelEntry]Cause{}, map[*modelEntry]bool{}, map[*modelEntry]bool{}
	x.purging, x.resetting, x.home = false, nil, map[*modelEntry]bool{}
	x.cancelled, x.hastened = map[*modelEntry]bool{}, map[*modelEntry]bool{}
}

// judge takes the effects of one step, one after the other.
func (x *machine) judge(fx []Effect) {
	for i := range fx {
		f := &fx[i]
		var e *modelEntry
		if f.Entry != nil && f.Kind != EffectLoad && f.Kind != EffectPurged && f.Kind != EffectSpill {
			if e = x.of(f); e == nil {
				x.fatal("effect %d for entry %d that isn't in the queue: %+v", f.Kind, f.Entry.number, *f.Entry)
			}
			if f.Message == nil || !e.hollow && f.Message.Payload[0] != byte(e.payload) {
				x.fatal("entry %d: message is not its own", e.number)
			}
		}
		switch f.Kind {
		case EffectDeliver:
			x.deliver(f, e)
		case EffectDrained:
			c := x.m.consumers[slices.IndexFunc(x.m.consumers, func(c *modelConsumer) bool { return c.real == f.Consumer })]
			if x.drained[c] == 0 {
				x.fatal("drained without a drain")
			}
			x.drained[c]--
			if c == x.resetting {
				continue
			}
			x.giveBack()
			if best := x.m.best(c); x.m.hungry(c) && best != nil && !x.paged.held(x, best) {
				x.fatal("drained although entry %d is there and credit", x.m.best(c).number)
			}
			c.limit = c.given
			x.m.enlist(c)
		case EffectStored, EffectSpill, EffectLoad, EffectPurged:
			x.paged.judge(x, f)
		case EffectDue:
			if x.hastened[e] {
				if f.Entry.Due() != x.m.now {
					x.fatal("entry %d: due at %d, want now, %d", e.number, f.Entry.Due(), x.m.now)
				}
				delete(x.hastened, e)
				x.paged.count(e)
				continue
			}
			if e.place != returning || e.due == 0 || e.due > x.m.now || f.Entry.Due() != 0 {
				x.fatal("entry %d: its time is over, and it was %d, place %d", e.number, e.due, e.place)
			}
			e.due = 0
			x.paged.count(e)
		case EffectCounted:
			if !x.counted[e] {
				x.fatal("entry %d: counted without a reason", e.number)
			}
			if f.Entry.Due() != e.due {
				x.fatal("entry %d: due at %d, want %d", e.number, f.Entry.Due(), e.due)
			}
			delete(x.counted, e)
			x.paged.count(e)
		case EffectGone:
			switch {
			case f.Cause == CauseFinished && e.place == leaving:
			case f.Cause == CausePurged && x.purging && (e.place == waiting || e.place == delayed && !e.parked):
				if x.paged != nil && e.place == delayed {
					x.paged.purged[e.number] = true
				}
			case f.Cause == CauseAccepted && x.accepted[e]:
				x.m.acknowledged++
				delete(x.accepted, e)
			default:
				x.fatal("entry %d: gone, cause %d, place %d", e.number, f.Cause, e.place)
			}
			x.m.remove(e)
			x.paged.remove(e, f.Cause == CauseFinished && !(e.overdue && rapid.Bool().Draw(x.t, "dropped")))
		case EffectDead:
			cause, dies := x.dying[e]
			if !dies || cause != f.Cause {
				x.fatal("entry %d: dead, cause %d, want %d %v", e.number, f.Cause, cause, dies)
			}
			delete(x.dying, e)
			x.m.killed++
			e.place, e.owner = leaving, nil
		case EffectExpired:
			if e.expiry == 0 || e.expiry > x.m.now || e.place != waiting && e.place != returning && (e.place != delayed || e.parked) {
				x.fatal("entry %d: expired at %d, expiry %d, place %d", e.number, x.m.now, e.expiry, e.place)
			}
			x.m.expired++
			e.place, e.owner = leaving, nil
		}
	}
}

func (x *machine) deliver(f *Effect, e *modelEntry) {
	m := &x.m
	i := slices.IndexFunc(m.consumers, func(c *modelConsumer) bool { return c.real == f.Consumer })
	c := m.consumers[i]
	// what was given back in this step is back once something is delivered
	x.giveBack()
	if !m.hungry(c) {
		x.fatal("entry %d: delivered without credit", e.number)
	}
	if best := m.best(c); best != e && !c.unsure[e] {
		x.fatal("entry %d delivered, want %+v", e.number, best)
	}
	d := f.Delivery()
	if d.Count != e.count || d.Number != e.number || d.FirstAcquirer != (e.acquisition == 0) {
		x.fatal("delivery %+v, want count %d, first acquirer %v", d, e.count, e.acquisition == 0)
	}
	if len(d.Annotations) != len(e.annotations) {
		x.fatal("entry %d: annotations %v, want %v", e.number, d.Annotations, e.annotations)
	}
	for _, a := range d.Annotations {
		if e.annotations[a.Key] != a.Value {
			x.fatal("entry %d: annotations %v, want %v", e.number, d.Annotations, e.annotations)
		}
	}
	c.given++
	if c.mode == Browse {
		if d.Acquisition != 0 {
			x.fatal("browser got ownership of entry %d", e.number)
		}
		if e.number < c.top[e.priority] {
			c.done[e] = true
			return
		}
		c.top[e.priority] = e.number
		for _, o := range m.entries {
			if o.priority == e.priority && o.number <= e.number && !x.isLate(c, o) {
				c.done[o] = true
			}
		}
		return
	}
	// those who could have had nothing have had their turn
	for turns := 0; !x.ready(m.round[0]); turns++ {
		if turns > len(m.round) {
			x.fatal("entry %d: delivered, and nobody can have anything", e.number)
		}
		m.round = append(m.round[1:], m.round[0])
	}
	if m.eager && m.round[0] != c {
		x.fatal("entry %d: delivered out of turn", e.number)
	}
	i = slices.Index(m.round, c)
	m.round = slices.Delete(m.round, i, i+1)
	m.enlist(c)
	e.place, e.owner = owned, c
	e.acquisition++
	if d.Acquisition != e.acquisition {
		x.fatal("entry %d: acquisition %d, want %d", e.number, d.Acquisition, e.acquisition)
	}
	c.deliveries = append(c.deliveries, modelDelivery{e, d.Handle, d.Acquisition})
	if c.mode == TakeSettled {
		x.accepted[e] = true
	}
}

// isLate reports whether o became visible after the browser had passed it and waits to be shown.
func (x *machine) isLate(c *modelConsumer, o *modelEntry) bool {
	return slices.Contains(c.real.view.missed, o.real)
}

// giveBack puts entries that were given back in this step in their places, or where they wait for their time.
func (x *machine) giveBack() {
	for _, e := range x.m.entries {
		if e.place != returning {
			continue
		}
		e.place, e.owner = waiting, nil
		if e.until > x.m.now {
			e.place = delayed
			if x.parks(e) {
				x.fatal("entry %d waits in memory until %d", e.number, e.until)
			}
		}
	}
}

// parks reports whether an entry that begins to wait for its time is to do so at home.
func (x *machine) parks(e *modelEntry) bool {
	if x.paged == nil || e.due == 0 {
		return false
	}
	b := x.paged.budgetOf(e)
	return len(e.barred) == 0 && (e.due-x.m.now > b.Park || b.Tight.Load()) && (e.message.Durable || !b.Closed.Load())
}

// shows has browsers come back for an entry that nobody can have seen.
func (x *machine) shows(e *modelEntry) {
	for _, c := range x.m.consumers {
		if e.count == 0 && e.acquisition == 0 && e.number <= c.top[e.priority] {
			delete(c.done, e)
			delete(c.unsure, e)
		}
	}
}

// end checks what has to hold between two steps.
func (x *machine) end() {
	m := &x.m
	x.giveBack()
	if len(x.dying)+len(x.accepted)+len(x.counted)+len(x.home)+len(x.cancelled)+len(x.hastened) > 0 {
		x.fatal("effects missing: dying %v, accepted %v, counted %v, home %v, cancelled %v, hastened %v",
			x.dying, x.accepted, x.counted, x.home, x.cancelled, x.hastened)
	}
	for _, c := range m.consumers {
		if x.drained[c] > 0 && !x.paged.awaits(x, c, m.best(c)) {
			x.fatal("drain isn't answered")
		}
		if m.hungry(c) {
			if e := m.best(c); e != nil && !x.paged.awaits(x, c, e) {
				x.fatal("entry %d waits although a consumer of mode %d has credit", e.number, c.mode)
			}
		}
		if !c.gone && (c.real.given != c.given || c.given > 0 && c.real.limit != c.limit) {
			x.fatal("consumer: given %d of %d, want %d of %d", c.real.given, c.real.limit, c.given, c.limit)
		}
	}
	want := Stats{Counters: Counters{Added: m.added, Acknowledged: m.acknowledged, Expired: m.expired, Killed: m.killed}}
	for _, e := range m.entries {
		if !e.hollow {
			want.Bytes++
		}
		switch e.place {
		case waiting:
			want.Waiting++
			switch {
			case e.stored && e.message.Durable:
				want.Stored++
				want.StoredBytes++
			case e.stored:
				want.Spilled++
				want.SpilledBytes++
			}
		case delayed:
			want.Delayed++
		case owned:
			want.Acquired++
		case leaving:
			want.Leaving++
		}
		if e.stored || e.parked {
			continue
		}
		if e.real.count != e.count || e.real.Base() != e.base {
			x.fatal("entry %d: count %d, want %d", e.number, e.real.count, e.count)
		}
	}
	for _, c := range m.consumers {
		if !c.gone {
			want.Consumers++
		}
	}
	x.paged.stats(&want)
	got := x.q.Stats()
	if x.paged != nil && max(got.Bytes-want.Bytes, want.Bytes-got.Bytes) <= x.paged.unsure {
		want.Bytes, want.StoredBytes = got.Bytes, got.StoredBytes
	}
	if got != want {
		x.fatal("stats %+v\nwant  %+v", got, want)
	}
	x.structure()
}

// structure checks what the real queue's parts promise each other.
func (x *machine) structure() {
	q := &x.q
	ready, barred := 0, 0
	for i := range q.ready.levels {
		l := &q.ready.levels[i]
		blanks := uint32(0)
		for j := range l.n {
			e := l.at(j)
			if j > 0 && l.at(j-1).key() >= e.key() {
				x.fatal("level isn't in order")
			}
			if e.state == stateReady {
				ready++
			} else {
				blanks++
			}
		}
		if blanks != l.blanks {
			x.fatal("level has %d blanks, counts %d", blanks, l.blanks)
		}
	}
	if q.barred != nil {
		for j := range q.barred.n {
			barred++
			e := q.barred.at(j)
			present := slices.ContainsFunc(e.more.barred, func(c *Consumer) bool { return !c.gone })
			if e.state != stateBarred || !present {
				x.fatal("entry %d is in the barred list without reason", e.number)
			}
		}
	}
	stored, _ := q.ready.elsewhere(InStore)
	spilled, _ := q.ready.elsewhere(InSpill)
	if ready+barred+stored+spilled != q.waiting {
		x.fatal("%d ready, %d barred, %d stored, %d spilled, %d waiting", ready, barred, stored, spilled, q.waiting)
	}
	x.paged.structure(x)
	next := int64(0)
	for _, e := range x.m.entries {
		if (e.place == waiting && !e.stored || e.place == delayed && !e.parked) && e.expiry != 0 && (next == 0 || e.expiry < next) && !q.recalling() {
			next = e.expiry
		}
	}
	if got := q.NextExpiry(); got != next {
		x.fatal("next expiry %d, want %d", got, next)
	}
	x.heap()
}

// heap checks what waits in memory for its time.
func (x *machine) heap() {
	q := &x.q
	next, n := int64(0), 0
	for _, e := range x.m.entries {
		if e.place != delayed || e.parked {
			continue
		}
		n++
		if e.real.state != stateDelayed || e.real.more.wait.until != e.until || e.real.Due() != e.due {
			x.fatal("entry %d: waits until %d, due %d, want %d, %d", e.number, e.real.more.wait.until, e.real.Due(), e.until, e.due)
		}
		if (next == 0 || e.until < next) && !q.recalling() {
			next = e.until
		}
	}
	if got := q.NextDue(); got != next {
		x.fatal("next due %d, want %d", got, next)
	}
	if q.delays == nil {
		return
	}
	h := q.delays.heap
	if len(h) != n {
		x.fatal("%d wait for their time in memory, want %d", len(h), n)
	}
	for i, e := range h {
		if e.more.wait.place != i || e.state != stateDelayed {
			x.fatal("entry %d: place %d, want %d", e.number, e.more.wait.place, i)
		}
		if i > 0 && e.before(h[(i-1)/2]) {
			x.fatal("entry %d is due before the one above it", e.number)
		}
	}
}

// wake has entries be given whose time has come.
func (x *machine) wake() {
	x.begin()
	most := rapid.SampledFrom([]int{1000, 1000, 1, 3}).Draw(x.t, "most")
	var awake []*modelEntry
	for _, e := range x.m.entries {
		if e.place == delayed && !e.parked && e.until <= x.m.now && !x.q.recalling() {
			awake = append(awake, e)
		}
	}
	slices.SortFunc(awake, func(a, b *modelEntry) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.key(), b.key()))
	})
	for _, e := range awake[:min(len(awake), most)] {
		e.until = 0
		if e.due != 0 && x.paged != nil && e.message.Durable {
			if f := x.q.ready.frontier(e.priority, InStore); f != nil && e.number >= f.from {
				x.home[e] = true
				continue
			}
		}
		e.place = returning
		x.shows(e)
	}
	x.judge(x.q.Wake(most, x.m.now, nil))
	x.end()
}

// manage has an administrator cancel or hasten what waits in memory for its time.
func (x *machine) manage() {
	x.begin()
	var held []*modelEntry
	var numbers []uint64
	for _, e := range x.m.entries {
		if e.place == delayed && !e.parked {
			held = append(held, e)
		}
		if rapid.Bool().Draw(x.t, "named") {
			numbers = append(numbers, e.number)
		}
	}
	x.list(held)
	slices.Sort(numbers)
	held = slices.DeleteFunc(held, func(e *modelEntry) bool { return !slices.Contains(numbers, e.number) })
	if rapid.Bool().Draw(x.t, "cancel") {
		x.purging = true
		n, fx := x.q.Cancel(numbers, nil)
		x.judge(fx)
		for _, e := range held {
			if slices.Contains(x.m.entries, e) || n != len(held) {
				x.fatal("entry %d isn't cancelled, or %d are, want %d", e.number, n, len(held))
			}
		}
		x.end()
		return
	}
	want := 0
	for _, e := range held {
		if e.until <= x.m.now {
			continue
		}
		want++
		e.until = x.m.now
		if e.due != 0 {
			e.due, x.hastened[e] = x.m.now, true
		}
	}
	n, fx := x.q.Hasten(numbers, x.m.now, nil)
	if n != want {
		x.fatal("%d hastened, want %d", n, want)
	}
	x.judge(fx)
	x.end()
}

// list compares what waits in memory for its time with what the queue lists, page by page.
func (x *machine) list(held []*modelEntry) {
	slices.SortFunc(held, func(a, b *modelEntry) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.key(), b.key()))
	})
	n := rapid.IntRange(1, 5).Draw(x.t, "page")
	var got []Held
	for at, more := (Slot{}), true; more; {
		var page []Held
		if page, more = x.q.Held(at, n); more && len(page) != n {
			x.fatal("%d on a page of %d", len(page), n)
		}
		if got = append(got, page...); len(page) > 0 {
			at = page[len(page)-1].Slot
		}
	}
	if len(got) != len(held) {
		x.fatal("%d listed, want %d", len(got), len(held))
	}
	for i, e := range held {
		if s, want := got[i].Slot, (Slot{e.until, e.priority, e.number}); s != want || got[i].Message != e.message || got[i].Count != e.count {
			x.fatal("%+v listed, want %+v", got[i], want)
		}
	}
}

func (x *machine) consumer(take bool) *modelConsumer {
	var all []*modelConsumer
	for _, c := range x.m.consumers {
		if !c.gone && (!take || c.mode == Take) {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		x.t.Skip("no consumer")
	}
	return rapid.SampledFrom(all).Draw(x.t, "consumer")
}

func (x *machine) add(insert bool) {
	var number uint64
	durable := x.paged != nil && rapid.IntRange(0, 2).Draw(x.t, "durable") > 0
	if !durable && len(x.late) > 0 && rapid.IntRange(0, 2).Draw(x.t, "late") == 0 {
		i := rapid.IntRange(0, len(x.late)-1).Draw(x.t, "which")
		number = x.late[i]
		x.late = slices.Delete(x.late, i, i+1)
	} else {
		x.next++
		number = x.next
		if rapid.IntRange(0, 4).Draw(x.t, "skip") == 0 {
			x.late = append(x.late, number)
			x.next++
			number = x.next
		}
	}
	e := &modelEntry{
		number: number, payload: int(number % 251), barred: map[*modelConsumer]bool{}, annotations: map[string]any{},
		priority: uint8(rapid.SampledFrom([]int{0, 4, 4, 4, 5, 9, 200}).Draw(x.t, "priority")),
	}
	message := &Message{Payload: []byte{byte(e.payload)}, Priority: e.priority, Durable: durable}
	e.message = message
	e.priority = min(e.priority, 9)
	if !insert && rapid.IntRange(0, 3).Draw(x.t, "later") == 0 {
		e.due = x.m.now + int64(rapid.SampledFrom([]int{-2, 0, 1, 5, 10, 30, 80}).Draw(x.t, "due"))
		message.Due = e.due
		e.place, e.until = delayed, e.due
	}
	if ttl := rapid.SampledFrom([]int64{0, 0, 0, 0, 5, 10, 40}).Draw(x.t, "ttl"); ttl > 0 {
		e.expiry = x.m.now - 2 + ttl // some have expired on the way
		message.Expiry = e.expiry
	}
	if insert {
		e.count, e.base, e.acquisition = 3, 2, 1
	}
	if !durable {
		x.appear(e)
		return
	}
	x.paged.commit(e)
	if rapid.Bool().Draw(x.t, "now") {
		x.paged.appear(x, 1<<30)
	}
}

// appear makes an entry visible.
func (x *machine) appear(e *modelEntry) {
	x.begin()
	number, message, insert := e.number, e.message, e.acquisition == 1
	x.m.added++
	x.m.entries = append(x.m.entries, e)
	var fx []Effect
	if insert {
		// The entry is known only by its effects or its place: find it by number.
		fx = x.q.Insert(Arrival{Message: message, Number: number, Count: 3, Base: 2, Acquired: true}, x.m.now, nil)
	} else {
		fx = x.q.Publish(message, number, x.m.now, nil)
	}
	if x.paged.takes(x, e, fx) {
		x.judge(fx)
		x.end()
		return
	}
	if x.parks(e) && !(e.expiry != 0 && e.expiry <= x.m.now) {
		x.fatal("entry %d waits in memory until %d", e.number, e.until)
	}
	e.real = x.find(number, fx)
	if e.acquisition == 1 {
		e.acquisition = e.real.acquisition
		if e.real.state == stateAcquired || e.real.state == stateGone {
			e.acquisition--
		}
	}
	x.judge(fx)
	x.end()
}

// find returns the real entry of a number.
func (x *machine) find(number uint64, fx []Effect) *Entry {
	for i := range fx {
		if e := fx[i].Entry; e != nil && e.number == number {
			return e
		}
	}
	for i := range x.q.ready.levels {
		l := &x.q.ready.levels[i]
		for j := range l.n {
			if e := l.at(j); e.number == number {
				return e
			}
		}
	}
	if q := &x.q; q.barred != nil {
		for j := range q.barred.n {
			if e := q.barred.at(j); e.number == number {
				return e
			}
		}
	}
	if d := x.q.delays; d != nil {
		for _, e := range d.heap {
			if e.number == number {
				return e
			}
		}
	}
	x.fatal("entry %d has vanished", number)
	return nil
}

func (x *machine) settle() {
	x.begin()
	c := x.consumer(true)
	if len(c.deliveries) == 0 {
		x.t.Skip("nothing delivered")
	}
	o := Outcome{
		Kind:              rapid.SampledFrom([]OutcomeKind{Accepted, Rejected, Released, Modified, Modified, Modified}).Draw(x.t, "outcome"),
		Failed:            rapid.Bool().Draw(x.t, "failed"),
		UndeliverableHere: rapid.Bool().Draw(x.t, "here"),
	}
	if rapid.IntRange(0, 3).Draw(x.t, "annotate") == 0 {
		key := rapid.SampledFrom([]string{"x-a", "x-b"}).Draw(x.t, "key")
		o.Annotations = []Annotation{{key, int64(rapid.IntRange(0, 9).Draw(x.t, "value"))}}
	}
	switch rapid.IntRange(0, 9).Draw(x.t, "override") {
	case 0:
		o.HasDelay, o.Delay = true, int64(rapid.SampledFrom([]int{-5, 0, 1, 15, 100}).Draw(x.t, "delay"))
	case 1:
		o.DueAt = x.m.now + int64(rapid.SampledFrom([]int{-5, 0, 1, 15, 100}).Draw(x.t, "at"))
	}
	x.random = float64(rapid.IntRange(0, 99).Draw(x.t, "random")) / 100
	// mostly what it has; sometimes what it had once, or twice the same
	old := rapid.IntRange(0, 4).Draw(x.t, "old") == 0
	var choice []modelDelivery
	for _, d := range c.deliveries {
		if old || d.entry.owner == c && d.entry.real == d.real && d.entry.acquisition == d.acquisition {
			choice = append(choice, d)
		}
	}
	if len(choice) == 0 {
		x.t.Skip("nothing to settle")
	}
	var batch []Settlement
	for range rapid.SampledFrom([]int{1, 1, 2, 5, 12}).Draw(x.t, "batch") {
		d := rapid.SampledFrom(choice).Draw(x.t, "delivery")
		batch = append(batch, Settlement{d.real, d.acquisition})
		e := d.entry
		if e.place != owned || e.owner != c || e.real != d.real || e.acquisition != d.acquisition {
			continue // late, or a duplicate: it changes nothing
		}
		x.outcome(c, e, o)
	}
	x.judge(x.q.Settle(c.real, batch, &o, x.m.now, nil))
	x.end()
}

func (x *machine) outcome(c *modelConsumer, e *modelEntry, o Outcome) {
	e.place = returning
	e.until, e.due = 0, 0
	if o.Kind == Released || o.Kind == Modified && !o.Failed {
		if n := e.back(c); n > 3 {
			e.until = x.m.now + int64(min(10<<(n-4), 1000))
		}
	}
	switch {
	case o.Kind == Accepted:
		x.accepted[e] = true
	case o.Kind == Rejected && !x.m.policy.RejectRedelivers:
		e.count++
		x.dying[e] = CauseRejected
	case o.Kind == Rejected, o.Kind == Modified:
		if o.Kind == Modified {
			for _, a := range o.Annotations {
				e.annotations[a.Key] = a.Value
				x.counted[e] = true
			}
			if o.UndeliverableHere {
				e.barred[c] = true
			}
		}
		if o.Kind == Rejected || o.Failed {
			x.counted[e] = true
			if x.m.fail(e) {
				x.dying[e] = CauseAttempts
				delete(x.counted, e)
				return
			}
			switch {
			case o.DueAt != 0:
				e.due = o.DueAt
			case o.HasDelay:
				e.due = x.m.now + o.Delay
			default:
				e.due = x.m.now + x.delay(int(e.count-e.base))
			}
			if e.due <= x.m.now {
				e.due = 0
			}
			e.until = e.due
		}
	}
}

// delay is the policy's delay after n failures.
func (x *machine) delay(n int) int64 {
	p := x.m.policy
	d, most := float64(p.Delay), p.MaxDelay
	for range n - 1 {
		d *= p.Multiplier
	}
	d = float64(int64(d))
	d += float64(int64(d * p.Spread * (2*x.random - 1)))
	if most == 0 {
		most = 10 * p.Delay
	}
	return min(int64(d), most)
}

// back notes that c has given the entry back uncounted, and returns how often it has.
func (e *modelEntry) back(c *modelConsumer) int64 {
	at := slices.IndexFunc(e.returned, func(r modelReturn) bool { return r.from == c })
	switch {
	case at >= 0:
	case len(e.returned) < 4:
		at = len(e.returned)
		e.returned = append(e.returned, modelReturn{})
	default: // who has done it least often makes room, and leaves the count
		at = 0
		for i, r := range e.returned {
			if r.times < e.returned[at].times {
				at = i
			}
		}
	}
	e.returned[at].from = c
	e.returned[at].times++
	return int64(e.returned[at].times)
}

func testModel(t *rapid.T, paging bool) {
	x := &machine{t: t, m: model{now: 1000}}
	x.m.eager = rapid.Bool().Draw(t, "eager")
	delays := []int64{0, 0, 3, 10, 60}
	x.m.policy = Policy{
		MaxAttempts:      rapid.SampledFrom([]int32{0, 1, 2, 3}).Draw(t, "attempts"),
		RejectRedelivers: rapid.Bool().Draw(t, "redelivers"),
		CountOnLoss:      rapid.Bool().Draw(t, "loss"),

		Delay:      rapid.SampledFrom(delays).Draw(t, "delay"),
		Multiplier: rapid.SampledFrom([]float64{1, 2, 0.5}).Draw(t, "multiplier"),
		Spread:     rapid.SampledFrom([]float64{0, 0.25, 1}).Draw(t, "spread"),
		MaxDelay:   rapid.SampledFrom([]int64{0, 15}).Draw(t, "cap"),
		Random:     func() float64 { return x.random },
	}
	policy := x.m.policy
	x.q.SetPolicy(&policy)
	x.drained = map[*modelConsumer]int{}
	if paging {
		x.paged = newStoreModel(x)
	}
	actions := x.paged.actions(x)
	maps.Copy(actions, map[string]func(*rapid.T){
		"publish": func(t *rapid.T) { x.t = t; x.add(false) },
		"burst": func(t *rapid.T) {
			x.t = t
			for range rapid.IntRange(2, 12).Draw(t, "burst") {
				x.add(false)
			}
		},
		"insert":  func(t *rapid.T) { x.t = t; x.add(true) },
		"settle":  func(t *rapid.T) { x.t = t; x.settle() },
		"settle2": func(t *rapid.T) { x.t = t; x.settle() },
		"wake":    func(t *rapid.T) { x.t = t; x.wake() },
		"manage": func(t *rapid.T) {
			if x.t = t; rapid.IntRange(0, 2).Draw(t, "really") > 0 {
				t.Skip("seldom")
			}
			x.manage()
		},
		"attach": func(t *rapid.T) {
			x.t = t
			x.begin()
			c := &modelConsumer{mode: rapid.SampledFrom([]Mode{Take, Take, Take, TakeSettled, Browse}).Draw(t, "mode")}
			c.done, c.unsure = map[*modelEntry]bool{}, map[*modelEntry]bool{}
			c.real = x.q.Attach(c.mode, nil)
			x.m.consumers = append(x.m.consumers, c)
			x.end()
		},
		"credit": func(t *rapid.T) {
			x.t = t
			x.begin()
			c := x.consumer(false)
			x.resetting = c
			c.limit = c.given + uint64(rapid.SampledFrom([]int{0, 1, 2, 3, 20}).Draw(t, "credit"))
			if rapid.IntRange(0, 9).Draw(t, "withdraw") == 0 {
				c.limit = c.given / 2
			}
			x.m.enlist(c)
			x.judge(x.q.SetLimit(c.real, c.limit, x.m.now, nil))
			x.end()
		},
		"drain": func(t *rapid.T) {
			x.t = t
			x.begin()
			c := x.consumer(false)
			c.limit = c.given + uint64(rapid.SampledFrom([]int{0, 1, 2, 3, 20}).Draw(t, "credit"))
			x.m.enlist(c)
			x.drained[c]++
			x.judge(x.q.Drain(c.real, c.limit, x.m.now, nil))
			x.end()
		},
		"detach": func(t *rapid.T) {
			x.t = t
			x.begin()
			c := x.consumer(false)
			lost := rapid.Bool().Draw(t, "lost")
			c.limit = c.given
			x.m.enlist(c)
			c.gone = true
			delete(x.drained, c)
			for _, e := range x.m.entries {
				delete(e.barred, c)
				if e.place != owned || e.owner != c {
					continue
				}
				e.place, e.until, e.due = returning, 0, 0
				if lost && x.m.policy.CountOnLoss {
					if x.m.fail(e) {
						x.dying[e] = CauseAttempts
					} else {
						x.counted[e] = true
					}
				}
			}
			x.judge(x.q.Detach(c.real, lost, x.m.now, nil))
			x.end()
		},
		"clock": func(t *rapid.T) {
			x.t = t
			if x.m.eager && x.q.recalling() {
				t.Skip("nothing expires meanwhile")
			}
			x.begin()
			x.m.now += int64(rapid.IntRange(1, 20).Draw(t, "ms"))
			if !x.m.eager && rapid.Bool().Draw(t, "expire") {
				return // the time has come and nobody has said so yet
			}
			x.judge(x.q.Expire(1<<30, x.m.now, nil))
			for _, e := range x.m.entries {
				if (e.place == waiting && !e.stored || e.place == delayed && !e.parked) && e.expiry != 0 && e.expiry <= x.m.now && !x.q.recalling() {
					x.fatal("entry %d: not expired", e.number)
				}
			}
			x.end()
		},
		"finish": func(t *rapid.T) {
			x.t = t
			x.begin()
			var all []*modelEntry
			for _, e := range x.m.entries {
				if e.place == leaving {
					all = append(all, e)
				}
			}
			if len(all) == 0 {
				t.Skip("nothing leaves")
			}
			e := rapid.SampledFrom(all).Draw(t, "entry")
			x.judge(x.q.Finish(e.real, nil))
			if slices.Contains(x.m.entries, e) {
				x.fatal("entry %d: not gone after finish", e.number)
			}
			x.end()
		},
		"purge": func(t *rapid.T) {
			x.t = t
			if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
				t.Skip("seldom")
			}
			if x.paged.picked() {
				t.Skip("what has been read comes all the same")
			}
			x.begin()
			x.purging = true
			x.judge(x.q.Purge(nil))
			for _, e := range x.m.entries {
				if e.place == waiting || e.place == delayed && !e.parked {
					x.fatal("entry %d: there after purge", e.number)
				}
			}
			x.end()
		},
	})
	t.Repeat(actions)
}

func TestQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { testModel(t, false) })
}

func TestPagedQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { testModel(t, true) })
}

// TestModelNoticesFaults plants faults in what the queue reports and expects the model to object: a check that never
// fails checks nothing.
func TestModelNoticesFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(fx []Effect) []Effect
		want  string
	}{
		{"none", func(fx []Effect) []Effect { return fx }, ""},
		{"lost delivery", func(fx []Effect) []Effect { return fx[:0] }, "entry 1 waits although a consumer of mode 0 has credit"},
		{"twice delivered", func(fx []Effect) []Effect { return append(fx, fx...) }, "entry 1 delivered, want <nil>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := objection(c.fault); got != c.want {
				t.Errorf("objection = %q, want %q", got, c.want)
			}
		})
	}
}

// objection runs a small story with a fault in the effects of a publish, and returns what the model said.
func objection(fault func([]Effect) []Effect) (said string) {
	defer func() {
		if r := recover(); r != nil {
			said = r.(string)
		}
	}()
	x := &machine{m: model{now: 1, eager: true}}
	x.begin()
	c := &modelConsumer{mode: Take, limit: 5}
	c.real = x.q.Attach(Take, nil)
	x.q.SetLimit(c.real, 5, 1, nil)
	x.m.consumers = []*modelConsumer{c}
	x.m.enlist(c)
	fx := x.q.Publish(&Message{Payload: []byte{1}}, 1, 1, nil)
	x.m.entries = append(x.m.entries, &modelEntry{number: 1, payload: 1, real: fx[0].Entry})
	x.m.added++
	x.judge(fault(fx))
	x.end()
	return ""
}
