package peers

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
)

var (
	which    = flag.String("scenario", "", "measure a round of this scenario")
	round    = flag.Int("round", 1, "its number, which also rotates the order of brokers")
	warmup   = flag.Duration("warmup", 10*time.Second, "load before the first measurement of a broker")
	duration = flag.Duration("duration", 5*time.Second, "of a measurement")
	depth    = flag.Int("backlog", 1_000_000, "messages of a backlog")
	limit    = flag.Duration("limit", 5*time.Minute, "of one run of leto bench, after which the round is void")
	update   = flag.Bool("update", false, "write the tables of what was measured into docs/benchmarks.md")
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRound measures one round, when it is told to.
func TestRound(t *testing.T) {
	if *which == "" {
		t.Skip("without -scenario")
	}
	home := filepath.Join(root(t), ".peers")
	if *which == clientScenario {
		if err := clientRound(home, *round, *depth, *limit); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i := range scenarios {
		if scenarios[i].id != *which {
			continue
		}
		if err := scenarios[i].course(home, *round, pace{*warmup, *duration, *depth, *limit}, func(line string) { t.Log(line) }); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no scenario %s", *which)
}

// TestTables writes what was measured into the page, when it is told to.
func TestTables(t *testing.T) {
	if !*update {
		t.Skip("without -update")
	}
	results, err := recall(filepath.Join(root(t), ".peers", "results"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root(t), "docs", "benchmarks.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin: make bench-peers -->\n", "<!-- end: make bench-peers -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the tables", path)
	}
	if err := os.WriteFile(path, []byte(before+begin+"\n"+tables(results)+"\n"+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
