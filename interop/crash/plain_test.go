package crash

import (
	"bytes"
	"fmt"

	"github.com/letomq/leto/interop/wire"
)

// plain makes the durable message of that name, of about some size.
func plain(n name, size int) []byte {
	text := "<" + n.String() + ">"
	return bytes.Join([][]byte{
		wire.Described(wire.SectionHeader, wire.List(wire.Bool(true))),
		wire.Described(wire.SectionProperties, wire.List(wire.String(n.String()))),
		wire.Described(wire.SectionData, wire.Binary(bytes.Repeat([]byte(text), 1+size/len(text)))),
	}, nil)
}

// readPlain returns which message arrives, and its delivery-count. What it carries is compared with what was sent.
func readPlain(b []byte, size int) (n name, count uint32, m wire.Message, err error) {
	return readSized(b, func(name) int { return size })
}

// readSized is readPlain for messages whose size depends on their name.
func readSized(b []byte, size func(name) int) (n name, count uint32, m wire.Message, err error) {
	if m, err = wire.Split(b); err != nil {
		return n, 0, m, err
	}
	if n, err = nameOf(m.Bare); err != nil {
		return n, 0, m, err
	}
	sent, err := wire.Split(plain(n, size(n)))
	if err == nil && !bytes.Equal(sent.Bare, m.Bare) {
		err = fmt.Errorf("message %v: another one than was sent", n)
	}
	if err != nil || m.Header == nil {
		return n, 0, m, err
	}
	_, list, err := wire.Code(m.Header)
	if err != nil {
		return n, 0, m, err
	}
	fields, err := wire.Items(list)
	header := wire.Frame{Fields: fields}
	return n, uint32(header.Number(4)), m, err
}

// feed is a sending link with handle 0, the only one of its connection, many messages ahead of what is answered.
type feed struct {
	conn   *wire.Conn
	sent   uint32
	credit int64
	open   map[uint32]name
	answer func(name) // is told what is accepted
}

// feedAhead is how many messages a feed has unanswered at most.
const feedAhead = 100

func newFeed(b *broker, address string, answer func(name)) (*feed, error) {
	return newFeedFrom(b, "feed of "+address, address, answer)
}

// newFeedFrom connects with a container-id.
func newFeedFrom(b *broker, id, address string, answer func(name)) (*feed, error) {
	conn, err := wire.Connect(b.AMQP, id)
	if err != nil {
		return nil, err
	}
	if err := conn.Send(wire.AttachSender(0, "out", address)); err != nil {
		conn.Close()
		return nil, err
	}
	return &feed{conn: conn, open: map[uint32]name{}, answer: answer}, nil
}

func (s *feed) send(n name, message []byte) error {
	for s.credit <= 0 || len(s.open) >= feedAhead {
		if err := s.hear(); err != nil {
			return err
		}
	}
	s.open[s.sent] = n
	err := s.conn.Send(wire.Transfer(0, s.sent, false, message))
	s.sent++
	s.credit--
	if err != nil {
		for s.hear() == nil { // what the broker has said before it went still counts
		}
	}
	return err
}

// hear reads one frame that answers or grants credit.
func (s *feed) hear() error {
	f, err := s.conn.Await(wire.CodeDisposition, wire.CodeFlow)
	if err != nil {
		return err
	}
	if f.Code == wire.CodeFlow {
		if f.Field(4) != nil {
			s.credit = int64(f.Number(6)) - int64(s.sent-uint32(f.Number(5)))
		}
		return nil
	}
	code, _ := f.Outcome()
	for id := range covered(&f) {
		if code != wire.CodeAccepted {
			return fmt.Errorf("message %v is refused: %q", s.open[id], f.Field(4))
		}
		s.answer(s.open[id])
		delete(s.open, id)
	}
	return nil
}

// finish waits until all is answered.
func (s *feed) finish() error {
	for len(s.open) > 0 {
		if err := s.hear(); err != nil {
			return err
		}
	}
	return s.conn.Hangup()
}

