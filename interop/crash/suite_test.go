// Package crash kills the leto binary with SIGKILL while it works, starts it again on
// the same data folder, and compares what is delivered with a ledger of what clients
// were told before: nothing accepted is lost, nothing settled returns.
package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	harness.Tidy()
	os.Exit(code)
}

const (
	defaultRounds = 50
	longestChain  = 50 // rounds
	leastChains   = 2
)

// TestKill runs chains of rounds, each of which ends with SIGKILL. LETO_CRASH_ROUNDS says how many
// rounds there are in all, LETO_CRASH_SEED with which seed the chains begin.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts brokers")
	}
	rounds, seed := number(t, "LETO_CRASH_ROUNDS", defaultRounds), number(t, "LETO_CRASH_SEED", int(time.Now().UnixNano()&0xffffff))
	chains := max(leastChains, (rounds+longestChain-1)/longestChain)
	t.Logf("LETO_CRASH_SEED=%d LETO_CRASH_ROUNDS=%d: %d chains", seed, rounds, chains)
	if _, err := harness.Binary(); err != nil { // built before the clock runs
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all figures
	begin := time.Now()
	t.Run("chains", func(t *testing.T) {
		for i := range chains {
			n := rounds / chains
			if i < rounds%chains {
				n++
			}
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				c := newChain(t, uint64(seed+i), i)
				c.run(n)
				mu.Lock()
				defer mu.Unlock()
				all.add(&c.figures)
			})
		}
	})
	t.Logf("%d chains in %v: %v", chains, time.Since(begin).Round(time.Millisecond), &all)
}

// withMuchAndLittle runs a test with a broker that has much memory, and with one that has little, so that most messages
// wait in the store only. salt tells its random numbers from those of other tests.
func withMuchAndLittle(t *testing.T, salt uint64, run func(t *testing.T, rng *rand.Rand, memory string)) {
	if testing.Short() {
		t.Skip("starts brokers")
	}
	for _, memory := range []string{"256MiB", "16MiB"} {
		t.Run(memory, func(t *testing.T) {
			t.Parallel()
			seed := uint64(number(t, "LETO_CRASH_SEED", int(time.Now().UnixNano()&0xffffff)))
			t.Logf("LETO_CRASH_SEED=%d", seed)
			run(t, rand.New(rand.NewPCG(seed, salt)), memory)
		})
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("%s=%s is no positive number", name, text)
	}
	return n
}
