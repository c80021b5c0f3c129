package journal

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestSumsOfStretches compares checksums put together from beginnings with those of the bytes themselves.
func TestSumsOfStretches(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		b := make([]byte, 8*(1+rng.IntN(600)))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		from := 8 * int64(rng.IntN(len(b)/8))
		s, err := newSums(bytes.NewReader(b), from, int64(len(b)), make([]byte, 64+8*rng.IntN(40)))
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			start := from + 8*int64(rng.IntN((len(b)-int(from))/8))
			length := int64(rng.IntN(len(b) - int(start) + 1))
			seed := rng.Uint32()
			got, err := s.of(seed, start, length)
			if err != nil {
				t.Fatal(err)
			}
			if want := crc32.Update(seed, castagnoli, b[start:start+length]); got != want {
				t.Fatalf("%d bytes at %d: %#x, want %#x", length, start, got, want)
			}
		}
	}
}
