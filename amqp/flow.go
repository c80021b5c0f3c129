package amqp

import "github.com/letomq/leto/codec"

func (s *Session) onFlow(p *codec.Flow) {
	if violation := s.window.peerFlowed(p); violation != "" {
		s.fail(ConditionWindowViolation, "flow: %s", violation)
		return
	}
	s.wantPump()
	if !p.Handle.Set {
		if p.DeliveryCount.Set || p.LinkCredit.Set || p.Available.Set || p.Drain {
			s.fail(ConditionInvalidField, "flow: link state without a handle")
			return
		}
		if p.Echo {
			s.flowDue = true
			s.wantFlush()
		}
		return
	}
	l := s.byRemoteHandle(p.Handle.Value)
	if l == nil {
		s.fail(ConditionUnattachedHandle, "flow: handle %d isn't attached", p.Handle.Value)
		return
	}
	if l.detachSent {
		return // [2.6.6] on its way before the peer saw our detach
	}
	if l.role == codec.RoleSender {
		l.receiverFlowed(p)
	} else {
		l.senderFlowed(p)
	}
	// A drain has its own answer, and drain with credit left would read as done.
	if p.Echo && !(l.drain && l.role == codec.RoleSender) {
		l.oweFlow()
	}
}

// receiverFlowed applies the receiver's credit [2.6.7].
func (l *Link) receiverFlowed(p *codec.Flow) {
	if p.LinkCredit.Set {
		base := p.DeliveryCount.Or(l.initialCount)
		// A receiver that counts deliveries we haven't sent is taken as up to date.
		inFlight := max(ahead(l.deliveryCount, base), 0)
		l.credit = max(int64(p.LinkCredit.Value)-int64(inFlight), 0)
	}
	l.drain = p.Drain
	if l.queue.len() > 0 {
		l.startSending()
	}
	ev := l.emit(EventFlow)
	if txn, ok := p.Properties.Get("txn-id"); ok {
		ev.TxnID, _ = txn.([]byte)
	}
}

// senderFlowed adopts the sender's count, unless a delivery is on its way: some
// senders count it at its last frame only.
func (l *Link) senderFlowed(p *codec.Flow) {
	// It may lie behind ours by the deliveries it has aborted, not more: going
	// back is credit.
	if back := ahead(l.deliveryCount, p.DeliveryCount.Value); p.DeliveryCount.Set && !l.in.active && back <= int32(l.aborted) {
		l.deliveryCount = p.DeliveryCount.Value
		l.aborted = 0
		if ahead(l.limit, l.deliveryCount) < 0 {
			l.limit = l.deliveryCount
		}
	}
	l.peerAvailable = p.Available.Or(0)
	l.emit(EventFlow)
}

// Credit returns how many deliveries the link may still send (sender), or the
// peer may still send us (receiver). Deliveries queued by Send are taken off;
// below zero when the receiver has withdrawn credit they were meant for.
func (l *Link) Credit() int64 {
	if l.role == codec.RoleSender {
		return l.credit - int64(l.Queued())
	}
	return int64(ahead(l.limit, l.deliveryCount))
}

// Draining reports that the receiver asked to use up its credit now [2.6.7].
func (l *Link) Draining() bool { return l.drain }

// Drained answers a drain once everything that could be sent was given to
// Send: the rest of the credit is used up. Without a drain asked for it does nothing.
func (l *Link) Drained() {
	if !l.drain || !l.live() {
		return
	}
	l.drainedBehind = true
	l.finishDrain()
}

// finishDrain writes the answer behind the transfers it follows.
func (l *Link) finishDrain() {
	if !l.drainedBehind || l.outStarted || (l.queue.len() > 0 && l.credit > 0) {
		return
	}
	l.drainedBehind = false
	if !l.drain {
		return
	}
	l.deliveryCount += uint32(l.credit)
	l.credit = 0
	l.oweFlow()
}

// Grant lets the peer send up to credit deliveries from now on. What was
// granted before isn't taken back: a smaller credit only ends up in the flow,
// and deliveries already under way are accepted.
func (l *Link) Grant(credit uint32) {
	if !l.live() || l.role != codec.RoleReceiver {
		return
	}
	granted := l.deliveryCount + min(credit, 1<<31-1) // as far as serial numbers reach
	if ahead(granted, l.limit) > 0 {
		l.limit = granted
	}
	l.announced = granted
	l.oweFlow()
}

// SetAvailable tells the receiver, with the next flow, how many deliveries wait for credit.
func (l *Link) SetAvailable(n uint32) { l.available = n }

// oweFlow has a flow with the link's state written at the next flush.
func (l *Link) oweFlow() {
	if !l.flowOwed {
		l.flowOwed = true
		l.session.flowing = append(l.session.flowing, l)
		l.session.wantFlush()
	}
}

// sessionFlow returns a flow with the session's state filled in.
func (s *Session) sessionFlow() codec.Flow {
	s.window.incoming = s.conn.cfg.IncomingWindow
	s.flowDue = false
	return codec.Flow{
		NextIncomingID: codec.Opt[uint32]{Value: s.window.nextIncoming, Set: s.mapped},
		IncomingWindow: s.window.incoming,
		NextOutgoingID: s.window.nextOutgoing,
		OutgoingWindow: announcedOutgoing,
	}
}

func (l *Link) writeFlow() {
	l.flowOwed = false
	if !l.live() {
		return
	}
	f := l.session.sessionFlow()
	f.Handle = codec.Some(l.handle)
	f.DeliveryCount = codec.Opt[uint32]{Value: l.deliveryCount, Set: l.attached || l.role == codec.RoleSender}
	if l.role == codec.RoleSender {
		f.LinkCredit = codec.Some(uint32(min(l.credit, 1<<32-1)))
		f.Available = codec.Some(l.available)
		f.Drain = l.drain
	} else {
		f.LinkCredit = codec.Some(uint32(max(ahead(l.announced, l.deliveryCount), 0)))
	}
	l.session.conn.outFlow = f
	l.session.conn.write(l.session.channel, &l.session.conn.outFlow)
}

// wantFlush has the next Output write what the session owes.
func (s *Session) wantFlush() {
	if !s.flushDue {
		s.flushDue = true
		s.conn.due = append(s.conn.due, s)
	}
}

// flush writes outcomes and flows. Outcomes stand before any flow that widens
// the credit they made room for.
func (s *Session) flush() {
	if s.endSent || !s.begun {
		return
	}
	s.settling.flush(s, codec.RoleReceiver)
	s.settled.flush(s, codec.RoleSender)
	for _, l := range s.flowing {
		l.writeFlow()
	}
	clear(s.flowing)
	s.flowing = s.flowing[:0]
	if s.flowDue {
		s.conn.outFlow = s.sessionFlow()
		s.conn.write(s.channel, &s.conn.outFlow)
	}
}

// WriteOutcomes writes the outcomes and flows that are owed by now, so that
// they stand before what is written next on whatever session.
func (c *Conn) WriteOutcomes() {
	for _, s := range c.due {
		s.flushDue = false
		s.flush()
	}
	clear(c.due)
	c.due = c.due[:0]
}

// flushSessions writes what the sessions owe, then transfers up to the output
// limit; sessions take turns.
func (c *Conn) flushSessions() {
	for len(c.due) > 0 || len(c.pumping) > 0 {
		c.WriteOutcomes()
		if len(c.pumping) == 0 || len(c.out) >= c.cfg.OutputLimit {
			return
		}
		s := c.pumping[0]
		c.pumping = append(c.pumping[:0], c.pumping[1:]...)
		s.pumpDue = false
		s.pump(pumpQuantum)
	}
}