// covered yields the deliveries that a disposition is about.
func covered(f *wire.Frame) func(yield func(uint32) bool) {
	first, last := uint32(f.Number(1)), uint32(f.Number(1))
	if f.Field(2) != nil {
		last = uint32(f.Number(2))
	}
	return func(yield func(uint32) bool) {
		for id := first; id <= last && yield(id); id++ {
		}
	}
}

// taker is a receiving link with handle 0, the only one of its connection. What it asks for the broker settles.
type taker struct {
	conn    *wire.Conn
	count   uint32
	credit  uint32
	drains  bool            // a drain isn't answered
	open    map[uint32]name // that somebody wants to know about when they are settled
	settled func(name)
	id      uint32 // of the delivery that has arrived in part
	partial []byte
}

// takerCredit is how many messages may come before any is settled.
const takerCredit = 400

func newTaker(b *broker, id string, o terms, settled func(name)) (*taker, error) {
	conn, refusal, err := attach(b, id, o)
	if refusal != "" {
		err = fmt.Errorf("attach refused: %s", refusal)
	}
	return &taker{conn: conn, open: map[uint32]name{}, settled: settled}, err
}

// next returns a message. With drain it is nil when a drain is answered: after takerCredit messages, or when there is
// no more. Settlements are heard on the way.
func (r *taker) next(drain bool) (id uint32, message []byte, err error) {
	for {
		if drain && !r.drains || !drain && r.credit < takerCredit/2 {
			r.credit, r.drains = takerCredit, drain
			if err := r.conn.Send(flow(r.count, takerCredit, drain)); err != nil {
				return 0, nil, err
			}
		}
		f, err := r.conn.Await(wire.CodeTransfer, wire.CodeDisposition, wire.CodeFlow)
		if err != nil {
			return 0, nil, err
		}
		switch f.Code {
		case wire.CodeTransfer:
			if r.partial == nil {
				r.id, r.partial = uint32(f.Number(1)), []byte{}
			}
			if r.partial = append(r.partial, f.Payload...); f.Number(5) == 1 {
				continue
			}
			r.count++
			r.credit--
			message, r.partial = r.partial, nil
			return r.id, message, nil
		case wire.CodeDisposition:
			r.hear(&f)
		case wire.CodeFlow:
			if f.Field(4) != nil && f.Number(6) == 0 && f.Number(8) != 0 {
				r.count, r.credit, r.drains = uint32(f.Number(5)), 0, false
				return 0, nil, nil
			}
		}
	}
}

func (r *taker) hear(f *wire.Frame) {
	if f.Number(3) != 1 {
		return
	}
	for id := range covered(f) {
		if n, ok := r.open[id]; ok {
			r.settled(n)
			delete(r.open, id)
		}
	}
}

// finish waits until all that was asked for is settled.
func (r *taker) finish() error {
	for len(r.open) > 0 {
		f, err := r.conn.Await(wire.CodeDisposition)
		if err != nil {
			return err
		}
		r.hear(&f)
	}
	return r.conn.Hangup()
}

// rest hears what the broker has said before it went.
func (r *taker) rest() {
	for {
		f, err := r.conn.Await(wire.CodeDisposition)
		if err != nil {
			return
		}
		r.hear(&f)
	}
}

// each browses a queue from its head to its end, whose messages are all of one size.
func each(b *broker, address string, size int, f func(n name, count uint32, m wire.Message)) error {
	return eachOf(b, address, func(name) int { return size }, f)
}

// eachOf is each for messages whose size depends on their name.
func eachOf(b *broker, address string, size func(name) int, f func(n name, count uint32, m wire.Message)) error {
	r, err := newTaker(b, "browser", terms{name: "look", address: address, browse: true}, nil)
	if err != nil {
		return err
	}
	defer r.conn.Close()
	var first, last uint32
	for more := true; ; {
		id, message, err := r.next(true)
		if err != nil {
			return err
		}
		if message == nil {
			if !more {
				return r.conn.Hangup()
			}
			if r.count > 0 { // what a browser has not settled is bounded
				err = r.conn.Send(disposition(first, last, true, outcome(accept, true)))
				if err != nil {
					return err
				}
			}
			first, more = last+1, false
			continue
		}
		last, more = id, true
		n, count, m, err := readSized(message, size)
		if err != nil {
			return err
		}
		f(n, count, m)
	}
}
