package codec

import (
	"bytes"
	"math"
	"testing"
)

func section(t testing.TB, code Code, m Map) []byte {
	t.Helper()
	b, err := AppendValue(nil, Described{Descriptor: uint64(code), Value: m})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMapEntry(t *testing.T) {
	m := Map{
		{Key: "other", Value: Map{{Key: "id", Value: "not this one"}}},
		{Key: uint64(7), Value: "id"},
		{Key: "idle", Value: int32(5)},
		{Key: "id", Value: "that"},
		{Key: Symbol("sym"), Value: []byte{1, 2}},
		{Key: "none", Value: nil},
	}
	for _, code := range []Code{CodeApplicationProperties, CodeMessageAnnotations} {
		s := section(t, code, m)
		for key, want := range map[string]any{
			"id": "that", "idle": int32(5), "sym": []byte{1, 2}, "none": nil, "missing": nil, "not this one": nil, "": nil,
		} {
			got, err := MapEntry(s, key)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			var encoded []byte
			if want != nil {
				if encoded, err = AppendValue(nil, want); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, encoded) {
				t.Errorf("%s: %x, want %x", key, got, encoded)
			}
		}
		for n := range len(s) {
			if v, err := MapEntry(s[:n:n], "sym"); err == nil && v != nil {
				t.Errorf("%d octets: %x, want an error or nothing", n, v)
			}
		}
		if n := testing.AllocsPerRun(100, func() { MapEntry(s, "sym"); MapEntry(s, "missing") }); n != 0 {
			t.Errorf("%v allocations, want none", n)
		}
	}
	if v, err := MapEntry(nil, "id"); v != nil || err != nil {
		t.Errorf("no section: %x, %v", v, err)
	}
	if _, err := MapEntry(section(t, CodeProperties, m)[:3], "id"); err != nil {
		t.Errorf("too short to have the key: %v", err)
	}
}

func TestAppendPlain(t *testing.T) {
	same := [][]any{
		{true}, {false}, {"a"}, {Symbol("a")}, {[]byte("a")}, {""}, {uint32(0)}, {uint32(200)}, {uint32(1 << 20)}, {uint64(0)},
		{uint64(200)}, {int32(-1)}, {int32(5)}, {int64(-1)}, {int64(5)}, {int64(1 << 40)}, {uint8(5)}, {int8(5)}, {uint16(5)},
		{int16(5)}, {float32(5)}, {5.0}, {math.NaN()}, {Char('a')}, {Timestamp(5)}, {UUID{5}}, {Decimal64{5}},
	}
	seen := map[string]any{}
	for _, values := range same {
		v := values[0]
		encoded, err := AppendValue(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := AppendPlain([]byte("x"), encoded)
		if err != nil {
			t.Errorf("%T %v: %v", v, v, err)
		}
		if other, twice := seen[string(plain)]; twice {
			t.Errorf("%T %v reads as %T %v", v, v, other, other)
		}
		seen[string(plain)] = v
		again, rest, err := ReadValue(plain[1:])
		if err != nil || len(rest) > 0 {
			t.Errorf("%T %v: %x isn't a value", v, v, plain)
		}
		if f, isFloat := v.(float64); !isFloat || f == f {
			if s, isBytes := v.([]byte); isBytes && bytes.Equal(s, again.([]byte)) {
				continue
			} else if !isBytes && again != v {
				t.Errorf("%T %v comes back as %T %v", v, v, again, again)
			}
		}
	}
	for _, pair := range [][2][]byte{
		{{formatUint0}, {formatUint, 0, 0, 0, 0}}, {{formatSmallUint, 7}, {formatUint, 0, 0, 0, 7}},
		{{formatSmallInt, 0xfe}, {formatInt, 0xff, 0xff, 0xff, 0xfe}}, {{formatTrue}, {formatBool, 1}},
		{{formatSmallLong, 0x80}, {formatLong, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80}},
		{{formatUlong0}, {formatSmallUlong, 0}}, {{formatString8, 1, 'a'}, {formatString32, 0, 0, 0, 1, 'a'}},
		{{formatBinary8, 0}, {formatBinary32, 0, 0, 0, 0}}, {{formatSymbol8, 1, 'a'}, {formatSymbol32, 0, 0, 0, 1, 'a'}},
	} {
		a, err := AppendPlain(nil, pair[0])
		if err != nil {
			t.Fatal(err)
		}
		b, err := AppendPlain(nil, pair[1])
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%x is %x, %x is %x, %v: want the same", pair[0], a, pair[1], b, err)
		}
	}
	for _, bad := range []any{nil, List{"a"}, Map{}, Described{Descriptor: uint64(1), Value: "a"}} {
		encoded, err := AppendValue(nil, bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := AppendPlain(nil, encoded); err == nil {
			t.Errorf("%T: no error", bad)
		}
	}
	for _, bad := range [][]byte{nil, {formatString8, 5, 'a'}, {formatTrue, formatTrue}, {formatInt, 0}, {0xff}} {
		if _, err := AppendPlain(nil, bad); err == nil {
			t.Errorf("%x: no error", bad)
		}
	}
}
