package hostile

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
)

// strict has the good client's times judged by what is promised. It needs a machine that does
// nothing else; elsewhere only what nobody could put up with is a failure.
var strict = os.Getenv("LETO_HOSTILE") == "strict"

// some is how many of something an attack takes: strictly as many as it can, else as many as make the limits do their work.
func some(strictly, enough int) int {
	if strict {
		return strictly
	}
	return enough
}

// growthAllowed bounds what the broker's anonymous memory grows by in any attack.
const growthAllowed = 100 * mib

// slackAllowed bounds what of it may stay: garbage that isn't worth a collection yet.
const slackAllowed = 48 * mib

// kept are the metrics that have to come back to what they were.
var kept = []string{"leto_connections", "leto_sessions", "leto_links", "leto_consumers", "leto_partial_bytes"}

// gauge reads metrics.
func gauge(t testing.TB, b *harness.Broker, names ...string) []float64 {
	t.Helper()
	values := make([]float64, len(names))
	for i, name := range names {
		var err error
		if values[i], err = b.Metric(name); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// gone waits until what an attack had is the broker's no more; its memory may take longer.
func gone(t *testing.T, b *harness.Broker, held []float64) {
	t.Helper()
	for i, name := range kept {
		var now float64
		deadline := time.Now().Add(15 * time.Second)
		for now = gauge(t, b, name)[0]; now > held[i] && time.Now().Before(deadline); now = gauge(t, b, name)[0] {
			time.Sleep(20 * time.Millisecond)
		}
		if now > held[i] {
			t.Errorf("%s: %v before, still %v after the attack", name, held[i], now)
		}
	}
}

// figures are what came of an attack.
type figures struct {
	class, name         string
	alone, beside, flat time.Duration // 99th percentiles
	growth              int64         // of anonymous memory, in bytes
	back                time.Duration // until everything was as before
	failed              bool
}

var (
	reportMu sync.Mutex
	reported []figures
)

func report(f figures) {
	reportMu.Lock()
	defer reportMu.Unlock()
	reported = append(reported, f)
}

// table is what was reported as Markdown.
func table() string {
	var s strings.Builder
	s.WriteString("\n| class | attack | p99 alone | p99 beside | flat out | memory | back after | |\n|---|---|---|---|---|---|---|---|\n")
	ms := func(d time.Duration) string {
		if d == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
	}
	for _, f := range reported {
		verdict := fmt.Sprintf("%.1f×", float64(f.beside)/float64(max(f.alone, 1)))
		if f.failed {
			verdict += " **failed**"
		}
		fmt.Fprintf(&s, "| %s | %s | %s | %s | %s | +%.1f MiB | %.1f s | %s |\n", f.class, f.name,
			ms(f.alone), ms(f.beside), ms(f.flat), float64(f.growth)/mib, f.back.Seconds(), verdict)
	}
	return s.String()
}

func TestMain(m *testing.M) {
	if address := os.Getenv(goodEnv); address != "" {
		if err := beGood(address); err != nil {
			fmt.Fprintln(os.Stderr, "good client:", err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(besiegeEnv) != "" {
		flag.Parse()
		yieldPriority()
		os.Exit(m.Run())
	}
	code := m.Run()
	if len(reported) > 0 {
		fmt.Print(table())
	}
	harness.Tidy()
	os.Exit(code)
}
