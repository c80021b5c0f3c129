package server

import (
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
)

// BenchmarkThrough is a transient message of 256 bytes, unsettled both ways,
// from a producer through a queue to a consumer over loopback: per operation one
// transfer in, its disposition, one transfer out and its disposition. What the
// two clients allocate counts as well; they are the same machine and allocate
// next to nothing.
func BenchmarkThrough(b *testing.B) { through(b, volatile(string(make([]byte, 256)))) }

// BenchmarkThroughDurable goes through the committer as well.
func BenchmarkThroughDurable(b *testing.B) { through(b, data(string(make([]byte, 256)))) }

func through(b *testing.B, message []byte) {
	b.ReportAllocs()
	r := start(b, nil)
	produce, consume := r.dial("p", nil), r.dial("c", nil)
	out := produce.sender(produce.session(), "out", "q")
	in := consume.receiver(consume.session(), "in", "q", 1000)
	outcomes := 0
	count := func(ev *amqp.Event) {
		if ev.Kind == amqp.EventOutcome {
			outcomes++
		}
	}
	drive := func(n int) {
		target, settled := in.received+n, outcomes+n
		done := make(chan struct{})
		go func() {
			defer close(done)
			deadline := time.Now().Add(time.Minute)
			for in.received < target && consume.err == nil {
				consume.step(deadline)
			}
			consume.flush()
		}()
		deadline := time.Now().Add(time.Minute)
		for sent := 0; outcomes < settled && produce.err == nil; {
			for ; sent < n && out.Link.Credit() > 0; sent++ {
				out.Send(amqp.Sending{Body: message})
			}
			produce.step(deadline)
		}
		<-done
	}
	out.outcomes = nil // or the map would be what is measured
	produce.on = count
	drive(5000)
	b.ResetTimer()
	drive(b.N)
	b.StopTimer()
	if produce.err != nil || consume.err != nil {
		b.Fatal(produce.err, consume.err)
	}
	produce.close()
	consume.close()
}

// TestAllocationsPerMessage guards the figure of BenchmarkThrough: the message's
// own copy, its struct and its entry are what it has to cost.
func TestAllocationsPerMessage(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("allocations are counted without the race detector")
	}
	result := testing.Benchmark(BenchmarkThrough)
	if result.N < 1000 {
		t.Skipf("%d messages only", result.N)
	}
	t.Logf("%d messages, %v each, %d allocations, %d bytes", result.N, time.Duration(result.NsPerOp()), result.AllocsPerOp(), result.AllocedBytesPerOp())
	if got := result.AllocsPerOp(); got > allocationsPerMessage {
		t.Errorf("%d allocations per message, at most %d", got, allocationsPerMessage)
	}
}

const allocationsPerMessage = 3
