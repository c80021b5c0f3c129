package amqp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/amqp/amqptest"
	"github.com/letomq/leto/codec"
)

// TestPair lets two machines talk under random schedules: windows of a few
// frames, frames of 512 octets, streams cut anywhere, links that come and go
// in the midst of deliveries, shells that answer late.
func TestPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.run(20 + w.rand.IntN(3000))
	})
}

// world is a pair of machines, the two shells behind them, and what they must
// have done in the end.
type world struct {
	t    *rapid.T
	rand *rand.Rand
	pair *amqptest.Pair
	ends [2]*side

	sessions []*session
	streams  []*stream
	named    map[string]*stream
	late     []func() // answers that shells haven't given yet

	workspace *amqp.Workspace // not lent at the moment
}

// side is one end with the ledger of what it may write.
type side struct {
	*amqptest.End
	ledger *ledger
}

type session struct {
	client, server *amqp.Session
	ended          bool
}

// stream is one link, seen from both ends.
type stream struct {
	name             string
	session          *session
	sender, receiver *amqp.Link
	second           bool // rcv-settle-mode
	closing          bool // one end has detached, or is about to

	sent     [][]byte
	settled  []bool
	outcomes []codec.StateKind // by message, as the sender heard
	given    []codec.StateKind // by message, as the receiver said
	byID     map[uint32]int    // deliveries at the receiver
	arrived  int
	partial  []byte
	draining bool // asked and unanswered
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, named: map[string]*stream{}}
	w.rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	config := func(name string) amqp.Config {
		c := amqp.Defaults()
		c.ContainerID = name
		c.MaxFrameSize = rapid.SampledFrom([]uint32{512, 512, 700, 4096}).Draw(t, "max-frame-size")
		c.IncomingWindow = rapid.SampledFrom([]uint32{1, 2, 3, 7, 50}).Draw(t, "incoming-window")
		c.OutputLimit = rapid.SampledFrom([]int{1, 600, 5000, 256 << 10}).Draw(t, "output-limit")
		return c
	}
	server := config("server")
	server.Lent = rapid.Bool().Draw(t, "lent")
	w.pair = amqptest.NewPair(config("client"), server)
	w.ends = [2]*side{{End: w.pair.Client}, {End: w.pair.Server}}
	for _, e := range w.ends {
		e.ledger = newLedger(w.t)
		e.ledger.drained = func(name string) { w.named[name].draining = false }
		e.Wrote = e.ledger.wrote
		e.Took = func(f amqptest.Frame) { e.ledger.took(f); e.ledger.flushed() }
		e.Handle = w.handle(e)
	}
	return w
}

func (w *world) run(steps int) {
	for range 1 + w.rand.IntN(3) {
		s := &session{}
		w.sessions = append(w.sessions, s)
	}
	for range steps {
		w.step()
	}
	w.finish()
}

// soon has f done now or some steps later.
func (w *world) soon(f func()) {
	if w.rand.IntN(3) == 0 {
		f()
		return
	}
	w.late = append(w.late, f)
}

// lend gives the server a workspace when it has none.
func (w *world) lend() {
	c := w.pair.Server.Conn
	if c.Lent() {
		return
	}
	if w.workspace == nil {
		w.workspace = new(amqp.Workspace)
	}
	c.Lend(w.workspace)
	w.workspace = nil
}

// reclaim takes it back when it can be had.
func (w *world) reclaim() {
	if got := w.pair.Server.Conn.Reclaim(); got != nil {
		w.workspace = got
	}
}

func (w *world) step() {
	w.lend()
	if w.rand.IntN(2) == 0 {
		defer w.reclaim()
	}
	switch e, n := w.ends[w.rand.IntN(2)], w.rand.IntN(1000); {
	case n < 200:
		w.pair.Write(e.End)
	case n < 450:
		w.pair.Read(e.End, 1+w.rand.IntN([]int{3, 40, 600, 5000}[w.rand.IntN(4)]))
	case n < 600:
		w.answerLate()
	case n < 620:
		w.begin()
	case n < 640:
		w.attach()
	case n < 820:
		w.send()
	case n < 960:
		w.grant()
	case n < 985:
		w.drain()
	case n < 995:
		w.detach()
	case n < 996:
		w.end()
	}
}

