package peers

import (
	"strings"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		show   func(float64) string
		want   string
	}{
		{nil, count, "–"},
		{[]float64{1234567}, count, "1,234,567"},
		{[]float64{3, 1, 2}, micro, "2.0 (1.0–3.0)"},
		{[]float64{1000, 999}, count, "1,000 (999–1,000)"},
	} {
		if got := spread(c.values, c.show); got != c.want {
			t.Errorf("%v: %q, want %q", c.values, got, c.want)
		}
	}
}

// A void phase counts in no figure, and the page says so.
func TestVoidPhasesAreShown(t *testing.T) {
	full := func(rate float64) map[string]report { return map[string]report{"full": {ReceiveRate: rate}} }
	results := []result{
		{Round: 1, Peer: "leto", Phases: full(10)},
		{Round: 2, Peer: "leto", Phases: full(20)},
		{Round: 1, Peer: "Artemis", Void: "full: 3 messages did not arrive\n"},
		{Round: 2, Peer: "Artemis", Void: "full: 3 messages did not arrive"},
	}
	got := grid(results, []string{"leto", "Artemis", "rAMQP"}, []column{{"msg/s", count, of("full", received)}}) + voids(results)
	want := "| broker | msg/s |\n|---|---:|\n| leto | 15 (10–20) |\n| Artemis | – |\n" +
		"\nVoid (2×): Artemis, full: 3 messages did not arrive.\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Every figure a table asks for is of a phase that runs, and addresses are those that brokers declare.
func TestScenariosAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for i := range scenarios {
		s := &scenarios[i]
		if seen[s.id] {
			t.Errorf("scenario %s stands twice", s.id)
		}
		seen[s.id] = true
		r := result{StartMS: 1, Phases: map[string]report{}}
		for _, p := range s.phase {
			l := &latency{1, 1, 1, 1}
			rep := report{SendRate: 1, ReceiveRate: 1, ClientCPU: 1, Confirm: l, Delivery: l}
			rep.Broker.CPU, rep.Broker.ResidentPeak = 1, 1<<20
			r.Phases[p.name] = rep
			for _, b := range s.peers() {
				if address := p.arguments(b, false, pace{})[1]; !strings.HasSuffix(address, "bench.0") && p.queues < 2 {
					t.Errorf("scenario %s, %s: address %q", s.id, b.label(), address)
				}
			}
		}
		for _, c := range s.table {
			if _, ok := c.value(r); !ok {
				t.Errorf("scenario %s: %q is measured by no phase", s.id, c.title)
			}
		}
	}
}
