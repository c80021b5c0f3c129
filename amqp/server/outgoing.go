package server

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// outgoing is a link on which the peer consumes.
type outgoing struct {
	*attachment
	consumer *engine.Consumer
	browsing bool
	settles  bool // deliveries are sent settled
	fallback engine.Outcome
	reverted engine.Outcome // what a rollback makes of what was settled

	// unsent are the deliveries of a link that sends settled which the link has
	// not begun to send, in order.
	unsent []engine.Settlement
	size   int64 // moving average of message sizes, in bytes

	// Deliveries since the attach: limit is how many the queue may have given,
	// taken how many of them reached the link. limit ≥ taken.
	limit, taken uint64
	drainLimit   uint64
	draining     bool // asked of the queue and not answered yet
	drainAgain   bool // asked for anew meanwhile
	drainDue     bool // go on draining once the link has sent what it has
	inRefill     bool

	// Settlements of one outcome not yet handed to the queue.
	batch   []engine.Settlement
	verdict engine.Outcome
	ids     []uint32 // of them, those the peer left for us to settle
	answer  codec.Outcome
	inDirty bool

	under    *transaction // that the batch is retired under; nil: none
	unspoken bool         // whose deliveries the peer hasn't settled
	// What the peer has in transactions on this link, and may speak of again.
	enlisted  map[*queue.Entry]enlisted
	acquiring *transaction // under which deliveries are acquired; nil: none
	acquired  bool         // some have been, ever

	tickets uint64
	waiting map[uint64]settling
}

// settling are deliveries to be settled once their outcome is committed.
type settling struct {
	ids    []uint32
	answer codec.Outcome
}

func (a *attachment) bindConsumer(at *codec.Attach, terms *amqp.Terms) *amqp.Error {
	source := at.Source
	switch {
	case source == nil && at.Target == nil:
		return amqp.Errorf(amqp.ConditionInvalidField, "source and target are both null")
	case source == nil:
		return a.recoverSubscription(at, terms)
	}
	if n := a.conn.server.nodes.find(source.Address.Value); n != nil && !source.Dynamic {
		return a.bindNode(n, at, source.Address.Value)
	}
	routing, err := routingOf(source.Capabilities)
	if err != nil {
		return err
	}
	if err := refuseFilters(source.Filter); err != nil {
		return err
	}
	o := &outgoing{attachment: a, settles: at.SndSettleMode == codec.SettleSettled, fallback: defaultOutcome(&source.DefaultOutcome), reverted: rollbackOutcome(&source.DefaultOutcome)}
	spec := engine.ConsumerSpec{
		Address: source.Address.Value,
		Routing: routing,
		Dynamic: source.Dynamic,
		Browse:  source.DistributionMode == "copy",
		Subscription: engine.Subscription{
			Name:    at.Name,
			Durable: (source.Durable > 0 || source.ExpiryPolicy == "never") && source.ExpiryPolicy != "link-detach",
			Steal:   true,
		},
		By: a.principal(),
	}
	switch {
	case source.Dynamic && source.Address.Set:
		return amqp.Errorf(amqp.ConditionInvalidField, "source.address must be null when a dynamic node is asked for")
	case source.Dynamic:
		spec.Lifetime = lifetimeOf(source.DynamicNodeProperties)
	case source.Address.Value == "":
		return amqp.Errorf(amqp.ConditionInvalidField, "source.address is missing")
	}
	consumer, failure := a.conn.server.broker.Consumer(spec, o)
	if failure != nil {
		return toWire(failure)
	}
	o.consumer = consumer
	o.browsing = consumer.Browsing()
	a.consumer = o

	actual := *source
	// A durable subscription survives with its messages; what is unsettled on
	// the link doesn't, and the answer says so [3.5.5].
	actual.Durable, actual.Timeout = codec.TerminusNone, 0
	if spec.Subscription.Durable && consumer.Routing() == engine.Multicast {
		actual.Durable = min(source.Durable, codec.TerminusConfiguration)
	}
	actual.Filter = nil // none is applied
	if actual.DistributionMode == "" {
		actual.DistributionMode = "move"
	}
	if source.Dynamic {
		actual.Address = codec.Some(consumer.Address())
		actual.DynamicNodeProperties = lifetimeProperties(spec.Lifetime)
	}
	actual.Outcomes = supportedOutcomes
	actual.Capabilities = capabilitiesOf(source.Capabilities, consumer.Routing())
	terms.Source = &actual
	return nil
}

