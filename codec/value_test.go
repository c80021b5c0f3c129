package codec

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// nested returns a value of n lists, maps, arrays or descriptions around null.
func nested(n int, wrap func(inner []byte) []byte) []byte {
	b := []byte{formatNull}
	for range n {
		b = wrap(b)
	}
	return b
}

func TestDepth(t *testing.T) {
	wraps := map[string]func([]byte) []byte{
		"list": func(b []byte) []byte { return list32(b) },
		"map": func(b []byte) []byte {
			m := []byte{formatMap32, 0, 0, 0, 0, 0, 0, 0, 2, formatNull}
			putSize(m[1:], len(b)+5)
			return append(m, b...)
		},
		"map key": func(b []byte) []byte {
			m := []byte{formatMap32, 0, 0, 0, 0, 0, 0, 0, 2}
			putSize(m[1:], len(b)+5)
			return append(append(m, b...), formatNull)
		},
		"array":       func(b []byte) []byte { return array32(b[0], 1, b[1:]) },
		"description": func(b []byte) []byte { return append([]byte{formatDescribed, formatUlong0}, b...) },
	}
	for name, wrap := range wraps {
		for _, n := range []int{1, MaxDepth, MaxDepth + 1, 5000} {
			b := nested(n, wrap)
			_, _, errRead := ReadValue(b)
			_, errValid := Validate(b)
			if n <= MaxDepth && (errRead != nil || errValid != nil) {
				t.Errorf("%d times %s: %v, %v", n, name, errRead, errValid)
			}
			if n > MaxDepth && (!errors.Is(errRead, ErrTooDeep) || !errors.Is(errValid, ErrTooDeep)) {
				t.Errorf("%d times %s: %v, %v", n, name, errRead, errValid)
			}
		}
	}
}

// Whatever was read can be written inside a value of ours.
func TestDepthOfWriting(t *testing.T) {
	deep := nested(MaxDepth, func(b []byte) []byte { return list32(b) })
	v, _, err := ReadValue(deep)
	if err != nil {
		t.Fatal(err)
	}
	e := ErrorInfo{Condition: "c", Info: Map{{Symbol("received"), List{v}}}}
	if b := e.Append(nil); len(b) < MaxDepth {
		t.Errorf("%x", b)
	}
	endless := List{nil}
	endless[0] = endless
	if _, err := AppendValue(nil, endless); !errors.Is(err, ErrTooDeep) {
		t.Errorf("list within itself: %v", err)
	}
}

func TestElementLimits(t *testing.T) {
	nulls := func(format byte, n, perElement int) []byte {
		b := []byte{format, 0, 0, 0, 0, 0, 0, 0, 0}
		putSize(b[1:], n*perElement+4)
		putSize(b[5:], n)
		return append(b, bytes.Repeat([]byte{formatNull}, n*perElement)...)
	}
	if _, _, err := ReadValue(nulls(formatList32, MaxElements, 1)); err != nil {
		t.Errorf("list of %d: %v", MaxElements, err)
	}
	if _, _, err := ReadValue(nulls(formatList32, MaxElements+1, 1)); !errors.Is(err, ErrTooMany) {
		t.Errorf("list of %d: %v", MaxElements+1, err)
	}
	if _, err := Validate(nulls(formatList32, MaxElements+1, 1)); err != nil {
		t.Errorf("validating a list of %d: %v", MaxElements+1, err)
	}
	if _, _, err := ReadValue(nulls(formatMap32, MaxElements+2, 1)); !errors.Is(err, ErrTooMany) {
		t.Errorf("map of %d: %v", MaxElements+2, err)
	}
	for _, v := range []any{make(List, MaxElements+1), make(Map, MaxElements/2+1), make([]Symbol, MaxElements+1), make([]string, MaxElements+1),
		Array{Code: formatNull, Elements: make([]any, MaxElements+1)}} {
		if b, err := AppendValue([]byte{1}, v); !errors.Is(err, ErrTooMany) || len(b) != 1 {
			t.Errorf("writing %T: %d octets, %v", v, len(b), err)
		}
	}
}

