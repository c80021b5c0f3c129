package server

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// handle acts on one event of the machine, under the guard.
func (c *connection) handle(now time.Time, ev *amqp.Event) {
	switch ev.Kind {
	case amqp.EventTransfer, amqp.EventAborted:
		if a := attachmentOf(ev.Link); a != nil && !a.gone {
			if ev.Last || len(ev.Payload) >= leastMoved {
				c.moved++
			}
			switch {
			case a.producer != nil:
				a.producer.receive(now, ev)
			case a.control != nil:
				a.control.receive(now, ev)
			case a.node != nil:
				a.node.receive(ev)
			}
		}
	case amqp.EventOutcome:
		// On a link that is gone the delivery went back to its queue: to settle it would say that the outcome holds.
		if a := attachmentOf(ev.Link); a != nil && !a.gone {
			switch {
			case a.consumer != nil:
				if k := ev.State.Outcome.Kind; k == codec.StateAccepted || k == codec.StateRejected {
					c.moved++
				}
				a.consumer.outcome(ev)
			case !ev.Settled:
				ev.Session.Settle(ev.DeliveryID, ev.State.Outcome)
			}
		}
	case amqp.EventFlow:
		if a := attachmentOf(ev.Link); a != nil && !a.gone {
			switch {
			case a.consumer != nil:
				a.consumer.acquireUnder(ev.TxnID)
				a.consumer.flowed()
			case a.producer != nil:
				a.producer.topUp() // it may have counted deliveries that never come
			case a.node != nil && ev.Link.Sender():
				a.node.flowed()
			}
		}
	case amqp.EventAttached:
		c.attached(ev)
	case amqp.EventDetached:
		c.detached(ev)
	case amqp.EventLinkFailed:
		c.failed("link", ev)
		c.doom(ev.State, ev.Err)
		if a := attachmentOf(ev.Link); a != nil {
			a.release(func(consumer *engine.Consumer) { consumer.Close(engine.ClosingClean) })
		}
	case amqp.EventBegun:
		if !c.ended {
			c.sessions++
			if n := c.server.count.sessions.Add(1); c.server.cfg.MaxLinks > 0 && n > c.server.cfg.MaxLinks {
				err := amqp.Errorf(amqp.ConditionResourceLimitExceeded, "limit of %d sessions is reached", c.server.cfg.MaxLinks)
				ev.Session.End(err)
				c.endSession(ev.Session, false)
				if c.refusals++; c.refusals > refusedSessions {
					c.machine.Close(err)
					c.endLinks(engine.ClosingLost)
				}
			}
		}
	case amqp.EventEnded:
		c.endSession(ev.Session, true)
	case amqp.EventSessionFailed:
		c.failed("session", ev)
		c.endSession(ev.Session, false)
	case amqp.EventOpened:
		c.opened()
	case amqp.EventClosed:
		if c.ended {
			break // our own close says why, and stands behind what is being committed
		}
		c.settleDirty()
		waiting := c.allLinks()
		c.endLinks(engine.ClosingClean)
		after(waiting, func() { c.machine.Close(nil) })
	case amqp.EventFailed:
		c.failed("connection", ev)
		if ev.Err.Condition == amqp.ConditionUnauthorizedAccess && !c.hasOpened {
			c.server.count.loginsFailed.Add(1)
		}
		c.cause = ev.Err
		c.nextTick = c.machine.Tick(now) // the peer's close is due sooner than anything before
		c.endLinks(engine.ClosingLost)
	}
}

// opened answers the peer's open.
func (c *connection) opened() {
	c.nextTick = time.Time{} // the peer's idle time-out is known now
	c.hasOpened = true
	c.server.opened(c)
	if c.refused {
		c.server.count.connectionsRefused.Add(1)
		c.machine.Refuse(amqp.Errorf(amqp.ConditionResourceLimitExceeded, "limit of %d connections is reached", c.server.cfg.MaxConnections))
		return
	}
	// Of what the peer says only this is used later; thousands may each say 16 KiB.
	r := &c.machine.Remote
	r.Hostname, r.Properties = "", nil
	r.OutgoingLocales, r.IncomingLocales, r.OfferedCapabilities, r.DesiredCapabilities = nil, nil, nil, nil
	if n := len(r.ContainerID); n > maxContainerID {
		r.ContainerID = ""
		c.machine.Refuse(amqp.Errorf(amqp.ConditionInvalidField, "open: container-id of %d bytes exceeds %d", n, maxContainerID))
		return
	}
	c.machine.Accept(nil)
	c.note(c.server.cfg.Log.Debug()).Str("container", c.machine.Remote.ContainerID).Str("user", c.machine.Identity).Msg("connection opened")
}

func (c *connection) detached(ev *amqp.Event) {
	link, closed := ev.Link, ev.Closed
	a := attachmentOf(link)
	if a == nil {
		link.Detach(closed, nil)
		return
	}
	a.release(func(consumer *engine.Consumer) { consumer.CloseLink(closed) })
	// What the peer sent before its detach gets its outcome before ours.
	after([]*attachment{a}, func() { link.Detach(closed, nil) })
}

func (c *connection) endSession(s *amqp.Session, answer bool) {
	waiting := linksOf(s)
	for _, a := range waiting {
		a.release(func(consumer *engine.Consumer) { consumer.Close(engine.ClosingClean) })
	}
	if !c.ended {
		c.sessions--
		c.server.count.sessions.Add(-1)
	}
	if answer {
		after(waiting, func() { s.End(nil) })
	}
}

func (c *connection) failed(scope string, ev *amqp.Event) {
	c.server.count.protocolErrors.Add(1)
	c.report(zerolog.InfoLevel, "peer's fault", func(line *zerolog.Event) { line.Str("scope", scope).Str("error", brief(ev.Err.Error())) })
}

// open acts on letters, under the guard.
func (c *connection) open(now time.Time, mail *letters) {
	for i := range mail.confirms {
		m := &mail.confirms[i]
		switch {
		case m.producer != nil:
			m.producer.confirmed(m.ticket, m.refusal)
		case m.control != nil:
			m.control.confirmed(m.ticket, m.refusal)
		default:
			m.consumer.settledLater(m.ticket, m.unknown)
		}
	}
	for i := range mail.deliveries {
		p := &mail.deliveries[i]
		if p.to.gone {
			continue
		}
		if p.drained {
			p.to.drained()
		} else {
			p.to.send(now, &p.delivery)
		}
	}
	for i := range mail.notices {
		c.notice(&mail.notices[i])
	}
}

func (c *connection) notice(n *notice) {
	switch n.kind {
	case noticeRelief:
		for a := range c.links {
			if a.producer != nil && a.producer.starved {
				a.producer.topUp()
			}
		}
	case noticeShutdown:
		c.settleDirty()
		waiting := c.allLinks()
		c.endLinks(engine.ClosingClean)
		after(waiting, func() {
			c.machine.Close(amqp.Errorf(amqp.ConditionConnectionForced, "broker %s is shutting down", c.server.cfg.Name))
			c.nextTick = c.machine.Tick(c.server.cfg.Now())
		})
	case noticeEnded:
		if a := n.consumer.attachment; !a.gone {
			a.release(func(consumer *engine.Consumer) { consumer.Close(engine.ClosingClean) })
			a.link.Detach(true, toWire(n.err))
		}
	case noticeStolen:
		n.link.stolen(engine.ClosingLost)
	case noticeEvicted:
		n.link.producer.evicted()
	case noticeNode:
		if !n.link.gone && n.link.node != nil { // nil: the node sent, and then refused the link
			n.link.node.flowed()
		}
	}
}
