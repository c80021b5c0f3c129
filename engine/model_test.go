package engine_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
)

// A broker is run beside a naive model of it: one list of messages, searched for everything. The model doesn't decide
// who is given what, it judges. A script is a list of moves whose numbers are taken modulo what there is, so that it
// stays one when moves are left out of it.

// moveKind is what a move does.
type moveKind uint8

const (
	publishes moveKind = iota
	attaches
	grants
	settles
	settlesLate // a delivery that the consumer has lost
	closes
	loses // the connection
	begins
	posts
	retires
	retiresAgain // a delivery that was left unsettled
	acquires
	commits
	rollsBack
	dooms
	abandons // the control link
	passes   // time
	holds    // the store takes its time, until:
	resumes
	fills // the store, until:
	clears
	crashes
	breaks // the store fails under the next move, and then the broker crashes
	moveKinds
)

var moveNames = [moveKinds]string{
	"publishes", "attaches", "grants", "settles", "settlesLate", "closes", "loses", "begins", "posts", "retires", "retiresAgain", "acquires", "commits", "rollsBack",
	"dooms", "abandons", "passes", "holds", "resumes", "fills", "clears", "crashes", "breaks",
}

// frequent has each kind of move as often as it is wanted.
var frequent = func() (all []moveKind) {
	for kind, n := range [moveKinds]int{
		publishes: 24, attaches: 10, grants: 24, settles: 24, settlesLate: 2, closes: 3, loses: 3, begins: 16, posts: 20, retires: 36, retiresAgain: 6,
		acquires: 8, commits: 16, rollsBack: 8, dooms: 1, abandons: 2, passes: 8, holds: 5, resumes: 10, fills: 2, clears: 4, crashes: 2, breaks: 1,
	} {
		for range n {
			all = append(all, moveKind(kind))
		}
	}
	return all
}()

type move struct {
	kind    moveKind
	a, b, c int
}

// The model's queues, and where messages end that are dead or expired.
var (
	modelQueues = []string{"q0", "q1", "q2"} // q1 delays redelivery
	modelEnds   = []string{"DLQ", "ExpiryQueue"}
)

const (
	modelAttempts = 3
	modelReturns  = 3 // of a message, uncounted: one more would have it pause
	// All times are such that nothing is ever due exactly now: moves happen at 50 ms past a tenth of a second.
	modelDelay = 1030 * time.Millisecond
	modelTenth = 100 * time.Millisecond
	modelGrace = 500 // ms by which what waits in the store may be late
)

// standing is what a message is doing.
type standing uint8

const (
	absent standing = iota
	ready
	owned
	enlisted // in a transaction
	deciding // in one whose commit is under way
	leaving  // for the place where messages end
)

var standingNames = [...]string{"absent", "ready", "owned", "enlisted", "deciding", "leaving"}

// spot is where the store has a message; the zero value: nowhere.
type spot struct {
	queue string
	count uint32
}

type modelMessage struct {
	text     string
	durable  bool
	priority uint8
	expiry   int64 // unix milliseconds, 0: none or not any more
	lifetime int64 // what it was
	queue    string
	order    int // of arrival
	count    uint32
	due      int64
	standing standing
	fresh    bool // it has become ready in this move
	owner    *modelConsumer
	delivery engine.Delivery
	tried    bool
	returns  int
	stored   spot
	expired  spot  // where the store may have it as well, until:
	until    int64 // unix milliseconds
}

func (m *modelMessage) String() string {
	return fmt.Sprintf("%s (%s in %s, count %d, durable %v, priority %d, expiry %d, due %d)", m.text, standingNames[m.standing], m.queue, m.count, m.durable, m.priority, m.expiry, m.due)
}

// before says whether m is delivered before o.
func (m *modelMessage) before(o *modelMessage) bool {
	return cmp.Or(-cmp.Compare(m.priority, o.priority), cmp.Compare(m.order, o.order)) < 0
}

type modelConsumer struct {
	real  *engine.Consumer
	queue string
	mu    sync.Mutex
	came  []engine.Delivery // not judged yet
	given int
	limit int
	had   []engine.Delivery // all of them
	gone  bool
}

func (c *modelConsumer) Deliver(d engine.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came = append(c.came, d)
}
func (*modelConsumer) Drained()         {}
func (*modelConsumer) Settled(uint64)   {}
func (*modelConsumer) Unsettled(uint64) {}
func (*modelConsumer) Ended(error)      {}

// modelWork is a delivery in a transaction.
type modelWork struct {
	message           *modelMessage
	consumer          *modelConsumer
	outcome, fallback engine.Outcome
	settled, acquired bool
}

