package amqp

import (
	"encoding/binary"

	"github.com/letomq/leto/codec"
)

// Sending is one delivery given to Link.Send. Header, Head and Body are written
// one behind the other; Head and Body must stay as they are until they are on the wire.
type Sending struct {
	// Header is a short first part that needs no memory of its own: the
	// message's header section.
	Header     [24]byte
	HeaderSize uint8
	Head, Body []byte
	Format     uint32
	Settled    bool
	// TxnID is the transaction under which the message was acquired [4.4.3];
	// nil: none. It must stay as it is.
	TxnID []byte
	// Ref and RefN come back with the delivery's outcome.
	Ref  any
	RefN uint64
}

func (m *Sending) size() int { return int(m.HeaderSize) + len(m.Head) + len(m.Body) }

// sent is an unsettled outgoing delivery.
type sent struct {
	link     *Link
	ref      any
	refN     uint64
	txn      []byte // under which it was acquired, while that isn't discharged
	terminal bool   // the receiver's outcome arrived, our settlement is due
}

// fifo is a queue of deliveries waiting for a window, credit or output space.
type fifo struct {
	items []Sending
	head  int
	bytes int
}

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) push(m Sending) {
	if q.head > 0 && q.head*2 >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, m)
	q.bytes += m.size()
}

func (q *fifo) front() *Sending { return &q.items[q.head] }

func (q *fifo) pop() {
	m := q.front()
	q.bytes -= m.size()
	*m = Sending{}
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}

// blank leaves nothing of the first one but its place.
func (q *fifo) blank() {
	m := q.front()
	q.bytes -= m.size()
	*m = Sending{}
}

// pullBack takes the last one out again.
func (q *fifo) pullBack() Sending {
	last := len(q.items) - 1
	m := q.items[last]
	q.bytes -= m.size()
	q.items[last] = Sending{}
	q.items = q.items[:last]
	if q.head == last {
		q.items, q.head = q.items[:0], 0
	}
	return m
}

// TakeBack returns a delivery given to Send for credit that the receiver has
// withdrawn since, the last first; false when there is none. Deliveries with
// frames on the wire go on.
func (l *Link) TakeBack() (Sending, bool) {
	if l.role != codec.RoleSender || l.Credit() >= 0 || l.Queued() == 0 {
		return Sending{}, false
	}
	m := l.queue.pullBack()
	l.session.conn.queued -= m.size()
	return m, true
}

// Queued returns how many deliveries given to Send have no frame on the wire yet.
func (l *Link) Queued() int {
	return l.queue.len() - l.started()
}

// Send sends one delivery, now or when windows allow; the order of calls is
// kept. The caller sends no more than Credit allows. False: the link isn't attached.
func (l *Link) Send(m Sending) bool {
	if !l.live() || l.role != codec.RoleSender {
		return false
	}
	c := l.session.conn
	l.queue.push(m)
	c.queued += m.size()
	l.startSending()
	return true
}

func (l *Link) startSending() {
	if !l.sendingDue {
		l.sendingDue = true
		l.session.sending = append(l.session.sending, l)
	}
	l.session.wantPump()
}

// wantPump has the next Output send the session's queued transfers.
func (s *Session) wantPump() {
	if !s.pumpDue && len(s.sending) > 0 && s.window.outgoing > 0 {
		s.pumpDue = true
		s.conn.pumping = append(s.conn.pumping, s)
	}
}

// pump writes queued transfers up to quantum bytes, a frame a link at a time
// so that no long delivery holds up the other links [2.6.14].
func (s *Session) pump(quantum int) {
	c := s.conn
	if s.endSent || !s.mapped {
		return
	}
	start := len(c.out)
	for len(s.sending) > 0 && s.window.outgoing > 0 {
		if len(c.out)-start >= quantum || len(c.out) >= c.cfg.OutputLimit {
			s.wantPump()
			return
		}
		l := s.sending[0]
		single := len(s.sending) == 1
		more := l.sendFrames(single, start+quantum)
		if !single || !more {
			copy(s.sending, s.sending[1:])
			s.sending[len(s.sending)-1] = nil
			s.sending = s.sending[:len(s.sending)-1]
			l.sendingDue = more
			if more {
				s.sending = append(s.sending, l)
			}
		}
	}
}

