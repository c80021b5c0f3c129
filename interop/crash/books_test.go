package crash

import (
	"fmt"
	"strings"
	"sync"
)

// The places of messages that the books are kept of: three queues and the dead letters.
const (
	placeA = iota
	placeB
	placeFew // attempts
	bookQueues
	letters    = bookQueues
	bookPlaces = bookQueues + 1
	gone       = bookPlaces
)

var (
	places   = [bookPlaces + 1]string{"work.a", "work.b", "work.few", "DLQ", "nowhere"}
	tries    = [bookPlaces]uint32{4, 4, 2, 1 << 31} // max-delivery-attempts
	bookArgs = []string{
		"--set", fmt.Sprintf("address-settings[work.#].max-delivery-attempts=%d", tries[placeA]),
		"--set", fmt.Sprintf("address-settings[%s].max-delivery-attempts=%d", places[placeFew], tries[placeFew]),
		"--set", "address-settings[DLQ].max-delivery-attempts=-1",
	}
)

// spot is where a message may be, and with how many failed attempts.
type spot struct {
	at        uint8
	low, high uint32 // delivery-count
	sure      uint32 // of it is stored, whatever happens
	work      *work  // nil: it depends on none
	held      bool   // it is there if the work holds; otherwise if it doesn't
}

func (s spot) String() string {
	text := fmt.Sprintf("%s with count %d to %d", places[s.at], s.low, s.high)
	if s.work != nil {
		text += fmt.Sprintf(" if work %d holds: %v", s.work.number, s.held)
	}
	return text
}

// possible says whether what is known of the work leaves it open that the message is there.
func (s spot) possible() bool {
	return s.work == nil || s.work.fate == open || (s.work.fate == holds) == s.held
}

// fate is what has become of a work.
type fate uint8

const (
	open fate = iota
	holds
	undone
)

// work is what holds as a whole or not at all: a transaction, or one outcome or message without any.
type work struct {
	number  uint64
	plain   bool // no transaction
	fate    fate
	why     string // its fate is known
	asked   bool   // to hold
	changes []change
}

// change is what a work does to a message.
type change struct {
	delivery // of a message that is posted the name only
	item     *item
	verb     verb
	posted   bool
	settled  bool // by us
	version  uint32
}

// item is what is known of a message.
type item struct {
	spots   []spot
	holder  uint16 // the client that has it; 0: nobody
	changed bool   // something has happened since the broker started
	version uint32
	looked  bool
	seen    spot // by the look that is under way
	history []string
}

// books know where each message may be by what clients were told, and check each sighting.
type books struct {
	mu      sync.Mutex
	items   map[name]*item
	works   uint64
	round   int
	live    int  // items that may be somewhere
	resent  bool // dead letters were sent back since the last look
	faults  []string
	asked   map[*work]bool // not answered
	figures bookFigures
}

// bookFigures count what happened.
type bookFigures struct {
	posts, deliveries, again, held, undone, unanswered, unansweredHeld, cut, deaths, sentBack, looked int
}

func (f *bookFigures) String() string {
	return fmt.Sprintf("%d messages posted; %d deliveries, %d of them again; works: %d hold, %d undone, %d not answered when the broker or the connection went, "+
		"of which %d hold; %d connections cut; %d seen dead, %d sent back; %d looked at",
		f.posts, f.deliveries, f.again, f.held, f.undone, f.unanswered, f.unansweredHeld, f.cut, f.deaths, f.sentBack, f.looked)
}

func newBooks() *books { return &books{items: map[name]*item{}, asked: map[*work]bool{}} }

// fault notes what must not be. Under mu.
func (b *books) fault(n name, it *item, format string, args ...any) {
	if len(b.faults) >= maxFaults {
		return
	}
	text := fmt.Sprintf("round %d: message %v: ", b.round, n) + fmt.Sprintf(format, args...)
	if it != nil {
		text += fmt.Sprintf("\n  it may be in %v", it.spots)
		for _, s := range it.spots {
			if s.work != nil && s.work.fate != open {
				text += fmt.Sprintf("\n  work %d is decided: %s", s.work.number, s.work.why)
			}
		}
		text += "\n  " + strings.Join(it.history, "\n  ")
	}
	b.faults = append(b.faults, text)
}

// complain notes a fault that is no message's.
func (b *books) complain(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf("round %d: ", b.round)+fmt.Sprintf(format, args...))
}

func (b *books) failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.faults) > 0
}

// crowded says whether there are more messages than there need be.
func (b *books) crowded(enough int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live > enough
}

func (b *books) note(it *item, format string, args ...any) {
	it.history = append(it.history, fmt.Sprintf("round %d: ", b.round)+fmt.Sprintf(format, args...))
}

func (b *books) begin(plain bool) *work {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.works++
	return &work{number: b.works, plain: plain}
}