type modelTransaction struct {
	real   *engine.Transaction
	posts  []*modelMessage
	work   []*modelWork
	doomed bool
	result *engine.Result
	mu     sync.Mutex
}

func (x *modelTransaction) Confirmed(_ uint64, r engine.Result) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.result = &r
}

// modelStep is something that becomes true when the store has it.
type modelStep struct {
	what    string
	facts   map[*modelMessage]spot
	brings  bool   // a full store refuses it
	then    func() // when it holds
	refused func() // when a full store has refused it
}

// model is a broker under test and what is known of it.
type model struct {
	tally     *modelTally
	broker    *engine.Broker
	opts      engine.Options
	store     *watchedStore
	replica   *replica
	resume    func() // of a store that is held
	full      bool
	broken    bool
	messages  []*modelMessage
	consumers []*modelConsumer
	open      []*modelTransaction
	ending    map[*modelTransaction]bool // true: to be accepted, of those not answered
	producers map[string]*modelProducer
	steps     []*modelStep // not carried out
	arrived   int
}

// modelProducer notes what was said of messages.
type modelProducer struct {
	real    *engine.Producer
	mu      sync.Mutex
	results map[uint64]engine.Result
	asked   map[uint64]bool // true: to be accepted
	next    uint64
	pending int // durable ones under way
}

func (p *modelProducer) Confirmed(ticket uint64, r engine.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results[ticket] = r
}

// replica is what the store was told, as anybody would keep it.
type replica struct {
	watchedStore
	at     sync.Mutex
	names  map[engine.QueueID]string
	state  map[engine.QueueID]map[uint64]stored
	dead   bool // the machine is gone: nothing is stored any more
	breaks bool // the next commit fails
	keeps  bool // and holds nevertheless
	failed bool
}

type stored struct {
	text  string
	count uint32
}

var errGone = errors.New("the store is gone")

func (s *replica) Commit(records []engine.Record) error {
	s.at.Lock()
	dead, breaks, failed := s.dead, s.breaks, s.failed
	s.failed = s.failed || breaks
	s.at.Unlock()
	if dead || failed || breaks && !s.keeps {
		return errGone
	}
	if err := s.watchedStore.Commit(records); err != nil {
		return err
	}
	s.at.Lock()
	defer s.at.Unlock()
	for i := range records {
		s.note(&records[i])
	}
	if breaks {
		return errGone
	}
	return nil
}

func (s *replica) note(r *engine.Record) {
	switch r.Kind {
	case engine.RecordDefine:
		if s.state[r.Queue] == nil {
			s.state[r.Queue] = map[uint64]stored{}
		}
		s.names[r.Queue] = r.Definition.Name
	case engine.RecordDelete:
		delete(s.state, r.Queue)
	case engine.RecordEnqueue, engine.RecordMove:
		if r.Kind == engine.RecordMove {
			if _, ok := s.state[r.From][r.FromNumber]; !ok {
				return
			}
			delete(s.state[r.From], r.FromNumber)
		}
		s.state[r.Queue][r.Number] = stored{string(r.Message.Payload), r.Count}
	case engine.RecordRemove:
		delete(s.state[r.Queue], r.Number)
	case engine.RecordCount:
		if e, ok := s.state[r.Queue][r.Number]; ok {
			e.count = r.Count
			s.state[r.Queue][r.Number] = e
		}
	}
}

// spots returns where each message is stored, and what of each queue in order of arrival.
func (s *replica) spots() (at map[string]spot, orders map[string][]string, twice []string) {
	s.at.Lock()
	defer s.at.Unlock()
	at, orders = map[string]spot{}, map[string][]string{}
	for id, entries := range s.state {
		for _, n := range slices.Sorted(maps.Keys(entries)) {
			e := entries[n]
			if _, is := at[e.text]; is {
				twice = append(twice, e.text)
			}
			at[e.text] = spot{s.names[id], e.count}
			orders[s.names[id]] = append(orders[s.names[id]], e.text)
		}
	}
	return at, orders, twice
}

// fault ends a script.
type fault string

func (m *model) fail(format string, args ...any) { panic(fault(fmt.Sprintf(format, args...))) }

// play runs a script, and returns what is wrong and the move after which it was.
func play(t *testing.T, opts engine.Options, script []move, tally *modelTally) (said string, at int) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{
			opts: opts, tally: tally, ending: map[*modelTransaction]bool{},
			replica: &replica{names: map[engine.QueueID]string{}, state: map[engine.QueueID]map[uint64]stored{}},
		}
		m.store = &m.replica.watchedStore
		defer func() {
			if p := recover(); p != nil {
				f, is := p.(fault)
				if !is {
					panic(p)
				}
				said = string(f)
			}
			m.release()
			m.replica.at.Lock()
			m.replica.dead = true
			m.replica.at.Unlock()
			if m.broker != nil {
				_ = m.broker.Close()
			}
			synctest.Wait()
		}()
		time.Sleep(modelTenth / 2)
		m.start()
		for i, o := range script {
			at = i
			m.carry(o)
		}
		at = len(script)
		m.finish()
	})
	return said, at
}

