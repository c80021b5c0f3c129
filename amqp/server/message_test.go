package server

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	goamqp "github.com/Azure/go-amqp"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// through sends a message through queue "q" of a fresh broker and returns what comes out.
func (r *rig) through(message []byte) delivery {
	r.t.Helper()
	p := r.opened("through")
	p.sender(0, "q")
	p.put(0, message)
	p.receiver(1, "q", 1)
	d := p.receive()
	p.dispose(d.id(), d.id(), true, accepted)
	p.close()
	return d
}

// must appends without an error.
func must(t testing.TB) func([]byte, error) []byte {
	return func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

// section wraps an encoded value in a section descriptor.
func section(code codec.Code, value ...byte) []byte {
	return append([]byte{0x00, 0x53, byte(code)}, value...)
}

// properties encodes message properties.
func properties(p codec.Properties) []byte { return p.Append(nil) }

// unchanged fails when what came out differs from what went in, from the message annotations on.
func unchanged(t testing.TB, in []byte, d delivery) {
	t.Helper()
	want, err := codec.Split(in)
	if err != nil {
		t.Fatal(err)
	}
	_, got := d.sections(t)
	if !bytes.Equal(got.Stored, want.Stored) {
		t.Fatalf("message changed\n in % x\nout % x", want.Stored, got.Stored)
	}
}

func TestCase004_ZeroWidthArrays(t *testing.T) {
	for name, value := range map[string][]byte{
		"array8 of null":  {0xe0, 2, 2, 0x40},
		"array8 of true":  {0xe0, 2, 3, 0x41},
		"array8 of uint0": {0xe0, 2, 3, 0x43},
		"array8 of list0": {0xe0, 2, 3, 0x45},
		"array32 of null": {0xf0, 0, 0, 0, 5, 0, 0, 0, 2, 0x44},
		"array8, empty":   {0xe0, 2, 0, 0xa3},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			entries := append([]byte{0xa3, 3, 'x', '-', 'a'}, value...)
			annotations := append(section(codec.CodeMessageAnnotations, 0xc1, byte(1+len(entries)), 2), entries...)
			entries[0] = 0xa1
			application := append(section(codec.CodeApplicationProperties, 0xc1, byte(1+len(entries)), 2), entries...)
			entries[0] = 0xa3
			in := bytes.Join([][]byte{annotations, application, data("x")}, nil)
			unchanged(t, in, r.through(in))
		})
	}
}

func TestCase005_SectionDescriptorsMatchExactly(t *testing.T) {
	r := start(t, nil)
	symbolic := func(name string) []byte {
		return append(append([]byte{0x00, 0xa3, byte(len(name))}, name...), 0xa0, 1, 'x')
	}
	t.Run("symbolic data", func(t *testing.T) {
		in := symbolic("amqp:data:binary")
		d := r.through(in)
		unchanged(t, in, d)
	})
	t.Run("trailing character", func(t *testing.T) {
		p := r.opened("c")
		p.sender(0, "q5")
		o := p.post(0, symbolic("amqp:data:binaryX"))
		if o.Kind != codec.StateRejected || o.Error.Condition != decodeError {
			t.Fatalf("outcome is %v: %s", o.Kind, text(o.Error))
		}
		p.put(0, data("next"))
		r.depth("q5", 1, 0)
	})
}

func TestCase007_NaNStaysADouble(t *testing.T) {
	r := start(t, nil)
	for _, bits := range []uint64{math.Float64bits(math.NaN()), 0xfff8000000000001, 0x7ff0000000000001} {
		in := must(t)(codec.AppendApplicationProperties(nil, codec.Map{{Key: "d", Value: math.Float64frombits(bits)}}))
		in = must(t)(codec.AppendAmqpValue(in, math.Float64frombits(bits)))
		unchanged(t, in, r.through(in))
	}
}

func TestCase008_ArraysInAnnotations(t *testing.T) {
	r := start(t, nil)
	in := must(t)(codec.AppendMessageAnnotations(nil, codec.Map{
		{Key: codec.Symbol("x-symbols"), Value: []codec.Symbol{"a", "bc"}},
		{Key: codec.Symbol("x-ulongs"), Value: codec.Array{Code: 0x80, Elements: []any{uint64(1), uint64(1 << 40)}}},
		{Key: codec.Symbol("x-list"), Value: codec.List{int64(1), codec.Map{{Key: "a", Value: nil}}}},
	}))
	in = append(in, data("x")...)
	unchanged(t, in, r.through(in))
}

