package codec

import (
	"math"
	"strings"
	"testing"
)

func TestReadMillis(t *testing.T) {
	for _, c := range []struct {
		value any
		ms    int64
		ok    bool
	}{
		{int64(-5), -5, true}, {int64(500), 500, true}, {int32(-7), -7, true}, {int16(9), 9, true}, {int8(-1), -1, true},
		{uint64(math.MaxUint64), math.MaxInt64, true}, {uint32(math.MaxUint32), math.MaxUint32, true}, {uint16(3), 3, true},
		{uint8(2), 2, true}, {uint32(0), 0, true}, {Timestamp(1_700_000_000_000), 1_700_000_000_000, true},
		{"5", 0, false}, {1.0, 0, false}, {true, 0, false}, {nil, 0, false}, {strings.Repeat("5", 100), 0, false},
	} {
		b, err := AppendValue(nil, c.value)
		if err != nil {
			t.Fatal(err)
		}
		if ms, ok := ReadMillis(b); ms != c.ms || ok != c.ok {
			t.Errorf("%v: %d, %v, want %d, %v", c.value, ms, ok, c.ms, c.ok)
		}
	}
	if _, ok := ReadMillis(nil); ok {
		t.Error("nothing is a number")
	}
}
