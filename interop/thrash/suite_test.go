// Package thrash has consumers fail again and again, and looks at what that costs everybody else: good messages flow as
// without it, each bad one is tried as often as the settings say and not more, and a broker that has nothing left but
// bad ones has next to nothing to do.
//
// LETO_THRASH=full takes the numbers of a real system: 100 consumers, 100,000 good messages and 1,000 bad ones.
// Its other half has many messages wait for a time of their own, LETO_WAITING of them.
package thrash

import (
	"os"
	"testing"

	"github.com/letomq/leto/interop/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Tidy()
	os.Exit(code)
}

// size is how much there is to do.
type size struct {
	consumers, good, bad int
	rounds               int
	share                float64 // of what flows without bad messages, that has to flow with them, when whole
	whole                bool    // on a machine of its own
}

func sizeOf(t *testing.T) size {
	t.Helper()
	if testing.Short() {
		t.Skip("starts brokers")
	}
	if os.Getenv("LETO_THRASH") == "full" {
		return size{consumers: 100, good: 100_000, bad: 1000, rounds: 5, share: 0.9, whole: true}
	}
	return size{consumers: 30, good: 10_000, bad: 100, rounds: 3}
}
