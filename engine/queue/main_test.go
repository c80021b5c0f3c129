package queue

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes property tests long enough to reach the rare places. Flags given still win.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "300", "rapid.steps": "120"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