// post is told before a message leaves.
func (b *books) post(w *work, n name) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.figures.posts++
	b.live++
	it := &item{spots: []spot{{at: gone, work: w}, {at: n.to, work: w, held: true}}, changed: true}
	b.items[n] = it
	b.note(it, "posted by work %d", w.number)
	w.changes = append(w.changes, change{delivery: delivery{name: n}, item: it, posted: true})
}

// sight checks one sighting of a message. Under mu.
func (b *books) sight(n name, it *item, now spot, what string) {
	b.note(it, "%s in %s, count %d", what, places[now.at], now.low)
	var fits []spot
	for _, s := range it.spots {
		if s.at == now.at && s.low <= now.low && now.low <= s.high && s.possible() {
			fits = append(fits, s)
		}
		if b.resent && s.at == letters && s.possible() && now.at == n.to && now.low == 0 {
			fits = append(fits, spot{at: now.at})
			b.figures.sentBack++
		}
	}
	if len(fits) == 0 {
		b.fault(n, it, "%s in %s, count %d", what, places[now.at], now.low)
		fits = []spot{now}
	}
	if now.at == letters && fits[0].work != nil {
		b.figures.deaths++
	}
	clear := true
	now.sure = fits[0].sure
	for _, s := range fits {
		now.sure = min(now.sure, s.sure)
		clear = clear && s.work == fits[0].work && s.held == fits[0].held
	}
	if !it.changed {
		now.sure = now.low
	}
	if w := fits[0].work; clear && w != nil && w.fate == open {
		w.fate, w.why = undone, fmt.Sprintf("undone, since message %v was %s in %s, count %d", n, what, places[now.at], now.low)
		if fits[0].held {
			w.fate, w.why = holds, "it holds"+w.why[len("undone"):]
		}
	}
	if now.at == gone {
		b.live--
	}
	it.spots = append(it.spots[:0], now)
	it.version++
}

// deliver is told of each delivery.
func (b *books) deliver(n name, at uint8, count uint32, by uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it := b.items[n]
	if it == nil {
		b.fault(n, nil, "delivered from %s, and was never posted", places[at])
		return
	}
	b.figures.deliveries++
	if count > 0 {
		b.figures.again++
	}
	if it.holder != 0 {
		b.fault(n, it, "delivered from %s to client %d while client %d has it", places[at], by, it.holder)
	}
	b.sight(n, it, spot{at: at, low: count, high: count}, fmt.Sprint("delivered to client ", by))
	it.holder = by
}

// tried adds where a message may be after an attempt that may be counted as failed.
func tried(s spot) []spot {
	died := spot{at: letters, low: s.high + 1, high: s.high + 1, sure: s.high + 1, work: s.work, held: s.held}
	if s.high+1 >= tries[s.at] {
		return []spot{s, died}
	}
	s.high++
	return []spot{s}
}

// retire is told before a work gives a delivery an outcome.
func (b *books) retire(w *work, h *delivery, v verb, settled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it := b.items[h.name]
	if it == nil {
		return
	}
	b.note(it, "%s by work %d, settled %v", verbNames[v], w.number, settled)
	was := it.spots[0]
	was.low, was.high, was.work, was.held = h.count, h.count, w, false
	then := spot{at: h.at, low: h.count, high: h.count, sure: was.sure, work: w, held: true}
	if v == fail || v == release && h.tried {
		then.low, then.high = h.count+1, h.count+1
		if !w.plain {
			then.sure = then.low
		}
		if then.low >= tries[h.at] {
			then.at, then.sure = letters, then.low
		}
	}
	switch v {
	case reject:
		then = spot{at: letters, low: h.count + 1, high: h.count + 1, sure: h.count + 1, work: w, held: true}
	case accept:
		then = spot{at: gone, work: w, held: true}
	}
	it.spots = append(it.spots[:0], was, then)
	it.changed = true
	w.changes = append(w.changes, change{delivery: *h, item: it, verb: v, settled: settled, version: it.version})
	if w.plain {
		w.asked, it.holder, b.asked[w] = true, 0, true
	}
}

// commit is told before a transaction is asked to hold.
func (b *books) commit(w *work) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.asked, b.asked[w] = true, true
	for _, c := range w.changes {
		b.note(c.item, "work %d is to hold", w.number)
		if !c.posted {
			c.item.holder = 0
		}
	}
}

// rollback is told before a transaction is asked to be undone.
func (b *books) rollback(w *work) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.fate, w.why = undone, "undone as it was asked for"
	for i := range w.changes {
		c := &w.changes[i]
		b.note(c.item, "work %d is to be undone", w.number)
		if c.posted {
			continue
		}
		if c.settled {
			c.item.holder = 0
		}
		b.attempted(c.item)
	}
}

// attempted: the attempt that is under way may be counted as failed. Under mu.
func (b *books) attempted(it *item) {
	it.changed = true
	var all []spot
	for _, s := range it.spots {
		if s.possible() && s.at < bookPlaces && !(s.work != nil && s.held) {
			all = append(all, tried(s)...)
		} else if s.possible() {
			all = append(all, s)
		}
	}
	it.spots = all
}

