package amqp_test

import (
	"path/filepath"
	"testing"

	"github.com/letomq/leto/amqp/amqptest"
)

// TestScripts plays every script of testdata/scripts twice: with the peer's
// octets as the script joins them, and an octet at a time.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		s, err := amqptest.Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Run("whole", func(t *testing.T) { amqptest.Run(t, s, amqptest.Whole) })
			t.Run("octetly", func(t *testing.T) { amqptest.Run(t, s, amqptest.Octetly) })
		})
	}
}
