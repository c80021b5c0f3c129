package codec

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// scalars draws a value of any type that holds no others.
func scalars() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 21).Draw(t, "type") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "boolean")
		case 2:
			return rapid.Uint8().Draw(t, "ubyte")
		case 3:
			return rapid.Uint16().Draw(t, "ushort")
		case 4:
			return rapid.Uint32().Draw(t, "uint")
		case 5:
			return rapid.Uint64().Draw(t, "ulong")
		case 6:
			return rapid.Int8().Draw(t, "byte")
		case 7:
			return rapid.Int16().Draw(t, "short")
		case 8:
			return rapid.Int32().Draw(t, "int")
		case 9:
			return rapid.Int64().Draw(t, "long")
		case 10:
			return math.Float32frombits(rapid.Uint32().Draw(t, "float"))
		case 11:
			return math.Float64frombits(rapid.Uint64().Draw(t, "double"))
		case 12:
			return Decimal32(octets(4).Draw(t, "decimal32"))
		case 13:
			return Decimal64(octets(8).Draw(t, "decimal64"))
		case 14:
			return Decimal128(octets(16).Draw(t, "decimal128"))
		case 15:
			return Char(rapid.Int32().Draw(t, "char"))
		case 16:
			return Timestamp(rapid.Int64().Draw(t, "timestamp"))
		case 17:
			return UUID(octets(16).Draw(t, "uuid"))
		case 18:
			return rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "binary")
		case 19:
			return rapid.StringN(0, 80, 300).Draw(t, "string")
		}
		return symbols().Draw(t, "symbol")
	})
}

func octets(n int) *rapid.Generator[[]byte] { return rapid.SliceOfN(rapid.Byte(), n, n) }

func symbols() *rapid.Generator[Symbol] {
	return rapid.Custom(func(t *rapid.T) Symbol {
		return Symbol(rapid.SliceOfN(rapid.ByteRange(0, 127), 0, 260).Draw(t, "octets"))
	})
}

// values draws a value with at most depth levels of others inside.
func values(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth == 0 {
			return scalars().Draw(t, "scalar")
		}
		inner := values(depth - 1)
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			return List(rapid.SliceOfN(inner, 0, 6).Draw(t, "list"))
		case 1:
			return maps(inner).Draw(t, "map")
		case 2:
			return Described{descriptors().Draw(t, "descriptor"), inner.Draw(t, "value")}
		case 3, 4:
			return arrays(depth-1).Draw(t, "array")
		}
		return scalars().Draw(t, "scalar")
	})
}

func descriptors() *rapid.Generator[any] {
	return rapid.OneOf(rapid.Uint64().AsAny(), symbols().AsAny())
}

// maps draws a map without a key twice.
func maps(values *rapid.Generator[any]) *rapid.Generator[Map] {
	return rapid.Custom(func(t *rapid.T) Map {
		m := Map{}
		for _, k := range rapid.SliceOfNDistinct(symbols(), 0, 5, rapid.ID[Symbol]).Draw(t, "keys") {
			m = append(m, Pair{k, values.Draw(t, "value")})
		}
		return m
	})
}

