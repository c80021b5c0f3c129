package server

import (
	"bytes"
	"slices"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// incoming is a link on which the peer publishes.
type incoming struct {
	*attachment
	producer  *engine.Producer
	anonymous bool
	canReject bool // the peer's source lists rejected among its outcomes, or lists none

	tag     []byte       // of the delivery that is arriving, on an anonymous link
	partial *partial     // the message that is arriving, if it comes in fragments, and
	posting *transaction // what it is posted under; nil: none
	size    int64        // moving average of message sizes, in bytes
	starved bool         // credit was withheld for want of memory
}

func (a *attachment) bindProducer(at *codec.Attach, terms *amqp.Terms) *amqp.Error {
	target := at.Target
	if target == nil {
		return amqp.Errorf(amqp.ConditionNotFound, "target is null and no link %q is known to resume", at.Name)
	}
	if n := a.conn.server.nodes.find(target.Address.Value); n != nil && !target.Dynamic {
		return a.bindNode(n, at, target.Address.Value)
	}
	routing, err := routingOf(target.Capabilities)
	if err != nil {
		return err
	}
	spec := engine.ProducerSpec{Address: target.Address.Value, Routing: routing, Dynamic: target.Dynamic, By: a.principal()}
	switch {
	case target.Dynamic && target.Address.Set:
		return amqp.Errorf(amqp.ConditionInvalidField, "target.address must be null when a dynamic node is asked for")
	case target.Dynamic:
		spec.Lifetime = lifetimeOf(target.DynamicNodeProperties)
	case target.Address.Value == "":
		spec.Anonymous = true
	}
	p := &incoming{attachment: a, anonymous: spec.Anonymous, canReject: canReject(at.Source)}
	producer, failure := a.conn.server.broker.Producer(spec, p)
	if failure != nil {
		return toWire(failure)
	}
	p.producer = producer
	a.producer = p

	actual := *target
	actual.Durable, actual.Timeout = 0, 0
	if target.Dynamic {
		actual.Address = codec.Some(producer.Address())
		actual.DynamicNodeProperties = lifetimeProperties(spec.Lifetime)
	}
	actual.Capabilities = capabilitiesOf(target.Capabilities, producer.Routing())
	terms.Target = &actual
	return nil
}

func canReject(s *codec.Source) bool {
	return s == nil || len(s.Outcomes) == 0 || slices.Contains(s.Outcomes, "amqp:rejected:list")
}

// principal is who attaches. A container-id counts for the user it comes from only.
func (a *attachment) principal() engine.Principal {
	container := a.key.container
	if a.key.identity != "" {
		container = a.key.identity + "/" + container
	}
	return engine.Principal{Container: container, Connection: a.conn.id}
}

// receive takes one fragment of a delivery.
func (p *incoming) receive(now time.Time, ev *amqp.Event) {
	if ev.Kind == amqp.EventAborted {
		p.endPosting()
		p.forgetPartial()
		p.topUp()
		return
	}
	if ev.First && p.anonymous {
		p.tag = append(p.tag[:0], ev.Tag...)
	}
	under, err := p.under(ev)
	if err != nil {
		p.link.Fail(err)
		return
	}
	if ev.First && ev.Last {
		p.publish(now, ev, ev.Payload, false, under)
		return
	}
	parts := &p.conn.server.partials
	if p.partial == nil {
		p.partial = parts.begin(p)
		if p.posting = under; under != nil {
			under.arriving++
		}
	}
	if !parts.add(p.partial, ev.Payload) {
		p.evicted()
		return
	}
	if !ev.Last {
		return
	}
	m := p.partial
	p.partial = nil
	if whole, stayed := parts.end(m); stayed {
		p.endPosting()
		p.publish(now, ev, whole, true, under)
	} else {
		p.failEvicted()
	}
}

// under returns the transaction that a transfer belongs to, nil for none. All of a delivery belong to the one that its first
// names [4.4.1]; further ones need not repeat it.
func (p *incoming) under(ev *amqp.Event) (*transaction, *amqp.Error) {
	switch {
	case ev.First && !ev.State.Transactional:
		return nil, nil
	case ev.First:
		return p.conn.transaction(ev.State.TxnID)
	case ev.State.Transactional && (p.posting == nil || !bytes.Equal(ev.State.TxnID, p.posting.id[:])):
		return nil, amqp.Errorf(amqp.ConditionIllegalState, "transfer: delivery %d comes under a transaction that its first transfer doesn't name", ev.DeliveryID)
	case p.posting != nil && p.posting.dead != nil:
		return nil, p.posting.dead
	}
	return p.posting, nil
}

// endPosting notes that nothing of a transaction is arriving any more.
func (p *incoming) endPosting() {
	if p.posting != nil {
		p.posting.arriving--
		p.posting = nil
	}
}

// evicted: there is no room for the message that is arriving. It may be the second to say so.
func (p *incoming) evicted() {
	if p.gone || p.partial == nil || !p.conn.server.partials.evicted(p.partial) {
		return
	}
	p.forgetPartial()
	p.failEvicted()
}

func (p *incoming) failEvicted() {
	p.conn.server.count.partialsEvicted.Add(1)
	p.link.Fail(amqp.Errorf(amqp.ConditionResourceLimitExceeded,
		"messages that have arrived in part take %d bytes, and this one began longest ago", p.conn.server.cfg.MaxPartialBytes))
}

// forgetPartial gives up what is arriving. A transaction that lacks it can't commit.
func (p *incoming) forgetPartial() {
	if p.posting != nil {
		p.posting.work.Doom("a message didn't arrive as a whole")
		p.endPosting()
	}
	if p.partial != nil {
		p.conn.server.partials.end(p.partial)
		p.partial = nil
	}
}

// ticketSettled marks the ticket of a message that needs no outcome.
const ticketSettled = 1 << 32

// publish hands a whole message to the engine. owned: its bytes are ours to keep.
func (p *incoming) publish(now time.Time, ev *amqp.Event, encoded []byte, owned bool, under *transaction) {
	p.conn.server.count.messagesIn.Add(1)
	p.size += (int64(len(encoded)) - p.size) / 8
	m, id, refusal := p.message(now, ev, encoded, owned)
	if refusal != nil {
		if under != nil {
			under.work.Doom(refusal.Error())
		}
		p.refuse(ev.DeliveryID, ev.Settled, refusal, under)
		p.topUp()
		return
	}
	ticket := uint64(ev.DeliveryID)
	if ev.Settled {
		ticket |= ticketSettled
	}
	if under != nil {
		if result := under.work.PostOnce(p.producer, m, id); result.Verdict != engine.Accepted {
			p.decide(ticket, &result, under)
		} else if !ev.Settled {
			p.dispose(ev.DeliveryID, codec.Outcome{Kind: codec.StateAccepted}, under)
		}
		p.topUp()
		return
	}
	result, decided := p.producer.PublishOnce(m, id, ticket)
	switch {
	case !decided:
		p.pending++
	case result.Verdict == engine.Accepted:
		if !ev.Settled {
			ev.Session.Dispose(ev.DeliveryID, codec.Outcome{Kind: codec.StateAccepted})
		}
	default:
		p.decide(ticket, &result, nil)
	}
	p.topUp()
}

// confirmed: the commit of a message holds, or it was refused.
func (p *incoming) confirmed(ticket uint64, refusal *engine.Result) {
	switch {
	case refusal != nil:
		p.decide(ticket, refusal, nil)
	case ticket&ticketSettled == 0:
		p.link.Session().Dispose(uint32(ticket), codec.Outcome{Kind: codec.StateAccepted})
	}
	p.settled()
	if !p.gone {
		p.topUp()
	}
}

// Confirmed is the engine's Confirmer.
func (p *incoming) Confirmed(ticket uint64, r engine.Result) {
	c := confirm{producer: p, ticket: ticket}
	if r.Verdict != engine.Accepted {
		c.refusal = &r
	}
	p.conn.mail.confirm(c)
}

// dispose gives a delivery its outcome: the one that it will have, when it was posted under a transaction.
func (p *incoming) dispose(id uint32, o codec.Outcome, under *transaction) {
	if under != nil {
		p.link.Session().DisposeIn(under.id[:], id, o)
	} else {
		p.link.Session().Dispose(id, o)
	}
}

func (p *incoming) decide(ticket uint64, r *engine.Result, under *transaction) {
	id, settled := uint32(ticket), ticket&ticketSettled != 0
	if r.Verdict == engine.Released {
		if !settled {
			p.dispose(id, codec.Outcome{Kind: codec.StateReleased}, under)
		}
		return
	}
	e := amqp.Errorf(codec.Symbol(r.Condition), "%s", r.Description)
	e.Info = codec.Map{{Key: codec.Symbol("queue"), Value: r.Queue}, {Key: codec.Symbol("reason"), Value: r.Reason}}
	p.refuse(id, settled, e, under)
}

// refuse rejects a delivery; where the sender can't be told so, the link goes.
func (p *incoming) refuse(id uint32, settled bool, e *amqp.Error, under *transaction) {
	if p.anonymous {
		e.Info = append(e.Info, codec.Pair{Key: codec.Symbol("delivery-tag"), Value: bytes.Clone(p.tag)})
	}
	switch {
	case settled && !p.anonymous && e.Condition != amqp.ConditionDecodeError:
		// At most once was asked for, and this is the time it isn't.
		p.conn.note(p.conn.server.cfg.Log.Debug()).Str("link", p.link.Name).Err(e).Msg("settled message dropped")
		return
	case settled || !p.canReject:
		p.link.Fail(e)
		return
	}
	p.dispose(id, codec.Outcome{
		Kind:  codec.StateRejected,
		Error: &codec.ErrorInfo{Condition: e.Condition, Description: e.Description, Info: e.Info},
	}, under)
}

// topUp gives the peer credit anew once half of it is used: by count, and by
// bytes at the size its messages have. What waits for its commit is under way still.
func (p *incoming) topUp() {
	if p.gone || !p.link.Live() {
		return
	}
	cfg := &p.conn.server.cfg
	target := int64(cfg.LinkCredit)
	if p.size > 0 && cfg.LinkCreditBytes > 0 {
		target = max(min(target, cfg.LinkCreditBytes/p.size), 1)
	}
	credit := p.link.Credit()
	room := target - int64(p.pending)
	if credit > target/2 || room <= credit {
		return
	}
	if p.conn.server.broker.Pressure() {
		p.starved = true
		return
	}
	p.starved = false
	p.link.Grant(uint32(room))
}
