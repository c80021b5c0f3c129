package amqp

import "github.com/letomq/leto/codec"

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
		case !w.settled:
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
	s.settling.add(s, codec.RoleReceiver, id, outcome, settle)
	s.wantFlush()
}

// Settle settles an outgoing delivery whose outcome the receiver left for us
// to settle, with the outcome in force.
func (s *Session) Settle(id uint32, outcome codec.Outcome) {
	if s.endSent || !s.outgoing.remove(id) {
		return
	}
	s.settled.add(s, codec.RoleSender, id, outcome, true)
	s.wantFlush()
}

// ranges joins dispositions of neighbouring deliveries with the same outcome
// into one frame.
type ranges struct {
	open    bool
	first   uint32
	last    uint32
	settled bool
	outcome codec.Outcome
}

func (r *ranges) add(s *Session, role codec.Role, id uint32, outcome codec.Outcome, settled bool) {
	if r.open && id == r.last+1 && r.settled == settled && uniform(&outcome) && alike(&r.outcome, &outcome) {
		r.last = id
		return
	}
	r.flush(s, role)
	*r = ranges{open: true, first: id, last: id, settled: settled, outcome: outcome}
	if !uniform(&outcome) {
		r.flush(s, role)
	}
}

// uniform outcomes carry nothing of their own: many may share a frame.
func uniform(o *codec.Outcome) bool {
	switch o.Kind {
	case codec.StateAccepted, codec.StateReleased:
		return true
	case codec.StateRejected:
		return o.Error == nil
	case codec.StateModified:
		return o.Annotations == nil
	}
	return false
}

// alike compares two outcomes that are uniform.
func alike(a, b *codec.Outcome) bool {
	return a.Kind == b.Kind && a.DeliveryFailed == b.DeliveryFailed && a.UndeliverableHere == b.UndeliverableHere
}

func (r *ranges) flush(s *Session, role codec.Role) {
	if !r.open {
		return
	}
	r.open = false
	p := &s.conn.outDisposition
	*p = codec.Disposition{Role: role, First: r.first, Last: codec.Some(r.last), Settled: r.settled}
	p.State.Outcome = r.outcome
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