func (w *world) answerLate() {
	if len(w.late) > 0 {
		i := w.rand.IntN(len(w.late))
		f := w.late[i]
		w.late = append(w.late[:i], w.late[i+1:]...)
		f()
	}
}

func (w *world) begin() {
	if !w.pair.Client.Conn.Opened() {
		return
	}
	for _, s := range w.sessions {
		if s.client == nil {
			s.client = w.pair.Client.Conn.Begin()
			if s.client == nil {
				w.t.Fatal("no channel")
			}
			s.client.Context = s
			return
		}
	}
}

func (w *world) attach() {
	s := w.sessions[w.rand.IntN(len(w.sessions))]
	if s.client == nil || !s.client.Live() || s.ended || s.server == nil || !s.server.Live() || len(w.streams) > 60 {
		return
	}
	st := &stream{name: fmt.Sprintf("link-%d", len(w.streams)), session: s, second: w.rand.IntN(3) == 0, byID: map[uint32]int{}}
	terms := amqp.Terms{Source: &codec.Source{}, Target: &codec.Target{}, SndSettleMode: codec.SettleMixed}
	if st.second {
		terms.RcvSettleMode = codec.ReceiveSecond
	}
	role := codec.Role(w.rand.IntN(2) == 0)
	w.named[st.name] = st
	l := s.client.Attach(st.name, role, terms)
	if l == nil {
		w.t.Fatal("no handle")
	}
	l.Context = st
	if role == codec.RoleSender {
		st.sender = l
	} else {
		st.receiver = l
		if w.rand.IntN(2) == 0 {
			l.Grant(uint32(w.rand.IntN(5))) // before the answer
		}
	}
	w.streams = append(w.streams, st)
}

// some returns a stream that is whole at both ends; nil: there is none.
func (w *world) some() *stream {
	for range 20 {
		if len(w.streams) == 0 {
			return nil
		}
		st := w.streams[w.rand.IntN(len(w.streams))]
		if st.live() {
			return st
		}
	}
	return nil
}

func (st *stream) live() bool {
	return !st.closing && !st.session.ended && st.sender != nil && st.receiver != nil && st.sender.Live() && st.receiver.Live()
}

// send sends messages while there is credit for them, and now and then beyond.
func (w *world) send() {
	st := w.some()
	if st == nil {
		return
	}
	for n := w.rand.IntN(6); n > 0 && (st.sender.Credit() > 0 || w.rand.IntN(10) == 0); n-- {
		w.sendOne(st)
	}
}

func (w *world) sendOne(st *stream) {
	size := []int{0, 1, 30, 400, 470, 512, 1500, 9000}[w.rand.IntN(8)] + w.rand.IntN(40)
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(w.rand.Uint32())
	}
	m := amqp.Sending{Settled: w.rand.IntN(3) == 0, Ref: st, RefN: uint64(len(st.sent)), Format: uint32(len(st.sent))}
	m.HeaderSize = uint8(w.rand.IntN(len(m.Header) + 1))
	binary.BigEndian.PutUint64(m.Header[:], uint64(len(st.sent)))
	cut := w.rand.IntN(size + 1)
	m.Head, m.Body = body[:cut], body[cut:]
	if !st.sender.Send(m) {
		w.t.Fatal("send on a live link")
	}
	st.sent = append(st.sent, append(append([]byte(nil), m.Header[:m.HeaderSize]...), body...))
	st.settled = append(st.settled, m.Settled)
	st.outcomes = append(st.outcomes, codec.StateNone)
	st.given = append(st.given, codec.StateNone)
}

