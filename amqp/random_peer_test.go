package amqp_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/amqp/amqptest"
	"github.com/letomq/leto/codec"
)

// TestRandomPeer has a peer write well-formed frames in no sensible order to a
// machine whose shell answers late, refuses, fails and ends things. Whatever
// happens, what the machine writes is in order.
func TestRandomPeer(t *testing.T) {
	rounds := uint64(3000)
	if testing.Short() {
		rounds = 300
	}
	for seed := range rounds {
		p := &randomPeer{fuzzShell: newFuzzShell(t), rand: rand.New(rand.NewPCG(seed, 2))}
		p.acts = p.act
		p.run()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type randomPeer struct {
	*fuzzShell
	rand     *rand.Rand
	late     []func()
	links    []*amqp.Link
	sessions []*amqp.Session
	buf      []byte

	mapped       bool
	handles      map[uint32]*handle
	sent, nextID uint32
}

func (p *randomPeer) run() {
	p.feed(codec.HeaderAMQP[:], 8)
	open := codec.Open{ContainerID: "random", MaxFrameSize: 512 + uint32(p.rand.IntN(600)), ChannelMax: uint16(p.rand.IntN(4)), IdleTimeOut: 2000}
	p.write(0, &open, nil)
	p.mapped, p.handles = true, map[uint32]*handle{}
	p.write(0, &codec.Begin{IncomingWindow: uint32(p.rand.IntN(20)), HandleMax: uint32(3 + p.rand.IntN(5))}, nil)
	for range 20 + p.rand.IntN(200) {
		p.step()
		if p.conn.Done() {
			break
		}
	}
	for len(p.late) > 0 {
		p.answer()
	}
	p.output()
	p.conn.Close(nil)
	p.output()
	p.conn.Tick(p.now.Add(time.Hour))
	if !p.conn.Done() {
		p.t.Error("not done an hour after close")
	}
	if n := p.conn.Queued(); n != 0 {
		p.t.Errorf("%d octets are queued at the end", n)
	}
}

func (p *randomPeer) small(n int) uint32 {
	if p.rand.IntN(30) == 0 {
		return []uint32{1<<32 - 1, 1<<32 - 2, 1 << 31, 1<<31 - 1, 5000, 70000}[p.rand.IntN(6)]
	}
	return uint32(p.rand.IntN(n))
}

func (p *randomPeer) flag(oneIn int) bool { return p.rand.IntN(oneIn) == 0 }

func opt[T any](p *randomPeer, v T) codec.Opt[T] {
	if p.flag(4) {
		return codec.Opt[T]{}
	}
	return codec.Some(v)
}

func (p *randomPeer) write(channel uint16, body amqptest.Performative, payload []byte) {
	p.buf = amqptest.AppendFrame(p.buf, codec.FrameAMQP, channel, body, payload)
	if p.flag(3) {
		return
	}
	p.feed(p.buf, 1+p.rand.IntN(300))
	p.buf = p.buf[:0]
}

// odd is true seldom: for what no peer should do, and what ends things.
func (p *randomPeer) odd() bool { return p.flag(150) }

func (p *randomPeer) step() {
	channel := uint16(0)
	if p.odd() {
		channel = uint16(p.rand.IntN(300))
	}
	switch n := p.rand.IntN(100); {
	case n < 8:
		p.write(channel, p.attach(), nil)
	case n < 22:
		p.write(channel, p.flow(), nil)
	case n < 50:
		p.transfer(channel)
	case n < 62:
		d := codec.Disposition{Role: codec.Role(p.flag(2)), First: uint32(p.rand.IntN(20)), Settled: p.flag(2)}
		if p.flag(2) {
			d.Last = codec.Some(d.First + uint32(p.rand.IntN(20)))
		}
		if p.odd() {
			d.Last = codec.Some(p.small(40))
		}
		d.State.Kind = codec.StateKind(p.rand.IntN(int(codec.StateModified) + 1))
		p.write(channel, &d, nil)
	case n < 66:
		if h, ok := p.known(); ok {
			delete(p.handles, h)
			p.write(channel, &codec.Detach{Handle: h, Closed: p.flag(2)}, nil)
		}
	case n < 68:
		if !p.mapped || p.odd() {
			p.mapped, p.sent, p.handles = true, 0, map[uint32]*handle{}
			p.write(channel, &codec.Begin{IncomingWindow: p.small(20), HandleMax: uint32(3 + p.rand.IntN(5))}, nil)
		}
	case n == 68 && p.flag(3):
		p.mapped = false
		p.write(channel, &codec.End{}, nil)
	case n == 69 && p.odd():
		p.write(0, &codec.Close{}, nil)
	case n < 75:
		p.now = p.now.Add(time.Duration(p.rand.IntN(900)) * time.Millisecond)
		p.conn.Tick(p.now)
		p.output()
	case n < 90:
		p.answer()
	default:
		p.whim()
	}
}

// handle is a link as the peer sees it.
type handle struct {
	role codec.Role
	more bool
}

func (p *randomPeer) known() (uint32, bool) {
	for h := range uint32(6) {
		if p.handles[h] != nil && p.flag(2) {
			return h, true
		}
	}
	return p.small(4), p.odd()
}

func (p *randomPeer) attach() *codec.Attach {
	h := uint32(p.rand.IntN(4))
	for p.handles[h] != nil && !p.odd() && h < 6 {
		h++
	}
	a := &codec.Attach{
		Name: string(rune('a' + p.rand.IntN(4))), Handle: h, Role: codec.Role(p.flag(2)),
		SndSettleMode: uint8(p.rand.IntN(3)), RcvSettleMode: uint8(p.rand.IntN(2)),
		Source: &codec.Source{}, Target: &codec.Target{}, InitialDeliveryCount: codec.Some(p.small(3)),
	}
	p.handles[h] = &handle{role: a.Role}
	if p.odd() {
		a.InitialDeliveryCount.Set = false
	}
	return a
}

func (p *randomPeer) flow() *codec.Flow {
	f := &codec.Flow{IncomingWindow: p.small(20), NextOutgoingID: p.sent, OutgoingWindow: p.small(20), Echo: p.flag(3)}
	if p.odd() {
		f.NextIncomingID, f.NextOutgoingID = opt(p, p.small(3)), p.small(60)
	}
	if h, ok := p.known(); ok {
		f.Handle, f.DeliveryCount, f.LinkCredit = codec.Some(h), opt(p, p.small(5)), opt(p, p.small(10))
		f.Available, f.Drain = opt(p, p.small(10)), p.flag(3)
	}
	return f
}

func (p *randomPeer) transfer(channel uint16) {
	h, ok := p.known()
	if l := p.handles[h]; !ok || l != nil && l.role == codec.RoleReceiver && !p.odd() {
		return
	}
	t := codec.Transfer{Handle: h, Aborted: p.flag(10), More: p.flag(3)}
	l := p.handles[h]
	if l == nil {
		l = &handle{}
	}
	if !l.more || p.odd() {
		t.DeliveryID, t.DeliveryTag = codec.Some(p.nextID), []byte{byte(p.nextID), byte(p.rand.IntN(2))}
		t.Settled, t.Resume, t.MessageFormat = opt(p, p.flag(2)), p.flag(20), opt(p, p.small(2))
		p.nextID += uint32(1 + p.rand.IntN(3)/2)
	}
	l.more = t.More && !t.Aborted
	p.sent++
	p.write(channel, &t, make([]byte, p.rand.IntN(100)))
}

func (p *randomPeer) answer() {
	if len(p.late) == 0 {
		return
	}
	i := p.rand.IntN(len(p.late))
	f := p.late[i]
	p.late = append(p.late[:i], p.late[i+1:]...)
	f()
	if p.flag(2) {
		p.output()
	}
}

func (p *randomPeer) soon(f func()) {
	if p.flag(2) {
		f()
		return
	}
	p.late = append(p.late, f)
}

// whim is what a shell does of itself, in time or not.
func (p *randomPeer) whim() {
	if len(p.links) == 0 || len(p.sessions) == 0 {
		return
	}
	l := p.links[p.rand.IntN(len(p.links))]
	switch p.rand.IntN(12) {
	case 0:
		l.Grant(p.small(10))
	case 1, 2, 3:
		l.Send(amqp.Sending{Body: make([]byte, p.rand.IntN(1500)), Settled: p.flag(2)})
	case 4:
		l.Drained()
	case 5:
		if p.flag(4) {
			l.Detach(p.flag(2), nil)
		}
	case 6:
		if p.flag(4) {
			l.Fail(amqp.Errorf(amqp.ConditionDetachForced, "by chance"))
		}
	case 7:
		if p.flag(10) {
			p.sessions[p.rand.IntN(len(p.sessions))].End(nil)
		}
	case 8:
		if p.flag(30) {
			p.conn.Close(amqp.Errorf(amqp.ConditionConnectionForced, "by chance"))
		}
	case 9:
		p.sessions[p.rand.IntN(len(p.sessions))].Dispose(p.small(40), codec.Outcome{Kind: codec.StateReleased})
	case 10:
		p.sessions[p.rand.IntN(len(p.sessions))].Settle(p.small(20), codec.Outcome{Kind: codec.StateAccepted})
	case 11:
		l.SetAvailable(p.small(10))
	}
}

func (p *randomPeer) act(ev *amqp.Event) {
	conn, session, link, closed, id := p.conn, ev.Session, ev.Link, ev.Closed, ev.DeliveryID
	switch ev.Kind {
	case amqp.EventOpened:
		conn.Accept(nil)
	case amqp.EventClosed:
		p.soon(func() { conn.Close(nil) })
	case amqp.EventBegun:
		p.sessions = append(p.sessions, session)
	case amqp.EventEnded:
		p.soon(func() { session.End(nil) })
	case amqp.EventAttached:
		p.links = append(p.links, link)
		if p.flag(8) {
			link.Refuse(amqp.Errorf(amqp.ConditionNotFound, "by chance"))
			return
		}
		link.Accept(amqp.Terms{Source: ev.Attach.Source, Target: ev.Attach.Target, SndSettleMode: ev.Attach.SndSettleMode, RcvSettleMode: ev.Attach.RcvSettleMode})
		p.soon(func() { link.Grant(20) })
	case amqp.EventDetached:
		p.soon(func() { link.Detach(closed, nil) })
	case amqp.EventTransfer:
		if ev.Last {
			p.soon(func() { session.Dispose(id, codec.Outcome{Kind: codec.StateAccepted}) })
		}
	case amqp.EventOutcome:
		p.soon(func() { session.Settle(id, codec.Outcome{Kind: codec.StateAccepted}) })
	}
}
