package amqp_test

import (
	"strings"
	"time"

	"github.com/letomq/leto/codec"
)

// odd is true seldom: for what no peer should do, and what ends things.
func (p *hostilePeer) odd() bool { return p.oneIn(250) }

func (p *hostilePeer) step() {
	switch n := p.upTo(100); {
	case n < 4:
		p.begin()
	case n < 12:
		p.attach()
	case n < 26:
		p.flow()
	case n < 52:
		p.transfer()
	case n < 64:
		p.dispose()
	case n < 68:
		if channel, a, ok := p.session(); ok {
			if h, ok := p.handle(a); ok {
				p.write(channel, &codec.Detach{Handle: h, Closed: p.oneIn(2)}, nil)
			}
		}
	case n == 68 && p.oneIn(3):
		if channel, _, ok := p.session(); ok {
			p.write(channel, &codec.End{}, nil)
		}
	case n == 69 && p.oneIn(20):
		p.write(0, &codec.Close{}, nil)
	case n == 70 && p.odd():
		p.held = append(p.held, p.take(40)...)
		p.hand()
	case n < 76:
		p.pass()
	case n < 86:
		p.answer()
	default:
		p.whim()
	}
}

// pass lets time pass: up to what the machine asked for, or any.
func (p *hostilePeer) pass() {
	p.lend()
	p.now = p.now.Add(time.Duration(p.upTo(900)) * time.Millisecond)
	if p.oneIn(200) {
		p.now = p.now.Add(time.Hour)
	}
	p.acts++
	next := p.conn.Tick(p.now)
	if !next.IsZero() && !next.After(p.now) {
		p.t.Fatalf("wants to be called again %v ago", p.now.Sub(next))
	}
	p.events(p.unread)
	p.output()
}

// session picks a session the peer has begun.
func (p *hostilePeer) session() (uint16, *account, bool) {
	first := uint16(p.upTo(4))
	for i := range uint16(4) {
		channel := (first + i) % 4
		if a := p.ledger.theirs[channel]; a != nil {
			return channel, a, true
		}
	}
	return uint16(p.upTo(300)), newAccount(), p.odd()
}

// handle picks a handle the peer has attached.
func (p *hostilePeer) handle(a *account) (uint32, bool) {
	first := uint32(p.upTo(6))
	for i := range uint32(6) {
		if h := (first + i) % 6; a.remote[h] != nil {
			return h, true
		}
	}
	return p.number(4), p.odd()
}

// begin answers a begin of the machine, or begins on a free channel.
func (p *hostilePeer) begin() {
	b := codec.Begin{NextOutgoingID: p.number(2), IncomingWindow: p.number(20), HandleMax: 3 + p.number(5)}
	if len(p.begins) > 0 {
		b.RemoteChannel = codec.Some(p.begins[0])
		p.begins = p.begins[1:]
	} else if !p.cfg.Server && !p.odd() {
		return // servers answer
	}
	p.hand()
	channel := uint16(0)
	for int(channel) < p.channels && p.ledger.theirs[channel] != nil && !p.odd() {
		channel++
	}
	if int(channel) < p.channels || p.odd() {
		p.nextID[channel] = p.number(2)
		p.write(channel, &b, nil)
	}
}

func (p *hostilePeer) attach() {
	p.hand()
	channel, s, ok := p.session()
	if !ok {
		return
	}
	h := uint32(p.upTo(4))
	for s.remote[h] != nil && !p.odd() {
		if h++; h > min(p.cfg.HandleMax, 5) {
			return
		}
	}
	a := codec.Attach{
		Name: string(rune('a' + p.upTo(4))), Handle: h, Role: codec.Role(p.oneIn(2)),
		SndSettleMode: []uint8{codec.SettleMixed, codec.SettleMixed, codec.SettleUnsettled, codec.SettleSettled}[p.upTo(4)], RcvSettleMode: uint8(p.upTo(2)),
		Source: &codec.Source{}, Target: &codec.Target{}, InitialDeliveryCount: codec.Some(p.number(3)),
	}
	for i, o := range p.attachs {
		if o.channel == s.channel {
			p.attachs = append(p.attachs[:i:i], p.attachs[i+1:]...)
			a.Name, a.Role = o.attach.Name, !o.attach.Role
			break
		}
	}
	if p.odd() {
		a.Name = string(make([]byte, 3000))
	}
	if p.odd() {
		a.InitialDeliveryCount.Set = false
	}
	if p.odd() {
		a.MaxMessageSize = uint64(p.number(200))
	}
	p.write(channel, &a, nil)
}

