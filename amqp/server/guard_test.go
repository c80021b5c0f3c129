package server

import (
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
)

// What a message costs in time, as multiples of a relay of Go goroutines that only copies the same bytes over the
// same sockets, measured in turns with it. The broker's machine cancels out that way; what is left are runs of a busy
// machine, which have differed by a third: half as much again as the baseline is a step back and no chance.
const (
	throughRatio    = 6.5  // full speed, 256 bytes, transient, acknowledged on both sides
	closedLoopRatio = 1.15 // one in flight, from send to outcome, median
	guardMargin     = 1.5
	guardRounds     = 5
)

// TestTimesByRatio guards throughput and latency, and allocations exactly: fewer are a new baseline. It is make
// bench's (LETO_BENCH=1): beside other work it says nothing.
func TestTimesByRatio(t *testing.T) {
	if os.Getenv("LETO_BENCH") == "" || raceEnabled {
		t.Skip("LETO_BENCH isn't set: times are compared by make bench")
	}
	var through, closed []float64
	for range guardRounds {
		broker, relay := testing.Benchmark(BenchmarkThrough), testing.Benchmark(BenchmarkRelay)
		if got := broker.AllocsPerOp(); got != allocationsPerMessage {
			t.Errorf("%d allocations per message, not %d", got, allocationsPerMessage)
		}
		through = append(through, float64(broker.NsPerOp())/float64(relay.NsPerOp()))
		leto, floor := closedLoop(t), relayedLoop(t)
		closed = append(closed, float64(leto)/float64(floor))
		t.Logf("full speed %d ns, relay %d ns; closed loop %v, relay %v", broker.NsPerOp(), relay.NsPerOp(), leto, floor)
	}
	for _, g := range []struct {
		what     string
		ratios   []float64
		baseline float64
	}{{"full speed", through, throughRatio}, {"closed loop", closed, closedLoopRatio}} {
		slices.Sort(g.ratios)
		got := g.ratios[len(g.ratios)/2]
		t.Logf("%s: %.2f relays, baseline %.2f", g.what, got, g.baseline)
		if got > g.baseline*guardMargin {
			t.Errorf("%s takes %.2f times what a relay takes, the baseline is %.2f", g.what, got, g.baseline)
		}
	}
}

const (
	loops      = 5000
	frameBytes = 320 // about what a transfer of 256 bytes is
	replyBytes = 30  // and a disposition
)

// closedLoop returns the median time from a send to its outcome with one message in flight.
func closedLoop(t *testing.T) time.Duration {
	r := start(t, nil)
	produce, consume := r.dial("p", nil), r.dial("c", nil)
	out := produce.sender(produce.session(), "out", "q")
	in := consume.receiver(consume.session(), "in", "q", 1000)
	out.outcomes = nil
	outcomes := 0
	produce.on = func(ev *amqp.Event) {
		if ev.Kind == amqp.EventOutcome {
			outcomes++
		}
	}
	deadline := time.Now().Add(time.Minute)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for in.received < loops && consume.err == nil {
			consume.step(deadline)
		}
		consume.flush()
	}()
	message := volatile(string(make([]byte, 256)))
	var times []time.Duration
	for n := 0; n < loops && produce.err == nil; n++ {
		for out.Link.Credit() <= 0 && produce.err == nil {
			produce.step(deadline)
		}
		sent := time.Now()
		out.Send(amqp.Sending{Body: message})
		for outcomes <= n && produce.err == nil {
			produce.step(deadline)
		}
		times = append(times, time.Since(sent))
	}
	<-done
	if produce.err != nil || consume.err != nil {
		t.Fatal(produce.err, consume.err)
	}
	produce.close()
	consume.close()
	return median(times)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// relayed is a producer's and a consumer's socket, and a goroutine between them: it passes on what the producer
// writes, and answers each frame of it.
func relayed(t testing.TB) (produce, consume net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pair := func() (net.Conn, net.Conn) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(); s.Close() })
		return c, s
	}
	produce, from := pair()
	consume, to := pair()
	go func() {
		buf, answer, odd := make([]byte, 64<<10), make([]byte, 64<<10), 0
		for {
			n, err := from.Read(buf)
			if err != nil {
				_ = to.(*net.TCPConn).CloseWrite()
				return
			}
			_, _ = to.Write(buf[:n])
			frames := (odd + n) / frameBytes
			odd = (odd + n) % frameBytes
			if frames > 0 {
				_, _ = from.Write(answer[:frames*replyBytes])
			}
		}
	}()
	return produce, consume
}

// relayedLoop is closedLoop through a relay.
func relayedLoop(t *testing.T) time.Duration {
	produce, consume := relayed(t)
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(io.Discard, consume) }()
	frame, reply := make([]byte, frameBytes), make([]byte, replyBytes)
	var times []time.Duration
	for range loops {
		sent := time.Now()
		if _, err := produce.Write(frame); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(produce, reply); err != nil {
			t.Fatal(err)
		}
		times = append(times, time.Since(sent))
	}
	_ = produce.(*net.TCPConn).CloseWrite()
	<-done
	return median(times)
}

// BenchmarkRelay is what BenchmarkThrough is measured against: the same bytes, copied.
func BenchmarkRelay(b *testing.B) {
	produce, consume := relayed(b)
	const batch = 64
	frames := make([]byte, batch*frameBytes)
	done := make(chan error, 2)
	b.ResetTimer()
	count := func(from net.Conn, bytes int64) { _, err := io.CopyN(io.Discard, from, bytes); done <- err }
	go count(consume, int64(b.N)*frameBytes)
	go count(produce, int64(b.N)*replyBytes)
	for left := b.N; left > 0; left -= batch {
		if _, err := produce.Write(frames[:min(left, batch)*frameBytes]); err != nil {
			b.Fatal(err)
		}
	}
	for range 2 {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
