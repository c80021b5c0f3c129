package server

import (
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// coordinator is a control link: on it the peer declares and discharges transactions [4.2].
type coordinator struct {
	*attachment
	canReject bool
	partial   []byte // of a message that arrives in several frames

	tickets     uint64
	discharging map[uint64]discharging
}

// discharging is a discharge whose commit is awaited.
type discharging struct {
	transaction *transaction
	delivery    uint32
	rollback    bool
}

const (
	// coordinatorCredit is how many requests a controller may have under way.
	coordinatorCredit = 64
	// maxCoordination limits a request, in bytes: a control link that leaves one unfinished holds it.
	maxCoordination = 2 << 10
	// maxTransactions limits the transactions of a connection that aren't discharged: clients have one per session.
	maxTransactions = 1024
)

// coordinatorCapabilities are what controllers may count on [4.5.7].
var coordinatorCapabilities = []codec.Symbol{
	codec.CapabilityLocalTransactions, codec.CapabilityMultiTxnsPerSession, codec.CapabilityMultiSessionsPerTxn,
}

func (a *attachment) bindCoordinator(at *codec.Attach, terms *amqp.Terms) *amqp.Error {
	if a.link.Sender() {
		return amqp.Errorf(amqp.ConditionInvalidField, "target of a receiver is a coordinator")
	}
	if at.SndSettleMode == codec.SettleSettled {
		return amqp.Errorf(amqp.ConditionInvalidField, "snd-settle-mode of a control link is settled, and declare and discharge need an outcome")
	}
	a.control = &coordinator{attachment: a, canReject: canReject(at.Source)}
	terms.Target, terms.Coordinator = nil, &codec.Coordinator{Capabilities: coordinatorCapabilities}
	terms.MaxMessageSize = maxCoordination
	return nil
}

// topUp lets the controller go on asking. What waits for its commit is under way still.
func (k *coordinator) topUp() {
	room := int64(coordinatorCredit - k.pending)
	if credit := k.link.Credit(); !k.gone && credit <= coordinatorCredit/2 && room > credit {
		k.link.Grant(uint32(room))
	}
}

// receive takes a fragment of a request.
func (k *coordinator) receive(now time.Time, ev *amqp.Event) {
	if ev.Kind == amqp.EventAborted {
		k.partial = nil
		k.topUp()
		return
	}
	switch {
	case ev.State.Transactional:
		k.link.Fail(amqp.Errorf(amqp.ConditionNotAllowed, "transactional work on a control link"))
		return
	case ev.Settled:
		k.link.Fail(amqp.Errorf(amqp.ConditionInvalidField, "request to the coordinator was sent settled, and it needs an outcome"))
		return
	}
	message := ev.Payload
	if !ev.First || !ev.Last {
		k.partial = append(k.partial, ev.Payload...)
		message = k.partial
	}
	if !ev.Last {
		return
	}
	request, err := amqp.ReadCoordination(message)
	k.partial = nil
	switch {
	case err != nil:
		k.reject(ev.DeliveryID, err)
	case request.Declare != nil:
		k.declare(now, ev.DeliveryID, request.Declare)
	default:
		k.discharge(ev.DeliveryID, request.Discharge)
	}
	k.topUp()
}

func (k *coordinator) declare(now time.Time, id uint32, d *codec.Declare) {
	switch {
	case d.GlobalID != nil:
		k.reject(id, amqp.Errorf(amqp.ConditionNotImplemented, "declare: distributed transactions aren't supported"))
	case len(k.conn.transactions) >= maxTransactions:
		k.reject(id, amqp.Errorf(amqp.ConditionResourceLimitExceeded, "declare: %d transactions of this connection aren't discharged", maxTransactions))
	default:
		t := k.conn.begin(k, now)
		k.conn.server.count.transactions.Add(1)
		k.link.Session().Dispose(id, codec.Outcome{Kind: codec.StateDeclared, TxnID: t.id[:]})
	}
}

// discharge ends a transaction. Another control link's is as unknown as one that was discharged.
func (k *coordinator) discharge(id uint32, d *codec.Discharge) {
	c := k.conn
	c.settleDirty() // what was retired before
	var t *transaction
	if len(d.TxnID) == len(transactionID{}) {
		t = c.transactions[transactionID(d.TxnID)]
	}
	switch {
	case t == nil || t.control != k:
		k.reject(id, amqp.Errorf(amqp.ConditionUnknownTransaction, "discharge: transaction %x isn't known", d.TxnID))
		return
	case t.arriving > 0: // [4.4.1]
		k.link.Fail(amqp.Errorf(amqp.ConditionTransactionRolledBack, "discharge: a message posted under transaction %x is still arriving", d.TxnID))
		return
	}
	c.forgetTransaction(t)
	if t.dead != nil {
		if d.Fail {
			k.accept(id)
		} else {
			k.reject(id, t.dead)
		}
		return
	}
	k.tickets++
	t.ended = true
	if d.Fail {
		if t.rollback(k, k.tickets) {
			k.ended(t, id, true, nil)
			return
		}
	} else {
		t.acquireNoMore()
		if r, decided := t.work.Commit(k, k.tickets); decided {
			k.ended(t, id, false, &r)
			return
		}
	}
	if k.discharging == nil {
		k.discharging = make(map[uint64]discharging)
	}
	k.discharging[k.tickets] = discharging{t, id, d.Fail}
	k.pending++
}

// Confirmed is the engine's Confirmer.
func (k *coordinator) Confirmed(ticket uint64, r engine.Result) {
	k.conn.mail.confirm(confirm{control: k, ticket: ticket, refusal: &r})
}

// confirmed: a discharge has been carried out, or refused.
func (k *coordinator) confirmed(ticket uint64, r *engine.Result) {
	d := k.discharging[ticket]
	delete(k.discharging, ticket)
	k.ended(d.transaction, d.delivery, d.rollback, r)
	k.conn.settleDirty() // what was said while it was under way
	k.settled()
	k.topUp()
}

// ended answers a discharge, behind all that it has to be known of the transaction before.
func (k *coordinator) ended(t *transaction, id uint32, rollback bool, r *engine.Result) {
	count := &k.conn.server.count
	if rollback {
		count.transactionsRolledBack.Add(1)
		k.accept(id)
		return
	}
	t.leaveLinks(r.Verdict != engine.Accepted)
	switch {
	case r.Verdict == engine.Accepted:
		count.transactionsCommitted.Add(1)
		t.settleSpoken()
		k.accept(id)
	case r.Condition == engine.ConditionRollback:
		count.transactionsRefused.Add(1)
		k.reject(id, amqp.Errorf(amqp.ConditionTransactionRolledBack, "%s", r.Description))
	default: // rejected would say that it has been rolled back
		k.link.Fail(amqp.Errorf(amqp.ConditionInternalError, "whether the transaction holds isn't known: %s", r.Description))
	}
}

func (k *coordinator) accept(id uint32) {
	k.conn.machine.WriteOutcomes()
	k.link.Session().Dispose(id, codec.Outcome{Kind: codec.StateAccepted})
}

// reject refuses a request; where the controller can't be told so by an outcome, the link goes [4.3].
func (k *coordinator) reject(id uint32, e *amqp.Error) {
	if !k.canReject {
		k.link.Fail(e)
		return
	}
	k.conn.machine.WriteOutcomes()
	k.link.Session().Dispose(id, codec.Outcome{
		Kind: codec.StateRejected, Error: &codec.ErrorInfo{Condition: e.Condition, Description: e.Description},
	})
}

// closed rolls back what the link has declared and not discharged.
func (k *coordinator) closed() {
	k.conn.settleDirty() // what was retired before
	for _, t := range k.conn.transactions {
		if t.control != k {
			continue
		}
		k.conn.forgetTransaction(t)
		if t.dead == nil {
			k.conn.server.count.transactionsRolledBack.Add(1)
			t.dead = amqp.Errorf(amqp.ConditionUnknownTransaction, "transaction %x was rolled back with its control link", t.id)
			t.rollback(nil, 0)
		}
	}
}

func (c *connection) forgetTransaction(t *transaction) {
	delete(c.transactions, t.id)
	c.server.count.transactions.Add(-1)
}