func (m *model) start() {
	b, err := engine.New(m.opts, m.replica)
	if err != nil {
		m.fail("new: %v", err)
	}
	m.broker = b
	m.producers = map[string]*modelProducer{}
	for _, q := range modelQueues {
		p := &modelProducer{results: map[uint64]engine.Result{}, asked: map[uint64]bool{}}
		if p.real, err = b.Producer(engine.ProducerSpec{Address: q}, p); err != nil {
			m.fail("producer: %v", err)
		}
		m.producers[q] = p
	}
	for _, q := range append(slices.Clone(modelQueues), modelEnds...) { // all are there before it begins
		c, err := b.Consumer(engine.ConsumerSpec{Address: q}, &modelConsumer{})
		if err != nil {
			m.fail("consumer: %v", err)
		}
		c.Close(engine.ClosingClean)
	}
	synctest.Wait()
}

func now() int64 { return time.Now().UnixMilli() }

// carry carries out one move, and judges what comes of it.
func (m *model) carry(o move) {
	for _, e := range m.messages {
		e.fresh = false
	}
	suspended := m.broken
	m.tally.Moves++
	m.act(o)
	m.settleSteps()
	if m.broken {
		if suspended { // what the one move under a failing store has come to is seen afterwards
			m.crash(o.c)
		}
		return
	}
	m.judge()
}

func (m *model) act(o move) {
	queue := modelQueues[o.a%len(modelQueues)]
	switch o.kind {
	case publishes:
		m.publish(queue, o)
	case attaches:
		if len(m.consumers) < 5 {
			c := &modelConsumer{queue: queue}
			var err error
			if c.real, err = m.broker.Consumer(engine.ConsumerSpec{Address: queue}, c); err != nil {
				m.fail("consumer: %v", err)
			}
			m.consumers = append(m.consumers, c)
			c.limit = o.b % 4
			c.real.SetLimit(uint64(c.limit))
		}
	case grants:
		if c := pick(m.consumers, o.a); c != nil {
			c.limit = c.given + o.b%7
			c.real.SetLimit(uint64(c.limit))
		}
	case settles:
		m.settle(o)
	case settlesLate:
		m.settleLate(o)
	case closes, loses:
		if c := pick(m.consumers, o.a); c != nil {
			m.close(c, o.kind == loses)
		}
	case begins:
		if len(m.open) < 3 {
			m.open = append(m.open, &modelTransaction{real: m.broker.Begin()})
		}
	case posts:
		if x := pick(m.open, o.c); x != nil {
			e := m.compose(queue, o)
			if r := x.real.Post(m.producers[queue].real, e.message()); r.Verdict != engine.Accepted {
				m.fail("post: %+v", r)
			}
			x.posts = append(x.posts, e)
		}
	case retires, acquires:
		m.retire(o)
	case retiresAgain:
		m.retireAgain(o)
	case commits:
		if x := m.end(o.a); x != nil {
			m.commit(x)
		}
	case rollsBack, abandons:
		if x := m.end(o.a); x != nil {
			m.undo(x)
			if o.kind == abandons {
				x.real.Rollback(nil, 0)
				break
			}
			if !x.real.Rollback(x, 1) {
				m.ending[x] = true
				m.enter(&modelStep{what: "rollback", then: func() { m.told(x, true) }})
			}
		}
	case dooms:
		if x := pick(m.open, o.a); x != nil {
			x.doomed = true
			x.real.Doom("for a reason")
		}
	case passes:
		if m.resume == nil && !m.full {
			time.Sleep(time.Duration(1+o.a) * modelTenth)
			synctest.Wait()
			m.expire()
		}
	case holds:
		if m.resume == nil {
			m.resume = m.store.hold()
		}
	case resumes:
		m.release()
	case fills:
		if m.resume == nil && !m.full {
			m.full = true
			m.store.fail(engine.ErrStoreFull)
		}
	case clears:
		m.clear()
	case crashes:
		m.crash(o.a)
	case breaks:
		if m.resume == nil && !m.full {
			m.broken = true
			m.replica.at.Lock()
			m.replica.breaks, m.replica.keeps = true, o.a%2 == 0
			m.replica.at.Unlock()
		}
	}
}

func (m *model) clear() {
	if m.full && m.resume == nil {
		m.full = false
		m.store.fail(nil)
	}
}

