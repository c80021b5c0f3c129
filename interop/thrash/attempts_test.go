package thrash

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/interop/wire"
)

// hasty is one of a crowd with much credit that gives bad messages back as fast as it can: it reads and writes many frames
// at a time.
type hasty struct {
	*line
	crowd  *crowd
	credit uint32
	out    []byte

	came, granted uint32
	bad           []uint32 // deliveries that are to be given back

	// of one that rolls back
	sent, allowed uint32   // on the link to the coordinator
	under         []byte   // the transaction
	retired       []uint32 // deliveries in it
	busy          bool     // something is on its way to the coordinator
}

// way is how bad messages are given back. It is called when all that has come is read; an error ends the consumer, and
// errDrop has it come again.
type way func(*hasty) error

var errDrop = fmt.Errorf("the consumer drops its connection")

func state(code uint64, fields ...[]byte) []byte { return wire.Described(code, wire.List(fields...)) }

// settle appends dispositions of what is bad, one for each.
func settle(outcome []byte) way {
	return func(h *hasty) error {
		for _, d := range h.bad {
			h.out = append(h.out, disposition(d, true, outcome)...)
		}
		h.bad = h.bad[:0]
		return nil
	}
}

func disposition(delivery uint32, settled bool, state []byte) []byte {
	return wire.NewFrame(0, 0, wire.Described(wire.CodeDisposition,
		wire.List(wire.Bool(true), wire.Uint(delivery), wire.Null(), wire.Bool(settled), state)), nil)
}

// drop ends the connection, whatever is unsettled.
func drop(h *hasty) error {
	if len(h.bad) > 0 {
		return errDrop
	}
	return nil
}

// rollBack accepts what is bad in a transaction that is rolled back.
func rollBack(h *hasty) error {
	if !h.busy && h.under == nil && len(h.bad) > 0 && h.sent < h.allowed {
		h.out = append(h.out, wire.Transfer(1, h.sent, false, wire.Declare())...)
		h.sent++
		h.busy = true
	}
	if !h.busy && h.under != nil && h.sent < h.allowed {
		h.retired, h.bad = append(h.retired[:0], h.bad...), h.bad[:0]
		for _, d := range h.retired {
			h.out = append(h.out, disposition(d, false, wire.Under(h.under, state(wire.CodeAccepted)))...)
		}
		h.out = append(h.out, wire.Transfer(1, h.sent, false, wire.Discharge(h.under, true))...)
		h.sent++
		h.busy = true
	}
	return nil
}

// answered takes in what the coordinator says. What was rolled back is still the consumer's, who gives it back.
func (h *hasty) answered(f wire.Frame) error {
	code, fields, err := wire.Code(f.Field(4))
	if err != nil {
		return err
	}
	h.busy = false
	switch code {
	case wire.CodeDeclared:
		items, err := wire.Items(fields)
		if err != nil {
			return err
		}
		id, _ := wire.Text(items[0])
		h.under = []byte(id)
	case wire.CodeAccepted:
		h.under = nil
		for _, d := range h.retired {
			h.out = append(h.out, wire.Settle(d, d, wire.CodeReleased)...)
		}
	default:
		return fmt.Errorf("the coordinator answers %#x", code)
	}
	return nil
}

// flow grants credit, as a session does that sends as well [2.5.6].
func (h *hasty) flow() []byte {
	return wire.NewFrame(0, 0, wire.Described(wire.CodeFlow, wire.List(wire.Uint(0), wire.Uint(1<<31-1), wire.Uint(h.sent), wire.Uint(1<<31-1),
		wire.Uint(0), wire.Uint(h.came), wire.Uint(h.credit))), nil)
}

// work takes messages until there is an error, or the broker closes.
func (h *hasty) work(give way) error {
	h.out = h.flow()
	for {
		if h.r.Buffered() == 0 {
			if err := give(h); err != nil {
				return err
			}
			if h.came-h.granted > h.credit/4 {
				h.granted = h.came
				h.out = append(h.out, h.flow()...)
			}
			if _, err := h.Write(h.out); err != nil {
				return err
			}
			h.out = h.out[:0]
		}
		f, err := h.next()
		switch {
		case err != nil:
			return err
		case f.Code == wire.CodeTransfer:
			h.came++
			if err := h.take(uint32(f.Number(1)), f.Payload); err != nil {
				return err
			}
		case f.Code == wire.CodeFlow && f.Field(4) != nil && f.Number(4) == 1:
			h.allowed = uint32(f.Number(5) + f.Number(6))
		case f.Code == wire.CodeDisposition && f.Number(0) == 1:
			if err := h.answered(f); err != nil {
				return err
			}
		}
	}
}

