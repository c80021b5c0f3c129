package crash

import (
	"fmt"
	"strings"
	"sync"
)

// place is a set of places that a message may be in, as far as clients can know.
type place uint8

const (
	inQueue   place = 1 << iota // where it was routed to
	inLetters                   // dead-lettered
	inExpired
	nowhere // never stored, or settled for good
)

func (p place) String() string {
	var all []string
	for i, name := range []string{"queue", "dead letters", "expired", "nowhere"} {
		if p&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	return strings.Join(all, " or ")
}

// placeOf is where a delivery shows its message to be.
func placeOf(at uint8) place {
	switch at {
	case deadLetters:
		return inLetters
	case expired:
		return inExpired
	}
	return inQueue
}

// key is a message in one of the queues that it was routed to.
type key struct {
	name
	queue uint8
}

// entry is what is known of it.
type entry struct {
	where    place
	low      uint32 // delivery-count: confirmed
	high     uint32 // and with all that was asked for or happened
	holder   *link  // that has it and has said nothing
	version  uint32 // of what was seen or asked last
	sighted  bool
	durable  bool
	expires  bool
	changed  bool // something was asked or happened since the broker started
	priority uint8
	attempts uint32
	looked   place // where the look that is under way has found it
	history  []event
}

// event is a line in the history of an entry.
type event struct {
	round uint16
	what  string
	at    uint8
	count uint32
	link  uint32
}

// possible is where it may be, when time is taken into account.
func (e *entry) possible() place {
	if e.expires && e.where&inQueue != 0 {
		return e.where | inExpired
	}
	return e.where
}

// verb is what a consumer asks for.
type verb uint8

const (
	accept verb = iota
	reject
	release
	fail
	verbs
)

var verbNames = [verbs]string{"accept", "reject", "release", "fail"}

// claim is a settlement that was asked for and not confirmed.
type claim struct {
	key     key
	verb    verb
	at      uint8
	count   uint32 // that the message was delivered with
	version uint32
}

// link is a consumer's link as the ledger knows it.
type link struct {
	number uint32
	last   map[order]uint32 // sequence of the last first delivery
}

// order names what is delivered in order.
type order struct {
	producer uint16
	priority uint8
}

// ledger knows of every message what its senders and receivers were told.
type ledger struct {
	seed    uint64
	mu      sync.Mutex
	entries map[key]*entry
	round   uint16
	links   uint32
	endings []string // of the rounds
	ending  bool     // the broker stops in order: connection by connection, what one had may come to the next
	faults  []string
	tally   tally
}

// tally counts what happened.
type tally struct {
	sent, accepted, refused, delivered, redelivered, confirmed, claimed, dead, lapsed, looked, lost int
}

const maxFaults = 20

func newLedger(seed uint64) *ledger { return &ledger{seed: seed, entries: map[key]*entry{}} }

// fault notes what must not be. Under mu.
func (l *ledger) fault(k key, e *entry, format string, args ...any) {
	if len(l.faults) >= maxFaults {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "round %d: message %v in %s: ", l.round, k.name, names[k.queue])
	fmt.Fprintf(&b, format, args...)
	if e != nil {
		fmt.Fprintf(&b, "\n  expected in %v, count %d to %d, durable %v, expires %v", e.where, e.low, e.high, e.durable, e.expires)
		for i, h := range e.history {
			if i > 0 && h.round > e.history[i-1].round {
				fmt.Fprintf(&b, "\n  -- round %d: the broker %s", h.round-1, l.endings[h.round-1])
			}
			fmt.Fprintf(&b, "\n  round %d: %s", h.round, h.what)
			if h.link != 0 {
				fmt.Fprintf(&b, ", %s, count %d, link %d", sources[h.at], h.count, h.link)
			}
		}
	}
	l.faults = append(l.faults, b.String())
}

// complain notes a fault that is no message's.
func (l *ledger) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, fmt.Sprintf("round %d: ", l.round)+fmt.Sprintf(format, args...))
	}
}

// failed says whether there was a fault.
func (l *ledger) failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.faults) > 0
}

func (l *ledger) newLink() *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links++
	return &link{number: l.links, last: map[order]uint32{}}
}

// note adds to the history. Under mu.
func (l *ledger) note(e *entry, what string, at uint8, count uint32, by *link) {
	h := event{round: l.round, what: what, at: at, count: count}
	if by != nil {
		h.link = by.number
	}
	e.history = append(e.history, h)
}