func (m *model) release() {
	if m.resume != nil {
		m.resume()
		m.resume = nil
	}
}

// pick returns one of all, nil when there is none.
func pick[T any](all []*T, i int) *T {
	if len(all) == 0 {
		return nil
	}
	return all[i%len(all)]
}

func (m *model) compose(queue string, o move) *modelMessage {
	e := &modelMessage{text: fmt.Sprint("m", len(m.messages)), durable: o.b%4 != 0, priority: 4, queue: queue}
	if o.b%5 == 1 {
		e.priority = 7
	}
	if o.c%4 == 1 {
		e.expiry = now() + int64(o.c)*100 + 30
		e.lifetime = e.expiry
	}
	m.messages = append(m.messages, e)
	return e
}

func (e *modelMessage) message() *engine.Message {
	return &engine.Message{Payload: []byte(e.text), Durable: e.durable, Priority: e.priority, Expiry: e.expiry}
}

func (m *model) publish(queue string, o move) {
	p := m.producers[queue]
	e := m.compose(queue, o)
	p.next++
	ticket := p.next
	waits := e.durable || p.pending > 0
	r, decided := p.real.Publish(e.message(), ticket)
	if decided == waits {
		m.fail("publish of %v is decided at once: %v %+v", e, decided, r)
	}
	m.arrived++
	e.order = m.arrived
	if !waits {
		m.appear(e)
		return
	}
	p.pending++
	tell := func(accepted bool) {
		p.pending--
		p.mu.Lock()
		defer p.mu.Unlock()
		if got, ok := p.results[ticket]; !ok || (got.Verdict == engine.Accepted) != accepted {
			m.fail("publish of %v is answered with %v %+v, want accepted %v", e, ok, got, accepted)
		}
	}
	s := &modelStep{what: "publish " + e.text, then: func() { m.appear(e); tell(true) }, refused: func() { tell(false) }}
	if e.durable {
		s.brings, s.facts = true, map[*modelMessage]spot{e: {queue, 0}}
	}
	m.enter(s)
}

// appear has a message be in its queue.
func (m *model) appear(e *modelMessage) {
	e.standing, e.fresh, e.owner = ready, true, nil
	if e.expiry != 0 && e.expiry <= now() && slices.Contains(modelQueues, e.queue) {
		m.leave(e, "ExpiryQueue")
	}
}

// enter adds a step that holds when the store has it.
func (m *model) enter(s *modelStep) { m.steps = append(m.steps, s) }

// settleSteps carries out steps, unless the store is held and has been asked for something.
func (m *model) settleSteps() {
	synctest.Wait()
	stored := slices.ContainsFunc(m.steps, func(s *modelStep) bool { return len(s.facts) > 0 })
	for !(stored && (m.resume != nil || m.broken)) && len(m.steps) > 0 {
		s := m.steps[0]
		m.steps = m.steps[1:]
		if m.full && s.brings && len(s.facts) > 0 {
			if s.refused != nil {
				s.refused()
			}
			continue
		}
		s.hold()
		if s.then != nil {
			s.then()
		}
	}
}

// hold notes the facts of a step.
func (s *modelStep) hold() {
	for e, at := range s.facts {
		e.stored = at
	}
}

// leave has a message go to where messages end.
func (m *model) leave(e *modelMessage, end string) {
	e.standing, e.owner = leaving, nil
	if end == "DLQ" {
		m.tally.Dead++
	} else {
		m.tally.Expired++
		e.expired, e.until = spot{e.queue, e.count}, now()+modelGrace
	}
	s := &modelStep{what: e.text + " leaves for " + end, then: func() {
		e.queue, e.standing, e.due, e.expiry = end, ready, 0, 0
	}}
	if e.durable {
		s.facts = map[*modelMessage]spot{e: {end, e.count}}
	}
	m.enter(s)
}

// count notes a failed attempt, and says whether it was the last one.
func (m *model) attempt(e *modelMessage, delays bool) (dies bool) {
	e.count++
	if e.count >= modelAttempts {
		return true
	}
	if delays && e.queue == "q1" {
		e.due = now() + modelDelay.Milliseconds()
	}
	return false
}

// noteCount has a count be stored.
func (m *model) noteCount(e *modelMessage) {
	if e.durable {
		m.enter(&modelStep{what: "count of " + e.text, facts: map[*modelMessage]spot{e: {e.queue, e.count}}})
	}
}

