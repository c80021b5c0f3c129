package amqp_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/amqp/amqptest"
	"github.com/letomq/leto/codec"
)

// route is a pair with one link from the client to the server, or back.
type route struct {
	*amqptest.Pair
	sender, receiver *amqp.Link
	arrived          func([]byte)
	message          []byte
	outcomes         int
	top              uint32 // credit is kept at this
}

func newRoute(t *testing.T, client, server amqp.Config, fromServer bool) *route {
	r := &route{Pair: amqptest.NewPair(client, server), arrived: func([]byte) {}, top: 100}
	attached := func(l *amqp.Link) {
		if l.Sender() {
			r.sender = l
		} else {
			r.receiver = l
			l.Grant(r.top)
		}
	}
	handle := func(e *amqptest.End) func(*amqp.Event) {
		return func(ev *amqp.Event) {
			switch ev.Kind {
			case amqp.EventOpened:
				e.Conn.Accept(nil)
				if e == r.Client {
					e.Conn.Begin()
				}
			case amqp.EventBegun:
				if e == r.Client {
					ev.Session.Attach("route", codec.Role(fromServer), amqp.Terms{SndSettleMode: codec.SettleMixed})
				}
			case amqp.EventAttached:
				ev.Link.Accept(amqp.Terms{SndSettleMode: codec.SettleMixed})
				attached(ev.Link)
			case amqp.EventTransfer:
				r.message = append(r.message, ev.Payload...)
				if !ev.Last {
					return
				}
				r.arrived(r.message)
				r.message = r.message[:0]
				if !ev.Settled {
					ev.Session.Dispose(ev.DeliveryID, codec.Outcome{Kind: codec.StateAccepted})
				}
				if ev.Link.Credit() <= int64(r.top)/2 {
					ev.Link.Grant(r.top)
				}
			case amqp.EventOutcome:
				r.outcomes++
			case amqp.EventFlow:
			default:
				t.Fatalf("event %d: %v", ev.Kind, ev.Err)
			}
		}
	}
	r.Client.Handle, r.Server.Handle = handle(r.Client), handle(r.Server)
	r.Settle(100)
	return r
}

// TestCase085_WindowForever sends 200,000 transfers through a window of 100,
// honoured to the frame.
func TestCase085_WindowForever(t *testing.T) {
	cfg := amqp.Defaults()
	cfg.IncomingWindow = 100
	r := newRoute(t, amqp.Defaults(), cfg, false)
	arrived := 0
	r.arrived = func([]byte) { arrived++ }
	for range 2000 {
		for range 100 {
			r.sender.Send(amqp.Sending{Body: []byte("x"), Settled: true})
		}
		r.Settle(1000)
	}
	if arrived != 200_000 {
		t.Errorf("%d arrived", arrived)
	}
}

// TestCase164_EchoFlood writes 100,000 flows that ask for an echo in one burst.
func TestCase164_EchoFlood(t *testing.T) {
	s := newSteady(t)
	var burst []byte
	for i := range 100_000 {
		f := codec.Flow{NextIncomingID: codec.Some[uint32](0), IncomingWindow: 1000, OutgoingWindow: 1000, Echo: true}
		if i%2 == 0 {
			f.Handle, f.LinkCredit = codec.Some(uint32(i/2%2)), codec.Some[uint32](5)
		}
		burst = amqptest.AppendFrame(burst, codec.FrameAMQP, 0, &f, nil)
	}
	s.feed(burst)
	if n := s.output(); n == 0 || n > 3*60 {
		t.Errorf("%d octets answer the flood", n)
	}
}

// TestCase169_MultiFrame moves messages of 1 KiB to 10 MiB in frames of 512.
func TestCase169_MultiFrame(t *testing.T) {
	small := amqp.Defaults()
	small.MaxFrameSize = 512
	for _, fromServer := range []bool{false, true} {
		r := newRoute(t, small, amqp.Defaults(), fromServer)
		random := rand.NewChaCha8([32]byte{1})
		for _, size := range []int{1 << 10, 64 << 10, 1 << 20, 10 << 20} {
			body := make([]byte, size)
			random.Read(body)
			arrived := 0
			r.arrived = func(m []byte) {
				arrived++
				if !bytes.Equal(m, body) {
					t.Errorf("%d octets: %d arrived, or others", size, len(m))
				}
			}
			r.sender.Send(amqp.Sending{Head: body[:100], Body: body[100:]})
			r.Settle(10_000)
			if arrived != 1 {
				t.Errorf("%d octets: arrived %d times", size, arrived)
			}
		}
		if r.outcomes != 4 {
			t.Errorf("%d outcomes", r.outcomes)
		}
	}
}