func (w *world) grant() {
	if st := w.some(); st != nil && !st.draining {
		st.receiver.Grant(uint32(w.rand.IntN(8)))
	}
}

func (w *world) drain() {
	if st := w.some(); st != nil && !st.draining {
		st.receiver.AskDrain()
		st.draining = true
	}
}

func (w *world) detach() {
	st := w.some()
	if st == nil {
		return
	}
	st.closing = true
	l := st.sender
	if w.rand.IntN(2) == 0 {
		l = st.receiver
	}
	var err *amqp.Error
	if w.rand.IntN(2) == 0 {
		err = amqp.Errorf(amqp.ConditionDetachForced, "by chance")
	}
	l.Detach(w.rand.IntN(2) == 0, err)
}

func (w *world) end() {
	s := w.sessions[w.rand.IntN(len(w.sessions))]
	if s.client == nil || s.server == nil || s.ended || !s.client.Live() || !s.server.Live() {
		return
	}
	s.ended = true
	if w.rand.IntN(2) == 0 {
		s.client.End(nil)
	} else {
		s.server.End(amqp.Errorf(amqp.ConditionInternalError, "by chance"))
	}
	w.sessions = append(w.sessions, &session{})
}

func (w *world) handle(e *side) func(*amqp.Event) {
	return func(ev *amqp.Event) {
		switch ev.Kind {
		case amqp.EventOpened:
			e.Conn.Accept(nil)
		case amqp.EventClosed:
			w.soon(func() { e.Conn.Close(nil) })
		case amqp.EventBegun:
			w.begun(e, ev)
		case amqp.EventEnded:
			s := ev.Session
			w.soon(func() { s.End(nil) })
		case amqp.EventAttached:
			w.attached(ev)
		case amqp.EventDetached:
			l, closed := ev.Link, ev.Closed
			l.Context.(*stream).closing = true
			w.soon(func() { l.Detach(closed, nil) })
		case amqp.EventFlow:
			w.flowed(ev)
		case amqp.EventTransfer:
			w.arrived(ev)
		case amqp.EventAborted:
			st := ev.Link.Context.(*stream)
			if !st.closing {
				w.t.Fatalf("%s: delivery %d was aborted", st.name, ev.DeliveryID)
			}
			st.partial = nil
		case amqp.EventOutcome:
			w.outcome(ev)
		default:
			w.t.Fatalf("event %d: %v", ev.Kind, ev.Err)
		}
	}
}

func (w *world) begun(e *side, ev *amqp.Event) {
	if e.End == w.pair.Client {
		return
	}
	// Sessions are begun in order; the first without a server's end is it.
	for _, s := range w.sessions {
		if s.server == nil {
			s.server = ev.Session
			s.server.Context = s
			return
		}
	}
	w.t.Fatal("a session that nobody has begun")
}

func (w *world) attached(ev *amqp.Event) {
	st := w.named[ev.Link.Name]
	if ev.Link.Context == nil {
		ev.Link.Context = st
		ev.Link.Accept(amqp.Terms{Source: ev.Attach.Source, Target: ev.Attach.Target, SndSettleMode: ev.Attach.SndSettleMode, RcvSettleMode: ev.Attach.RcvSettleMode})
	}
	if ev.Link.Sender() {
		st.sender = ev.Link
	} else {
		st.receiver = ev.Link
	}
}

func (w *world) flowed(ev *amqp.Event) {
	st := ev.Link.Context.(*stream)
	if !ev.Link.Sender() {
		return
	}
	if ev.Link.Draining() {
		w.soon(func() {
			if st.live() && st.sender.Draining() {
				st.sender.Drained()
			}
		})
	}
}