// apply carries out an outcome of a message that nobody has any more.
func (m *model) apply(e *modelMessage, o engine.Outcome, lost bool) {
	failed := e.tried || o.Failed && o.Kind == engine.Modified
	delays := !lost || e.tried // as after the rollback
	e.tried = false
	switch {
	case o.Kind == engine.Accepted:
		e.standing = absent
		if e.durable {
			m.enter(&modelStep{what: "removal of " + e.text, facts: map[*modelMessage]spot{e: {}}})
		}
	case o.Kind == engine.Rejected:
		e.count++
		m.leave(e, "DLQ")
	case failed:
		if m.attempt(e, delays) {
			m.leave(e, "DLQ")
			return
		}
		m.noteCount(e)
		m.appear(e)
	default:
		m.appear(e)
	}
}

// outcome picks one. A message isn't given back uncounted so often that it would pause.
func (e *modelMessage) outcome(n int) engine.Outcome {
	o := []engine.Outcome{accepted, failed, rejected, released, modified, accepted}[n%6]
	if o.Kind == engine.Released || o.Kind == engine.Modified && !o.Failed {
		if e.returns++; e.returns > modelReturns {
			return failed
		}
	}
	return o
}

// theirs returns the deliveries that a consumer has.
func (m *model) theirs(c *modelConsumer) (all []*modelMessage) {
	for _, e := range m.messages {
		if e.standing == owned && e.owner == c {
			all = append(all, e)
		}
	}
	return all
}

func settlement(d engine.Delivery) []engine.Settlement {
	return []engine.Settlement{{Handle: d.Handle, Acquisition: d.Acquisition}}
}

func (m *model) settle(o move) {
	c := pick(m.consumers, o.a)
	if c == nil {
		return
	}
	if e := pick(m.theirs(c), o.b); e != nil {
		v := e.outcome(o.c)
		m.apply(e, v, false)
		c.real.Settle(settlement(e.delivery), v, 1)
	}
}

func (m *model) settleLate(o move) {
	c := pick(m.consumers, o.a)
	if c == nil || len(c.had) == 0 {
		return
	}
	d := c.had[o.b%len(c.had)]
	for _, e := range m.theirs(c) {
		if e.delivery.Handle == d.Handle && e.delivery.Acquisition == d.Acquisition {
			return
		}
	}
	if !c.real.Settle(settlement(d), accepted, 1) {
		m.fail("settlement of a delivery that is the consumer's no more has entered the window")
	}
}

func (m *model) close(c *modelConsumer, lost bool) {
	c.gone = true
	for _, e := range m.theirs(c) {
		o := released
		if lost {
			o = failed
		}
		m.apply(e, o, true)
	}
	m.consumers = slices.DeleteFunc(m.consumers, func(o *modelConsumer) bool { return o == c })
	how := engine.ClosingClean
	if lost {
		how = engine.ClosingLost
	}
	c.real.Close(how)
}

// retire puts a delivery into a transaction.
func (m *model) retire(o move) {
	x, c := pick(m.open, o.c), pick(m.consumers, o.a)
	if x == nil || c == nil {
		return
	}
	e := pick(m.theirs(c), o.b)
	if e == nil || o.kind == acquires && e.tried {
		return
	}
	w := &modelWork{message: e, consumer: c}
	e.standing = enlisted
	x.work = append(x.work, w)
	if o.kind == acquires {
		w.acquired = true
		if !x.real.Acquire(c.real, settlement(e.delivery)[0]) {
			m.fail("acquire: too large")
		}
		return
	}
	w.outcome, w.settled, w.fallback = e.outcome(o.b+o.c), (o.a+o.b)%3 > 0, e.outcome(o.a+1)
	if !x.real.Retire(c.real, settlement(e.delivery), w.outcome, w.settled, w.fallback) {
		m.fail("retire: too large")
	}
}

func (m *model) retireAgain(o move) {
	x := pick(m.open, o.c)
	if x == nil {
		return
	}
	var left []*modelWork
	for _, w := range x.work {
		if !w.settled && !w.consumer.gone {
			left = append(left, w)
		}
	}
	w := pick(left, o.a)
	if w == nil {
		return
	}
	v := w.message.outcome(o.b)
	w.settled, w.fallback = o.a%2 == 0, w.message.outcome(o.b+1)
	switch {
	case o.c%3 > 0:
		w.outcome = v
	default: // says nothing
		v = engine.Outcome{}
		if w.outcome.Kind == 0 {
			w.outcome = w.fallback
		}
	}
	if !x.real.Retire(w.consumer.real, settlement(w.message.delivery), v, w.settled, w.fallback) {
		m.fail("retire: too large")
	}
}

// end takes a transaction off the list of open ones.
func (m *model) end(i int) *modelTransaction {
	x := pick(m.open, i)
	m.open = slices.DeleteFunc(m.open, func(o *modelTransaction) bool { return o == x })
	return x
}