// take accepts what is good, and keeps what is bad for later.
func (h *hasty) take(delivery uint32, message []byte) error {
	id := number(message)
	if id == 0 {
		h.out = append(h.out, wire.Settle(delivery, delivery, wire.CodeAccepted)...)
		h.crowd.accepted()
		return nil
	}
	count := uint64(0)
	m, err := wire.Split(message)
	if err != nil {
		return err
	}
	if m.Header != nil {
		_, fields, err := wire.Code(m.Header)
		if err != nil {
			return err
		}
		items, err := wire.Items(fields)
		if err != nil {
			return err
		}
		if len(items) > 4 {
			count, _ = wire.Number(items[4])
		}
	}
	h.crowd.attempted(uint32(id), uint32(count))
	h.bad = append(h.bad, delivery)
	return nil
}

// haste has the crowd give back whatever is bad until the test ends.
func (c *crowd) haste(credit uint32, give way) {
	ended := make(chan struct{})
	var group sync.WaitGroup
	var mu sync.Mutex
	lines := map[*line]struct{}{}
	over := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	for i := range c.size.consumers {
		group.Go(func() {
			for !over() {
				l, err := connect(c.broker.AMQP, fmt.Sprint("hasty-", i), wire.AttachReceiver(0, "in", orders))
				if err == nil {
					mu.Lock()
					lines[l] = struct{}{}
					mu.Unlock()
					h := &hasty{line: l, crowd: c, credit: credit}
					if _, err = l.Write(wire.AttachControl(1, "control")); err == nil {
						err = h.work(give)
					}
					mu.Lock()
					delete(lines, l)
					mu.Unlock()
					_ = l.Close()
				}
				if err != errDrop && !over() {
					c.fault("consumer %d: %v", i, err)
					return
				}
			}
		})
	}
	c.t.Cleanup(func() {
		close(ended)
		mu.Lock()
		for l := range lines {
			_ = l.Close()
		}
		mu.Unlock()
		group.Wait()
	})
}

// TestAttempts has a crowd with much credit fail whatever is bad as fast as it can, without a delay: each is tried as often
// as the settings say, and then is a dead letter, in whatever way it fails. That costs so much at most for each attempt.
func TestAttempts(t *testing.T) {
	const tries = 10
	settings := `
address-settings:
  - match: orders
    max-delivery-attempts: 10
    redelivery-delay: 0
`
	for _, c := range []struct {
		name     string
		settings string
		give     way
		reason   string
	}{
		{"failed", "", settle(state(wire.CodeModified, wire.Bool(true))), ""},
		{"rejected", "    reject-policy: redeliver\n", settle(state(wire.CodeRejected)), "; rejected"},
		{"rolled back", "", rollBack, ""},
		{"lost", "", drop, ""},
	} {
		for _, durable := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, durable=%v", c.name, durable), func(t *testing.T) {
				s := sizeOf(t)
				s.good /= 10
				crowd := gather(t, s, durable, settings+c.settings)
				before, err := crowd.broker.CPU()
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				crowd.haste(1000, c.give)
				if c.name == "lost" { // others are unsettled when a bad one comes, and die as well
					crowd.allDead(tries)
				} else {
					crowd.dead(tries, fmt.Sprintf("max-delivery-attempts reached: %d", tries)+c.reason)
					select {
					case <-crowd.done:
					case <-crowd.ctx.Done():
						t.Fatalf("%d of %d good messages", crowd.good.Load(), s.good)
					}
				}
				took := time.Since(begun)
				after, err := crowd.broker.CPU()
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d good and %d bad, %d consumers: %d attempts in %.2f s, broker's CPU %.2f s", s.good, s.bad, s.consumers,
					crowd.came.Load(), took.Seconds(), (after - before).Seconds())
				crowd.check()
			})
		}
	}
}

// allDead waits until every message was accepted or is a dead letter that was tried n times.
func (c *crowd) allDead(n int) {
	c.t.Helper()
	conn, s := c.session()
	defer conn.Close()
	from, err := s.NewReceiver(c.ctx, "DLQ", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	bad := map[uint32]bool{}
	for good := int64(0); len(bad) < c.size.bad || good+c.good.Load() < int64(c.size.good); {
		m, err := from.Receive(c.ctx, nil)
		if err != nil {
			c.t.Fatalf("%d of %d dead letters; good ones: %d dead, %d of %d accepted: %v", len(bad), c.size.bad, good, c.good.Load(), c.size.good, err)
		}
		if m.Header == nil || m.Header.DeliveryCount != uint32(n) {
			c.t.Fatalf("a message is dead with header %+v, want count %d", m.Header, n)
		}
		if id := binary.BigEndian.Uint32(m.GetData()); id == 0 {
			good++
		} else if bad[id] {
			c.t.Fatalf("message %d is dead twice", id)
		} else {
			bad[id] = true
		}
		if err := from.AcceptMessage(c.ctx, m); err != nil {
			c.t.Fatal(err)
		}
	}
}