// send is told before the first byte of a message leaves.
func (l *ledger) send(m *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.sent++
	for _, q := range m.queues() {
		e := &entry{where: inQueue | nowhere, durable: m.durable, expires: m.expires, priority: m.priority, attempts: attempts(q)}
		l.entries[key{m.name, q}] = e
		l.note(e, "sent", q, 0, nil)
	}
}

// answer is told what the producer was told.
func (l *ledger) answer(n name, accepted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if accepted {
		l.tally.accepted++
	} else {
		l.tally.refused++
	}
	for _, q := range n.queues() {
		k := key{n, q}
		e := l.entries[k]
		switch {
		case accepted:
			l.note(e, "accepted by the broker", q, 0, nil)
			if !e.sighted {
				e.where &^= nowhere
			}
		case e.sighted:
			l.fault(k, e, "refused, and yet delivered")
		default:
			l.note(e, "refused", q, 0, nil)
			e.where = nowhere
		}
	}
}

// sight checks one sighting of a message, by a delivery or by a look. Under mu.
func (l *ledger) sight(a *arrival, by *link, what string) *entry {
	k := key{a.name, a.queue}
	e := l.entries[k]
	if e == nil {
		l.fault(k, nil, "delivered, and was never sent")
		return nil
	}
	l.note(e, what, a.at, a.count, by)
	at := placeOf(a.at)
	switch {
	case e.possible()&at == 0:
		l.fault(k, e, "%s from %s", what, sources[a.at])
	case a.count < e.low || a.count > e.high:
		l.fault(k, e, "%s with delivery-count %d", what, a.count)
	}
	if at == inLetters && e.where&inLetters != e.where {
		l.tally.dead++
	}
	if at == inExpired && e.where&inExpired != e.where {
		l.tally.lapsed++
	}
	e.where, e.sighted = at, true
	e.high = a.count
	if !e.changed {
		e.low = a.count
	}
	e.low = min(e.low, e.high)
	e.version++
	return e
}

// deliver is told of each delivery, and whose it is now.
func (l *ledger) deliver(a *arrival, by *link) (version uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := key{a.name, a.queue}
	if e := l.entries[k]; e != nil {
		if l.ending && e.possible()&placeOf(a.at) == 0 {
			// It had come before its connection was closed, and is read after what became of it on the next one.
			l.note(e, "read late", a.at, a.count, by)
			return e.version
		}
		if e.holder != nil && !l.ending {
			l.fault(k, e, "delivered to link %d while link %d has it", by.number, e.holder.number)
		}
		if e.sighted {
			l.tally.redelivered++
		}
	}
	e := l.sight(a, by, "delivered")
	if e == nil {
		return 0
	}
	l.tally.delivered++
	e.holder = by
	if a.first && a.at < queues {
		o := order{a.producer, e.priority}
		if last, ok := by.last[o]; ok && a.sequence <= last {
			l.fault(k, e, "first delivery on link %d behind that of number %d", by.number, last)
		}
		by.last[o] = a.sequence
	}
	return e.version
}

// claim is told of a settlement before it is asked for.
func (l *ledger) claim(a *arrival, v verb, by *link) claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := key{a.name, a.queue}
	e := l.entries[k]
	if e == nil {
		return claim{key: k}
	}
	l.tally.claimed++
	l.note(e, verbNames[v], a.at, a.count, by)
	e.holder, e.changed = nil, true
	e.version++
	switch v {
	case accept:
		e.where |= nowhere
	case reject:
		e.where |= inLetters
		e.high = a.count + 1
	case fail:
		e.high = a.count + 1
		if e.high >= e.attempts {
			e.where |= inLetters
		}
	}
	return claim{key: k, verb: v, at: a.at, count: a.count, version: e.version}
}

// confirm is told when the broker has settled.
func (l *ledger) confirm(c claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[c.key]
	if e == nil {
		return
	}
	l.tally.confirmed++
	l.note(e, verbNames[c.verb]+" confirmed", c.at, c.count, nil)
	if c.verb == fail || c.verb == reject {
		e.low = max(e.low, c.count+1)
	}
	latest := e.version == c.version // otherwise it has been seen since
	switch {
	case c.verb == accept && !latest:
		l.fault(c.key, e, "delivered again though it was accepted and that is confirmed")
	case c.verb == reject && !latest && e.where&inQueue != 0:
		l.fault(c.key, e, "delivered again though it was rejected and that is confirmed")
	case !latest:
		if e.low > e.high {
			l.fault(c.key, e, "delivered with a count of less than is confirmed")
		}
	case c.verb == accept:
		e.where = nowhere
	case c.verb == reject, c.verb == fail && c.count+1 >= e.attempts:
		e.where = inLetters
	case c.verb == fail:
		e.where = inQueue
	}
	if latest && c.verb != accept {
		if e.expires && placeOf(c.at) == inQueue {
			e.where |= inExpired
		}
	}
}