// told wants a transaction to have been answered.
func (m *model) told(x *modelTransaction, accepted bool) {
	delete(m.ending, x)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.result == nil:
		m.fail("transaction isn't answered")
	case accepted != (x.result.Verdict == engine.Accepted):
		m.fail("transaction is answered with %+v, want accepted %v", *x.result, accepted)
	case !accepted && x.result.Condition != engine.ConditionRollback:
		m.fail("transaction is refused with %+v", *x.result)
	}
}

// undo rolls a transaction back.
func (m *model) undo(x *modelTransaction) {
	m.tally.RolledBack++
	for _, w := range x.work {
		e := w.message
		switch {
		case w.settled && !w.acquired:
			m.apply(e, w.fallback, false)
		case w.acquired || w.consumer.gone:
			m.apply(e, failed, false)
		default:
			e.standing, e.owner, e.tried = owned, w.consumer, true
		}
	}
}

// commit commits a transaction: what it comes to is decided now, and seen when the store has it.
func (m *model) commit(x *modelTransaction) {
	if x.doomed {
		m.undo(x)
		if r, decided := x.real.Commit(x, 1); !decided || r.Condition != engine.ConditionRollback {
			m.fail("commit of a doomed transaction: %v %+v", decided, r)
		}
		return
	}
	type was struct {
		count uint32
		due   int64
		tried bool
	}
	s := &modelStep{what: "commit", facts: map[*modelMessage]spot{}}
	var then []func()
	for _, e := range x.posts {
		m.arrived++
		e.order = m.arrived
		m.producers[e.queue].pending++
		if e.durable {
			s.facts[e], s.brings = spot{e.queue, 0}, true
		}
		then = append(then, func() { m.producers[e.queue].pending--; m.appear(e) })
	}
	before := map[*modelMessage]was{}
	for _, w := range x.work {
		e := w.message
		before[e] = was{e.count, e.due, e.tried}
		e.standing = deciding
		if w.outcome.Kind == 0 {
			then = append(then, func() {
				if w.consumer.gone {
					e.returns++
					m.apply(e, released, false)
				} else {
					e.standing, e.owner = owned, w.consumer
				}
			})
			continue
		}
		dead := w.outcome.Kind == engine.Rejected
		counts := w.outcome.Kind != engine.Accepted && (e.tried || w.outcome.Failed && w.outcome.Kind == engine.Modified)
		e.tried = false
		switch {
		case dead:
			e.count++
		case counts:
			dead = m.attempt(e, true)
		}
		switch {
		case w.outcome.Kind == engine.Accepted:
			if e.durable {
				s.facts[e] = spot{}
			}
			then = append(then, func() { e.standing = absent })
		case dead:
			if e.durable {
				s.facts[e], s.brings = spot{"DLQ", e.count}, true
			}
			then = append(then, func() { e.queue, e.standing, e.expiry, e.due, e.owner = "DLQ", ready, 0, 0, nil })
		default:
			if e.durable && counts {
				s.facts[e] = spot{e.queue, e.count}
			}
			then = append(then, func() { m.appear(e) })
		}
	}
	s.then = func() {
		m.tally.Commits++
		for _, f := range then {
			f()
		}
		m.told(x, true)
	}
	s.refused = func() {
		m.tally.Refused++
		for _, e := range x.posts {
			m.producers[e.queue].pending--
		}
		for e, w := range before {
			e.count, e.due, e.tried = w.count, w.due, w.tried
		}
		m.undo(x)
		m.told(x, false)
	}
	m.ending[x] = true
	m.enter(s)
	if r, decided := x.real.Commit(x, 1); decided && !m.broken {
		m.fail("commit is decided at once: %+v", r)
	}
}

// expire has messages leave whose time is up.
func (m *model) expire() {
	for _, e := range m.messages {
		if e.standing == ready && e.expiry != 0 && e.expiry <= now() && slices.Contains(modelQueues, e.queue) {
			m.leave(e, "ExpiryQueue")
		}
		if e.standing == ready && e.due != 0 && e.due <= now() {
			e.fresh = true
		}
	}
}