// recoverSubscription finds the durable subscription that the link's name and
// the peer's container stand for; JMS clients unsubscribe this way, by closing
// the link then. Nothing is taken from an active subscriber.
func (a *attachment) recoverSubscription(at *codec.Attach, terms *amqp.Terms) *amqp.Error {
	o := &outgoing{attachment: a, settles: at.SndSettleMode == codec.SettleSettled, fallback: engine.Outcome{Kind: engine.Released}, reverted: rollbackOutcome(&codec.Outcome{})}
	consumer, failure := a.conn.server.broker.Consumer(engine.ConsumerSpec{
		Subscription: engine.Subscription{Name: at.Name, Durable: true},
		By:           a.principal(),
	}, o)
	if failure != nil {
		return toWire(failure)
	}
	o.consumer, a.consumer = consumer, o
	terms.Source = &codec.Source{
		Address:          codec.Some(consumer.Address()),
		Durable:          codec.TerminusConfiguration,
		ExpiryPolicy:     codec.ExpiryNever,
		DistributionMode: "copy",
		Outcomes:         supportedOutcomes,
		Capabilities:     []codec.Symbol{capabilityTopic},
	}
	return nil
}

// Deliver is the engine's Sink; it is called under the queue's guard.
func (o *outgoing) Deliver(d engine.Delivery) { o.conn.mail.deliver(parcel{to: o, delivery: d}) }

// Drained is the engine's Sink.
func (o *outgoing) Drained() { o.conn.mail.deliver(parcel{to: o, drained: true}) }

// Settled is the engine's Sink.
func (o *outgoing) Settled(ticket uint64) { o.conn.mail.confirm(confirm{consumer: o, ticket: ticket}) }

// Unsettled is the engine's Sink.
func (o *outgoing) Unsettled(ticket uint64) {
	o.conn.mail.confirm(confirm{consumer: o, ticket: ticket, unknown: true})
}

// Ended is the engine's Sink.
func (o *outgoing) Ended(err error) {
	o.conn.mail.notify(notice{kind: noticeEnded, consumer: o, err: err})
}

// flowed: the receiver's credit changed. What has gone back, on whatever link
// of the connection, is at its place before the queue gives for the new credit.
func (o *outgoing) flowed() {
	o.takeBack()
	if limit, byCredit := o.allowed(); byCredit && limit < o.limit {
		o.limit = limit
		o.consumer.SetLimit(limit)
	}
	o.conn.settleDirty()
	o.link.SetAvailable(o.consumer.Available())
	if o.link.Draining() {
		o.drain()
		return
	}
	o.drainDue = false
	o.raise(true)
}

// takeBack returns to the queue what waits on the link for credit that has been withdrawn.
func (o *outgoing) takeBack() {
	if o.browsing {
		return // it has nothing to give back: what waits, waits for credit
	}
	for {
		m, ok := o.link.TakeBack()
		if !ok {
			return
		}
		if o.settles {
			o.unsent = o.unsent[:len(o.unsent)-1]
		}
		if handle, ok := m.Ref.(*queue.Entry); ok {
			o.settle(engine.Settlement{Handle: handle, Acquisition: uint32(m.RefN)}, engine.Outcome{Kind: engine.Released})
		}
	}
}

// retire settles what a link that sends settled has begun to send. Until then
// it is the queue's, in its memory budget, and goes back when the link goes.
func (o *outgoing) retire() {
	n := len(o.unsent) - o.link.Queued()
	if n <= 0 {
		return
	}
	for _, s := range o.unsent[:n] {
		if known, ok := o.enlisted[s.Handle]; ok {
			delete(o.enlisted, s.Handle)
			o.settleUnder(known.transaction, s, engine.Outcome{Kind: engine.Accepted}, false)
		} else {
			o.settle(s, engine.Outcome{Kind: engine.Accepted})
		}
	}
	left := copy(o.unsent, o.unsent[n:])
	clear(o.unsent[left:])
	o.unsent = o.unsent[:left]
}

// allowed returns the limit that credit and the window ahead of the socket allow.
func (o *outgoing) allowed() (limit uint64, byCredit bool) {
	credit := o.taken + uint64(max(o.link.Credit(), 0))
	ahead := consumerWindow
	if o.browsing {
		// What a browser waits with may be gone from its queue, and from the
		// memory that is counted: there is little of it.
		ahead = int(max(min(browseBytes/max(o.size, 1), browseWindow), 1))
		if o.link.Session().Outstanding() >= browseUnsettled {
			ahead = 0
		}
	}
	window := o.taken + uint64(max(ahead-o.link.Queued(), 0))
	if credit <= window {
		return credit, true
	}
	return window, false
}

// raise lets the queue give more, in steps worth a visit, unless now. It doesn't until a drain is answered: what credit
// there is while the link sends what stands before the answer is about to be used up by it.
func (o *outgoing) raise(now bool) {
	if o.gone || o.drainDue || o.link.Draining() {
		return
	}
	limit, byCredit := o.allowed()
	if !o.draining && (limit == o.limit || limit < o.limit && !byCredit) {
		return // behind a drain the queue's own limit is what it has given
	}
	if !now && limit > o.limit && limit-o.limit < consumerWindow/2 && o.limit > o.taken {
		return
	}
	o.limit = limit
	o.consumer.SetLimit(limit)
}

