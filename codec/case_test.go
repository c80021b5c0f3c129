package codec

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// allocated returns the octets that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// list32 encodes a list of the given elements, each encoded already.
func list32(elements ...[]byte) []byte {
	content := bytes.Join(elements, nil)
	b := []byte{formatList32, 0, 0, 0, 0, 0, 0, 0, byte(len(elements))}
	putSize(b[1:], len(content)+4)
	return append(b, content...)
}

// array32 encodes an array of n elements that fill content.
func array32(code byte, n int, content []byte) []byte {
	b := []byte{formatArray32, 0, 0, 0, 0, 0, 0, 0, 0, code}
	putSize(b[1:], len(content)+5)
	putSize(b[5:], n)
	return append(b, content...)
}

func putSize(b []byte, n int) {
	b[0], b[1], b[2], b[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
}

func describe(code Code, value []byte) []byte {
	return append([]byte{formatDescribed, formatSmallUlong, byte(code)}, value...)
}

// A frame body that ends early, or lies about its size, is an error of a kind
// that can be answered, whatever the performative and wherever it is cut.
func TestCase001_TruncatedPerformative(t *testing.T) {
	for _, file := range []string{"performatives.txt", "sasl.txt", "termini.txt", "transactions.txt"} {
		for _, v := range readVectors(t, file) {
			if v.form == "!" {
				continue
			}
			for cut := range len(v.octets) {
				_, _, err := readComposite(v.octets[:cut])
				if !errors.Is(err, ErrTruncated) {
					t.Fatalf("%s %s cut to %d octets: %v", file, v.name, cut, err)
				}
			}
		}
	}
}

// Arrays take time linear in their size.
func TestCase002_LargeArray(t *testing.T) {
	const n = 250_000
	array := array32(formatUbyte, n, make([]byte, n))
	// Strings of one octet: the elements have to be walked.
	walked := array32(formatString8, n, bytes.Repeat([]byte{1, 'x'}, n))
	var message []byte
	for _, a := range [][]byte{array, walked} {
		section := describe(CodeApplicationProperties, []byte{formatMap32, 0, 0, 0, 0, 0, 0, 0, 2, formatString8, 1, 'k'})
		section = append(section, a...)
		putSize(section[4:], len(section)-8)
		message = append(section, describe(CodeData, []byte{formatBinary8, 0})...)

		start := time.Now()
		s, err := Split(message)
		if err != nil || len(s.ApplicationProperties) != len(section) {
			t.Fatalf("split: %d of %d octets, %v", len(s.ApplicationProperties), len(section), err)
		}
		if rest, err := Skip(a); err != nil || len(rest) != 0 {
			t.Errorf("skip: %d octets left, %v", len(rest), err)
		}
		if rest, err := Validate(a); err != nil || len(rest) != 0 {
			t.Errorf("validate: %d octets left, %v", len(rest), err)
		}
		if _, _, err := ReadValue(a); !errors.Is(err, ErrTooMany) {
			t.Errorf("read: %v, want too many elements", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
	}
	// The largest that is read.
	start := time.Now()
	v, _, err := ReadValue(array32(formatUbyte, MaxElements, make([]byte, MaxElements)))
	if err != nil || len(v.(Array).Elements) != MaxElements {
		t.Errorf("array of %d: %v", MaxElements, err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v", took)
	}
}

// Arrays of elements without octets are legal, and come back octet for octet.
func TestCase004_ZeroWidthArrays(t *testing.T) {
	for _, b := range [][]byte{
		{formatArray8, 2, 2, formatNull},
		{formatArray8, 2, 3, formatUint0},
		{formatArray8, 2, 1, formatUlong0},
		{formatArray8, 2, 2, formatList0},
		{formatArray8, 2, 9, formatTrue},
		{formatArray8, 2, 9, formatFalse},
	} {
		v, rest, err := ReadValue(b)
		if err != nil || len(rest) != 0 {
			t.Errorf("%x: rest %x, %v", b, rest, err)
			continue
		}
		if n := len(v.(Array).Elements); n != int(b[2]) {
			t.Errorf("%x: %d elements", b, n)
		}
		if again, err := AppendValue(nil, v); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x written as %x, %v", b, again, err)
		}
	}
	// Merging annotations keeps them too.
	section := describe(CodeMessageAnnotations, []byte{formatMap8, 8, 2, formatSymbol8, 1, 'a', formatArray8, 2, 2, formatNull})
	got, err := MergeAnnotations(nil, section, Map{{Symbol("b"), nil}})
	if err != nil || !bytes.Contains(got, section[6:]) {
		t.Errorf("merged %x, %v", got, err)
	}
}

// Ten octets may declare four billion elements; a frame may hold thousands of
// such arrays.
func TestCase004_ManyZeroWidthArrays(t *testing.T) {
	one := array32(formatNull, MaxZeroWidth, nil)
	if _, _, err := ReadValue(one); err != nil {
		t.Fatalf("one array: %v", err)
	}
	many := list32(slicesOf(one, 200)...)
	var err error
	if n := allocated(func() { _, _, err = ReadValue(many) }); n > 1<<18 {
		t.Errorf("%d octets allocated for %d", n, len(many))
	}
	if !errors.Is(err, ErrTooMany) {
		t.Errorf("200 arrays of %d nulls: %v", MaxZeroWidth, err)
	}
	// Passing them on needs no memory.
	if rest, err := Skip(many); err != nil || len(rest) != 0 {
		t.Errorf("skip: %d octets left, %v", len(rest), err)
	}
	if rest, err := Validate(many); err != nil || len(rest) != 0 {
		t.Errorf("validate: %d octets left, %v", len(rest), err)
	}
}

func slicesOf(b []byte, n int) (s [][]byte) {
	for range n {
		s = append(s, b)
	}
	return s
}

// Symbolic descriptors match as a whole.
func TestCase005_SymbolicDescriptors(t *testing.T) {
	for c, name := range codeNames {
		if name == "" {
			continue
		}
		code := Code(c)
		if code.Symbol() != Symbol(name) || code.String() != name {
			t.Errorf("%s: symbol %s, string %s", name, code.Symbol(), code)
		}
		symbol := append([]byte{formatDescribed, formatSymbol8, byte(len(name))}, name...)
		if got, rest, err := ReadDescriptor(append(symbol, formatList0)); got != code || len(rest) != 1 || err != nil {
			t.Errorf("%s: code %v, rest %x, %v", name, got, rest, err)
		}
		for _, wrong := range []string{name + "X", name[:len(name)-1], "X" + name, strings.ToUpper(name), ""} {
			b := append([]byte{formatDescribed, formatSymbol8, byte(len(wrong))}, wrong...)
			got, rest, err := ReadDescriptor(append(b, formatList0))
			if !errors.Is(err, ErrUnknownDescriptor) || len(rest) != 1 {
				t.Errorf("%q: code %v, rest %x, %v", wrong, got, rest, err)
			}
		}
	}
	body := []byte("\x00\xa3\x11amqp:data:binaryX\xa0\x00")
	if _, err := Split(body); !errors.Is(err, ErrUnknownDescriptor) {
		t.Errorf("split: %v", err)
	}
}

// NaN, of whatever bits, stays a number with these bits.
func TestCase007_NaN(t *testing.T) {
	for _, bits := range []uint64{0x7ff8000000000000, 0x7ff0000000000001, 0xfff8dead0000beef, math.Float64bits(math.NaN())} {
		b, err := AppendValue(nil, math.Float64frombits(bits))
		if err != nil || b[0] != formatDouble || be64(b[1:]) != bits {
			t.Errorf("%016x written as %x, %v", bits, b, err)
		}
		v, _, err := ReadValue(b)
		if f, ok := v.(float64); err != nil || !ok || math.Float64bits(f) != bits {
			t.Errorf("%016x read as %v, %v", bits, v, err)
		}
	}
	for _, bits := range []uint32{0x7fc00000, 0x7f800001, 0xffc0beef} {
		b, err := AppendValue(nil, math.Float32frombits(bits))
		if err != nil || b[0] != formatFloat || be32(b[1:]) != bits {
			t.Errorf("%08x written as %x, %v", bits, b, err)
		}
	}
}

// Arrays in message annotations pass.
func TestCase008_ArraysInAnnotations(t *testing.T) {
	section, err := AppendMessageAnnotations(nil, Map{
		{Symbol("x-foo"), []Symbol{"a", "b"}},
		{Symbol("x-bar"), Array{Code: formatUlong, Elements: []any{uint64(1), uint64(math.MaxUint64)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Split(section)
	if err != nil || !bytes.Equal(s.MessageAnnotations, section) {
		t.Fatalf("%x, %v", s.MessageAnnotations, err)
	}
	_, value, _ := ReadDescriptor(section)
	v, _, err := ReadValue(value)
	want := `{symbol x-foo: array a3 [symbol a, symbol b], symbol x-bar: array 80 [ulong 1, ulong 18446744073709551615]}`
	if err != nil || text(v) != want {
		t.Errorf("%s, %v", text(v), err)
	}
}

// Declared counts allocate nothing that isn't there.
func TestCase010_ArrayCount(t *testing.T) {
	array := array32(formatString8, 0, make([]byte, 20))
	putSize(array[5:], 0xffffffff)
	open := Open{ContainerID: "c"}
	body := open.Append(nil)
	// Put the array where the null of desired-capabilities is.
	body = append(append(body[:len(body)-2], array...), formatNull)
	body[4] = byte(len(body) - 5)
	var err error
	if n := allocated(func() { _, _, err = readComposite(body) }); n > 4096 {
		t.Errorf("%d octets allocated", n)
	}
	if !errors.Is(err, ErrTooMany) || !strings.HasPrefix(err.Error(), "open.desired-capabilities") {
		t.Errorf("error %v", err)
	}
}

// The same for lists and maps, in every field of every performative.
func TestCase011_DeclaredCounts(t *testing.T) {
	bombs := [][]byte{
		{formatList32, 0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		{formatMap32, 0, 0, 0, 8, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0},
		{formatArray32, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, formatSymbol8, 0, 0, 0, 0},
		{formatArray32, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, formatNull},
		{formatList32, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	}
	for code, make := range composites {
		// A value whose fields are null but for one.
		fields := int(make().Append(nil)[5])
		for at := range fields {
			for _, bomb := range bombs {
				var elements [][]byte
				for i := range fields {
					if i == at {
						elements = append(elements, bomb)
					} else {
						elements = append(elements, []byte{formatNull})
					}
				}
				body := describe(code, list32(elements...))
				var err error
				if n := allocated(func() { _, _, err = readComposite(body) }); n > 8192 {
					t.Errorf("%v field %d: %d octets allocated for %x", code, at, n, bomb)
				}
				if err == nil {
					t.Errorf("%v field %d: %x read", code, at, bomb)
				}
			}
		}
	}
}

// An empty array is an array.
func TestCase013_EmptyArray(t *testing.T) {
	for _, array := range [][]byte{
		{formatArray8, 2, 0, formatSymbol8},
		{formatArray8, 1, 0},
		{formatArray32, 0, 0, 0, 5, 0, 0, 0, 0, formatSymbol8},
		{formatArray32, 0, 0, 0, 5, 0, 0, 0, 0, formatSymbol32},
		{formatArray32, 0, 0, 0, 4, 0, 0, 0, 0},
	} {
		if _, rest, err := ReadValue(array); err != nil || len(rest) != 0 {
			t.Errorf("%x: rest %x, %v", array, rest, err)
		}
		for _, field := range []int{11, 12} {
			elements := slicesOf([]byte{formatNull}, 14)
			elements[0], elements[1], elements[2] = []byte{formatString8, 1, 'l'}, []byte{formatUint0}, []byte{formatTrue}
			elements[field] = array
			var a Attach
			if _, err := a.Decode(list32(elements...)); err != nil || a.OfferedCapabilities != nil || a.DesiredCapabilities != nil {
				t.Errorf("%x: %v %v, %v", array, a.OfferedCapabilities, a.DesiredCapabilities, err)
			}
		}
	}
}

// Null, an array of none, one symbol and an array of one: what a field for
// many may look like.
func TestCase014_Multiple(t *testing.T) {
	none := [][]byte{{formatNull}, {formatArray8, 2, 0, formatSymbol8}, {formatList0}}
	one := [][]byte{
		{formatSymbol8, 1, 'x'},
		{formatSymbol32, 0, 0, 0, 1, 'x'},
		{formatArray8, 4, 1, formatSymbol8, 1, 'x'},
		{formatArray8, 7, 1, formatSymbol32, 0, 0, 0, 1, 'x'},
		{formatArray32, 0, 0, 0, 7, 0, 0, 0, 1, formatSymbol8, 1, 'x'},
		{formatList8, 4, 1, formatSymbol8, 1, 'x'},
	}
	fieldsWith := func(n, at int, value []byte, first ...[]byte) []byte {
		elements := slicesOf([]byte{formatNull}, n)
		copy(elements, first)
		elements[at] = value
		return list32(elements...)
	}
	null, str, zero, yes := []byte{formatNull}, []byte{formatString8, 1, 's'}, []byte{formatUint0}, []byte{formatTrue}
	read := map[string]func(value []byte) ([]Symbol, error){
		"open.desired-capabilities": func(v []byte) ([]Symbol, error) {
			var p Open
			_, err := p.Decode(fieldsWith(10, 8, v, str))
			return p.DesiredCapabilities, err
		},
		"open.outgoing-locales": func(v []byte) ([]Symbol, error) {
			var p Open
			_, err := p.Decode(fieldsWith(10, 5, v, str))
			return p.OutgoingLocales, err
		},
		"begin.offered-capabilities": func(v []byte) ([]Symbol, error) {
			var p Begin
			_, err := p.Decode(fieldsWith(8, 5, v, null, zero, zero, zero))
			return p.OfferedCapabilities, err
		},
		"attach.desired-capabilities": func(v []byte) ([]Symbol, error) {
			var p Attach
			_, err := p.Decode(fieldsWith(14, 12, v, str, zero, yes))
			return p.DesiredCapabilities, err
		},
		"source.outcomes": func(v []byte) ([]Symbol, error) {
			var p Source
			_, err := p.Decode(fieldsWith(11, 9, v))
			return p.Outcomes, err
		},
		"target.capabilities": func(v []byte) ([]Symbol, error) {
			var p Target
			_, err := p.Decode(fieldsWith(7, 6, v))
			return p.Capabilities, err
		},
		"coordinator.capabilities": func(v []byte) ([]Symbol, error) {
			var p Coordinator
			_, err := p.Decode(fieldsWith(1, 0, v))
			return p.Capabilities, err
		},
	}
	for name, r := range read {
		for _, v := range none {
			if got, err := r(v); err != nil || got != nil {
				t.Errorf("%s %x: %v, %v", name, v, got, err)
			}
		}
		for _, v := range one {
			if got, err := r(v); err != nil || !reflect.DeepEqual(got, []Symbol{"x"}) {
				t.Errorf("%s %x: %v, %v", name, v, got, err)
			}
		}
	}
	// The mechanisms are mandatory: none is as bad as null.
	for _, v := range none {
		var p SASLMechanisms
		if _, err := p.Decode(list32(v)); !errors.Is(err, ErrMissingField) {
			t.Errorf("mechanisms %x: %v", v, err)
		}
	}
	for _, v := range one {
		var p SASLMechanisms
		if _, err := p.Decode(list32(v)); err != nil || !reflect.DeepEqual(p.Mechanisms, []Symbol{"x"}) {
			t.Errorf("mechanisms %x: %v, %v", v, p.Mechanisms, err)
		}
	}
}

// Lengths around the end of the short forms.
func TestCase016_Lengths(t *testing.T) {
	for _, n := range []int{0, 1, 254, 255, 256, 257, 65535, 65536} {
		s := strings.Repeat("n", n)
		wide := n > 255
		for _, v := range []any{s, Symbol(s), []byte(s)} {
			b, err := AppendValue(nil, v)
			if err != nil || (b[0]&0xf0 == 0xb0) != wide {
				t.Fatalf("%T of %d written with format %x, %v", v, n, b[0], err)
			}
			got, rest, err := ReadValue(b)
			if err != nil || len(rest) != 0 || !reflect.DeepEqual(got, v) {
				t.Errorf("%T of %d: %v", v, n, err)
			}
		}
		open := Open{ContainerID: s, Hostname: s, OfferedCapabilities: []Symbol{Symbol(s), "x"}, Properties: Map{{Symbol("k" + s), s}}}
		var got Open
		if rest, err := got.Decode(open.Append(nil)[3:]); err != nil || len(rest) != 0 || got.ContainerID != s || got.Hostname != open.Hostname ||
			got.OfferedCapabilities[0] != Symbol(s) || !reflect.DeepEqual(got.Properties, open.Properties) {
			t.Errorf("open with names of %d: %v", n, err)
		}
		source := Source{Address: Some(s), ExpiryPolicy: ExpiryNever}
		var gotSource Source
		if rest, err := gotSource.Decode(source.Append(nil)[3:]); err != nil || len(rest) != 0 || gotSource.Address != source.Address {
			t.Errorf("address of %d: %v", n, err)
		}
		section, err := AppendApplicationProperties(nil, Map{{s, s}})
		if err != nil {
			t.Fatal(err)
		}
		if parts, err := Split(section); err != nil || len(parts.ApplicationProperties) != len(section) {
			t.Errorf("application property of %d: %v", n, err)
		}
		data := AppendData(nil, []byte(s))
		if parts, err := Split(data); err != nil || len(parts.Body) != len(data) {
			t.Errorf("data of %d: %v", n, err)
		}
	}
	// Lists and maps: the octet for the size counts the count.
	for n := 250; n < 260; n++ {
		for _, v := range []any{List{make([]byte, n)}, Map{{Symbol("k"), make([]byte, n)}}, []string{strings.Repeat("s", n-5)}} {
			b, err := AppendValue(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			if got, rest, err := ReadValue(b); err != nil || len(rest) != 0 {
				t.Errorf("%T with %d octets: %v, %v", v, n, got, err)
			}
		}
	}
	// And counts of more than one octet.
	for _, n := range []int{254, 255, 256, 257} {
		l := make(List, n)
		if b, _ := AppendValue(nil, l); len(b) != map[bool]int{true: 3 + n, false: 9 + n}[n < 255] {
			t.Errorf("list of %d nulls in %d octets", n, len(b))
		} else if got, _, err := ReadValue(b); err != nil || !reflect.DeepEqual(got, l) {
			t.Errorf("list of %d nulls: %v", n, err)
		}
	}
}

// Every timestamp there is.
func TestCase017_Timestamps(t *testing.T) {
	for _, ms := range []Timestamp{253402300799999, -1, -62135596800000, math.MaxInt64, math.MinInt64, 0, 1} {
		p := Properties{CreationTime: Some(ms), AbsoluteExpiryTime: Some(ms)}
		section := p.Append(nil)
		var got Properties
		if err := got.Decode(section); err != nil || got.CreationTime != p.CreationTime || got.AbsoluteExpiryTime != p.AbsoluteExpiryTime {
			t.Errorf("%d: %v, %v", ms, got, err)
		}
		value, err := PropertiesField(section, PropAbsoluteExpiryTime)
		if at, ok := ReadTimestamp(value); err != nil || !ok || at != ms {
			t.Errorf("%d: field %x, %d, %v", ms, value, at, err)
		}
	}
}

// Each of the four types of an id stays what it is.
func TestCase019_MessageIDs(t *testing.T) {
	for _, id := range []any{uint64(0), uint64(255), uint64(math.MaxUint64), UUID{1, 2, 3}, []byte{}, []byte{0, 0xff}, "", "ID:1", strings.Repeat("x", 300)} {
		p := Properties{MessageID: id, CorrelationID: id}
		section := p.Append(nil)
		var got Properties
		if err := got.Decode(section); err != nil || !reflect.DeepEqual(got.MessageID, id) || !reflect.DeepEqual(got.CorrelationID, id) {
			t.Errorf("%T %v: %v %v, %v", id, id, got.MessageID, got.CorrelationID, err)
		}
		for _, index := range []int{PropMessageID, PropCorrelationID} {
			value, err := PropertiesField(section, index)
			if err != nil {
				t.Fatal(err)
			}
			if v, _, err := ReadValue(value); err != nil || !reflect.DeepEqual(v, id) {
				t.Errorf("%T %v: field %d %v, %v", id, id, index, v, err)
			}
		}
	}
}

// A header in front of what is stored makes a message again, in order.
func TestCase020_HeaderInFrontOfStored(t *testing.T) {
	h := Header{Durable: Some(true)}
	original := h.Append(nil)
	original = append(original, describe(CodeDeliveryAnnotations, []byte{formatMap8, 1, 0})...)
	behind := describe(CodeMessageAnnotations, []byte{formatMap8, 1, 0})
	behind = append(behind, describe(CodeProperties, []byte{formatList0})...)
	behind = append(behind, describe(CodeApplicationProperties, []byte{formatMap8, 1, 0})...)
	behind = append(behind, describe(CodeAmqpValue, []byte{formatTrue})...)
	behind = append(behind, describe(CodeFooter, []byte{formatMap8, 1, 0})...)
	original = append(original, behind...)

	s, err := Split(original)
	if err != nil || !bytes.Equal(s.Stored, behind) {
		t.Fatalf("stored %x, %v", s.Stored, err)
	}
	h.DeliveryCount = 3
	again, err := AppendDeliveryAnnotations(h.Append(nil), Map{{Symbol("x-opt-lock-token"), UUID{1}}})
	if err != nil {
		t.Fatal(err)
	}
	again = append(again, s.Stored...)
	parts, err := Split(again)
	if err != nil || !bytes.Equal(parts.Stored, behind) || parts.DeliveryAnnotations == nil || !bytes.Equal(parts.Bare, s.Bare) {
		t.Fatalf("again %x, %v", again, err)
	}
	var got Header
	if err := got.Decode(parts.Header); err != nil || got != h {
		t.Errorf("header %+v, %v", got, err)
	}
}

// Every pair of sections: in order they pass, otherwise they don't.
func TestCase022_SectionOrder(t *testing.T) {
	sections := [][]byte{
		describe(CodeHeader, []byte{formatList0}),
		describe(CodeDeliveryAnnotations, []byte{formatMap8, 1, 0}),
		describe(CodeMessageAnnotations, []byte{formatMap8, 1, 0}),
		describe(CodeProperties, []byte{formatList0}),
		describe(CodeApplicationProperties, []byte{formatMap8, 1, 0}),
		describe(CodeData, []byte{formatBinary8, 0}),
		describe(CodeAmqpSequence, []byte{formatList0}),
		describe(CodeAmqpValue, []byte{formatNull}),
		describe(CodeFooter, []byte{formatMap8, 1, 0}),
	}
	const data, sequence, value = 5, 6, 7
	for i, first := range sections {
		for j, second := range sections {
			legal := i < j && (i < data || j > value) || i == j && (i == data || i == sequence)
			_, err := Split(append(bytes.Clone(first), second...))
			if legal != (err == nil) {
				t.Errorf("%v then %v: %v", CodeHeader+Code(i), CodeHeader+Code(j), err)
			}
			if err != nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("%v then %v: %v", CodeHeader+Code(i), CodeHeader+Code(j), err)
			}
		}
	}
}

// No body, and nothing at all.
func TestCase023_NoBody(t *testing.T) {
	h := Header{}
	message := append(h.Append(nil), describe(CodeProperties, []byte{formatList0})...)
	s, err := Split(message)
	if err != nil || s.Body != nil || s.Properties == nil || len(s.Stored) != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := Split(nil); err != nil || s.Stored != nil || s.Bare != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// A field of the wrong type, a mandatory field left out and one field too many
// name what is wrong.
func TestCase025_FieldErrors(t *testing.T) {
	for code, make := range composites {
		name := strings.TrimSuffix(strings.TrimPrefix(code.String(), "amqp:"), ":list")
		whole := make().Append(nil)
		fields := int(whole[5])
		tooMany := describe(code, list32(slicesOf([]byte{formatNull}, fields+1)...))
		_, _, err := readComposite(tooMany)
		if !errors.Is(err, ErrMalformed) || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s with %d fields: %v", name, fields+1, err)
		}
		// No field of any performative is a decimal32.
		wrong := []byte{formatDecimal32, 0, 0, 0, 0}
		_, _, err = readComposite(describe(code, list32(wrong)))
		if code == CodeDeclare {
			continue // global-id may be anything
		}
		if err == nil || !strings.HasPrefix(err.Error(), name+".") || !errors.Is(err, ErrWrongType) {
			t.Errorf("%s of a decimal: %v", name, err)
		}
	}
	mandatory := map[string]struct {
		code   Code
		fields [][]byte
	}{
		"open.container-id":                     {CodeOpen, nil},
		"begin.next-outgoing-id":                {CodeBegin, [][]byte{{formatNull}}},
		"attach.name":                           {CodeAttach, [][]byte{{formatNull}, {formatUint0}, {formatTrue}}},
		"attach.handle":                         {CodeAttach, [][]byte{{formatString8, 0}, {formatNull}, {formatTrue}}},
		"attach.role":                           {CodeAttach, [][]byte{{formatString8, 0}, {formatUint0}}},
		"flow.outgoing-window":                  {CodeFlow, [][]byte{{formatNull}, {formatUint0}, {formatUint0}, {formatNull}}},
		"transfer.handle":                       {CodeTransfer, [][]byte{{formatNull}}},
		"disposition.first":                     {CodeDisposition, [][]byte{{formatTrue}}},
		"detach.handle":                         {CodeDetach, nil},
		"sasl-init.mechanism":                   {CodeSASLInit, nil},
		"sasl-outcome.code":                     {CodeSASLOutcome, nil},
		"error.condition":                       {CodeError, nil},
		"discharge.txn-id":                      {CodeDischarge, nil},
		"sasl-mechanisms.sasl-server-mechanism": {CodeSASLMechanisms, nil},
	}
	for name, m := range mandatory {
		_, _, err := readComposite(describe(m.code, list32(m.fields...)))
		if !errors.Is(err, ErrMissingField) || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A footer is carried with whatever keys it has.
func TestCase026_Footer(t *testing.T) {
	footer := describe(CodeFooter, []byte{formatMap8, 7, 2, formatSymbol8, 2, 'c', 'r', formatUbyte, 7})
	s, err := Split(append(describe(CodeAmqpValue, []byte{formatNull}), footer...))
	if err != nil || !bytes.Equal(s.Footer, footer) || !bytes.HasSuffix(s.Stored, footer) {
		t.Errorf("%x, %v", s.Footer, err)
	}
}

// Annotations of an outcome have symbols or ulongs for keys.
func TestCase028_AnnotationKeys(t *testing.T) {
	encode := func(m Map) []byte {
		b, err := AppendValue(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, key := range []any{"x-opt-a", []byte("x-opt-a"), nil, true, uint32(1), List{}} {
		if m, err := ReadAnnotations(encode(Map{{key, true}})); !errors.Is(err, ErrMalformed) {
			t.Errorf("key %s: %v, %v", text(key), m, err)
		}
	}
	m, err := ReadAnnotations(encode(Map{{Symbol("x-opt-a"), true}, {uint64(5), "five"}, {Symbol("x-opt-b"), nil}}))
	if err != nil || len(m) != 3 {
		t.Fatalf("%v, %v", m, err)
	}
	section, err := MergeAnnotations(nil, describe(CodeMessageAnnotations, encode(Map{
		{Symbol("x-opt-b"), "old"}, {Symbol("kept"), "kept"}, {uint64(5), "old"},
	})), m)
	if err != nil {
		t.Fatal(err)
	}
	v, rest, err := ReadValue(section)
	want := `@ulong 114 {symbol x-opt-b: null, symbol kept: string "kept", ulong 5: string "five", symbol x-opt-a: true}`
	if err != nil || len(rest) != 0 || text(v) != want {
		t.Errorf("merged\n %s\nwant\n %s, %v", text(v), want, err)
	}
}

// Annotations of an outcome may be lists, maps and arrays.
func TestCase029_AnnotationValues(t *testing.T) {
	values := Map{
		{Symbol("x-l"), List{int32(1), "two", nil}},
		{Symbol("x-m"), Map{{"k", List{}}}},
		{Symbol("x-a"), []Symbol{"a", "b"}},
		{Symbol("x-d"), Described{Symbol("my:type"), uint32(7)}},
	}
	encoded, err := AppendValue(nil, values)
	if err != nil {
		t.Fatal(err)
	}
	sent := Disposition{Role: RoleReceiver, Settled: true, State: DeliveryState{Outcome: Outcome{Kind: StateModified, Annotations: encoded}}}
	var got Disposition
	if _, err := got.Decode(sent.Append(nil)[3:]); err != nil || !bytes.Equal(got.State.Annotations, encoded) {
		t.Fatalf("%x, %v", got.State.Annotations, err)
	}
	m, err := ReadAnnotations(got.State.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	section, err := MergeAnnotations(nil, nil, m)
	if err != nil || !bytes.Equal(section, describe(CodeMessageAnnotations, encoded)) {
		t.Errorf("%x, %v", section, err)
	}
	// A value that is broken inside is no value.
	broken := bytes.Clone(encoded)
	broken[bytes.Index(broken, []byte("two"))-1] = 200
	if _, err := ReadAnnotations(broken); err == nil {
		t.Error("broken annotations read")
	}
}

// Properties of every type pass as they are.
func TestCase032_ApplicationPropertyTypes(t *testing.T) {
	all := Map{{"i", int32(-5)}, {"b", true}, {"t", Timestamp(-1)}, {"u", UUID{9}}, {"d", 2.5}, {"f", float32(1)}, {"n", nil}, {"c", Char('x')}, {"y", []byte{1}}, {"l", uint64(7)}}
	section, err := AppendApplicationProperties(nil, all)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Split(section)
	if err != nil || !bytes.Equal(s.ApplicationProperties, section) {
		t.Fatalf("%x, %v", s.ApplicationProperties, err)
	}
	_, value, _ := ReadDescriptor(section)
	if v, _, err := ReadValue(value); err != nil || !reflect.DeepEqual(v, all) {
		t.Errorf("%s, %v", text(v), err)
	}
}

// Frame bodies are told apart by their layer.
func TestCase268_LayersOfPerformatives(t *testing.T) {
	for c := range Code(0x100) {
		amqp := c >= CodeOpen && c <= CodeClose
		sasl := c >= CodeSASLMechanisms && c <= CodeSASLOutcome
		section := c >= CodeHeader && c <= CodeFooter
		if c.IsPerformative() != amqp || c.IsSASL() != sasl || c.IsSection() != section {
			t.Errorf("%v: performative %v, SASL %v, section %v", c, c.IsPerformative(), c.IsSASL(), c.IsSection())
		}
	}
	for _, name := range []string{"amqp:sasl-init:list", "amqp:open:list"} {
		b := append([]byte{formatDescribed, formatSymbol8, byte(len(name))}, name...)
		code, _, err := ReadDescriptor(append(b, formatList0))
		if err != nil || code.IsSASL() != strings.Contains(name, "sasl") {
			t.Errorf("%s: %v, %v", name, code, err)
		}
	}
}

// A descriptor that is itself described is refused at once, and descriptions
// around a value only go so deep.
func TestCase271_DescribedDescriptor(t *testing.T) {
	zeros := make([]byte, 1<<20)
	if _, _, err := ReadDescriptor(zeros); !errors.Is(err, ErrMalformed) {
		t.Errorf("descriptor: %v", err)
	}
	if _, err := Split(zeros); !errors.Is(err, ErrMalformed) {
		t.Errorf("split: %v", err)
	}
	readers := map[string]func([]byte) error{
		"ReadValue": func(b []byte) error { _, _, err := ReadValue(b); return err },
		"Skip":      func(b []byte) error { _, err := Skip(b); return err },
		"Validate":  func(b []byte) error { _, err := Validate(b); return err },
	}
	for name, read := range readers {
		if err := read(zeros); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s of zeros: %v", name, err)
		}
		described := bytes.Repeat([]byte{formatDescribed, formatUlong0}, MaxDepth)
		if err := read(append(described, formatNull)); err != nil {
			t.Errorf("%s of %d descriptions: %v", name, MaxDepth, err)
		}
		described = bytes.Repeat([]byte{formatDescribed, formatUlong0}, 1<<20)
		if err := read(append(described, formatNull)); !errors.Is(err, ErrTooDeep) {
			t.Errorf("%s of many descriptions: %v", name, err)
		}
	}
	elements := append(slicesOf([]byte{formatNull}, 7), []byte{0, 0, 0, 0})
	elements[0] = []byte{formatUint0}
	var p Transfer
	if _, err := p.Decode(list32(elements...)); !errors.Is(err, ErrMalformed) {
		t.Errorf("state: %v", err)
	}
}
