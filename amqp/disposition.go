package amqp

import (
	"bytes"

	"github.com/letomq/leto/codec"
)

// sweep works through the range of a disposition, one event at a time.
type sweep struct {
	session *Session
	next    uint32
	last    uint32
	state   *codec.DeliveryState
	settled bool
}

func (s *Session) onDisposition(p *codec.Disposition) {
	last := p.Last.Or(p.First)
	if before(last, p.First) {
		// Longer than half the number space, or backwards.
		s.fail(ConditionInvalidField, "disposition: range %d…%d", p.First, last)
		return
	}
	if p.Role == codec.RoleSender {
		s.senderDisposed(p.First, last, p)
		return
	}
	if !p.Settled && (p.State.Kind == codec.StateNone || p.State.Kind == codec.StateReceived) {
		return // it changes nothing, however many deliveries it speaks of
	}
	s.conn.sweep = sweep{session: s, next: p.First, last: last, state: &p.State, settled: p.Settled}
}

// sweepNext returns the event of the next outgoing delivery a disposition
// speaks of. Ids that are unknown or settled are passed over [2.7.6].
func (c *Conn) sweepNext() *Event {
	for c.sweep.session != nil {
		w := &c.sweep
		s := w.session
		id, ok := s.outgoing.next(w.next, w.last)
		if !ok {
			*w = sweep{}
			return nil
		}
		w.next = id + 1
		if id == w.last {
			w.session = nil
		}
		d, _ := s.outgoing.get(id)
		if w.settled {
			s.outgoing.remove(id)
		}
		switch {
		case d.terminal || d.link.dropped:
			continue // a terminal state is final: only the settlement was due
		case !w.settled && !w.state.Transactional: // what a transaction is to bring may still change
			d.terminal = true
			s.outgoing.set(id, d)
		}
		ev := c.emit(EventOutcome)
		ev.Session, ev.Link, ev.DeliveryID = s, d.link, id
		ev.Ref, ev.RefN = d.ref, d.refN
		ev.State, ev.Settled = w.state, w.settled
		c.taken = 1
		return ev
	}
	return nil
}

// senderDisposed: the sending peer settles deliveries we gave an outcome.
func (s *Session) senderDisposed(first, last uint32, p *codec.Disposition) {
	if !p.Settled {
		return
	}
	for id, ok := s.incoming.next(first, last); ok; id, ok = s.incoming.next(first, last) {
		s.incoming.remove(id)
		if id == last {
			return
		}
		first = id + 1
	}
}

// Dispose gives an incoming delivery its outcome. On a link that settles
// second the delivery stays until the sender has settled it [2.6.12].
func (s *Session) Dispose(id uint32, outcome codec.Outcome) {
	s.dispose(id, codec.DeliveryState{Outcome: outcome})
}

// DisposeIn is Dispose for a delivery posted under a transaction: the outcome
// is the one it will have when that commits [4.4.1]. txn must stay as it is.
func (s *Session) DisposeIn(txn []byte, id uint32, outcome codec.Outcome) {
	s.dispose(id, codec.DeliveryState{Transactional: true, TxnID: txn, Outcome: outcome})
}

func (s *Session) dispose(id uint32, state codec.DeliveryState) {
	d, ok := s.incoming.get(id)
	if !ok || d.terminal || s.endSent {
		return
	}
	settle := d.link.rcvSettleMode != codec.ReceiveSecond || d.link.detachReceived
	if settle {
		s.incoming.remove(id)
	} else {
		d.terminal = true
		s.incoming.set(id, d)
	}
	s.settling.add(s, codec.RoleReceiver, id, &state, settle)
	s.wantFlush()
}

// Settle settles an outgoing delivery whose outcome the receiver left for us
// to settle, with the outcome in force.
func (s *Session) Settle(id uint32, outcome codec.Outcome) {
	if s.endSent || !s.outgoing.remove(id) {
		return
	}
	s.settled.add(s, codec.RoleSender, id, &codec.DeliveryState{Outcome: outcome}, true)
	s.wantFlush()
}

// ranges joins dispositions of neighbouring deliveries with the same outcome
// into one frame.
type ranges struct {
	open    bool
	first   uint32
	last    uint32
	settled bool
	state   codec.DeliveryState
}

func (r *ranges) add(s *Session, role codec.Role, id uint32, state *codec.DeliveryState, settled bool) {
	if r.open && id == r.last+1 && r.settled == settled && uniform(&state.Outcome) && alike(&r.state, state) {
		r.last = id
		return
	}
	r.flush(s, role)
	*r = ranges{open: true, first: id, last: id, settled: settled, state: *state}
	if !uniform(&state.Outcome) {
		r.flush(s, role)
	}
}

// uniform outcomes carry nothing of their own: many may share a frame.
func uniform(o *codec.Outcome) bool {
	switch o.Kind {
	case codec.StateNone, codec.StateAccepted, codec.StateReleased:
		return true
	case codec.StateRejected:
		return o.Error == nil
	case codec.StateModified:
		return o.Annotations == nil
	}
	return false
}

// alike compares two states whose outcomes are uniform.
func alike(a, b *codec.DeliveryState) bool {
	return a.Kind == b.Kind && a.DeliveryFailed == b.DeliveryFailed && a.UndeliverableHere == b.UndeliverableHere &&
		a.Transactional == b.Transactional && bytes.Equal(a.TxnID, b.TxnID)
}

func (r *ranges) flush(s *Session, role codec.Role) {
	if !r.open {
		return
	}
	r.open = false
	p := &s.conn.outDisposition
	*p = codec.Disposition{Role: role, First: r.first, Last: codec.Some(r.last), Settled: r.settled, State: r.state}
	s.conn.write(s.channel, p)
}

// forgetDeliveries drops what is unsettled on a link that is gone: later
// dispositions of it pass over.
func (s *Session) forgetDeliveries(l *Link) {
	if l.role == codec.RoleSender {
		s.outgoing.removeIf(func(d sent) bool { return d.link == l })
	} else {
		s.incoming.removeIf(func(d received) bool { return d.link == l })
	}
}