// arrived checks that the fragment continues the message that is due.
func (w *world) arrived(ev *amqp.Event) {
	st := ev.Link.Context.(*stream)
	if ev.First != (st.partial == nil) {
		w.t.Fatalf("%s: first is %v with %d octets there", st.name, ev.First, len(st.partial))
	}
	if ev.First {
		st.partial = []byte{}
	}
	st.partial = append(st.partial, ev.Payload...)
	if st.arrived >= len(st.sent) {
		w.t.Fatalf("%s: message %d arrived, %d were sent", st.name, st.arrived, len(st.sent))
	}
	if !ev.Last {
		return
	}
	n := st.arrived
	st.arrived++
	if !bytes.Equal(st.partial, st.sent[n]) {
		w.t.Fatalf("%s: message %d has %d octets, not %d, or others", st.name, n, len(st.partial), len(st.sent[n]))
	}
	if ev.Settled != st.settled[n] || ev.MessageFormat != uint32(n) {
		w.t.Fatalf("%s: message %d is settled %v, format %d", st.name, n, ev.Settled, ev.MessageFormat)
	}
	st.partial = nil
	if ev.Settled {
		return
	}
	id, session := ev.DeliveryID, ev.Session
	kind := []codec.StateKind{codec.StateAccepted, codec.StateAccepted, codec.StateReleased, codec.StateRejected, codec.StateModified}[w.rand.IntN(5)]
	st.given[n] = kind
	w.soon(func() { session.Dispose(id, codec.Outcome{Kind: kind}) })
}

func (w *world) outcome(ev *amqp.Event) {
	st, n := ev.Ref.(*stream), ev.RefN
	if ev.Link != st.sender || st.outcomes[n] != codec.StateNone || st.settled[n] {
		w.t.Fatalf("%s: a further outcome of message %d: %v", st.name, n, ev.State.Kind)
	}
	if ev.State.Kind != st.given[n] {
		w.t.Fatalf("%s: outcome of message %d is %v, not %v", st.name, n, ev.State.Kind, st.given[n])
	}
	if !ev.Settled != st.second && !st.closing {
		w.t.Fatalf("%s: outcome of message %d settled: %v", st.name, n, ev.Settled)
	}
	st.outcomes[n] = ev.State.Kind
	if !ev.Settled {
		id, session, state := ev.DeliveryID, ev.Session, ev.State.Outcome
		w.soon(func() { session.Settle(id, codec.Outcome{Kind: state.Kind}) })
	}
}

// finish lets everything come to rest and checks that nothing is missing.
func (w *world) finish() {
	w.lend()
	for range 200 {
		for len(w.late) > 0 {
			w.answerLate()
		}
		for _, st := range w.streams {
			if st.live() && !st.draining {
				st.receiver.Grant(20)
			}
		}
		w.pair.Settle(100_000)
	}
	for _, st := range w.streams {
		if !st.live() {
			continue
		}
		if st.arrived != len(st.sent) {
			w.t.Fatalf("%s: %d of %d messages arrived; credit %d and %d, queued %d", st.name, st.arrived, len(st.sent), st.sender.Credit(), st.receiver.Credit(), st.sender.Queued())
		}
		for n, kind := range st.outcomes {
			if kind == codec.StateNone && !st.settled[n] {
				w.t.Fatalf("%s: no outcome of message %d", st.name, n)
			}
		}
		if st.draining {
			w.t.Fatalf("%s: a drain is unanswered", st.name)
		}
	}
	for i, s := range w.sessions {
		for _, end := range []*amqp.Session{s.client, s.server} {
			if end == nil || s.ended {
				continue
			}
			if out, in := end.Unsettled(); out+in > 0 {
				w.t.Fatalf("session %d: %d and %d unsettled deliveries are left", i, out, in)
			}
		}
	}
	for _, e := range w.ends {
		if n := e.Conn.Queued(); n != 0 {
			w.t.Fatalf("%d octets are queued", n)
		}
	}
	w.pair.Client.Conn.Close(nil)
	for range 3 {
		w.pair.Settle(1000)
		for len(w.late) > 0 {
			w.answerLate()
		}
	}
	w.pair.Settle(1000)
	if !w.pair.Client.Conn.Done() || !w.pair.Server.Conn.Done() {
		w.t.Fatal("close isn't answered")
	}
}
