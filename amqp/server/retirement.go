package server

import (
	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// rollbackOutcome is what becomes of a delivery that was settled under a transaction which is rolled back: the source's
// default outcome [4.4.4.2], and without one a failed attempt. To accept what wasn't done would lose it.
func rollbackOutcome(d *codec.Outcome) engine.Outcome {
	failed := engine.Outcome{Kind: engine.Modified, Failed: true}
	if d.Kind == codec.StateAccepted {
		return failed
	}
	return outcomeOf(d, &failed)
}

// retireUnder adds the receiver's outcome of one delivery to a transaction: to the one that it names, or to the one that
// has the delivery already.
func (o *outgoing) retireUnder(ev *amqp.Event, handle *queue.Entry, known enlisted, under *transaction) {
	s := engine.Settlement{Handle: handle, Acquisition: uint32(ev.RefN)}
	silent := ev.State.Kind == codec.StateNone || ev.State.Kind == codec.StateReceived
	holder := known.transaction
	switch {
	case holder == nil:
	case holder.ended: // what its discharge brings is about to be told
		if under != nil { // [4.4.2]
			under.control.link.Fail(amqp.Errorf(amqp.ConditionTransactionRolledBack, "disposition: delivery %d is in transaction %x, and its outcome in another one", ev.DeliveryID, holder.id))
		}
		o.hearLate(ev, s, known, under != nil || silent)
		return
	case under == nil && silent: // it is settled, and what the transaction is to bring stands
		under = holder
	case under == nil:
		o.link.Fail(amqp.Errorf(amqp.ConditionIllegalState, "disposition: delivery %d is in transaction %x, and its outcome isn't", ev.DeliveryID, holder.id))
		return
	case under != holder: // [4.4.2]
		if ev.Settled {
			holder.work.Retire(o.consumer, []engine.Settlement{s}, engine.Outcome{}, true, o.reverted)
		}
		e := amqp.Errorf(amqp.ConditionTransactionRolledBack, "disposition: delivery %d is in transaction %x, and its outcome in another one", ev.DeliveryID, holder.id)
		holder.control.link.Fail(e)
		under.control.link.Fail(e)
		return
	}
	verdict := o.verdictOf(&ev.State.Outcome)
	if silent && known.retired {
		verdict = engine.Outcome{}
	}
	if !ev.Settled {
		answer := codec.Outcome{Kind: ev.State.Kind, DeliveryFailed: verdict.Failed, UndeliverableHere: verdict.UndeliverableHere}
		if !known.retired {
			known.spoken = len(under.spoken)
			under.spoken = append(under.spoken, disposal{session: ev.Session, id: ev.DeliveryID})
		}
		under.spoken[known.spoken].answer = answer
		o.enlist(handle, enlisted{transaction: under, retired: true, spoken: known.spoken})
	} else if holder != nil {
		delete(o.enlisted, handle)
	}
	o.settleUnder(under, s, verdict, !ev.Settled)
}

// hearLate notes what the peer says of a delivery while the commit of its transaction is under way; silent: no outcome that
// counts.
func (o *outgoing) hearLate(ev *amqp.Event, s engine.Settlement, known enlisted, silent bool) {
	if silent && !ev.Settled {
		return
	}
	verdict := o.reverted // as if it had been settled before the rollback
	if !silent {
		verdict = o.verdictOf(&ev.State.Outcome)
	}
	known.late = &late{settlement: s, verdict: verdict, settled: ev.Settled, disposal: disposal{
		id: ev.DeliveryID, answer: codec.Outcome{Kind: ev.State.Kind, DeliveryFailed: verdict.Failed, UndeliverableHere: verdict.UndeliverableHere},
	}}
	o.enlisted[s.Handle] = known
}

// enlist notes that a delivery of which the peer may speak again is in a transaction.
func (o *outgoing) enlist(handle *queue.Entry, e enlisted) {
	if o.enlisted == nil {
		o.enlisted = make(map[*queue.Entry]enlisted)
	}
	o.enlisted[handle] = e
	e.transaction.touch(o)
}

// settleUnder is settle for a settlement that belongs to a transaction; unspoken: the peer may speak of the delivery again.
func (o *outgoing) settleUnder(under *transaction, s engine.Settlement, verdict engine.Outcome, unspoken bool) {
	if len(o.batch) > 0 && !(o.under == under && o.unspoken == unspoken && same(&o.verdict, &verdict) && len(o.batch) < consumerWindow) {
		o.flush()
	}
	o.under, o.unspoken = under, unspoken
	o.collect(s, verdict)
}

// flushRetired hands the collected settlements to their transaction.
func (o *outgoing) flushRetired() {
	under, batch := o.under, o.batch
	o.under, o.batch = nil, nil
	defer func() {
		clear(batch)
		if o.batch == nil {
			o.batch = batch[:0]
		}
	}()
	if under.dead != nil { // between the disposition and now
		if o.tickets++; !o.unspoken && !o.consumer.Settle(batch, o.reverted, o.tickets) {
			o.pending++
		}
		return
	}
	if !under.work.Retire(o.consumer, batch, o.verdict, !o.unspoken, o.reverted) {
		under.kill(amqp.Errorf(amqp.ConditionTransactionRolledBack, "transaction was rolled back: it became too large"))
		o.conn.failSession(o.link.Session(), amqp.Errorf(amqp.ConditionResourceLimitExceeded, "disposition: transaction %x is too large", under.id))
	}
}

// failSession ends a session whose peer has asked for something impossible where no link can tell it so.
func (c *connection) failSession(s *amqp.Session, err *amqp.Error) {
	s.End(err)
	c.endSession(s, false)
}
