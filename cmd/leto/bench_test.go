package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/letomq/leto/cmd/leto/bench"
)

// bench runs the load against the broker and returns what it reports.
func (p *process) bench(t *testing.T, args ...string) bench.Report {
	t.Helper()
	out := p.done(t, append([]string{"bench", "--json"}, args...)...)
	var reports []bench.Report
	if err := json.Unmarshal([]byte(out), &reports); err != nil || len(reports) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	return reports[0]
}

func TestBenchOfATopicCountsEveryCopy(t *testing.T) {
	p := broker(t)
	r := p.bench(t, "--topic", "--consumers", "3", "--count", "500", "--ahead", "10")
	if r.Sent != 500 || r.Received != 1500 {
		t.Errorf("sent %d, received %d; want 500 and 1500", r.Sent, r.Received)
	}
}

// A schedule of 1000/s for half a second is 501 messages at most, fewer where the machine is late at its end. Counts are of everything, latencies only of what came after the warm-up.
func TestBenchWarmsUp(t *testing.T) {
	p := broker(t)
	r := p.bench(t, "--warmup", "300ms", "--duration", "200ms", "--rate", "1000", "--pid", fmt.Sprint(p.cmd.Process.Pid))
	if r.Sent < 250 || r.Sent > 501 || r.Received != r.Sent {
		t.Errorf("sent %d, received %d; want up to 501 of both", r.Sent, r.Received)
	}
	if r.SendRate <= 0 || r.Late == nil || r.Delivery == nil {
		t.Errorf("%.0f/s after the warm-up; late %v, delivery %v", r.SendRate, r.Late, r.Delivery)
	}
	if r.Broker == nil || r.Broker.ResidentPeak < r.Broker.ResidentBefore || r.Broker.ResidentBefore < 1<<20 {
		t.Errorf("broker %+v", r.Broker)
	}
}

// The ends of a run and of the messages settle a range that nobody fills.
func TestBenchAcknowledgesInRanges(t *testing.T) {
	p := broker(t)
	for _, every := range []string{"1", "7", "100"} {
		r := p.bench(t, "--address", "ranges", "--count", "250", "--ack-every", every)
		if r.Received != 250 {
			t.Errorf("by %s: received %d of 250", every, r.Received)
		}
	}
	if q := p.queue(t, "ranges"); q.Messages != 0 || q.Acknowledged != 750 {
		t.Errorf("afterwards %d messages, %d acknowledged; want 0 and 750", q.Messages, q.Acknowledged)
	}
}

func TestBenchChecksWhatItDrains(t *testing.T) {
	p := broker(t)
	p.bench(t, "--consumers", "0", "--count", "100")
	p.done(t, "receive", "bench", "--count", "1", "--ack", "reject")
	r := p.run(t, "bench", "--json", "--producers", "0", "--count", "99")
	var reports []bench.Report
	if err := json.Unmarshal([]byte(r.out), &reports); err != nil || len(reports) != 1 {
		t.Fatalf("%v: %s", err, r.out)
	}
	if r.code != exitTimeout || reports[0].Received != 99 || reports[0].Lost != 1 {
		t.Errorf("exit code %d, received %d, lost %d; want %d, 99 and 1", r.code, reports[0].Received, reports[0].Lost, exitTimeout)
	}
}
