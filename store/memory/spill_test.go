package memory_test

import (
	"math/rand/v2"
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
	"github.com/letomq/leto/store/storetest"
)

func TestSpillContract(t *testing.T) {
	storetest.Spill{
		Steps:   3000,
		Payload: func(rng *rand.Rand) int { return rng.IntN(400) },
		Check: func(t *testing.T, s engine.Spill) {
			if n := s.Size(); n != 0 {
				t.Errorf("an empty spill has %d bytes", n)
			}
		},
	}.Run(t, &memory.Spill{})
}
