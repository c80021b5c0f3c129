package server

import (
	"slices"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/engine"
)

// acquireUnder has the link acquire under a transaction from now on [4.4.3]; nil: the peer doesn't speak of that.
func (o *outgoing) acquireUnder(id []byte) {
	if id == nil {
		return
	}
	t, err := o.conn.transaction(id)
	switch {
	case err != nil:
		o.link.Fail(err)
	case o.browsing:
		o.link.Fail(amqp.Errorf(amqp.ConditionNotImplemented, "flow: a browser acquires nothing that a transaction could give back"))
	default:
		o.acquiring = t
		t.touch(o)
	}
}

// acquire takes a delivery that is about to be sent into the transaction of the link; false when it can't be.
func (o *outgoing) acquire(d *engine.Delivery, out *amqp.Sending) bool {
	t := o.acquiring
	if !t.work.Acquire(o.consumer, engine.Settlement{Handle: d.Handle, Acquisition: d.Acquisition}) {
		t.kill(amqp.Errorf(amqp.ConditionTransactionRolledBack, "transaction was rolled back: it became too large"))
		o.link.Fail(amqp.Errorf(amqp.ConditionResourceLimitExceeded, "transaction %x is too large for what the link acquires", t.id))
		return false
	}
	out.TxnID = t.id[:]
	o.acquired = true
	o.enlist(d.Handle, enlisted{transaction: t})
	return true
}

// withdrawn forgets deliveries that a rollback has taken off the link.
func (o *outgoing) withdrawn(back []amqp.Sending) {
	if len(back) == 0 {
		return
	}
	if o.settles {
		o.unsent = slices.DeleteFunc(o.unsent, func(s engine.Settlement) bool {
			return slices.ContainsFunc(back, func(m amqp.Sending) bool { return m.Ref == any(s.Handle) && uint32(m.RefN) == s.Acquisition })
		})
	}
	o.wantRefill()
}
