package server

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// transactionID is the connection's part, which no other one has, and a counter: an id that a client has kept from an
// earlier connection names nothing.
type transactionID [16]byte

// transaction is one that was declared and isn't discharged yet [4.3]. All sessions of its connection may work under it.
type transaction struct {
	id       transactionID
	work     *engine.Transaction
	control  *coordinator
	deadline time.Time // zero: none
	arriving int       // messages posted under it that have arrived in part

	spoken []disposal             // deliveries that the peer has left for us to settle
	links  map[*outgoing]struct{} // that have deliveries in it of which the peer may speak again, or acquire under it

	// dead says why it was rolled back without having been asked; it is kept so that its controller is told so.
	dead *amqp.Error
	// ended: it is being discharged.
	ended bool
}

// disposal is a delivery to be settled with an outcome.
type disposal struct {
	session *amqp.Session
	id      uint32
	answer  codec.Outcome
}

// enlisted is a delivery in a transaction of which the peer may speak again.
type enlisted struct {
	transaction *transaction
	retired     bool // it has an outcome there, and
	spoken      int  // that is its place
	late        *late
}

// late is what the peer has said of a delivery while the commit of its transaction was under way. It counts if that is refused.
type late struct {
	settlement engine.Settlement
	verdict    engine.Outcome
	settled    bool
	disposal   // if the peer has left it for us to settle
}

// begin makes a new transaction of a control link.
func (c *connection) begin(control *coordinator, now time.Time) *transaction {
	t := &transaction{work: c.server.broker.Begin(), control: control}
	copy(t.id[:8], c.tag[:])
	c.lastTransaction++
	binary.BigEndian.PutUint64(t.id[8:], c.lastTransaction)
	if c.transactions == nil {
		c.transactions = make(map[transactionID]*transaction)
	}
	c.transactions[t.id] = t
	if timeout := c.server.cfg.TransactionTimeout; timeout > 0 {
		t.deadline = now.Add(timeout)
		if c.nextTick.IsZero() || t.deadline.Before(c.nextTick) {
			c.nextTick = t.deadline
		}
	}
	return t
}

// transaction returns the one that is meant, or what is wrong with working under it.
func (c *connection) transaction(id []byte) (*transaction, *amqp.Error) {
	var t *transaction
	if len(id) == len(transactionID{}) {
		t = c.transactions[transactionID(id)]
	}
	switch {
	case t == nil:
		return nil, amqp.Errorf(amqp.ConditionUnknownTransaction, "transaction %x isn't known", id)
	case t.dead != nil:
		return nil, t.dead
	}
	return t, nil
}

// expireTransactions rolls back those whose time is up, and returns when the next one's is; zero for never.
func (c *connection) expireTransactions(now time.Time) (next time.Time) {
	for _, t := range c.transactions {
		switch {
		case t.deadline.IsZero() || t.dead != nil:
		case !now.Before(t.deadline):
			c.settleDirty()
			t.kill(amqp.Errorf(amqp.ConditionTransactionTimeout, "transaction was rolled back: it took longer than %s", c.server.cfg.TransactionTimeout))
		case next.IsZero() || t.deadline.Before(next):
			next = t.deadline
		}
	}
	return next
}

// doom has a transaction that the peer names fail, since something that belongs to it has.
func (c *connection) doom(s *codec.DeliveryState, why *amqp.Error) {
	if s == nil || !s.Transactional {
		return
	}
	if t, err := c.transaction(s.TxnID); err == nil {
		t.work.Doom(why.Error())
	}
}

// kill rolls a transaction back that nobody has discharged.
func (t *transaction) kill(why *amqp.Error) {
	t.dead = why
	c := t.control.conn
	c.server.count.transactionsKilled.Add(1)
	c.note(c.server.cfg.Log.Info()).Hex("transaction", t.id[:]).Err(why).Msg("transaction rolled back")
	t.rollback(nil, 0)
}

// rollback undoes the transaction. False: the confirmer hears when that holds.
func (t *transaction) rollback(confirm engine.Confirmer, ticket uint64) bool {
	t.leaveLinks(true)
	return t.work.Rollback(confirm, ticket)
}

// leaveLinks has the links forget the transaction, which has ended.
func (t *transaction) leaveLinks(rollback bool) {
	t.acquireNoMore()
	for o := range t.links {
		var said []*late
		maps.DeleteFunc(o.enlisted, func(_ *queue.Entry, e enlisted) bool {
			if e.transaction == t && e.late != nil {
				said = append(said, e.late)
			}
			return e.transaction == t
		})
		if o.acquired {
			o.withdrawn(o.link.EndAcquisition(t.id[:], rollback))
		}
		if rollback {
			o.sayLate(said)
		}
	}
	t.links = nil
}

// sayLate has what was said meanwhile count, now that the deliveries are the link's again.
func (o *outgoing) sayLate(said []*late) {
	slices.SortFunc(said, func(a, b *late) int { return cmp.Compare(int32(a.id-b.id), 0) })
	for _, l := range said {
		o.settle(l.settlement, l.verdict)
		if !l.settled {
			o.ids, o.answer = append(o.ids, l.id), l.answer
		}
	}
}

// acquireNoMore has links acquire under no transaction any more [4.4.3].
func (t *transaction) acquireNoMore() {
	for o := range t.links {
		if o.acquiring == t {
			o.acquiring = nil
		}
	}
}

// settleSpoken settles what the peer has left for us to settle, now that the transaction holds.
func (t *transaction) settleSpoken() {
	for _, d := range t.spoken {
		d.session.Settle(d.id, d.answer)
	}
	t.spoken = nil
}

// touch notes that a link has to hear of the transaction's end.
func (t *transaction) touch(o *outgoing) {
	if t.links == nil {
		t.links = make(map[*outgoing]struct{})
	}
	t.links[o] = struct{}{}
}
