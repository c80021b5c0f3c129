package amqp

import (
	"bytes"

	"github.com/letomq/leto/codec"
)

// EndAcquisition ends, at this link, a transaction under which it has sent
// deliveries [4.4.3]. After a commit they are deliveries like others. After a
// rollback they are none any more: those that the peer hasn't settled are
// settled without a state, one that has frames on the wire is aborted, as soon
// as the window allows, and those not begun are taken off the link and returned.
func (l *Link) EndAcquisition(txn []byte, rollback bool) (unsent []Sending) {
	if l.dropped || l.role != codec.RoleSender {
		return nil
	}
	s := l.session
	if rollback && l.live() && l.outStarted && bytes.Equal(l.queue.front().TxnID, txn) {
		s.outgoing.remove(l.outID)
		s.conn.queued -= l.queue.front().size()
		l.queue.blank()
		l.outAborted = true
		if s.window.outgoing > 0 {
			l.sendAbort()
		}
	}
	if rollback {
		unsent = l.queue.withdraw(l.started(), txn)
		for i := range unsent {
			s.conn.queued -= unsent[i].size()
		}
		l.finishDrain()
	} else {
		l.queue.commit(txn)
	}
	s.outgoing.each(func(id uint32, d sent) {
		switch {
		case d.link != l || !bytes.Equal(d.txn, txn):
		case rollback:
			s.Settle(id, codec.Outcome{})
		default:
			d.txn = nil
			s.outgoing.set(id, d)
		}
	})
	return unsent
}

// started returns how many of the queue's deliveries have frames on the wire.
func (l *Link) started() int {
	if l.outStarted {
		return 1
	}
	return 0
}

// withdraw takes out the deliveries of a transaction behind the first few.
func (q *fifo) withdraw(behind int, txn []byte) (out []Sending) {
	kept := q.head + behind
	for i := kept; i < len(q.items); i++ {
		if m := q.items[i]; bytes.Equal(m.TxnID, txn) {
			out = append(out, m)
			q.bytes -= m.size()
		} else {
			q.items[kept] = m
			kept++
		}
	}
	clear(q.items[kept:])
	q.items = q.items[:kept]
	if q.head == kept {
		q.items, q.head = q.items[:0], 0
	}
	return out
}

// commit has the deliveries of a transaction belong to none.
func (q *fifo) commit(txn []byte) {
	for i := q.head; i < len(q.items); i++ {
		if m := &q.items[i]; bytes.Equal(m.TxnID, txn) {
			m.TxnID = nil
		}
	}
}
