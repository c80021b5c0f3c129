// Package churn has messages come and go at full speed - settled, dead-lettered, expired - and looks at what that
// leaves: disk and memory are back at base when the queues are drained, nothing deleted comes back after a restart,
// nothing accepted and unsettled is missing.
//
// LETO_CHURN says how long, 10m for example; 15s otherwise.
package churn

import (
	"os"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Tidy()
	os.Exit(code)
}

const shortest = 15 * time.Second

// span is how long messages come and go.
func span(t *testing.T) time.Duration {
	t.Helper()
	if testing.Short() {
		t.Skip("starts brokers")
	}
	text := os.Getenv("LETO_CHURN")
	if text == "" {
		return shortest
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("LETO_CHURN=%s is no duration", text)
	}
	return d
}