func TestCase017_TimestampsAtTheEdges(t *testing.T) {
	for _, ms := range []codec.Timestamp{253402300799999, -1, -62135596800000, math.MaxInt64, math.MinInt64, 0} {
		t.Run(fmt.Sprint(int64(ms)), func(t *testing.T) {
			r := start(t, nil)
			in := append(properties(codec.Properties{CreationTime: codec.Some(ms), AbsoluteExpiryTime: codec.Some(ms)}), data("x")...)
			unchanged(t, in, r.through(in))
			h := codec.Header{TTL: codec.Some(uint32(math.MaxUint32))}
			in = append(h.Append(nil), in...)
			unchanged(t, in, r.through(in))
		})
	}
}

func TestCase019_IdsKeepTheirType(t *testing.T) {
	r := start(t, nil)
	for _, id := range []any{uint64(0), uint64(7), uint64(1 << 60), codec.UUID{1, 2, 3}, []byte{0, 1}, "text", ""} {
		in := append(properties(codec.Properties{MessageID: id, CorrelationID: id}), data("x")...)
		unchanged(t, in, r.through(in))
	}
}

// fullMessage has all seven sections.
func fullMessage(t testing.TB, body []byte) []byte {
	h := codec.Header{Durable: codec.Some(true), Priority: codec.Some(uint8(7))}
	m := h.Append(nil)
	m = must(t)(codec.AppendDeliveryAnnotations(m, codec.Map{{Key: codec.Symbol("x-opt-hop"), Value: "mine"}}))
	m = must(t)(codec.AppendMessageAnnotations(m, codec.Map{{Key: codec.Symbol("x-opt-a"), Value: uint32(1)}}))
	m = append(m, properties(codec.Properties{MessageID: "id", Subject: codec.Some("s"), UserID: []byte("u")})...)
	m = must(t)(codec.AppendApplicationProperties(m, codec.Map{{Key: "k", Value: int64(5)}, {Key: "b", Value: true}}))
	m = codec.AppendData(m, body)
	footer := must(t)(codec.AppendValue(nil, codec.Map{{Key: codec.Symbol("x-hash"), Value: uint8(3)}}))
	return append(m, section(codec.CodeFooter, footer...)...)
}

func TestCase020_SectionsInOrderAfterRedelivery(t *testing.T) {
	r := start(t, nil)
	in := fullMessage(t, []byte("body"))
	p := r.opened("c")
	p.sender(0, "q")
	p.put(0, in)
	p.receiver(1, "q", 2)
	first := p.receive()
	p.dispose(first.id(), first.id(), true, codec.Outcome{Kind: codec.StateModified, DeliveryFailed: true})
	second := p.receive()
	unchanged(t, in, second)
	h, s := second.sections(t)
	if h.DeliveryCount != 1 || h.Durable != codec.Some(true) || h.Priority != codec.Some(uint8(7)) || h.FirstAcquirer.Or(false) {
		t.Errorf("header is %+v", h)
	}
	if s.DeliveryAnnotations != nil {
		t.Errorf("delivery annotations of another hop came through: % x", s.DeliveryAnnotations)
	}
	if h, _ := first.sections(t); !h.FirstAcquirer.Or(false) || h.DeliveryCount != 0 {
		t.Errorf("first header is %+v", h)
	}
}

