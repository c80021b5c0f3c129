package amqp_test

import (
	"fmt"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// answer does something the shell has put off.
func (p *hostilePeer) answer() {
	if len(p.late) == 0 {
		return
	}
	p.lend()
	i := p.upTo(min(len(p.late), 256))
	f := p.late[i]
	p.late = append(p.late[:i], p.late[i+1:]...)
	p.acts++
	f()
	if !p.oneIn(2) {
		p.output()
	}
}

func (p *hostilePeer) soon(f func()) {
	if p.oneIn(2) {
		p.late = append(p.late, f)
		return
	}
	f()
}

// whim is what a shell does of itself, in time or not.
func (p *hostilePeer) whim() {
	p.lend()
	p.acts++
	defer func() {
		p.events(p.unread)
		if !p.oneIn(2) {
			p.output()
		}
	}()
	if len(p.sessions) == 0 || p.oneIn(30) {
		p.open()
		return
	}
	s := p.sessions[p.upTo(min(len(p.sessions), 256))]
	if len(p.links) == 0 || p.oneIn(12) {
		t := amqp.Terms{Source: &codec.Source{}, Target: &codec.Target{}, SndSettleMode: uint8(p.upTo(3)), RcvSettleMode: uint8(p.upTo(2))}
		p.attached++
		if l := s.Attach(fmt.Sprintf("ours-%d", p.attached), codec.Role(p.oneIn(2)), t); l != nil {
			p.links = append(p.links, l)
		}
		return
	}
	l := p.links[p.upTo(min(len(p.links), 256))]
	switch p.upTo(12) {
	case 0, 1, 2, 3:
		for _, sender := range p.links { // the first one that may, at most
			if sender.Sender() && sender.Live() && sender.Credit() > 0 && !p.oneIn(4) {
				l = sender
				break
			}
		}
		l.Send(amqp.Sending{Body: make([]byte, p.upTo(1500)), Settled: p.oneIn(2)})
	case 4:
		p.grant(l, p.number(10))
	case 5:
		l.Drained()
	case 6:
		for _, sender := range p.links { // in the midst of a delivery, at best
			if p.conn.Queued() > 0 && sender.Sender() && sender.Live() && p.oneIn(2) {
				l = sender
				break
			}
		}
		if p.oneIn(4) || p.conn.Queued() > 0 {
			l.Detach(p.oneIn(2), nil)
		}
	case 7:
		if p.oneIn(4) {
			l.Fail(amqp.Errorf(amqp.ConditionDetachForced, "by chance"))
		}
	case 8:
		if p.oneIn(10) {
			s.End(nil)
		}
	case 9:
		if p.oneIn(30) {
			p.conn.Close(amqp.Errorf(amqp.ConditionConnectionForced, "by chance"))
		}
	case 10:
		if p.oneIn(2) {
			s.Dispose(p.number(40), codec.Outcome{Kind: codec.StateReleased})
		} else {
			s.Settle(p.number(20), codec.Outcome{Kind: codec.StateAccepted})
		}
	case 11:
		l.SetAvailable(p.number(10))
		l.TakeBack()
	}
}

// open begins a session from the machine's end.
func (p *hostilePeer) open() {
	if s := p.conn.Begin(); s != nil {
		p.sessions = append(p.sessions, s)
	}
}

func (p *hostilePeer) grant(l *amqp.Link, n uint32) {
	if !l.Sender() {
		p.granted[l] = max(p.granted[l], int64(min(n, 1<<31-1)))
	}
	l.Grant(n)
}

func (p *hostilePeer) act(ev *amqp.Event) {
	conn, session, link, closed, id := p.conn, ev.Session, ev.Link, ev.Closed, ev.DeliveryID
	switch ev.Kind {
	case amqp.EventOpened:
		conn.Accept(nil)
		if !p.cfg.Server {
			p.open()
		}
	case amqp.EventClosed:
		p.soon(func() { conn.Close(nil) })
	case amqp.EventBegun:
		if !p.cfg.Server {
			break // it is there since Begin
		}
		p.sessions = append(p.sessions, session)
	case amqp.EventEnded:
		p.soon(func() { session.End(nil) })
	case amqp.EventAttached:
		p.attachedBy(ev)
	case amqp.EventDetached:
		p.soon(func() { link.Detach(closed, nil) })
	case amqp.EventTransfer, amqp.EventAborted:
		p.received(ev)
		if ev.Kind == amqp.EventTransfer && ev.Last {
			p.soon(func() {
				session.Dispose(id, codec.Outcome{Kind: codec.StateAccepted})
				p.grant(link, 5)
			})
		}
	case amqp.EventOutcome:
		if ev.Settled {
			break
		}
		p.soon(func() { session.Settle(id, codec.Outcome{Kind: codec.StateAccepted}) })
	case amqp.EventFailed, amqp.EventSessionFailed, amqp.EventLinkFailed:
		if ev.Err == nil || ev.Err.Condition == "" {
			p.t.Fatalf("event %d says nothing", ev.Kind)
		}
		switch ev.Kind {
		case amqp.EventFailed:
			p.failed = ev.Err
			p.reached[string(ev.Err.Error())]++
		case amqp.EventSessionFailed:
			p.ending[session.Channel()] = ev.Err
			p.reached[string(ev.Err.Error())]++
		default:
			p.failing++
			p.reached[string(ev.Err.Error())]++
		}
	}
}

func (p *hostilePeer) attachedBy(ev *amqp.Event) {
	link := ev.Link
	for _, l := range p.links {
		if l == link {
			p.soon(func() { p.grant(link, 20) })
			return
		}
	}
	p.links = append(p.links, link)
	if p.oneIn(8) {
		link.Refuse(amqp.Errorf(amqp.ConditionNotFound, "by chance"))
		return
	}
	link.Accept(amqp.Terms{Source: ev.Attach.Source, Target: ev.Attach.Target, SndSettleMode: ev.Attach.SndSettleMode, RcvSettleMode: ev.Attach.RcvSettleMode})
	p.soon(func() { p.grant(link, 20) })
}

// received counts what the machine has let through.
func (p *hostilePeer) received(ev *amqp.Event) {
	if ev.First {
		p.granted[ev.Link]--
	}
	if ev.Kind == amqp.EventAborted {
		p.granted[ev.Link]++ // the sender may count it or not
	}
	if p.granted[ev.Link] < 0 {
		p.t.Fatalf("link %q took a delivery beyond its credit", ev.Link.Name)
	}
	if n := p.frames[ev.Session.Channel()]; n != nil {
		n.came++
	}
}
