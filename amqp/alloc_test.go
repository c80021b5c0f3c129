package amqp_test

import (
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/amqp/amqptest"
	"github.com/letomq/leto/codec"
)

// steady is a server machine with one link each way and credit without end.
type steady struct {
	tb       testing.TB
	conn     *amqp.Conn
	now      time.Time
	in, out  *amqp.Link
	spare    []byte
	buf      []byte
	events   int
	outcomes int
}

func newSteady(tb testing.TB) *steady {
	cfg := amqp.Defaults()
	cfg.Server, cfg.IncomingWindow = true, 1<<31-1
	now := time.Unix(1_700_000_000, 0)
	s := &steady{tb: tb, conn: amqp.New(cfg, now), now: now}
	s.feed(codec.HeaderAMQP[:])
	s.frame(&codec.Open{ContainerID: "peer", MaxFrameSize: 65536, ChannelMax: 10}, nil)
	s.frame(&codec.Begin{IncomingWindow: 1<<32 - 1, OutgoingWindow: 1<<32 - 1, HandleMax: 10}, nil)
	s.frame(&codec.Attach{Name: "in", Handle: 0, SndSettleMode: codec.SettleMixed, InitialDeliveryCount: codec.Some[uint32](0)}, nil)
	s.frame(&codec.Attach{Name: "out", Handle: 1, Role: codec.RoleReceiver, SndSettleMode: codec.SettleMixed}, nil)
	s.in.Grant(1<<31 - 1)
	s.frame(&codec.Flow{NextIncomingID: codec.Some[uint32](0), IncomingWindow: 1<<32 - 1, OutgoingWindow: 1, Handle: codec.Some[uint32](1), LinkCredit: codec.Some[uint32](1<<32 - 1)}, nil)
	s.output()
	return s
}

func (s *steady) frame(p amqptest.Performative, payload []byte) {
	s.buf = amqptest.AppendFrame(s.buf[:0], codec.FrameAMQP, 0, p, payload)
	s.feed(s.buf)
}

func (s *steady) feed(b []byte) {
	for {
		n, ev := s.conn.Next(s.now, b)
		b = b[n:]
		if ev == nil {
			if len(b) > 0 {
				s.tb.Fatalf("%d octets left", len(b))
			}
			return
		}
		s.events++
		switch ev.Kind {
		case amqp.EventOpened:
			s.conn.Accept(nil)
		case amqp.EventAttached:
			ev.Link.Accept(amqp.Terms{SndSettleMode: codec.SettleMixed})
			if ev.Link.Sender() {
				s.out = ev.Link
			} else {
				s.in = ev.Link
			}
		case amqp.EventTransfer:
			if !ev.Settled {
				ev.Session.Dispose(ev.DeliveryID, codec.Outcome{Kind: codec.StateAccepted})
			}
		case amqp.EventOutcome:
			s.outcomes++
		case amqp.EventFailed, amqp.EventSessionFailed, amqp.EventLinkFailed:
			s.tb.Fatal(ev.Err)
		}
	}
}

func (s *steady) output() int {
	out := s.conn.Output(s.now, s.spare)
	if out != nil {
		s.spare = out[:0]
	}
	return len(out)
}

func transferFrame(id uint32, settled bool) []byte {
	t := codec.Transfer{DeliveryID: codec.Some(id), DeliveryTag: []byte{byte(id >> 8), byte(id)}, Settled: codec.Some(settled), MessageFormat: codec.Some[uint32](0)}
	return amqptest.AppendFrame(nil, codec.FrameAMQP, 0, &t, make([]byte, 100))
}

func wantAllocs(t *testing.T, what string, want float64, f func()) {
	t.Helper()
	for range 200 {
		f() // tables and buffers grow to their size
	}
	if got := testing.AllocsPerRun(200, f); got > want {
		t.Errorf("%s: %v allocations, not %v", what, got, want)
	}
}

// Case 262.
func TestAllocsTransferIn(t *testing.T) {
	s := newSteady(t)
	settled := transferFrame(0, true)
	wantAllocs(t, "settled transfer in", 0, func() { s.feed(settled); s.output() })

	s = newSteady(t)
	var batch []byte
	var tag [4]byte
	id := uint32(0)
	p := &codec.Transfer{MessageFormat: codec.Some[uint32](0)}
	wantAllocs(t, "64 unsettled transfers in, accepted", 0, func() {
		batch = batch[:0]
		for range 64 {
			tag[0], tag[1] = byte(id>>8), byte(id)
			p.DeliveryID, p.DeliveryTag = codec.Some(id), tag[:]
			batch = amqptest.AppendFrame(batch, codec.FrameAMQP, 0, p, nil)
			id++
		}
		s.feed(batch)
		s.output()
	})
}

// Case 262.
func TestAllocsTransferOut(t *testing.T) {
	s := newSteady(t)
	body := make([]byte, 200)
	wantAllocs(t, "settled transfer out", 0, func() {
		s.out.Send(amqp.Sending{Body: body, Settled: true})
		if s.output() == 0 {
			t.Fatal("nothing was written")
		}
	})
}

func TestAllocsDisposition(t *testing.T) {
	s := newSteady(t)
	body := make([]byte, 20)
	next := uint32(0)
	frame := []byte{}
	p := &codec.Disposition{Role: codec.RoleReceiver, Settled: true}
	p.State.Kind = codec.StateAccepted
	wantAllocs(t, "64 transfers out, accepted in one range", 0, func() {
		for range 64 {
			s.out.Send(amqp.Sending{Body: body, RefN: uint64(next)})
		}
		s.output()
		p.First, p.Last = next, codec.Some(next+63)
		frame = amqptest.AppendFrame(frame[:0], codec.FrameAMQP, 0, p, nil)
		before := s.outcomes
		s.feed(frame)
		if s.outcomes != before+64 {
			t.Fatalf("%d outcomes", s.outcomes-before)
		}
		next += 64
	})
}

