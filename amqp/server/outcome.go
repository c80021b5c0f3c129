package server

import (
	"bytes"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// supportedOutcomes are what a receiver may give [3.4].
var supportedOutcomes = []codec.Symbol{"amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"}

// outcome collects the receiver's outcome of one delivery.
func (o *outgoing) outcome(ev *amqp.Event) {
	var under *transaction
	if ev.State.Transactional {
		var err *amqp.Error
		if under, err = o.conn.transaction(ev.State.TxnID); err != nil {
			o.conn.failSession(ev.Session, err)
			return
		}
	}
	handle, _ := ev.Ref.(*queue.Entry)
	if known, ok := o.enlisted[handle]; ok || under != nil && handle != nil {
		o.retireUnder(ev, handle, known, under)
		return
	}
	if handle == nil { // a browser owns nothing
		o.wantRefill()
		if !ev.Settled {
			ev.Session.Settle(ev.DeliveryID, ev.State.Outcome)
		}
		return
	}
	verdict := o.verdictOf(&ev.State.Outcome)
	o.settle(engine.Settlement{Handle: handle, Acquisition: uint32(ev.RefN)}, verdict)
	if !ev.Settled {
		o.ids = append(o.ids, ev.DeliveryID)
		o.answer = codec.Outcome{Kind: ev.State.Kind, DeliveryFailed: verdict.Failed, UndeliverableHere: verdict.UndeliverableHere}
	}
}

// verdictOf is outcomeOf; the annotations that one disposition writes on many
// messages are read once, and the messages share them.
func (o *outgoing) verdictOf(s *codec.Outcome) engine.Outcome {
	if s.Kind != codec.StateModified || s.Annotations == nil {
		return outcomeOf(s, &o.fallback)
	}
	c := o.conn
	if !bytes.Equal(c.annotationsRead, s.Annotations) {
		c.annotationsRead, c.annotations = s.Annotations, annotationsOf(s.Annotations)
	}
	verdict := engine.Outcome{Kind: engine.Modified, Failed: s.DeliveryFailed, UndeliverableHere: s.UndeliverableHere, Annotations: c.annotations}
	delayed(&verdict)
	return verdict
}

// settle collects a settlement; neighbours with the same outcome go to the queue together.
func (o *outgoing) settle(s engine.Settlement, verdict engine.Outcome) {
	if len(o.batch) > 0 && !(o.under == nil && same(&o.verdict, &verdict) && len(o.batch) < consumerWindow) {
		o.flush()
	}
	o.collect(s, verdict)
}

func (o *outgoing) collect(s engine.Settlement, verdict engine.Outcome) {
	o.batch = append(o.batch, s)
	o.verdict = verdict
	if !o.inDirty {
		o.inDirty = true
		o.conn.dirty = append(o.conn.dirty, o)
	}
}

func same(a, b *engine.Outcome) bool {
	return a.Kind == b.Kind && a.Failed == b.Failed && a.UndeliverableHere == b.UndeliverableHere &&
		len(a.Annotations)+len(b.Annotations) == 0 && a.HasDelay == b.HasDelay && a.Delay == b.Delay && a.DueAt == b.DueAt &&
		a.Condition == b.Condition && a.Description == b.Description
}

// flush hands the collected settlements to the queue.
func (o *outgoing) flush() {
	switch {
	case len(o.batch) == 0:
		return
	case o.under != nil:
		o.flushRetired()
		return
	}
	o.tickets++
	held := o.consumer.Settle(o.batch, o.verdict, o.tickets)
	clear(o.batch)
	o.batch = o.batch[:0]
	if held {
		if len(o.ids) > 0 && !o.consumer.Gone() { // of one that is gone, deliveries went back
			for _, id := range o.ids {
				o.link.Session().Settle(id, o.answer)
			}
		}
		o.ids = o.ids[:0]
		return
	}
	o.pending++
	if len(o.ids) > 0 {
		if o.waiting == nil {
			o.waiting = make(map[uint64]settling)
		}
		o.waiting[o.tickets] = settling{ids: o.ids, answer: o.answer}
		o.ids = nil
	}
}

// settledLater: the commit of a flush holds, or it is unknown whether it does. Then the peer isn't told that its
// deliveries are settled, and who waits to detach or to close needn't wait any more.
func (o *outgoing) settledLater(ticket uint64, unknown bool) {
	if w, ok := o.waiting[ticket]; ok {
		delete(o.waiting, ticket)
		if unknown {
			w.ids = nil
		}
		for _, id := range w.ids {
			o.link.Session().Settle(id, w.answer)
		}
	}
	o.settled()
}

// outcomeOf is the engine's form of a state; fallback stands for none, for one
// that isn't terminal and for one nobody knows.
func outcomeOf(s *codec.Outcome, fallback *engine.Outcome) engine.Outcome {
	switch s.Kind {
	case codec.StateAccepted:
		return engine.Outcome{Kind: engine.Accepted}
	case codec.StateReleased:
		return engine.Outcome{Kind: engine.Released}
	case codec.StateRejected:
		o := engine.Outcome{Kind: engine.Rejected}
		if s.Error != nil {
			o.Condition, o.Description = string(s.Error.Condition), s.Error.Description
		}
		return o
	case codec.StateModified:
		o := engine.Outcome{
			Kind: engine.Modified, Failed: s.DeliveryFailed, UndeliverableHere: s.UndeliverableHere,
			Annotations: annotationsOf(s.Annotations),
		}
		delayed(&o)
		return o
	}
	return *fallback
}

// annotationsOf returns what a modified outcome adds to the message's
// annotations. A map that isn't one of annotations, with string keys for
// example, adds nothing: the outcome itself is clear enough to act on. Nor do
// an empty key, which couldn't be written, and what only the broker may say.
func annotationsOf(encoded []byte) []engine.Annotation {
	if encoded == nil {
		return nil
	}
	m, err := codec.ReadAnnotations(encoded)
	if err != nil {
		return nil
	}
	var all []engine.Annotation
	for _, p := range m {
		key, isSymbol := p.Key.(codec.Symbol)
		value, isRaw := p.Value.(codec.Raw)
		if isSymbol && isRaw && key != "" && !engine.Obituary(string(key)) {
			all = append(all, engine.Annotation{Key: string(key), Value: queue.Encoded(value)})
		}
	}
	return all
}

// defaultOutcome is what a source says of deliveries settled without a state; else released.
func defaultOutcome(d *codec.Outcome) engine.Outcome {
	released := engine.Outcome{Kind: engine.Released}
	return outcomeOf(d, &released)
}