// told is what the broker has said of a work: that it holds, or is undone.
func (b *books) told(w *work, f fate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.asked, w)
	if w.fate != open && w.fate != f {
		n, it := name{}, (*item)(nil)
		if len(w.changes) > 0 {
			n, it = w.changes[0].name, w.changes[0].item
		}
		b.fault(n, it, "work %d: the broker says that it is %d, and yet: %s", w.number, f, w.why)
	}
	w.fate, w.why = f, "as the broker has said"
	if f == holds {
		b.figures.held++
	} else {
		b.figures.undone++
	}
	for i := range w.changes {
		c := &w.changes[i]
		it := c.item
		b.note(it, "work %d: %s", w.number, [...]string{"", "holds", "undone"}[f])
		if c.posted {
			if f == undone {
				it.spots = append(it.spots[:0], spot{at: gone})
				b.live--
			}
			continue
		}
		if it.version == c.version {
			b.settle(it, c, f)
			continue
		}
		s := it.spots[0]
		switch counts := c.verb == fail && f == holds || c.settled && f == undone; {
		case f == holds && c.verb == accept:
			b.fault(c.name, it, "seen again though that it was accepted is confirmed")
		case b.resent: // it may have begun anew
		case f == holds && c.verb == reject && s.at < bookQueues:
			b.fault(c.name, it, "seen again though that it was rejected is confirmed")
		case counts && s.at < bookPlaces && s.high < c.count+1:
			b.fault(c.name, it, "seen with a count of less than is confirmed")
		case counts:
			for i := range it.spots {
				it.spots[i].sure = max(it.spots[i].sure, c.count+1)
			}
		}
	}
}

// settle notes what the end of a work comes to for a message that nobody has seen since. Under mu.
func (b *books) settle(it *item, c *change, f fate) {
	var left []spot
	for _, s := range it.spots {
		if !s.possible() {
			continue
		}
		if c.settled && f == undone || c.verb == fail && f == holds { // its count is raised by now
			s.low = max(s.low, c.count+1)
			s.sure = max(s.sure, s.low)
			if s.low > s.high {
				continue
			}
		}
		s.work = nil
		left = append(left, s)
	}
	it.spots = left
	if len(left) == 1 && left[0].at == gone {
		b.live--
	}
}

// back is told that a rollback has left a delivery with us.
func (b *books) back(h *delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it := b.items[h.name]
	b.note(it, "is still with client %d", it.holder)
	it.spots = append(it.spots[:0], spot{at: h.at, low: h.count, high: h.count, sure: it.spots[0].sure})
}

// cut is told before a connection is cut that has these deliveries, and works under way.
func (b *books) cut(held []delivery, open ...*work) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.figures.cut++
	for i := range held {
		if it := b.items[held[i].name]; it != nil {
			b.note(it, "connection of client %d is cut", it.holder)
			it.holder = 0
			b.attempted(it)
		}
	}
	for _, w := range open {
		if !w.asked {
			w.fate, w.why = undone, "undone with its connection"
		}
		for i := range w.changes {
			c := &w.changes[i]
			b.note(c.item, "work %d loses its connection", w.number)
			if !c.posted && c.version == c.item.version { // otherwise somebody has seen it since
				c.item.holder = 0
				b.attempted(c.item)
			}
		}
	}
}

// restart is told when the broker is gone, and nobody who talked to it is left.
func (b *books) restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.round++
	for _, it := range b.items {
		it.holder, it.changed, it.looked = 0, false, false
		for i := range it.spots {
			s := &it.spots[i]
			if w := s.work; w != nil && !w.asked && w.fate == open {
				w.fate, w.why = undone, "the broker was killed before it was asked to hold"
			}
			s.low = min(s.low, s.sure)
		}
	}
}

// sendBack is told before dead letters are sent back. They begin anew.
func (b *books) sendBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resent = true
}

// look is told of each message that browsing shows.
func (b *books) look(n name, at uint8, count uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.figures.looked++
	it := b.items[n]
	switch {
	case it == nil:
		b.fault(n, nil, "seen in %s, and was never posted", places[at])
	case it.looked:
		b.fault(n, it, "there twice: in %s, and in %s", places[it.seen.at], places[at])
	default:
		it.looked, it.seen = true, spot{at: at, low: count, high: count}
	}
}

// endLook draws conclusions: what wasn't seen isn't there. Of each work all of its messages tell the same.
func (b *books) endLook() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n, it := range b.items {
		switch {
		case it.looked:
			b.sight(n, it, it.seen, "seen")
		case len(it.spots) == 1 && it.spots[0].at == gone && it.spots[0].work == nil:
		default:
			b.sight(n, it, spot{at: gone}, "not seen")
		}
		it.looked = false
	}
	for w := range b.asked {
		b.figures.unanswered++
		if w.fate == holds {
			b.figures.unansweredHeld++
		}
	}
	b.resent = false
	clear(b.asked)
}