func TestCase022_SectionsOutOfPlace(t *testing.T) {
	header := section(codec.CodeHeader, 0x45)
	props := section(codec.CodeProperties, 0x45)
	value := section(codec.CodeAmqpValue, 0x40)
	for name, in := range map[string][]byte{
		"two headers":              bytes.Join([][]byte{header, header, data("x")}, nil),
		"properties before header": bytes.Join([][]byte{props, header, data("x")}, nil),
		"data, then amqp-value":    bytes.Join([][]byte{data("x"), value}, nil),
		"two amqp-values":          bytes.Join([][]byte{value, value}, nil),
		"sequence, then data":      bytes.Join([][]byte{section(codec.CodeAmqpSequence, 0x45), data("x")}, nil),
		"body after footer":        bytes.Join([][]byte{section(codec.CodeFooter, 0xc1, 1, 0), data("x")}, nil),
		"properties are a map":     section(codec.CodeProperties, 0xc1, 1, 0),
		"data is a string":         section(codec.CodeData, 0xa1, 1, 'x'),
		"cut off":                  data("long enough")[:8],
		"trailing bytes":           append(data("x"), 0x00),
		"unknown section":          section(0x79, 0x45),
		"priority is a string":     append(section(codec.CodeHeader, 0xc0, 5, 2, 0x40, 0xa1, 1, 'x'), data("x")...),
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			p := r.opened("c")
			p.sender(0, "q")
			if o := p.post(0, in); o.Kind != codec.StateRejected || o.Error.Condition != decodeError || o.Error.Description == "" {
				t.Fatalf("outcome is %v: %s", o.Kind, text(o.Error))
			}
			p.put(0, data("next")) // the link is none the worse
			r.depth("q", 1, 0)
			// Where no outcome is wanted, the link has to say it.
			p.send(p.transfer(0, true), in)
			p.detached(decodeError)
			r.depth("q", 1, 0)
		})
	}
}

func TestCase023_NoBody(t *testing.T) {
	for name, in := range map[string][]byte{
		"header and properties": append(section(codec.CodeHeader, 0x45), section(codec.CodeProperties, 0x45)...),
		"no payload":            nil,
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			unchanged(t, in, r.through(in))
		})
	}
}

func TestCase026_FooterUntouched(t *testing.T) {
	r := start(t, nil)
	in := append(data("x"), section(codec.CodeFooter, 0xc1, 7, 2, 0xa3, 2, 'x', 'h', 0x50, 9)...)
	d := r.through(in)
	unchanged(t, in, d)
	if _, s := d.sections(t); len(s.Footer) == 0 {
		t.Error("footer is gone")
	}
}

func TestCase028_ModifiedWithStringKeys(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.put(0, data("x"))
	p.receiver(1, "q", 3)
	d := p.receive()
	stringKeys := must(t)(codec.AppendValue(nil, codec.Map{{Key: "x-opt-s", Value: "no"}}))
	p.dispose(d.id(), d.id(), true, codec.Outcome{Kind: codec.StateModified, Annotations: stringKeys})
	d = p.receive()
	if _, s := d.sections(t); s.MessageAnnotations != nil {
		t.Fatalf("string keys were stored: % x", s.MessageAnnotations)
	}
	symbols := must(t)(codec.AppendValue(nil, codec.Map{{Key: codec.Symbol("x-opt-a"), Value: "yes"}}))
	p.dispose(d.id(), d.id(), true, codec.Outcome{Kind: codec.StateModified, Annotations: symbols})
	d = p.receive()
	if v, _ := d.annotation(t, "x-opt-a"); v != "yes" {
		t.Errorf("annotation is %v", v)
	}
}

func TestCase029_ModifiedWithCompoundValues(t *testing.T) {
	r := start(t, nil)
	in := must(t)(codec.AppendMessageAnnotations(nil, codec.Map{
		{Key: codec.Symbol("x-opt-keep"), Value: "kept"}, {Key: codec.Symbol("x-l"), Value: "replaced"},
	}))
	in = append(in, data("x")...)
	p := r.opened("c")
	p.sender(0, "q")
	p.put(0, in)
	p.receiver(1, "q", 2)
	d := p.receive()
	add := codec.Map{
		{Key: codec.Symbol("x-l"), Value: codec.List{int32(1), "two", nil}},
		{Key: codec.Symbol("x-m"), Value: codec.Map{{Key: "k", Value: codec.List{}}}},
		{Key: codec.Symbol("x-a"), Value: codec.Array{Code: 0x71, Elements: []any{int32(1), int32(-2)}}},
	}
	p.dispose(d.id(), d.id(), true, codec.Outcome{Kind: codec.StateModified, Annotations: must(t)(codec.AppendValue(nil, add))})
	d = p.receive()
	_, s := d.sections(t)
	want := must(t)(codec.AppendMessageAnnotations(nil, append(codec.Map{
		{Key: codec.Symbol("x-opt-keep"), Value: "kept"}}, add...)))
	if !bytes.Equal(s.MessageAnnotations, want) {
		t.Errorf("annotations\nare  % x\nwant % x", s.MessageAnnotations, want)
	}
	if !bytes.Equal(s.Bare, data("x")) {
		t.Errorf("bare message is % x", s.Bare)
	}
}