// arrays draws an array as it is decoded: the constructor is one that its
// elements need.
func arrays(depth int) *rapid.Generator[Array] {
	return rapid.Custom(func(t *rapid.T) Array {
		var elements []any
		n := rapid.IntRange(0, 5).Draw(t, "elements")
		a := Array{Elements: []any{}}
		if rapid.Bool().Draw(t, "described") {
			a.Descriptor = descriptors().Draw(t, "descriptor")
		}
		var element *rapid.Generator[any]
		switch rapid.IntRange(0, 9).Draw(t, "type") {
		case 0:
			a.Code, element = formatUint, rapid.Uint32().AsAny()
		case 1:
			a.Code, element = formatLong, rapid.Int64().AsAny()
		case 2:
			a.Code, element = formatSymbol32, symbols().AsAny()
		case 3:
			a.Code, element = formatBool, rapid.Bool().AsAny()
		case 4:
			a.Code, element = formatNull, rapid.Just[any](nil)
		case 5:
			a.Code, element = formatUUID, rapid.Custom(func(t *rapid.T) any { return UUID(octets(16).Draw(t, "uuid")) })
		case 6:
			a.Code, element = formatMap32, rapid.Custom(func(t *rapid.T) any { return maps(values(depth)).Draw(t, "map") })
		case 7:
			a.Code, element = formatList32, rapid.Custom(func(t *rapid.T) any { return List(rapid.SliceOfN(values(depth), 0, 3).Draw(t, "list")) })
		case 8:
			a.Code, element = formatSmallInt, rapid.Custom(func(t *rapid.T) any { return int32(rapid.Int8().Draw(t, "int")) })
		default:
			if depth == 0 {
				a.Code, element = formatBinary8, rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(rapid.Byte(), 0, 255).Draw(t, "binary") })
				break
			}
			a.Code, element = formatArray32, rapid.Custom(func(t *rapid.T) any { return arrays(depth-1).Draw(t, "array") })
		}
		elements = rapid.SliceOfN(element, n, n).Draw(t, "values")
		a.Elements = append(a.Elements, elements...)
		return a
	})
}

// What was written is read again, its length is known without reading, and it
// is written the same.
func TestRoundTripOfValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "value")
		b, err := AppendValue([]byte{0xee}, v)
		if err != nil {
			t.Fatalf("%s: %v", text(v), err)
		}
		behind := append(bytes.Clone(b[1:]), 0xdd)
		got, rest, err := ReadValue(behind)
		if err != nil || len(rest) != 1 {
			t.Fatalf("%s\n%x: rest %x, %v", text(v), b, rest, err)
		}
		if text(got) != text(v) {
			t.Fatalf("wrote %s\nread  %s", text(v), text(got))
		}
		again, err := AppendValue([]byte{0xee}, got)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("wrote %x\nagain %x, %v", b, again, err)
		}
		for _, f := range []func([]byte) ([]byte, error){Skip, Validate} {
			if rest, err := f(behind); err != nil || len(rest) != 1 {
				t.Fatalf("%s\n%x: rest %x, %v", text(v), b, rest, err)
			}
		}
		// Every prefix is cut off.
		cut := rapid.IntRange(0, len(b)-2).Draw(t, "cut")
		if _, _, err := ReadValue(b[1 : 1+cut]); err == nil {
			t.Fatalf("%x cut to %d octets was read", b[1:], cut)
		}
	})
}

// fill draws the exported fields of a composite or outcome.
func fill(t *rapid.T, v reflect.Value) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch p := f.Addr().Interface().(type) {
		case *string:
			*p = rapid.StringN(0, 60, 280).Draw(t, name)
		case *Symbol:
			*p = symbols().Draw(t, name)
		case *[]Symbol:
			if s := rapid.SliceOfN(symbols(), 0, 3).Draw(t, name); len(s) > 0 {
				*p = s
			}
		case *Map:
			if rapid.Bool().Draw(t, name+" set") {
				*p = maps(values(1)).Draw(t, name)
			}
		case *[]byte:
			*p = fillOctets(t, name)
		case *any:
			*p = values(1).Draw(t, name)
		case **ErrorInfo:
			fillPointer(t, name, p)
		case **Source:
			fillPointer(t, name, p)
		case **Target:
			fillPointer(t, name, p)
		case *Opt[uint32]:
			*p = Opt[uint32]{rapid.Uint32().Draw(t, name), true}
		case *Opt[uint16]:
			*p = Opt[uint16]{rapid.Uint16().Draw(t, name), true}
		case *Opt[uint8]:
			*p = Opt[uint8]{rapid.Uint8().Draw(t, name), true}
		case *Opt[bool]:
			*p = Opt[bool]{rapid.Bool().Draw(t, name), true}
		case *Opt[string]:
			*p = Opt[string]{rapid.StringN(0, 60, 280).Draw(t, name), true}
		case *Outcome:
			*p = outcomes().Draw(t, name)
		case *DeliveryState:
			*p = states().Draw(t, name)
		default:
			switch f.Kind() {
			case reflect.Bool:
				f.SetBool(rapid.Bool().Draw(t, name))
			case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
				f.SetUint(rapid.Uint64Range(0, 1<<f.Type().Bits()-1).Draw(t, name))
			}
		}
	}
}