// judge compares what consumers were given, and what the store has, with what may be.
func (m *model) judge() {
	taken := map[string][]*modelMessage{}
	for _, c := range m.consumers {
		c.mu.Lock()
		came := c.came
		c.came = nil
		c.mu.Unlock()
		var last *modelMessage
		for _, d := range came {
			e := m.find(string(d.Message.Payload))
			switch c.given++; {
			case c.given > c.limit:
				m.fail("%s: a delivery without credit: %v", c.queue, e)
			case e == nil || e.standing != ready || e.queue != c.queue:
				m.fail("%s: delivered, and isn't to be: %v", c.queue, e)
			case e.due > now():
				m.fail("%s: delivered before its time: %v", c.queue, e)
			case d.Count != e.count:
				m.fail("%s: delivered with count %d: %v", c.queue, d.Count, e)
			case last != nil && !e.fresh && !last.fresh && e.before(last):
				m.fail("%s: delivered behind %v: %v", c.queue, last, e)
			}
			m.tally.Deliveries++
			last = e
			e.standing, e.owner, e.delivery, e.due, e.tried = owned, c, d, 0, false
			c.had = append(c.had, d)
			taken[c.queue] = append(taken[c.queue], e)
		}
	}
	for _, e := range m.messages {
		if e.standing != ready || e.due > now() {
			continue
		}
		for _, c := range m.consumers {
			if c.queue == e.queue && c.given < c.limit && e.due+modelGrace <= now() {
				m.fail("%s: a consumer with credit isn't given %v", c.queue, e)
			}
		}
		for _, o := range taken[e.queue] {
			if !e.fresh && e.before(o) && e.due+modelGrace <= now() {
				m.fail("%s: %v was given before %v", e.queue, o, e)
			}
		}
	}
	m.compare()
}

func (m *model) find(text string) *modelMessage {
	for _, e := range m.messages {
		if e.text == text {
			return e
		}
	}
	return nil
}

// compare compares what the store has with what it may have: of each message what is known to hold, or with some of
// the steps that were on their way; of a step with several messages all or none.
func (m *model) compare() {
	at, orders, twice := m.replica.spots()
	if len(twice) > 0 {
		m.fail("stored twice: %q", twice)
	}
	for s := range at {
		if m.find(s) == nil {
			m.fail("stored, and unknown: %s", s)
		}
	}
	held, not := map[*modelStep]*modelMessage{}, map[*modelStep]*modelMessage{}
	for _, e := range m.messages {
		var mine []*modelStep
		may := []spot{e.stored}
		for _, s := range m.steps {
			if f, is := s.facts[e]; is {
				mine, may = append(mine, s), append(may, f)
			}
		}
		got := at[e.text]
		var fits []int
		for i, f := range may {
			if f == got {
				fits = append(fits, i)
			}
		}
		if len(fits) == 0 && got == e.expired && now() < e.until {
			continue
		}
		if len(fits) == 0 {
			m.fail("stored in %q with count %d, want one of %v: %v", got.queue, got.count, may, e)
		}
		if len(fits) == 1 {
			for i, s := range mine {
				if i < fits[0] {
					held[s] = e
				} else {
					not[s] = e
				}
			}
		}
	}
	for s, e := range held {
		if o := not[s]; o != nil {
			m.fail("%s is stored in part: with %v, without %v", s.what, e, o)
		}
	}
	for queue, texts := range orders {
		for i := 1; i < len(texts) && slices.Contains(modelQueues, queue); i++ {
			if a, b := m.find(texts[i-1]), m.find(texts[i]); a.order > b.order {
				m.fail("%s: numbers are in another order than arrival: %v, %v", queue, a, b)
			}
		}
	}
}

// crash has the broker be gone from one moment to the next, and another one start on what is stored.
func (m *model) crash(n int) {
	if m.resume != nil && m.full {
		return
	}
	m.tally.Crashes++
	m.replica.at.Lock()
	m.replica.dead = m.resume == nil || n%2 == 0 // what is being written comes through, or doesn't
	m.replica.at.Unlock()
	if m.resume != nil {
		resume := m.resume
		m.resume = nil
		if n%2 != 0 { // nothing behind it does
			m.store.failAfter(0, errGone)
		}
		resume()
		synctest.Wait()
	}
	m.replica.at.Lock()
	m.replica.dead = true
	m.replica.at.Unlock()
	if err := m.broker.Close(); err != nil && !errors.Is(err, errGone) {
		m.fail("close: %v", err)
	}
	synctest.Wait()
	m.compare()
	at, _, _ := m.replica.spots()
	for _, e := range m.messages {
		e.owner, e.tried, e.returns, e.delivery = nil, false, 0, engine.Delivery{}
		s := at[e.text]
		e.stored = s
		if s.queue == "" {
			e.standing = absent
			continue
		}
		e.expired, e.expiry = spot{}, 0
		if slices.Contains(modelQueues, s.queue) {
			e.expiry = e.lifetime
		}
		if s.count != e.count || s.queue != e.queue {
			e.due = 0
		}
		e.queue, e.count = s.queue, s.count
		e.standing, e.fresh = ready, true
	}
	m.steps, m.consumers, m.open, m.broken, m.full = nil, nil, nil, false, false
	clear(m.ending)
	m.store.fail(nil)
	m.replica.at.Lock()
	m.replica.dead, m.replica.breaks, m.replica.failed = false, false, false
	m.replica.at.Unlock()
	m.start()
	m.expire()
	m.settleSteps()
}