func TestCase031_SplitAtEveryOffset(t *testing.T) {
	r := start(t, nil)
	in := fullMessage(t, []byte("split"))
	p := r.opened("c")
	p.sender(0, "q")
	p.receiver(1, "q", uint32(len(in)+2))
	for cut := range len(in) + 1 {
		first := p.transfer(0, true)
		first.More = true
		p.send(first, in[:cut])
		p.send(&codec.Transfer{}, in[cut:])
		unchanged(t, in, p.receive())
	}
	// And a byte a frame, with nothing repeated that may be left out.
	first := p.transfer(0, true)
	first.More = true
	p.send(first)
	for i := range in {
		p.send(&codec.Transfer{More: i < len(in)-1}, in[i:i+1])
	}
	unchanged(t, in, p.receive())
}

func TestCase032_ManyFramesAndAllPropertyTypes(t *testing.T) {
	r := start(t, nil)
	p := r.connect()
	if o := p.open(codec.Open{ContainerID: "c", MaxFrameSize: 4096, ChannelMax: 1}); o.MaxFrameSize != Defaults().MaxFrameSize {
		t.Errorf("max-frame-size is %d, not the broker's own", o.MaxFrameSize) // case 40
	}
	p.begin()
	p.sender(0, "q")
	in := must(t)(codec.AppendApplicationProperties(nil, codec.Map{
		{Key: "int", Value: int32(-1)}, {Key: "bool", Value: false}, {Key: "time", Value: codec.Timestamp(1)},
		{Key: "null", Value: nil}, {Key: "ubyte", Value: uint8(1)}, {Key: "float", Value: float32(1)}, {Key: "char", Value: codec.Char('x')},
		{Key: "uuid", Value: codec.UUID{9}}, {Key: "symbol", Value: codec.Symbol("s")}, {Key: "decimal", Value: codec.Decimal64{1}},
	}))
	in = codec.AppendData(in, bytes.Repeat([]byte("0123456789abcdef"), 200<<10/16))
	first := p.transfer(0, false)
	for off := 0; off < len(in); off += 4000 {
		end := min(off+4000, len(in))
		x := &codec.Transfer{More: end < len(in)}
		if off == 0 {
			x = first
			x.More = true
		}
		p.send(x, in[off:end])
	}
	if d, _ := await[codec.Disposition](p); d.State.Kind != codec.StateAccepted {
		t.Fatalf("outcome is %+v", d)
	}
	p.receiver(1, "q", 1)
	d := p.receive()
	unchanged(t, in, d)
	for _, f := range p.aside {
		if len(f.body)+8 > 4096 {
			t.Errorf("a frame of %d bytes exceeds the peer's maximum", len(f.body)+8)
		}
	}
}

func TestBareMessageIsByteExact(t *testing.T) {
	// Every combination of sections, in encodings that nobody would choose
	// when writing them anew.
	parts := [][]byte{
		section(codec.CodeHeader, 0xd0, 0, 0, 0, 6, 0, 0, 0, 1, 0x56, 1),
		section(codec.CodeDeliveryAnnotations, 0xd1, 0, 0, 0, 4, 0, 0, 0, 0),
		section(codec.CodeMessageAnnotations, 0xd1, 0, 0, 0, 15, 0, 0, 0, 2, 0xb3, 0, 0, 0, 1, 'x', 0x70, 0, 0, 0, 1),
		{0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x73, 0xd0, 0, 0, 0, 5, 0, 0, 0, 1, 0x44},
		section(codec.CodeApplicationProperties, 0xc1, 6, 2, 0xa1, 1, 'k', 0x56, 0),
		section(codec.CodeData, 0xb0, 0, 0, 0, 1, 'd'),
		section(codec.CodeFooter, 0xd1, 0, 0, 0, 4, 0, 0, 0, 0),
	}
	bodies := [][]byte{
		parts[5],
		append(bytes.Clone(parts[5]), section(codec.CodeData, 0xa0, 0)...),
		section(codec.CodeAmqpSequence, 0xd0, 0, 0, 0, 5, 0, 0, 0, 1, 0x43),
		append(section(codec.CodeAmqpSequence, 0x45), section(codec.CodeAmqpSequence, 0xc0, 2, 1, 0x40)...),
		section(codec.CodeAmqpValue, 0xb1, 0, 0, 0, 2, 'h', 'i'),
	}
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.receiver(1, "q", 1<<20)
	n := 0
	for mask := range 1 << len(parts) {
		for _, body := range bodies {
			var in []byte
			for i, part := range parts {
				switch {
				case mask&(1<<i) == 0:
				case i == 5:
					in = append(in, body...)
				default:
					in = append(in, part...)
				}
			}
			p.send(p.transfer(0, false), in)
			d := p.receive()
			unchanged(t, in, d)
			if _, s := d.sections(t); s.DeliveryAnnotations != nil {
				t.Fatal("delivery annotations came through")
			}
			n++
			if mask&(1<<5) == 0 {
				break
			}
		}
	}
	if n < 300 {
		t.Errorf("%d combinations only", n)
	}
	p.flows()
	for _, f := range p.aside {
		if f.code == codec.CodeDisposition {
			var v codec.Disposition
			parse(p, &v, f)
			if v.State.Kind != codec.StateAccepted {
				t.Errorf("%s", f)
			}
		}
	}
}