func fillOctets(t *rapid.T, name string) []byte {
	b := rapid.SliceOfN(rapid.Byte(), 0, 280).Draw(t, name)
	if name == "Unsettled" || name == "Annotations" {
		b, _ = AppendValue(nil, maps(values(1)).Draw(t, name+" map"))
	}
	return b
}

func fillPointer[T any](t *rapid.T, name string, p **T) {
	if rapid.Bool().Draw(t, name+" set") {
		*p = new(T)
		fill(t, reflect.ValueOf(*p).Elem())
	}
}

func outcomes() *rapid.Generator[Outcome] {
	return rapid.Custom(func(t *rapid.T) Outcome {
		o := Outcome{Kind: StateKind(rapid.IntRange(int(StateNone), int(StateDeclared)).Draw(t, "kind"))}
		switch o.Kind {
		case StateReceived:
			o.SectionNumber, o.SectionOffset = rapid.Uint32().Draw(t, "number"), rapid.Uint64().Draw(t, "offset")
		case StateRejected:
			fillPointer(t, "error", &o.Error)
		case StateModified:
			o.DeliveryFailed, o.UndeliverableHere = rapid.Bool().Draw(t, "failed"), rapid.Bool().Draw(t, "here")
			if rapid.Bool().Draw(t, "annotated") {
				o.Annotations = fillOctets(t, "Annotations")
			}
		case StateDeclared:
			o.TxnID = fillOctets(t, "txn-id")
		}
		return o
	})
}

func states() *rapid.Generator[DeliveryState] {
	return rapid.Custom(func(t *rapid.T) DeliveryState {
		s := DeliveryState{Outcome: outcomes().Draw(t, "outcome")}
		if s.Transactional = rapid.Bool().Draw(t, "transactional"); s.Transactional {
			s.TxnID = fillOctets(t, "txn-id")
		}
		return s
	})
}

func TestRoundTripOfComposites(t *testing.T) {
	for code, make := range composites {
		t.Run(code.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := make()
				fill(t, reflect.ValueOf(p).Elem())
				if a, ok := p.(*Attach); ok && rapid.Bool().Draw(t, "coordinator") {
					a.Target, a.Coordinator = nil, &Coordinator{Capabilities: a.OfferedCapabilities}
				}
				if m, ok := p.(*SASLMechanisms); ok && m.Mechanisms == nil {
					m.Mechanisms = []Symbol{"PLAIN"}
				}
				if i, ok := p.(*SASLInit); ok && !i.HasResponse {
					i.InitialResponse = nil
				}
				b := p.Append([]byte{0xee})
				got, rest, err := readComposite(append(bytes.Clone(b[1:]), 0xdd))
				if err != nil || len(rest) != 1 {
					t.Fatalf("%s\n%x: rest %x, %v", structText(p), b, rest, err)
				}
				want := structText(p)
				defaults(p)
				if structText(got) != structText(p) {
					t.Fatalf("wrote %s\nread  %s", want, structText(got))
				}
				if again := got.Append([]byte{0xee}); !bytes.Equal(again, b) && !changedByDefaults(got) {
					t.Fatalf("wrote %x\nagain %x", b, again)
				}
				if cut := rapid.IntRange(0, len(b)-2).Draw(t, "cut"); cut >= 0 {
					if _, _, err := readComposite(b[1 : 1+cut]); err == nil {
						t.Fatalf("%x cut to %d octets was read", b[1:], cut)
					}
				}
			})
		})
	}
}

// defaults puts into p what the reader finds where null was written.
func defaults(p composite) {
	switch p := p.(type) {
	case *Source:
		if p.ExpiryPolicy == "" {
			p.ExpiryPolicy = ExpirySessionEnd
		}
	case *Target:
		if p.ExpiryPolicy == "" {
			p.ExpiryPolicy = ExpirySessionEnd
		}
	case *Attach:
		if p.Source != nil {
			defaults(p.Source)
		}
		if p.Target != nil {
			defaults(p.Target)
		}
	}
}

