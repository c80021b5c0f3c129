package wire

import (
	"fmt"
	"slices"
)

// chunk is how much payload one transfer carries at most.
const chunk = 16 << 10

// Sender is a raw sending link, one delivery at a time.
type Sender struct {
	conn   *Conn
	handle uint32
	sent   uint32 // deliveries on this link
	credit int64
}

// NewSender attaches a sender and waits for credit.
func NewSender(c *Conn, handle uint32, name, address string) (*Sender, error) {
	if err := c.Send(AttachSender(handle, name, address)); err != nil {
		return nil, err
	}
	if _, err := c.Await(CodeAttach); err != nil {
		return nil, err
	}
	s := &Sender{conn: c, handle: handle}
	return s, s.refill()
}

// refill waits for credit.
func (s *Sender) refill() error {
	for s.credit <= 0 {
		flow, err := s.conn.Await(CodeFlow)
		if err != nil {
			return err
		}
		s.granted(flow)
	}
	return nil
}

// granted takes a flow into account [2.6.7].
func (s *Sender) granted(flow Frame) {
	if flow.Field(4) != nil && flow.Number(4) == uint64(s.handle) {
		s.credit = int64(flow.Number(6)) - int64(s.sent-uint32(flow.Number(5)))
	}
}

// Deliver sends a message cut at the given offsets, one transfer for each piece, and
// returns the peer's disposition or detach.
func (s *Sender) Deliver(message []byte, cuts ...int) (Frame, error) {
	if err := s.refill(); err != nil {
		return Frame{}, err
	}
	cuts = append(slices.Clone(cuts), len(message))
	var frames []byte
	from := 0
	for i, to := range cuts {
		more := i < len(cuts)-1
		if i == 0 {
			frames = append(frames, Transfer(s.handle, s.conn.next, more, message[from:to])...)
		} else {
			frames = append(frames, Continue(s.handle, more, message[from:to])...)
		}
		from = to
	}
	if err := s.conn.Send(frames); err != nil {
		return Frame{}, err
	}
	s.conn.next++
	s.sent++
	s.credit--
	for {
		answer, err := s.conn.Await(CodeDisposition, CodeDetach, CodeFlow)
		if err != nil {
			return answer, err
		}
		if answer.Code != CodeFlow {
			return answer, nil
		}
		s.granted(answer)
	}
}

// Send delivers a message in transfers of ordinary size; anything but accepted is an error.
func (s *Sender) Send(message []byte) error {
	var cuts []int
	for at := chunk; at < len(message); at += chunk {
		cuts = append(cuts, at)
	}
	answer, err := s.Deliver(message, cuts...)
	if err != nil {
		return err
	}
	if outcome, _ := answer.Outcome(); outcome != CodeAccepted {
		return fmt.Errorf("delivery %d: not accepted: frame %#x, state % x", s.conn.next-1, answer.Code, answer.Field(4))
	}
	return nil
}

// Outcome is the code of a disposition's state, and whether there is one.
func (f Frame) Outcome() (uint64, bool) {
	if f.Code != CodeDisposition {
		return 0, false
	}
	code, _, err := Code(f.Field(4))
	return code, err == nil
}

// Delivery is one message that arrived.
type Delivery struct {
	ID      uint32
	Tag     string
	Message []byte
}

// Receiver is a raw receiving link, the only one of its connection.
type Receiver struct {
	conn    *Conn
	pending *Delivery
}

// NewReceiver attaches a receiver and grants it credit.
func NewReceiver(c *Conn, handle uint32, name, address string, credit uint32) (*Receiver, error) {
	if err := c.Send(AttachReceiver(handle, name, address)); err != nil {
		return nil, err
	}
	if _, err := c.Await(CodeAttach); err != nil {
		return nil, err
	}
	return &Receiver{conn: c}, c.Send(Flow(handle, 0, credit))
}

// Receive waits for a whole message.
func (r *Receiver) Receive() (Delivery, error) {
	for {
		transfer, err := r.conn.Await(CodeTransfer)
		if err != nil {
			return Delivery{}, err
		}
		if r.pending == nil {
			tag, _ := Text(transfer.Field(2))
			r.pending = &Delivery{ID: uint32(transfer.Number(1)), Tag: tag}
		}
		r.pending.Message = append(r.pending.Message, transfer.Payload...)
		if transfer.Number(5) == 0 {
			done := *r.pending
			r.pending = nil
			return done, nil
		}
	}
}

// Accept receives a message and accepts it.
func (r *Receiver) Accept() (Delivery, error) {
	d, err := r.Receive()
	if err != nil {
		return d, err
	}
	return d, r.conn.Send(Settle(d.ID, d.ID, CodeAccepted))
}