// finish has all come to rest, and takes what there is.
func (m *model) finish() {
	if m.broken {
		m.crash(0)
	}
	for _, k := range []moveKind{resumes, clears} {
		m.carry(move{kind: k})
	}
	for len(m.open) > 0 {
		m.carry(move{kind: rollsBack})
	}
	for len(m.consumers) > 0 {
		m.carry(move{kind: closes})
	}
	m.carry(move{kind: passes, a: 11})
	m.carry(move{kind: passes, a: 11})
	if len(m.ending) > 0 {
		m.fail("%d transactions aren't answered", len(m.ending))
	}
	for i, q := range modelQueues {
		m.carry(move{kind: attaches, a: i})
		c := m.consumers[0]
		c.limit = len(m.messages) + 1
		c.real.SetLimit(uint64(c.limit))
		m.settleSteps()
		m.judge()
		for len(m.theirs(c)) > 0 {
			m.carry(move{kind: settles})
		}
		m.carry(move{kind: closes})
		if n := m.waiting(q); n != 0 {
			m.fail("%s: %d messages are left", q, n)
		}
	}
	for _, q := range modelEnds {
		if n, want := m.waiting(q), m.standing(q); n != want {
			m.fail("%s has %d messages, want %d", q, n, want)
		}
	}
	for _, a := range m.broker.Addresses() {
		if err := m.broker.Delete(a.Name, ""); err != nil && !errors.Is(err, engine.ErrNotFound) {
			m.fail("delete: %v", err)
		}
	}
	synctest.Wait()
	if used := m.broker.Totals().Memory; used != 0 {
		m.fail("%d bytes of memory are used by nothing", used)
	}
}

func (m *model) standing(queue string) (n int) {
	for _, e := range m.messages {
		if e.queue == queue && e.standing == ready {
			n++
		}
	}
	return n
}

func (m *model) waiting(queue string) int {
	i, err := m.broker.Queue(queue, "")
	if err != nil {
		m.fail("queue %s: %v", queue, err)
	}
	return int(i.Messages)
}

// testAgainstModel plays scripts made of random numbers. Of one that fails moves are dropped as long as it still does.
// LETO_MODEL_SCRIPTS says how many there are, LETO_MODEL_SEED which is the first.
func testAgainstModel(t *testing.T, opts engine.Options) {
	scripts, seed := modelNumber(t, "LETO_MODEL_SCRIPTS", 150), modelNumber(t, "LETO_MODEL_SEED", int(time.Now().UnixNano()&0xffffff))
	if testing.Short() {
		scripts = min(scripts, 30)
	}
	var all modelTally
	for i := range scripts {
		script := compose(uint64(seed + i))
		said, at := play(t, opts, script, &all)
		if said == "" {
			continue
		}
		script = script[:min(at+1, len(script))]
		for n := len(script) / 2; n > 0; n /= 2 {
			for from := 0; from+n <= len(script); {
				shorter := slices.Delete(slices.Clone(script), from, from+n)
				if less, _ := play(t, opts, shorter, &modelTally{}); less != "" {
					script, said = shorter, less
				} else {
					from += n
				}
			}
		}
		var b strings.Builder
		for _, o := range script {
			fmt.Fprintf(&b, "\n  {%s, %d, %d, %d},", moveNames[o.kind], o.a, o.b, o.c)
		}
		t.Fatalf("LETO_MODEL_SEED=%d: %s\nscript:%s", seed+i, said, b.String())
	}
	t.Logf("LETO_MODEL_SEED=%d: %d scripts: %+v", seed, scripts, all)
}

// modelTally counts what scripts have come to.
type modelTally struct{ Moves, Deliveries, Commits, Refused, RolledBack, Crashes, Dead, Expired int }

// compose makes a script.
func compose(seed uint64) []move {
	rng := rand.New(rand.NewPCG(seed, 1))
	script := make([]move, 20+rng.IntN(180))
	for i := range script {
		script[i] = move{frequent[rng.IntN(len(frequent))], rng.IntN(12), rng.IntN(12), rng.IntN(12)}
	}
	return script
}

func modelNumber(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func modelOptions(opts engine.Options) engine.Options {
	opts.Settings = []engine.AddressSettings{
		{Match: "#", MaxDeliveryAttempts: new(modelAttempts)},
		{Match: "q1", RedeliveryDelay: new(modelDelay)},
	}
	return opts
}

// Any sequence of what clients, time and the store may do is as the model says, whatever is under way at a crash.
func TestBrokerAgainstModel(t *testing.T) { testAgainstModel(t, modelOptions(engine.Options{})) }