// giveBack is told before a link that has messages is closed in order.
func (l *ledger) giveBack(held []arrival, by *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range held {
		if e := l.entries[key{held[i].name, held[i].queue}]; e != nil {
			l.note(e, "given back", held[i].at, held[i].count, by)
			e.holder = nil
			e.version++
		}
	}
}

// lose is told before a connection is cut: of the messages that its link has, and of what it asked for in vain, perhaps.
func (l *ledger) lose(held []arrival, open []claim, by *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range held {
		a := &held[i]
		e := l.entries[key{a.name, a.queue}]
		if e == nil {
			continue
		}
		l.tally.lost++
		l.note(e, "lost", a.at, a.count, by)
		e.holder, e.changed = nil, true
		e.version++
		l.attempted(e, a.at, a.count)
	}
	for _, c := range open {
		if e := l.entries[c.key]; e != nil && e.version == c.version {
			l.note(e, "lost after "+verbNames[c.verb], c.at, c.count, by)
			l.attempted(e, c.at, c.count)
		}
	}
}

// attempted: one more failed attempt may be counted. Under mu.
func (l *ledger) attempted(e *entry, at uint8, count uint32) {
	e.high = max(e.high, count+1)
	if at < queues && e.high >= e.attempts {
		e.where |= inLetters
	}
}

// end is told before the broker is asked to stop.
func (l *ledger) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
}

// restart is told when the broker is gone, and nobody who talked to it is left.
func (l *ledger) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.round++
	how := "was killed"
	if l.ending {
		how, l.ending = "stopped", false
	}
	l.endings = append(l.endings, how)
	for _, e := range l.entries {
		e.holder, e.changed = nil, false
		if !e.durable {
			e.where = nowhere
		}
	}
}

// beginLook is told before all queues are browsed; nobody else may be connected.
func (l *ledger) beginLook() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		e.looked = 0
	}
}

// look is told of each message that browsing shows.
func (l *ledger) look(a *arrival, by *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.looked++
	e := l.sight(a, by, "seen")
	if e == nil {
		return
	}
	k := key{a.name, a.queue}
	at := placeOf(a.at)
	if e.looked != 0 && (e.looked != inQueue || at != inExpired) { // it may expire in between
		l.fault(k, e, "there twice: in %v, and in %v", e.looked, at)
	}
	e.looked |= at
	if a.at < queues {
		l.inPlace(k, e, by)
	}
}

// inPlace checks that messages which nobody has come in order. Under mu.
func (l *ledger) inPlace(k key, e *entry, by *link) {
	o := order{k.producer, e.priority}
	if last, ok := by.last[o]; ok && k.sequence <= last {
		l.fault(k, e, "out of order at rest: behind number %d", last)
	}
	by.last[o] = k.sequence
	for p := range e.priority {
		if last, ok := by.last[order{k.producer, p}]; ok {
			l.fault(k, e, "out of order at rest: behind number %d of priority %d", last, p)
			break
		}
	}
}

// endLook draws conclusions: what wasn't seen isn't there.
func (l *ledger) endLook() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, e := range l.entries {
		if e.looked != 0 || e.expires && e.possible()&inExpired != 0 {
			continue // what expires just now is on its way
		}
		if e.where&nowhere == 0 {
			l.note(e, "not seen", k.queue, 0, nil)
			l.fault(k, e, "lost")
		}
		e.where = nowhere
	}
}

// waiting is how many messages have to be somewhere.
func (l *ledger) waiting() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.where&nowhere == 0 {
			n++
		}
	}
	return n
}

// finish is told when everything has been taken out: what isn't settled by now is lost.
func (l *ledger) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, e := range l.entries {
		if e.where&nowhere == 0 {
			l.fault(k, e, "lost")
		}
		e.where = nowhere
	}
}

// atRest checks that a delivery which nobody competes for comes in order; on is for nothing else.
func (l *ledger) atRest(a *arrival, on *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := key{a.name, a.queue}
	if e := l.entries[k]; e != nil && a.at < queues {
		l.inPlace(k, e, on)
	}
}
