package stream

import (
	"os"
	"testing"
)

// TestMain has the tests make the calls that they are for, with the race detector too.
func TestMain(m *testing.M) {
	watched = 128
	os.Exit(m.Run())
}

// The scheduler is told of some calls, whoever makes them: else its watchdog sleeps while the process works.
func TestSomeCallsAreTold(t *testing.T) {
	n := 0
	for range 10 * watched {
		if told() {
			n++
		}
	}
	if n != 10 {
		t.Errorf("%d of %d calls are told", n, 10*watched)
	}
}