// A key twice is found among few and among many, whatever its type, and no
// two different keys are taken for the same.
func TestDuplicateKeys(t *testing.T) {
	kinds := []func(i int) any{
		func(i int) any { return uint32(i) },
		func(i int) any { return float64(i) },
		func(i int) any { return Symbol(strings.Repeat("k", i)) },
		func(i int) any { return []byte(strings.Repeat("k", i)) },
		func(i int) any { return List{uint64(i)} },
		func(i int) any { return Described{uint64(1), int64(i)} },
		func(i int) any {
			return []any{"1", Symbol("1"), []byte("1"), int8(1), uint8(1), nil, true, Char(1), Timestamp(1), List{}}[i%10]
		},
	}
	for _, key := range kinds {
		for _, n := range []int{2, 8, 9, 10, 2000} {
			m := make(Map, n)
			for i := range m {
				m[i].Key = key(i)
			}
			b, err := AppendValue(nil, m)
			if err != nil {
				t.Fatal(err)
			}
			_, mixed := m[0].Key.(string) // ten keys in turn
			if _, _, err := ReadValue(b); (err != nil) != (mixed && n > 10) {
				t.Errorf("%d keys %T: %v", n, m[0].Key, err)
			}
			m[n-1].Key = m[0].Key
			if b, err = AppendValue(nil, m); err != nil {
				t.Fatal(err)
			}
			if _, _, err := ReadValue(b); !errors.Is(err, ErrMalformed) {
				t.Errorf("%d keys %T, last as first: %v", n, m[0].Key, err)
			}
		}
	}
}

func TestAppendGoTypes(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{5, "5505"},
		{-129, "81ffffffffffffff7f"},
		{uint(5), "5305"},
		{CodeSource, "5328"},
		{[]any{nil}, "c0020140"},
		{[]Symbol{}, "e00200a3"},
		{[]Symbol(nil), "e00200a3"},
		{[]string{"a", "b"}, "e00602a101610162"},
		{[]byte(nil), "a000"},
		{List(nil), "45"},
		{Map(nil), "c10100"},
		{Raw{0x43}, "43"},
		{Described{CodeDeleteOnClose, List{}}, "00532b45"},
	} {
		b, err := AppendValue(nil, c.v)
		if err != nil || octetsText(b) != c.want {
			t.Errorf("%T %v: %x, %v, want %s", c.v, c.v, b, err, c.want)
		}
	}
	dst := []byte{1, 2}
	for _, v := range []any{struct{}{}, Raw{}, []int{1}, List{struct{}{}}, Map{{"k", make(chan int)}}, Map{{struct{}{}, nil}},
		Described{Described{nil, nil}, nil}, Described{nil, struct{}{}}, Array{}, Array{Code: formatUint, Elements: []any{"x"}},
		Array{Code: formatSmallUint, Elements: []any{uint32(1), nil}}, Array{Code: formatUint, Elements: []any{struct{}{}}},
		Array{Descriptor: Described{}, Code: formatNull}, Array{Descriptor: struct{}{}, Code: formatNull}, Array{Code: 0x46}} {
		b, err := AppendValue(dst, v)
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%T %v: %v", v, v, err)
		}
		if !bytes.Equal(b, dst) {
			t.Errorf("%T %v: dst became %x", v, v, b)
		}
	}
}

