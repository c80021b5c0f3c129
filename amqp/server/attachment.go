package server

import (
	"maps"
	"slices"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// attachment is what a link is attached to: a producer, a consumer, a coordinator or a node.
// It belongs to its connection's guard.
type attachment struct {
	conn *connection
	link *amqp.Link
	key  linkKey

	producer *incoming
	consumer *outgoing
	control  *coordinator
	node     *NodeLink

	cost    int64  // bytes noted with the server, while it isn't gone
	pending int    // publishes or settlements whose commit is awaited
	then    func() // once pending is 0
	gone    bool

	before, behind *attachment // of the same session, whose Context is the first one
}

func attachmentOf(l *amqp.Link) *attachment {
	a, _ := l.Context.(*attachment)
	return a
}

// settled notes that one awaited commit holds.
func (a *attachment) settled() {
	a.pending--
	if a.pending == 0 && a.then != nil {
		then := a.then
		a.then = nil
		then()
	}
}

// attached decides over the peer's attach.
func (c *connection) attached(ev *amqp.Event) {
	l := ev.Link
	a := &attachment{conn: c, link: l, key: linkKey{
		identity: c.machine.Identity, container: c.machine.Remote.ContainerID, name: l.Name, sender: l.Sender(),
	}}
	terms, err := a.bind(ev.Attach)
	if err != nil {
		c.server.count.linksRefused.Add(1)
		c.note(c.server.cfg.Log.Debug()).Str("link", l.Name).Err(err).Msg("link refused")
		l.Refuse(err)
		return
	}
	l.Context = a
	if c.links == nil {
		c.links = make(map[*attachment]struct{})
	}
	c.links[a] = struct{}{}
	a.join(l.Session())
	c.server.count.links.Add(1)
	a.cost = costOf(ev.Attach)
	c.server.count.linkBytes.Add(a.cost)
	if victim := c.server.names.claim(a); victim != nil {
		c.report(zerolog.InfoLevel, "link taken over by a second attach", func(line *zerolog.Event) {
			line.Str("link", brief(a.key.name)).Str("container", brief(a.key.container)).Str("from", victim.conn.id)
		})
		if victim.conn == c {
			victim.stolen(engine.ClosingClean)
		} else {
			victim.conn.mail.notify(notice{kind: noticeStolen, link: victim})
		}
	}
	l.Accept(terms)
	switch {
	case a.producer != nil:
		a.producer.topUp()
	case a.control != nil:
		a.control.topUp()
	case a.node != nil:
		a.node.opened()
	}
}

// bind finds or makes what the link wants to be attached to.
func (a *attachment) bind(at *codec.Attach) (amqp.Terms, *amqp.Error) {
	terms := amqp.Terms{
		Source: at.Source, Target: at.Target,
		SndSettleMode: at.SndSettleMode, RcvSettleMode: at.RcvSettleMode,
	}
	if at.Properties != nil {
		terms.Properties = codec.Map{} // some clients can't take a null where they sent a map
	}
	var err *amqp.Error
	switch {
	case a.conn.ended: // what was decided still goes out, and nothing new begins
		err = amqp.Errorf(amqp.ConditionConnectionForced, "broker %s is shutting down", a.conn.server.cfg.Name)
	case a.conn.server.linksFull():
		err = amqp.Errorf(amqp.ConditionResourceLimitExceeded, "limit of %d links is reached", a.conn.server.cfg.MaxLinks)
	case a.conn.server.linkBytesFull(costOf(at)):
		err = amqp.Errorf(amqp.ConditionResourceLimitExceeded, "limit of %d bytes for links is reached", a.conn.server.cfg.MaxLinkBytes)
	case at.Coordinator != nil:
		err = a.bindCoordinator(at, &terms)
	case a.link.Sender():
		err = a.bindConsumer(at, &terms)
	default:
		err = a.bindProducer(at, &terms)
	}
	return terms, err
}

// chargeDetached notes the links that are gone but for the peer's detach. A peer that answers none is closed where
// memory for links is short.
func (c *connection) chargeDetached() {
	now := c.machine.Detaching()
	if now == c.unanswered {
		return
	}
	grown := now - c.unanswered
	c.unanswered = now
	c.server.count.linkBytes.Add(int64(grown) * detachedCost)
	if grown > 0 && now > detachedAtLeast && c.server.linkBytesFull(0) {
		c.machine.Close(amqp.Errorf(amqp.ConditionResourceLimitExceeded, "limit of %d bytes for links is reached, and %d detaches aren't answered", c.server.cfg.MaxLinkBytes, now))
		c.endLinks(engine.ClosingLost)
	}
}

// costOf returns about how many bytes a link takes.
func costOf(at *codec.Attach) int64 {
	cost := linkCost + int64(len(at.Name))
	if at.Source != nil && at.Source.Dynamic || at.Target != nil && at.Target.Dynamic {
		cost += nodeCost
	}
	return cost
}

// release gives up what the link is attached to.
func (a *attachment) release(end func(*engine.Consumer)) {
	if a.gone {
		return
	}
	a.gone = true
	switch {
	case a.consumer != nil:
		a.consumer.flush()
		end(a.consumer.consumer)
	case a.producer != nil:
		a.producer.forgetPartial()
		a.producer.producer.Close()
	case a.control != nil:
		a.control.closed()
	case a.node != nil:
		a.node.closed()
	}
	a.conn.server.names.release(a)
	a.conn.server.count.links.Add(-1)
	a.conn.server.count.linkBytes.Add(-a.cost)
	delete(a.conn.links, a)
	a.leave()
}

// join puts an attachment among those of its session.
func (a *attachment) join(s *amqp.Session) {
	if first, _ := s.Context.(*attachment); first != nil {
		a.behind, first.before = first, a
	}
	s.Context = a
}

// leave takes it out. The session may have ended before.
func (a *attachment) leave() {
	if a.behind != nil {
		a.behind.before = a.before
	}
	if a.before != nil {
		a.before.behind = a.behind
	} else {
		a.link.Session().Context = a.behind
	}
	a.before, a.behind = nil, nil
}

// stolen: the same container has attached the link again; the terminus is the
// thief's. From another connection it is a client that came back: this
// connection is as good as lost, and what it had counts so.
func (a *attachment) stolen(how engine.Closing) {
	if a.gone {
		return
	}
	a.release(func(c *engine.Consumer) { c.Close(how) })
	a.link.Detach(true, amqp.Errorf(amqp.ConditionStolen, "link %q was attached again by container %q", a.link.Name, a.key.container))
}

// endLinks gives up all links.
func (c *connection) endLinks(how engine.Closing) {
	if c.ended {
		return
	}
	c.ended = true
	c.settleDirty()
	for a := range c.links {
		a.release(func(consumer *engine.Consumer) { consumer.Close(how) })
	}
	c.server.count.sessions.Add(-int64(c.sessions))
	c.sessions = 0
}

// after runs f once every commit that the links wait for holds.
func after(links []*attachment, f func()) {
	waiting := 0
	for _, a := range links {
		if a.pending == 0 {
			continue
		}
		waiting++
		before := a.then
		a.then = func() {
			if before != nil {
				before()
			}
			if waiting--; waiting == 0 {
				f()
			}
		}
	}
	if waiting == 0 {
		f()
	}
}

// linksOf returns the attachments of a session.
func linksOf(s *amqp.Session) (all []*attachment) {
	first, _ := s.Context.(*attachment)
	for a := first; a != nil; a = a.behind {
		all = append(all, a)
	}
	return all
}

// allLinks returns the attachments of all sessions.
func (c *connection) allLinks() []*attachment { return slices.Collect(maps.Keys(c.links)) }