// sendFrames writes the next frame of the link; all it may up to a length of
// the output when alone. False: the link has nothing more to send for now.
func (l *Link) sendFrames(alone bool, until int) bool {
	c := l.session.conn
	for l.queue.len() > 0 && l.live() {
		if !l.outStarted && l.credit <= 0 {
			l.finishDrain()
			return false
		}
		l.sendFrame()
		if !alone || l.session.window.outgoing == 0 || len(c.out) >= min(until, c.cfg.OutputLimit) {
			if l.queue.len() == 0 {
				l.finishDrain()
				return false
			}
			return true
		}
	}
	l.finishDrain()
	return false
}

// sendFrame writes one transfer frame of the queue's head.
func (l *Link) sendFrame() {
	if l.outAborted {
		l.sendAbort()
		return
	}
	s, c := l.session, l.session.conn
	m := l.queue.front()
	start := len(c.out)
	t := &c.outTransfer
	*t = codec.Transfer{Handle: l.handle}
	if !l.outStarted {
		copy(c.outTag[:], c.cfg.TagPrefix[:])
		binary.BigEndian.PutUint64(c.outTag[8:], c.tags)
		c.tags++
		t.DeliveryID = codec.Some(s.nextDeliveryID)
		t.DeliveryTag = c.outTag[:]
		t.MessageFormat = codec.Some(m.Format)
		t.Settled = codec.Some(m.Settled)
	}
	if m.TxnID != nil {
		t.State.Transactional, t.State.TxnID = true, m.TxnID
	}
	c.out = codec.BeginFrame(c.out, codec.FrameAMQP, s.channel)
	body := len(c.out)
	c.out = t.Append(c.out)
	left := m.size() - l.outSent
	room := int(c.peerFrameSize) - (len(c.out) - start)
	if left > room {
		// more is one byte wide either way: the length stays.
		t.More = true
		c.out = t.Append(c.out[:body])
		left = room
	}
	l.appendPayload(m, left)
	codec.EndFrame(c.out, start)
	c.FramesOut++
	s.window.sent()

	if !l.outStarted {
		l.outStarted, l.outID = true, s.nextDeliveryID
		l.deliveryCount++
		l.credit--
		if !m.Settled {
			s.outgoing.put(s.nextDeliveryID, sent{link: l, ref: m.Ref, refN: m.RefN, txn: m.TxnID})
		}
		s.nextDeliveryID++
	}
	if !t.More {
		l.outStarted, l.outSent = false, 0
		c.queued -= m.size()
		l.queue.pop()
	}
}

// appendPayload writes the next n bytes of the message.
func (l *Link) appendPayload(m *Sending, n int) {
	c := l.session.conn
	at := l.outSent
	for _, part := range [...][]byte{m.Header[:m.HeaderSize], m.Head, m.Body} {
		if at >= len(part) {
			at -= len(part)
			continue
		}
		part = part[at:min(len(part), at+n)]
		c.out = append(c.out, part...)
		l.outSent += len(part)
		n -= len(part)
		at = 0
	}
}

// sendAbort aborts the delivery that has frames on the wire, and of which nothing is left.
func (l *Link) sendAbort() {
	l.finishPartial()
	l.queue.pop()
	l.outStarted, l.outSent, l.outAborted = false, 0, false
}

// finishPartial aborts the delivery that has frames on the wire, so that the
// receiver doesn't wait for the rest.
func (l *Link) finishPartial() {
	if !l.outStarted || !l.live() || l.session.endSent {
		return
	}
	if l.session.window.outgoing == 0 {
		return // the detach itself tells the receiver
	}
	t := codec.Transfer{Handle: l.handle, Aborted: true}
	l.session.conn.write(l.session.channel, &t)
	l.session.window.sent()
}
