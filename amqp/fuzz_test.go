package amqp_test

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/amqp/amqptest"
	"github.com/letomq/leto/codec"
)

// before is what a server machine has read when the fuzzed octets start.
var before = []string{"", "opened", "session", "receiver", "sender"}

// FuzzConn writes octets to a server whose shell accepts everything. It must
// not panic, answer with or allocate more than a multiple of what it read, or
// hold more than what it was made to queue.
func FuzzConn(f *testing.F) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for i, file := range files {
		s, err := amqptest.Load(file)
		if err != nil {
			f.Fatal(err)
		}
		octets, err := amqptest.Octets(s)
		if err != nil {
			f.Fatal(err)
		}
		if len(octets) < 4096 {
			f.Add(byte(0), uint16(i), octets)
		}
	}
	var starts [][]byte
	for i, name := range before {
		var octets []byte
		if name != "" {
			s, err := amqptest.LoadPrelude("testdata/preludes/" + name + ".txt")
			if err != nil {
				f.Fatal(err)
			}
			if octets, err = amqptest.Octets(s); err != nil {
				f.Fatal(err)
			}
		}
		starts = append(starts, octets)
		f.Add(byte(i), uint16(1), []byte{0, 0, 0, 8, 2, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, state byte, cut uint16, octets []byte) {
		start := starts[int(state)%len(starts)]
		shell := newFuzzShell(t)
		shell.feed(start, 1<<30)
		read, wrote := len(start), shell.wrote
		before := allocated()
		shell.feed(octets, 1+int(cut)%700)
		read += len(octets)
		// The shell's own copies of the input are in it, and what the testing package does meanwhile.
		if n, limit := allocated()-before, 1<<20+shell.copied+1024*len(octets); n > uint64(limit) {
			t.Fatalf("%d octets allocated for %d", n, len(octets))
		}
		if limit := 2048 + 64*len(octets); shell.wrote-wrote > limit {
			t.Fatalf("wrote %d octets for %d", shell.wrote-wrote, len(octets))
		}
		if shell.conn.Queued() > shell.queued {
			t.Fatalf("%d octets queued, %d were given", shell.conn.Queued(), shell.queued)
		}
		if n := shell.conn.Sessions(); n > 256 || n*16 > read {
			t.Fatalf("%d sessions from %d octets", n, read)
		}
		if links := shell.conn.Links(); links*12 > read {
			t.Fatalf("%d links from %d octets", links, read)
		}
		shell.conn.Close(nil)
		shell.output()
		now := shell.now.Add(time.Hour)
		shell.conn.Tick(now)
		if !shell.conn.Done() {
			t.Fatal("not done an hour after close")
		}
	})
}

// allocated returns how many octets the process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// fuzzShell accepts everything.
type fuzzShell struct {
	t       testing.TB
	monitor *amqptest.Monitor
	acts    func(*amqp.Event) // instead of act
	conn    *amqp.Conn
	now     time.Time
	unread  []byte
	copied  int // octets of input, as often as they were copied
	wrote   int
	queued  int
}

func newFuzzShell(t testing.TB) *fuzzShell {
	c := amqp.Defaults()
	c.Server, c.ContainerID = true, "leto"
	c.Mechanisms = []amqp.Mechanism{amqp.Anonymous(), amqp.Plain(func(string, string) amqp.Verdict { return amqp.Known })}
	now := time.Unix(1_700_000_000, 0)
	return &fuzzShell{t: t, monitor: amqptest.NewMonitor(), conn: amqp.New(c, now), now: now}
}

func (s *fuzzShell) feed(octets []byte, step int) {
	for len(octets) > 0 {
		n := min(step, len(octets))
		s.unread = append(s.unread, octets[:n]...)
		octets = octets[n:]
		s.copied += 2 * len(s.unread)
		for {
			n, ev := s.conn.Next(s.now, s.unread)
			s.unread = s.unread[n:]
			if ev == nil {
				break
			}
			if s.acts != nil {
				s.acts(ev)
			} else {
				s.act(ev)
			}
		}
		s.output()
	}
}

func (s *fuzzShell) output() {
	out := s.conn.Output(s.now, nil)
	s.wrote += len(out)
	for len(out) > 0 {
		f, rest, err := amqptest.ReadFrame(out)
		if err != nil {
			s.t.Fatalf("wrote %x: %v", out, err)
		}
		s.monitor.Peer(&s.conn.Remote)
		s.monitor.Check(f)
		out = rest
	}
	if err := s.monitor.Err(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *fuzzShell) act(ev *amqp.Event) {
	switch ev.Kind {
	case amqp.EventOpened:
		s.conn.Accept(nil)
	case amqp.EventClosed:
		s.conn.Close(nil)
	case amqp.EventEnded:
		ev.Session.End(nil)
	case amqp.EventAttached:
		ev.Link.Accept(amqp.Terms{Source: ev.Attach.Source, Target: ev.Attach.Target, SndSettleMode: ev.Attach.SndSettleMode, RcvSettleMode: ev.Attach.RcvSettleMode})
		ev.Link.Grant(10)
	case amqp.EventDetached:
		ev.Link.Detach(ev.Closed, nil)
	case amqp.EventFlow:
		if ev.Link.Sender() && ev.Link.Credit() > 0 {
			body := make([]byte, 100)
			ev.Link.Send(amqp.Sending{Body: body, Settled: ev.Link.SndSettleMode() == codec.SettleSettled})
			s.queued += len(body)
		}
		ev.Link.Drained()
	case amqp.EventTransfer:
		if ev.Last && !ev.Settled {
			ev.Session.Dispose(ev.DeliveryID, codec.Outcome{Kind: codec.StateAccepted})
		}
		if ev.Last {
			ev.Link.Grant(10)
		}
	case amqp.EventOutcome:
		if !ev.Settled {
			ev.Session.Settle(ev.DeliveryID, ev.State.Outcome)
		}
	}
}