// TestManyFramesOneDelivery: a delivery of endless small frames costs the
// machine no memory, and is capped when its frames are empty.
func TestManyFramesOneDelivery(t *testing.T) {
	s := newSteady(t)
	more := func(id codec.Opt[uint32], n int) []byte {
		p := codec.Transfer{DeliveryID: id, More: true}
		if id.Set {
			p.DeliveryTag = []byte{0}
		}
		return amqptest.AppendFrame(nil, codec.FrameAMQP, 0, &p, make([]byte, n))
	}
	s.feed(more(codec.Some[uint32](0), 1))
	next := more(codec.Opt[uint32]{}, 1)
	wantAllocs(t, "continuation", 0, func() { s.feed(next) })

	empty, failed := more(codec.Opt[uint32]{}, 0), 0
	for i := 1; failed == 0 && i < 5000; i++ {
		b := empty
		for len(b) > 0 {
			n, ev := s.conn.Next(s.now, b)
			b = b[n:]
			if ev != nil && ev.Kind == amqp.EventLinkFailed {
				if ev.Err.Condition != amqp.ConditionTransferLimitExceeded {
					t.Fatal(ev.Err)
				}
				failed = i
			}
		}
	}
	if failed != 1025 {
		t.Errorf("failed at empty frame %d, not 1025", failed)
	}
}

// BenchmarkPairPing moves one unsettled message from a client to a server and its
// outcome back.
func BenchmarkPairPing(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		name := "100B"
		if size > 100 {
			name = "10kB"
		}
		b.Run(name, func(b *testing.B) { benchPing(b, size) })
	}
}

func benchPing(b *testing.B, size int) {
	p := amqptest.NewPair(amqp.Defaults(), amqp.Defaults())
	var sender *amqp.Link
	done := 0
	p.Server.Handle = func(ev *amqp.Event) {
		switch ev.Kind {
		case amqp.EventOpened:
			p.Server.Conn.Accept(nil)
		case amqp.EventAttached:
			ev.Link.Accept(amqp.Terms{SndSettleMode: codec.SettleMixed})
			ev.Link.Grant(1000)
		case amqp.EventTransfer:
			if ev.Last {
				ev.Session.Dispose(ev.DeliveryID, codec.Outcome{Kind: codec.StateAccepted})
				if ev.DeliveryID%500 == 0 {
					ev.Link.Grant(1000)
				}
			}
		}
	}
	p.Client.Handle = func(ev *amqp.Event) {
		switch ev.Kind {
		case amqp.EventOpened:
			p.Client.Conn.Begin()
		case amqp.EventBegun:
			sender = ev.Session.Attach("ping", codec.RoleSender, amqp.Terms{SndSettleMode: codec.SettleMixed})
		case amqp.EventOutcome:
			done++
		case amqp.EventFailed, amqp.EventLinkFailed, amqp.EventSessionFailed:
			b.Fatal(ev.Err)
		}
	}
	p.Settle(100)
	body := make([]byte, size)
	batch := 1
	ping := func() {
		for range batch {
			sender.Send(amqp.Sending{Body: body})
		}
		p.Write(p.Client)
		p.Read(p.Server, 1<<30)
		p.Write(p.Server)
		p.Read(p.Client, 1<<30)
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		done = 0
		for b.Loop() {
			ping()
		}
		if done != b.N {
			b.Fatalf("%d of %d", done, b.N)
		}
	})
	batch = 64
	b.Run("batch64", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if n%batch == 0 {
				ping()
			}
			n++
		}
	})
}

// TestUnsettledLimit: a peer whose deliveries nobody settles is stopped.
func TestUnsettledLimit(t *testing.T) {
	s := newSteady(t)
	taken, failed := 0, false
	var frame []byte
	for id := uint32(0); id < 70_000 && !failed; id++ {
		p := codec.Transfer{DeliveryID: codec.Some(id), DeliveryTag: []byte{byte(id >> 16), byte(id >> 8), byte(id)}}
		frame = amqptest.AppendFrame(frame[:0], codec.FrameAMQP, 0, &p, nil)
		for b := frame; len(b) > 0; {
			n, ev := s.conn.Next(s.now, b)
			b = b[n:]
			switch {
			case ev == nil:
			case ev.Kind == amqp.EventTransfer:
				taken++
			case ev.Kind == amqp.EventSessionFailed && ev.Err.Condition == amqp.ConditionResourceLimitExceeded:
				failed = true
			default:
				t.Fatalf("event %d: %v", ev.Kind, ev.Err)
			}
		}
	}
	if taken != 65_536 || !failed {
		t.Errorf("%d taken, failed: %v", taken, failed)
	}
}

// TestOutputLimit: output is encoded ahead of the socket up to the limit and a
// frame, and what is left is told.
func TestOutputLimit(t *testing.T) {
	s := newSteady(t)
	limit := amqp.Defaults().OutputLimit
	body := make([]byte, 10_000)
	for range 100 {
		s.out.Send(amqp.Sending{Body: body, Settled: true})
	}
	total := 0
	for s.conn.HasOutput() {
		n := s.output()
		if n == 0 || n > limit+11_000 {
			t.Fatalf("output of %d octets, the limit is %d", n, limit)
		}
		total += n
		if s.conn.Encoded() != 0 {
			t.Fatalf("%d octets are encoded behind an output", s.conn.Encoded())
		}
	}
	if total < 1_000_000 || s.conn.Queued() != 0 {
		t.Errorf("%d octets in all, %d queued", total, s.conn.Queued())
	}
}