func TestMessageFormatIsKept(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	x := p.transfer(0, true)
	x.MessageFormat = codec.Some(uint32(0x80013700))
	p.send(x, data("batch"))
	p.receiver(1, "q", 1)
	if d := p.receive(); d.MessageFormat.Value != 0x80013700 {
		t.Errorf("message-format is %#x", d.MessageFormat.Value)
	}
}

func TestCase181_ReservedAnnotationKeys(t *testing.T) {
	r := start(t, nil)
	in := must(t)(codec.AppendMessageAnnotations(nil, codec.Map{
		{Key: codec.Symbol("foo"), Value: int64(1)}, {Key: codec.Symbol("x-opt-foo"), Value: int64(1)}, {Key: uint64(5), Value: int64(1)},
	}))
	in = append(in, data("x")...)
	p := r.opened("c")
	p.sender(0, "q")
	p.put(0, in)
	p.receiver(1, "q", 2)
	d := p.receive()
	unchanged(t, in, d)
	// They are still there when the broker has to write annotations of its own.
	add := must(t)(codec.AppendValue(nil, codec.Map{{Key: codec.Symbol("x-opt-b"), Value: int64(2)}}))
	p.dispose(d.id(), d.id(), true, codec.Outcome{Kind: codec.StateModified, Annotations: add})
	d = p.receive()
	_, s := d.sections(t)
	v, _, err := codec.ReadValue(s.MessageAnnotations)
	if err != nil {
		t.Fatal(err)
	}
	if m := v.(codec.Described).Value.(codec.Map); len(m) != 4 || m[2].Key != uint64(5) || m[3].Key != codec.Symbol("x-opt-b") {
		t.Errorf("annotations are %v", m)
	}
}

func TestCase182_NoInternalsInDeadLetters(t *testing.T) {
	r := start(t, nil)
	in := fullMessage(t, []byte("x"))
	p := r.opened("c")
	p.sender(0, "q")
	p.put(0, in)
	p.receiver(1, "q", 1)
	d := p.receive()
	p.dispose(d.id(), d.id(), true, rejectedWith("app:bad", "no good"))
	p.receiver(2, "DLQ", 1)
	dead := p.receive()
	_, was := delivery{message: in}.sections(t)
	_, s := dead.sections(t)
	if !bytes.Equal(s.Bare, was.Bare) || !bytes.Equal(s.Footer, was.Footer) {
		t.Errorf("bare message changed\n in % x\nout % x", was.Bare, s.Bare)
	}
	v, _, _ := codec.ReadValue(s.MessageAnnotations)
	known := map[codec.Symbol]bool{"x-opt-a": true, "x-opt-ORIG-ADDRESS": true, "x-opt-ORIG-QUEUE": true, "x-opt-ORIG-MESSAGE-ID": true, "x-opt-death-reason": true, "x-opt-death-time": true}
	for _, pair := range v.(codec.Described).Value.(codec.Map) {
		if key := pair.Key.(codec.Symbol); !known[key] {
			t.Errorf("annotation %s isn't documented", key)
		}
		delete(known, pair.Key.(codec.Symbol))
	}
	if len(known) > 0 {
		t.Errorf("missing are %v", known)
	}
}