func (p *hostilePeer) flow() {
	p.hand()
	channel, s, ok := p.session()
	if !ok {
		return
	}
	f := codec.Flow{
		NextIncomingID: codec.Some(s.next), IncomingWindow: p.number(20),
		NextOutgoingID: s.peerNext, OutgoingWindow: p.number(20), Echo: p.oneIn(4),
	}
	if back := uint32(p.upTo(8)); back <= s.next && p.oneIn(3) {
		f.NextIncomingID.Value -= back // what is on its way still
	}
	if p.odd() {
		f.NextIncomingID, f.NextOutgoingID = opt(p, p.number(3)), p.number(60)
	}
	if h, ok := p.handle(s); ok {
		count := p.number(5)
		if c := s.remote[h]; c != nil && c.sender && !p.oneIn(5) {
			count = c.count - min(c.count, uint32(p.upTo(3)))
		}
		f.Handle, f.DeliveryCount, f.LinkCredit = codec.Some(h), opt(p, count), opt(p, p.number(10))
		f.Available, f.Drain = opt(p, p.number(10)), p.oneIn(3)
	}
	p.write(channel, &f, nil)
}

// opt leaves a value out at times.
func opt[T any](p *hostilePeer, v T) codec.Opt[T] {
	if p.oneIn(4) {
		return codec.Opt[T]{}
	}
	return codec.Some(v)
}

func (p *hostilePeer) transfer() {
	channel, s, ok := p.session()
	if !ok {
		return
	}
	h, ok := p.handle(s)
	c := s.remote[h]
	if !ok || c == nil && !p.odd() || c != nil && c.sender && !p.odd() {
		return
	}
	t := codec.Transfer{Handle: h, Aborted: p.oneIn(10), More: p.oneIn(3)}
	if !p.odd() && (s.room <= 0 || c != nil && !c.within && c.left <= 0) {
		return
	}
	if c == nil || !c.within || p.odd() {
		id := p.nextID[channel]
		t.DeliveryID, t.DeliveryTag = codec.Some(id), []byte{byte(id), byte(p.upTo(2))}
		t.Settled, t.Resume, t.MessageFormat = opt(p, p.oneIn(2)), p.oneIn(20), opt(p, p.number(2))
		if c != nil && c.settles != codec.SettleMixed && !p.odd() {
			t.Settled = codec.Some(c.settles == codec.SettleSettled)
		}
		p.nextID[channel] += uint32(1 + p.upTo(12)/11)
	}
	if p.odd() {
		p.nextID[channel] += 1 << 14 * uint32(p.upTo(5))
	}
	t.Batchable = p.oneIn(2)
	p.write(channel, &t, make([]byte, p.upTo(100)))
}

// dispose speaks of deliveries the machine has sent, or the peer itself.
func (p *hostilePeer) dispose() {
	channel, s, ok := p.session()
	if !ok {
		return
	}
	d := codec.Disposition{Role: codec.Role(!p.oneIn(4)), Settled: p.oneIn(2)}
	newest := s.nextDelivery
	if d.Role == codec.RoleSender {
		newest = p.nextID[channel]
	}
	d.First = newest - uint32(p.upTo(12))
	if p.oneIn(2) {
		d.Last = codec.Some(d.First + uint32(p.upTo(20)))
	}
	if p.odd() {
		d.Last = codec.Some(p.number(40))
	}
	d.State.Kind = codec.StateKind(p.upTo(int(codec.StateModified) + 1))
	if d.State.Kind == codec.StateRejected && p.oneIn(2) {
		d.State.Error = &codec.ErrorInfo{Condition: "peer:error", Description: strings.ToValidUTF8(string(p.take(20)), "?")}
	}
	if d.State.Kind == codec.StateModified {
		d.State.DeliveryFailed, d.State.UndeliverableHere = p.oneIn(2), p.oneIn(2)
	}
	p.write(channel, &d, nil)
}