// drain has the queue give what it has, a window at a time.
func (o *outgoing) drain() {
	limit, _ := o.allowed()
	if limit == o.taken && o.link.Credit() > 0 {
		o.drainDue = true // the link is full: the socket comes first
		o.wantRefill()
		return
	}
	o.drainDue = false
	if o.draining { // one answer at a time waits in the mailbox, however often it is asked for
		o.drainAgain = true
		return
	}
	o.limit, o.drainLimit = limit, limit
	o.draining, o.drainAgain = true, false
	o.consumer.Drain(limit)
}

// drained: the queue has given what it had, up to the limit of the drain.
func (o *outgoing) drained() {
	o.draining = false
	if !o.link.Draining() {
		// The receiver has thought better of it; what the drain used up is given anew.
		o.limit = o.taken
		o.raise(true)
		return
	}
	if o.drainAgain {
		o.drain()
		return
	}
	if o.taken >= o.drainLimit && o.link.Credit() > 0 {
		o.drainDue = true
		o.wantRefill()
		return
	}
	o.limit, o.drainDue = o.taken, false
	o.link.SetAvailable(o.consumer.Available())
	o.link.Drained()
}

func (o *outgoing) wantRefill() {
	if !o.inRefill {
		o.inRefill = true
		o.conn.refill = append(o.conn.refill, o)
	}
}

// topUp lets queues give more to the links that have sent what they had.
func (c *connection) topUp() {
	if len(c.refill) == 0 {
		return
	}
	n := 0
	for _, o := range c.refill {
		o.inRefill = false
		if o.gone {
			continue
		}
		o.retire()
		switch {
		case o.link.Queued() > consumerWindow/2:
			o.inRefill = true
		case o.drainDue:
			o.drain()
		default:
			o.raise(false)
		}
		if o.inRefill || len(o.unsent) > 0 {
			o.inRefill = true
			c.refill[n] = o
			n++
		}
	}
	clear(c.refill[n:])
	c.refill = c.refill[:n]
	c.settleDirty()
}

// send puts a delivery on the link.
func (o *outgoing) send(now time.Time, d *engine.Delivery) {
	o.taken++
	o.wantRefill()
	if o.link.Credit() <= 0 && !o.browsing {
		// The credit it was meant for was withdrawn while it was on its way.
		o.settle(engine.Settlement{Handle: d.Handle, Acquisition: d.Acquisition}, engine.Outcome{Kind: engine.Released})
		return
	}
	m := d.Message
	out := amqp.Sending{Body: m.Payload, Format: m.Format, Settled: o.settles}
	if !o.browsing {
		out.Ref, out.RefN = d.Handle, uint64(d.Acquisition)
	}
	h := headerOf(now, d)
	out.HeaderSize = uint8(len(h.Append(out.Header[:0])))
	if len(d.Annotations) > 0 {
		head, rest, err := annotate(m.Payload, d.Annotations)
		if err != nil {
			o.conn.report(zerolog.ErrorLevel, "annotations of a message can't be merged", func(line *zerolog.Event) {
				line.Err(err).Str("queue", o.consumer.Queue()).Uint64("number", d.Number)
			})
		} else {
			out.Head, out.Body = head, rest
		}
	}
	size := uint64(int(out.HeaderSize) + len(out.Head) + len(out.Body))
	if limit := o.link.PeerMaxMessage(); limit > 0 && size > limit {
		o.tooLarge(d, size)
		return
	}
	if o.acquiring != nil && !o.browsing && !o.acquire(d, &out) {
		return
	}
	o.conn.server.count.messagesOut.Add(1)
	o.size += (int64(size) - o.size) / 8
	if o.settles && !o.browsing {
		o.conn.moved++
	}
	if o.link.Send(out) && o.settles && !o.browsing {
		o.unsent = append(o.unsent, engine.Settlement{Handle: d.Handle, Acquisition: d.Acquisition})
	}
}

// tooLarge hands a message back that the peer has said it can't take: others may.
func (o *outgoing) tooLarge(d *engine.Delivery, size uint64) {
	o.conn.report(zerolog.WarnLevel, "message is larger than the consumer takes; left for others", func(line *zerolog.Event) {
		line.Str("queue", o.consumer.Queue()).Uint64("number", d.Number).Uint64("bytes", size).Uint64("max", o.link.PeerMaxMessage())
	})
	if o.browsing {
		return
	}
	o.settle(engine.Settlement{Handle: d.Handle, Acquisition: d.Acquisition}, engine.Outcome{Kind: engine.Modified, UndeliverableHere: true})
}