func TestCase184_DurableUnset(t *testing.T) {
	// What the sender left out isn't made up on the way; what it is stored as
	// is the address's default.
	for name, c := range map[string]struct {
		header []byte
		want   codec.Opt[bool]
	}{
		"absent header": {nil, codec.Opt[bool]{}},
		"absent field":  {section(codec.CodeHeader, 0x45), codec.Opt[bool]{}},
		"false":         {section(codec.CodeHeader, 0xc0, 2, 1, 0x42), codec.Some(false)},
		"true":          {section(codec.CodeHeader, 0xc0, 2, 1, 0x41), codec.Some(true)},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			h, _ := r.through(append(c.header, data("x")...)).sections(t)
			if h.Durable != c.want {
				t.Errorf("durable is %+v, want %+v", h.Durable, c.want)
			}
		})
	}
}

func TestCase188_TTLLeftIsAUint(t *testing.T) {
	clock := newClock()
	r := start(t, clock.use)
	p := r.opened("c")
	p.sender(0, "q")
	ttl := func(ms uint32) []byte {
		h := codec.Header{TTL: codec.Some(ms)}
		return append(h.Append(nil), data("x")...)
	}
	p.put(0, ttl(5000))
	clock.advance(1500)
	p.receiver(1, "q", 1)
	d := p.receive()
	h, s := d.sections(t)
	if h.TTL != codec.Some(uint32(3500)) {
		t.Errorf("ttl is %+v", h.TTL)
	}
	if want := []byte{0x70, 0, 0, 0x0d, 0xac}; !bytes.Contains(s.Header, want) {
		t.Errorf("ttl isn't a uint: % x", s.Header)
	}
}

func TestCase190_AbsoluteExpiryZero(t *testing.T) {
	clock := newClock()
	r := start(t, clock.use)
	p := r.opened("c")
	p.sender(0, "q")
	for _, at := range []codec.Timestamp{0, -62135596800000, math.MinInt64} {
		h := codec.Header{TTL: codec.Some(uint32(60_000))}
		p.put(0, append(append(h.Append(nil), properties(codec.Properties{AbsoluteExpiryTime: codec.Some(at)})...), data("x")...))
	}
	p.receiver(1, "q", 0)
	clock.advance(59_999)
	p.credit(1, 0, 1, false)
	p.receive()
	clock.advance(1)
	p.credit(1, 1, 5, true)
	p.drained(6)
	r.depth("ExpiryQueue", 2, 0)
}

func TestCase278_TTLZeroIsNoTTL(t *testing.T) {
	clock := newClock()
	r := start(t, clock.use)
	p := r.opened("c")
	p.sender(0, "q")
	h := codec.Header{Durable: codec.Some(true), TTL: codec.Some(uint32(0))}
	p.put(0, append(h.Append(nil), data("x")...))
	clock.advance(1 << 40)
	p.receiver(1, "q", 1)
	if h, _ := p.receive().sections(t); h.TTL != codec.Some(uint32(0)) {
		t.Errorf("ttl is %+v", h.TTL)
	}
}

func TestMaximumMessageSizeIsAdvertised(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.MaxMessageSize = 1000 })
	p := r.opened("c")
	if a := p.sender(0, "q"); a.MaxMessageSize != 1000 {
		t.Errorf("max-message-size is %d", a.MaxMessageSize)
	}
	p.put(0, data(string(make([]byte, 900))))
	p.send(p.transfer(0, false), data(string(make([]byte, 1001))))
	p.detached(amqp.ConditionMessageSizeExceeded)
	r.depth("q", 1, 0)
}

// TestDefaultDurableMayChange: what a message is whose header doesn't say, the settings say that are in force when it
// comes, not when its link did.
func TestDefaultDurableMayChange(t *testing.T) {
	r := start(t, nil)
	sender, err := r.session().NewSender(r.context(), "q", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for _, durable := range []bool{true, false, true} {
		r.broker.Reload([]engine.AddressSettings{{Match: "q", DefaultDurable: &durable}})
		if err := sender.Send(r.context(), goamqp.NewMessage([]byte("x")), nil); err != nil {
			t.Fatal(err)
		}
	}
	_, _, _, err = r.broker.Browse(r.context(), "q", "", engine.Place{}, engine.Selection{}, func(d *engine.Delivery) bool {
		got = append(got, d.Message.Durable)
		return true
	})
	if err != nil || !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("%v, %v", got, err)
	}
}