// changedByDefaults tells whether a default may stand where null was.
func changedByDefaults(p composite) bool {
	switch p := p.(type) {
	case *Source:
		return p.ExpiryPolicy == ExpirySessionEnd
	case *Target:
		return p.ExpiryPolicy == ExpirySessionEnd
	case *Attach:
		return p.Source != nil && changedByDefaults(p.Source) || p.Target != nil && changedByDefaults(p.Target)
	}
	return false
}

func TestRoundTripOfHeaderAndProperties(t *testing.T) {
	opt := func(t *rapid.T, name string) bool { return rapid.Bool().Draw(t, name+" set") }
	rapid.Check(t, func(t *rapid.T) {
		var h Header
		fill(t, reflect.ValueOf(&h).Elem())
		if !opt(t, "ttl") {
			h.TTL = Opt[uint32]{}
		}
		var got Header
		if err := got.Decode(h.Append(nil)); err != nil || got != h {
			t.Fatalf("wrote %+v, read %+v, %v", h, got, err)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		var p, got Properties
		id := rapid.OneOf(rapid.Just[any](nil), rapid.Uint64().AsAny(), rapid.StringN(0, 60, 280).AsAny(), octets(5).AsAny(),
			rapid.Custom(func(t *rapid.T) any { return UUID(octets(16).Draw(t, "uuid")) }))
		p.MessageID, p.CorrelationID = id.Draw(t, "message-id"), id.Draw(t, "correlation-id")
		if opt(t, "user-id") {
			p.UserID = octets(3).Draw(t, "user-id")
		}
		for name, f := range map[string]*Opt[string]{"to": &p.To, "subject": &p.Subject, "reply-to": &p.ReplyTo, "group-id": &p.GroupID, "rg": &p.ReplyToGroupID} {
			if opt(t, name) {
				*f = Some(rapid.StringN(0, 60, 280).Draw(t, name))
			}
		}
		if opt(t, "content-type") {
			p.ContentType = Some(symbols().Draw(t, "content-type"))
		}
		if opt(t, "expiry") {
			p.AbsoluteExpiryTime = Some(Timestamp(rapid.Int64().Draw(t, "expiry")))
		}
		if opt(t, "sequence") {
			p.GroupSequence = Some(rapid.Uint32().Draw(t, "sequence"))
		}
		b := p.Append(nil)
		if err := got.Decode(b); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("wrote %+v, read %+v, %v", p, got, err)
		}
		if again := got.Append(nil); !bytes.Equal(again, b) {
			t.Fatalf("wrote %x, again %x", b, again)
		}
	})
}

// A merged section is what merging the decoded maps would give.
func TestMergeAnnotationsAgainstModel(t *testing.T) {
	keys := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) any {
			return Symbol(rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 1, 3, -1).Draw(t, "symbol"))
		}),
		rapid.Custom(func(t *rapid.T) any { return rapid.Uint64Range(0, 3).Draw(t, "number") }),
	)
	entries := rapid.Custom(func(t *rapid.T) Pair { return Pair{keys.Draw(t, "key"), scalars().Draw(t, "value")} })
	rapid.Check(t, func(t *rapid.T) {
		received := Map(rapid.SliceOfNDistinct(entries, 0, 12, func(p Pair) any { return p.Key }).Draw(t, "received"))
		add := Map(rapid.SliceOfN(entries, 1, 30).Draw(t, "add"))
		encoded, err := AppendValue(nil, received)
		if err != nil {
			t.Fatal(err)
		}
		got, err := MergeAnnotations(nil, describe(CodeMessageAnnotations, encoded), add)
		if err != nil {
			t.Fatal(err)
		}
		want, err := AppendMessageAnnotations(nil, mergeModel(received, add))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s + %s\ngot  %x\nwant %x, %v", text(received), text(add), got, want, err)
		}
	})
}