// The constructor of an array grows with its elements.
func TestArrayConstructorWidens(t *testing.T) {
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		a    Array
		want byte
	}{
		{Array{Code: formatUint0, Elements: []any{uint32(0), uint32(7)}}, formatSmallUint},
		{Array{Code: formatUint0, Elements: []any{uint32(0), uint32(700)}}, formatUint},
		{Array{Code: formatUint, Elements: []any{uint32(0), uint32(7)}}, formatUint},
		{Array{Code: formatUlong0, Elements: []any{uint64(0), uint64(1 << 40)}}, formatUlong},
		{Array{Code: formatSmallInt, Elements: []any{int32(-1), int32(-129)}}, formatInt},
		{Array{Code: formatSmallLong, Elements: []any{int64(-1), int64(128)}}, formatLong},
		{Array{Code: formatTrue, Elements: []any{true, false}}, formatBool},
		{Array{Code: formatFalse, Elements: []any{false, true}}, formatBool},
		{Array{Code: formatString8, Elements: []any{"a", long, ""}}, formatString32},
		{Array{Code: formatSymbol8, Elements: []any{Symbol("a"), Symbol(long)}}, formatSymbol32},
		{Array{Code: formatBinary8, Elements: []any{[]byte("a"), []byte(long)}}, formatBinary32},
		{Array{Code: formatList0, Elements: []any{List{}, List{int64(1)}}}, formatList8},
		{Array{Code: formatList8, Elements: []any{List{}, List{long}}}, formatList32},
		{Array{Code: formatMap8, Elements: []any{Map{{"k", nil}}, Map{{long, nil}}}}, formatMap32},
		{Array{Code: formatArray8, Elements: []any{
			Array{Code: formatString8, Elements: []any{"a"}},
			Array{Code: formatString8, Elements: []any{long[1:], "b"}},
		}}, formatArray32},
	} {
		b, err := AppendValue(nil, c.a)
		if err != nil {
			t.Errorf("%x: %v", c.a.Code, err)
			continue
		}
		v, rest, err := ReadValue(b)
		if err != nil || len(rest) != 0 {
			t.Errorf("%x: %x, %v", c.a.Code, b, err)
			continue
		}
		if got := v.(Array); got.Code != c.want || text(List(got.Elements)) != text(List(c.a.Elements)) {
			t.Errorf("%x: code %x, want %x\n%s\n%s", c.a.Code, got.Code, c.want, text(List(got.Elements)), text(List(c.a.Elements)))
		}
	}
}

// An array without octets may still need four octets for its count.
func TestManyZeroWidthElements(t *testing.T) {
	for _, n := range []int{255, 256, MaxZeroWidth} {
		a := Array{Code: formatNull, Elements: make([]any, n)}
		b, err := AppendValue(nil, a)
		if err != nil || len(b) > 10 {
			t.Fatalf("%x, %v", b, err)
		}
		if v, rest, err := ReadValue(b); err != nil || len(rest) != 0 || len(v.(Array).Elements) != n {
			t.Errorf("%d nulls as %x: rest %x, %v", n, b, rest, err)
		}
	}
}

// Arrays in arrays that all have to widen cost no more than others.
func TestNestedArraysWidenInLinearTime(t *testing.T) {
	a := Array{Code: formatString8, Elements: []any{strings.Repeat("x", 300)}}
	for range MaxDepth - 1 {
		a = Array{Code: formatArray8, Elements: []any{a}}
	}
	var b []byte
	var err error
	if n := allocated(func() { b, err = AppendValue(nil, a) }); n > 1<<20 {
		t.Errorf("%d octets allocated for %d", n, len(b))
	}
	if err != nil {
		t.Fatal(err)
	}
	if v, rest, err := ReadValue(b); err != nil || len(rest) != 0 {
		t.Errorf("read %s, %v", text(v), err)
	}
}

func TestMapGet(t *testing.T) {
	m := Map{{uint64(1), 0}, {Symbol("a"), 1}, {"b", 2}}
	for key, want := range map[string]any{"a": 1, "b": 2} {
		if v, ok := m.Get(key); !ok || v != want {
			t.Errorf("%s: %v, %v", key, v, ok)
		}
	}
	if v, ok := m.Get("c"); ok || v != nil {
		t.Errorf("c: %v, %v", v, ok)
	}
}

func TestDescribedCode(t *testing.T) {
	for d, want := range map[any]Code{uint64(0x2b): CodeDeleteOnClose, Symbol("amqp:delete-on-close:list"): CodeDeleteOnClose} {
		if c, ok := (Described{Descriptor: d}).Code(); !ok || c != want {
			t.Errorf("%v: %v, %v", d, c, ok)
		}
	}
	for _, d := range []any{uint64(0x2f), uint64(1 << 40), Symbol("amqp:delete-on-close"), "amqp:delete-on-close:list", nil} {
		if c, ok := (Described{Descriptor: d}).Code(); ok {
			t.Errorf("%v: %v", d, c)
		}
	}
}

// Nothing that was read aliases what it was read from.
func TestReadValueCopies(t *testing.T) {
	b, err := AppendValue(nil, List{"string", Symbol("symbol"), []byte("binary"), []string{"array"}, Map{{"k", []byte("v")}}})
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := ReadValue(b)
	if err != nil {
		t.Fatal(err)
	}
	before := text(v)
	for i := range b {
		b[i] = 0xff
	}
	if text(v) != before {
		t.Errorf("%s became %s", before, text(v))
	}
}
