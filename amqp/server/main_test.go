package server

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a goroutine outlives the servers of the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
