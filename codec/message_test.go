package codec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

func mustEncode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := AppendValue(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mergeModel is MergeAnnotations on decoded maps.
func mergeModel(received, add Map) (m Map) {
	add = slices.Clone(add)
	for i := range add {
		if s, ok := add[i].Key.(string); ok {
			add[i].Key = Symbol(s)
		}
	}
	last := func(key any) int {
		for i := len(add) - 1; i >= 0; i-- {
			if add[i].Key == key {
				return i
			}
		}
		return -1
	}
	used := map[int]bool{}
	for _, p := range received {
		if i := last(p.Key); i >= 0 {
			p.Value, used[i] = add[i].Value, true
		}
		m = append(m, p)
	}
	for i, p := range add {
		if last(p.Key) == i && !used[i] {
			m = append(m, p)
		}
	}
	return m
}

func TestMergeAnnotations(t *testing.T) {
	many := func(n int, prefix string) (m Map) {
		for i := range n {
			m = append(m, Pair{Symbol(fmt.Sprint(prefix, i)), uint32(i)})
		}
		return m
	}
	for name, c := range map[string]struct{ received, add Map }{
		"into nothing":       {nil, Map{{Symbol("a"), true}}},
		"behind":             {Map{{Symbol("z"), nil}, {Symbol("y"), "s"}}, Map{{Symbol("a"), true}}},
		"in place":           {Map{{Symbol("z"), nil}, {Symbol("y"), "s"}}, Map{{Symbol("z"), true}}},
		"both":               {Map{{Symbol("z"), nil}, {Symbol("y"), "s"}}, Map{{Symbol("a"), true}, {Symbol("y"), List{}}}},
		"numbers":            {Map{{uint64(0), nil}, {uint64(7), "s"}, {uint64(1 << 40), nil}}, Map{{uint64(1 << 40), true}, {uint64(0), true}, {uint64(8), 1.5}}},
		"number and symbol":  {Map{{uint64(0), nil}, {Symbol("0"), nil}}, Map{{Symbol("0"), true}}},
		"string is a symbol": {Map{{Symbol("k"), nil}}, Map{{"k", true}, {"l", true}}},
		"last of equals":     {Map{{Symbol("k"), nil}}, Map{{Symbol("k"), "first"}, {Symbol("l"), "first"}, {Symbol("k"), "last"}, {Symbol("l"), "last"}}},
		"illegal keys stay":  {Map{{"k", nil}, {nil, true}, {uint32(1), true}}, Map{{Symbol("k"), true}, {uint64(1), false}}},
		"long keys":          {Map{{Symbol(bytes.Repeat([]byte("k"), 300)), nil}}, Map{{Symbol(bytes.Repeat([]byte("k"), 300)), true}}},
		"grows to map32":     {many(20, "received"), many(10, "add")},
		"many":               {many(300, "x"), append(many(200, "x"), many(100, "y")...)},
	} {
		t.Run(name, func(t *testing.T) {
			var section []byte
			if c.received != nil {
				section = describe(CodeMessageAnnotations, mustEncode(t, c.received))
			}
			got, err := MergeAnnotations([]byte{0xee}, section, c.add)
			if err != nil || got[0] != 0xee {
				t.Fatalf("%x, %v", got, err)
			}
			got = got[1:]
			want := describe(CodeMessageAnnotations, mustEncode(t, mergeModel(c.received, c.add)))
			if !bytes.Equal(got, want) {
				t.Errorf("merged %x\nwant   %x", got, want)
			}
			if s, err := Split(got); err != nil || !bytes.Equal(s.MessageAnnotations, got) {
				t.Errorf("split: %v", err)
			}
		})
	}
}

// Received entries stay as they were encoded, however that was.
func TestMergeAnnotationsKeepsOctets(t *testing.T) {
	received := []byte{
		formatSymbol32, 0, 0, 0, 1, 'a', formatUint, 0, 0, 0, 1, // wide without need
		formatUlong, 0, 0, 0, 0, 0, 0, 0, 5, formatList32, 0, 0, 0, 4, 0, 0, 0, 0,
		formatSymbol8, 1, 'b', formatBool, 1,
	}
	m := append([]byte{formatMap32, 0, 0, 0, 0, 0, 0, 0, 6}, received...)
	putSize(m[1:], len(received)+4)
	section := append([]byte("\x00\xa3\x1camqp:message-annotations:map"), m...)

	if got, err := MergeAnnotations(nil, section, nil); err != nil || !bytes.Equal(got, section) {
		t.Errorf("nothing added: %x, %v", got, err)
	}
	if got, err := MergeAnnotations(nil, nil, nil); err != nil || len(got) != 0 {
		t.Errorf("nothing at all: %x, %v", got, err)
	}
	got, err := MergeAnnotations(nil, section, Map{{Symbol("c"), nil}})
	if err != nil || !bytes.Contains(got, received) {
		t.Errorf("added: %x, %v", got, err)
	}
	got, err = MergeAnnotations(nil, section, Map{{uint64(5), Raw{formatTrue}}})
	want := append(bytes.Clone(received[:20]), formatTrue)
	want = append(want, received[29:]...)
	if err != nil || !bytes.HasSuffix(got, want) {
		t.Errorf("replaced: %x, %v\nwant suffix %x", got, err, want)
	}
}

func TestMergeAnnotationsErrors(t *testing.T) {
	add := Map{{Symbol("k"), nil}}
	for name, c := range map[string]struct {
		section []byte
		add     Map
		want    error
	}{
		"another section":  {describe(CodeDeliveryAnnotations, []byte{formatMap8, 1, 0}), add, ErrWrongType},
		"a list":           {describe(CodeMessageAnnotations, []byte{formatList0}), add, ErrWrongType},
		"odd":              {describe(CodeMessageAnnotations, []byte{formatMap8, 2, 1, formatNull}), add, ErrMalformed},
		"cut":              {describe(CodeMessageAnnotations, []byte{formatMap8, 3, 2, formatNull, formatUbyte}), add, ErrTruncated},
		"octets behind":    {describe(CodeMessageAnnotations, []byte{formatMap8, 4, 2, formatNull, formatNull, formatNull}), add, ErrMalformed},
		"empty":            {[]byte{}, add, ErrTruncated},
		"key of no type":   {nil, Map{{uint32(1), nil}}, ErrUnsupported},
		"empty key":        {nil, Map{{Symbol(""), nil}}, ErrUnsupported},
		"value of no type": {nil, Map{{Symbol("k"), struct{}{}}}, ErrUnsupported},
		"replaced by none": {describe(CodeMessageAnnotations, mustEncode(t, Map{{Symbol("k"), nil}})), Map{{Symbol("k"), struct{}{}}}, ErrUnsupported},
		"too many":         {nil, make(Map, MaxElements), ErrTooMany},
	} {
		got, err := MergeAnnotations([]byte{1}, c.section, c.add)
		if !errors.Is(err, c.want) || len(got) != 1 {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
}

func TestReadAnnotations(t *testing.T) {
	for _, b := range [][]byte{nil, {formatNull}} {
		if m, err := ReadAnnotations(b); m != nil || err != nil {
			t.Errorf("%x: %v, %v", b, m, err)
		}
	}
	if m, err := ReadAnnotations([]byte{formatMap8, 1, 0}); len(m) != 0 || err != nil {
		t.Errorf("empty map: %v, %v", m, err)
	}
	encoded := mustEncode(t, Map{{Symbol("k"), List{"v"}}})
	m, err := ReadAnnotations(encoded)
	if err != nil {
		t.Fatal(err)
	}
	for i := range encoded {
		encoded[i] = 0xff
	}
	if v, _, err := ReadValue(m[0].Value.(Raw)); err != nil || text(v) != `[string "v"]` || m[0].Key != Symbol("k") {
		t.Errorf("%v, %v: the map aliases what was read", m, err)
	}
	deep := nested(MaxDepth, func(b []byte) []byte { return list32(b) })
	for name, b := range map[string][]byte{
		"list":      {formatList0},
		"odd":       {formatMap8, 2, 1, formatNull},
		"behind":    {formatMap8, 1, 0, formatNull},
		"within":    {formatMap8, 6, 2, formatSymbol8, 1, 'k', formatNull, formatNull},
		"cut":       {formatMap8, 5, 2, formatSymbol8, 1, 'k'},
		"twice":     mustEncode(t, Map{{Symbol("k"), nil}, {Symbol("k"), nil}}),
		"two sizes": {formatMap8, 13, 4, formatUlong0, formatNull, formatUlong, 0, 0, 0, 0, 0, 0, 0, 0, formatNull},
		"deep":      mustEncode(t, Map{{Symbol("k"), Raw(deep)}}),
		"no ASCII":  mustEncode(t, Map{{Symbol("é"), nil}}),
	} {
		if m, err := ReadAnnotations(b); err == nil {
			t.Errorf("%s %x: %v", name, b, m)
		}
	}
}

func TestPropertiesField(t *testing.T) {
	p := Properties{MessageID: "id", UserID: []byte("u"), To: Some("to"), AbsoluteExpiryTime: Some[Timestamp](5), GroupID: Some("g")}
	section := p.Append(nil)
	symbolic := append([]byte("\x00\xa3\x14amqp:properties:list"), section[3:]...)
	for _, section := range [][]byte{section, symbolic} {
		for index, want := range map[int]any{
			PropMessageID: "id", PropUserID: []byte("u"), PropTo: "to", PropAbsoluteExpiryTime: Timestamp(5), PropGroupID: "g",
			PropSubject: nil, PropReplyTo: nil, PropCorrelationID: nil, PropContentType: nil, PropContentEncoding: nil,
			PropCreationTime: nil, PropGroupSequence: nil, PropReplyToGroupID: nil, -1: nil, 13: nil, 1 << 40: nil,
		} {
			b, err := PropertiesField(section, index)
			if err != nil || (b == nil) != (want == nil) {
				t.Errorf("field %d: %x, %v", index, b, err)
				continue
			}
			if b == nil {
				continue
			}
			if v, rest, err := ReadValue(b); err != nil || len(rest) != 0 || !reflect.DeepEqual(v, want) {
				t.Errorf("field %d: %v, %v, want %v", index, v, err, want)
			}
		}
	}
	if b, err := PropertiesField(nil, PropTo); b != nil || err != nil {
		t.Errorf("no section: %x, %v", b, err)
	}
	for name, section := range map[string][]byte{
		"header":   describe(CodeHeader, []byte{formatList0}),
		"map":      describe(CodeProperties, []byte{formatMap8, 1, 0}),
		"cut":      section[:8],
		"inside":   describe(CodeProperties, []byte{formatList8, 3, 3, formatString8, 9}),
		"too many": describe(CodeProperties, list32(slicesOf([]byte{formatNull}, 14)...)),
		"empty":    {},
	} {
		if b, err := PropertiesField(section, PropTo); err == nil {
			t.Errorf("%s: %x", name, b)
		}
	}
}

func TestReadStringAndTimestamp(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want string
		ok   bool
	}{
		{[]byte{formatString8, 2, 'h', 'i'}, "hi", true},
		{[]byte{formatString8, 0}, "", true},
		{[]byte{formatString32, 0, 0, 0, 1, 'x'}, "x", true},
		{[]byte{formatSymbol8, 1, 'x'}, "", false},
		{[]byte{formatString8, 2, 'h'}, "", false},
		{[]byte{formatString8, 1, 'h', 'i'}, "", false},
		{[]byte{formatString8, 1, 0xff}, "", false},
		{[]byte{formatNull}, "", false},
		{nil, "", false},
	} {
		if s, ok := ReadString(c.b); s != c.want || ok != c.ok {
			t.Errorf("%x: %q, %v", c.b, s, ok)
		}
	}
	if ms, ok := ReadTimestamp([]byte{formatTimestamp, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}); ms != -1 || !ok {
		t.Errorf("%d, %v", ms, ok)
	}
	for _, b := range [][]byte{nil, {formatTimestamp}, {formatLong, 0, 0, 0, 0, 0, 0, 0, 0}, {formatTimestamp, 0, 0, 0, 0, 0, 0, 0, 0, 0}} {
		if ms, ok := ReadTimestamp(b); ok {
			t.Errorf("%x: %d", b, ms)
		}
	}
}

func TestBodies(t *testing.T) {
	value, err := AppendAmqpValue([]byte{1}, "v")
	if err != nil || octetsText(value) != "01005377a10176" {
		t.Errorf("%x, %v", value, err)
	}
	sequence, err := AppendAmqpSequence(nil, List{true})
	if err != nil || octetsText(sequence) != "005376c0020141" {
		t.Errorf("%x, %v", sequence, err)
	}
	if data := AppendData(nil, []byte{7}); octetsText(data) != "005375a00107" {
		t.Errorf("%x", data)
	}
	for _, f := range []func([]byte) ([]byte, error){
		func(b []byte) ([]byte, error) { return AppendAmqpValue(b, struct{}{}) },
		func(b []byte) ([]byte, error) { return AppendAmqpSequence(b, List{struct{}{}}) },
		func(b []byte) ([]byte, error) { return AppendApplicationProperties(b, Map{{Symbol("k"), nil}}) },
		func(b []byte) ([]byte, error) { return AppendApplicationProperties(b, Map{{"k", struct{}{}}}) },
		func(b []byte) ([]byte, error) { return AppendMessageAnnotations(b, Map{{[]byte("k"), nil}}) },
		func(b []byte) ([]byte, error) { return AppendDeliveryAnnotations(b, Map{{"k", struct{}{}}}) },
	} {
		if b, err := f([]byte{1}); !errors.Is(err, ErrUnsupported) || len(b) != 1 {
			t.Errorf("%x, %v", b, err)
		}
	}
}

// A map of a performative that can't be encoded is the program's fault.
func TestAppendPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"properties": func() { (&Open{Properties: Map{{Symbol("k"), struct{}{}}}}).Append(nil) },
		"info":       func() { (&Close{Error: &ErrorInfo{Info: Map{{Symbol("k"), struct{}{}}}}}).Append(nil) },
		"id":         func() { (&Properties{MessageID: 5}).Append(nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestErrors(t *testing.T) {
	kinds := map[ErrorKind]error{
		Truncated: ErrTruncated, Malformed: ErrMalformed, TooDeep: ErrTooDeep, TooMany: ErrTooMany, WrongType: ErrWrongType,
		MissingField: ErrMissingField, UnknownDescriptor: ErrUnknownDescriptor, Framing: ErrFraming, Unsupported: ErrUnsupported,
	}
	for kind := range kinds {
		err := fmt.Errorf("frame: %w", &Error{kind, "open"})
		for other, sentinel := range kinds {
			if errors.Is(err, sentinel) != (kind == other) {
				t.Errorf("%v is %v", err, sentinel)
			}
		}
		var e *Error
		if !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%v", err)
		}
	}
	if s := (&Error{Truncated, "open"}).Error(); s != "open: truncated" {
		t.Error(s)
	}
}