// TestCase277_Aborts gives up 10,000 deliveries half-way; the session's
// counters stay right.
func TestCase277_Aborts(t *testing.T) {
	cfg := amqp.Defaults()
	cfg.Server, cfg.IncomingWindow = true, 10
	s := newFuzzShell(t)
	aborted, failed := 0, 0
	s.conn = amqp.New(cfg, s.now)
	s.acts = func(ev *amqp.Event) {
		switch ev.Kind {
		case amqp.EventAborted:
			aborted++
			ev.Link.Grant(1)
		case amqp.EventFailed, amqp.EventSessionFailed, amqp.EventLinkFailed:
			t.Error(ev.Err)
			failed++
		default:
			s.act(ev)
		}
	}
	frame := func(p amqptest.Performative) {
		s.feed(amqptest.AppendFrame(nil, codec.FrameAMQP, 0, p, nil), 1<<20)
	}
	s.feed(codec.HeaderAMQP[:], 8)
	frame(&codec.Open{ContainerID: "peer", MaxFrameSize: 512})
	frame(&codec.Begin{IncomingWindow: 10})
	frame(&codec.Attach{Name: "l", SndSettleMode: codec.SettleMixed, InitialDeliveryCount: codec.Some[uint32](0)})
	for id := uint32(0); id < 10_000 && failed == 0; id++ {
		frame(&codec.Transfer{DeliveryID: codec.Some(id), DeliveryTag: []byte{1}, More: true})
		frame(&codec.Transfer{Aborted: true})
	}
	if aborted != 10_000 {
		t.Errorf("%d were aborted", aborted)
	}
	frame(&codec.Flow{NextIncomingID: codec.Some[uint32](0), NextOutgoingID: 20_000})
	if failed > 0 {
		t.Error("the counters don't agree")
	}
}

// TestSplitEverywhere cuts one message into two transfers at every octet, and
// the stream that carries it at every octet.
func TestSplitEverywhere(t *testing.T) {
	message := make([]byte, 3<<10)
	for i := range message {
		message[i] = byte(i * 7)
	}
	start := func() []byte {
		b := append([]byte(nil), codec.HeaderAMQP[:]...)
		b = amqptest.AppendFrame(b, codec.FrameAMQP, 0, &codec.Open{ContainerID: "peer", MaxFrameSize: 512}, nil)
		b = amqptest.AppendFrame(b, codec.FrameAMQP, 0, &codec.Begin{IncomingWindow: 10}, nil)
		return amqptest.AppendFrame(b, codec.FrameAMQP, 0, &codec.Attach{Name: "l", SndSettleMode: codec.SettleMixed, InitialDeliveryCount: codec.Some[uint32](0)}, nil)
	}()
	stream := func(cut int) []byte {
		first := codec.Transfer{DeliveryID: codec.Some[uint32](0), DeliveryTag: []byte{1}, More: true}
		b := amqptest.AppendFrame(append([]byte(nil), start...), codec.FrameAMQP, 0, &first, message[:cut])
		return amqptest.AppendFrame(b, codec.FrameAMQP, 0, &codec.Transfer{}, message[cut:])
	}
	check := func(what string, at int, segments ...[]byte) {
		s := newFuzzShell(t)
		var got []byte
		done := 0
		s.acts = func(ev *amqp.Event) {
			s.act(ev)
			got = append(got, ev.Payload...)
			if ev.Last {
				done++
			}
		}
		for _, b := range segments {
			s.feed(b, 1<<20)
		}
		if done != 1 || !bytes.Equal(got, message) {
			t.Fatalf("%s at %d: arrived %d times, %d octets", what, at, done, len(got))
		}
	}
	for cut := range len(message) + 1 {
		check("message cut", cut, stream(cut))
	}
	b := stream(1000)
	for cut := range len(b) + 1 {
		check("stream cut", cut, b[:cut], b[cut:])
	}
}
