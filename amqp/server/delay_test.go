package server

import (
	"strings"
	"testing"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

func TestDueOf(t *testing.T) {
	const now = 1_700_000_000_000
	for _, c := range []struct {
		name        string
		annotations codec.Map
		due         int64
		refused     string
	}{
		{"none", nil, 0, ""},
		{"others", codec.Map{{Key: codec.Symbol("x-opt-a"), Value: int64(5)}}, 0, ""},
		{"delay as long", codec.Map{{Key: codec.Symbol(deliveryDelay), Value: int64(5000)}}, now + 5000, ""},
		{"delay as uint", codec.Map{{Key: codec.Symbol(deliveryDelay), Value: uint32(7)}}, now + 7, ""},
		{"delay as ubyte", codec.Map{{Key: codec.Symbol(deliveryDelay), Value: uint8(7)}}, now + 7, ""},
		{"no delay", codec.Map{{Key: codec.Symbol(deliveryDelay), Value: int64(0)}}, 0, ""},
		{"negative delay", codec.Map{{Key: codec.Symbol(deliveryDelay), Value: int64(-9)}}, 0, ""},
		{"delay beyond all times", codec.Map{{Key: codec.Symbol(deliveryDelay), Value: uint64(1<<64 - 1)}}, queue.MaxDelay, ""},
		{"null", codec.Map{{Key: codec.Symbol(deliveryDelay), Value: nil}}, 0, ""},
		{"time", codec.Map{{Key: codec.Symbol(deliveryTime), Value: codec.Timestamp(now + 9)}}, now + 9, ""},
		{"time as long", codec.Map{{Key: codec.Symbol(deliveryTime), Value: int64(now + 9)}}, now + 9, ""},
		{"time over", codec.Map{{Key: codec.Symbol(deliveryTime), Value: int64(now - 9)}}, 0, ""},
		{"both", codec.Map{{Key: codec.Symbol(deliveryDelay), Value: int64(1)}, {Key: codec.Symbol(deliveryTime), Value: int64(now + 9)}}, now + 9, ""},
		{"both, time over", codec.Map{{Key: codec.Symbol(deliveryTime), Value: int64(1)}, {Key: codec.Symbol(deliveryDelay), Value: int64(1)}}, 0, ""},
		{"no number", codec.Map{{Key: codec.Symbol(deliveryDelay), Value: "soon"}}, 0, "x-opt-delivery-delay is neither"},
		{"no time", codec.Map{{Key: codec.Symbol(deliveryTime), Value: strings.Repeat("x", 300)}}, 0, "x-opt-delivery-time is neither"},
		{"half a number", codec.Map{{Key: codec.Symbol(deliveryDelay), Value: 1.5}}, 0, "x-opt-delivery-delay is neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var section []byte
			if c.annotations != nil {
				var err error
				if section, err = codec.AppendMessageAnnotations(nil, c.annotations); err != nil {
					t.Fatal(err)
				}
			}
			due, refused := dueOf(section, now)
			if due != c.due || (refused != nil) != (c.refused != "") {
				t.Fatalf("due %d, refused %v, want %d, %q", due, refused, c.due, c.refused)
			}
			if refused != nil && (refused.Condition != amqp.ConditionInvalidField || !strings.HasPrefix(refused.Description, c.refused)) {
				t.Errorf("refused with %v, want %s", refused, c.refused)
			}
		})
	}
}

func TestDelayOfOutcome(t *testing.T) {
	number := func(v any) queue.Encoded {
		b, err := codec.AppendValue(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	o := engine.Outcome{Kind: engine.Modified, Failed: true, Annotations: []queue.Annotation{
		{Key: "x-opt-a", Value: number(int64(1))}, {Key: deliveryDelay, Value: number(int64(250))},
	}}
	annotations := o.Annotations
	delayed(&o)
	if !o.HasDelay || o.Delay != 250 || len(o.Annotations) != 1 || o.Annotations[0].Key != "x-opt-a" {
		t.Errorf("outcome = %+v", o)
	}
	if len(annotations) != 2 || annotations[1].Key != deliveryDelay {
		t.Errorf("annotations of the frame have changed: %v", annotations)
	}
	o = engine.Outcome{Kind: engine.Modified, Failed: true, Annotations: []queue.Annotation{
		{Key: deliveryTime, Value: number(codec.Timestamp(0))}, {Key: deliveryDelay, Value: number("soon")},
	}}
	if delayed(&o); o.DueAt != 1 || o.HasDelay || len(o.Annotations) != 1 {
		t.Errorf("outcome = %+v, want at once, and what says nothing kept", o)
	}
}

// What a consumer adds must leave the other annotations readable, and doesn't say how a message died.
func TestAnnotationsThatAnOutcomeMayNotAdd(t *testing.T) {
	var items []byte
	for _, key := range []codec.Symbol{"", "x-opt-a", engine.OrigAddress, engine.OrigQueue, engine.OrigMessageID, engine.ActualExpiry, engine.DeathReason, engine.DeathTime, "x-opt-b"} {
		for _, v := range []any{key, int64(1)} {
			var err error
			if items, err = codec.AppendValue(items, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := annotationsOf(append([]byte{0xc1, byte(len(items) + 1), 18}, items...))
	if len(all) != 2 || all[0].Key != "x-opt-a" || all[1].Key != "x-opt-b" {
		t.Fatalf("added %v, want x-opt-a and x-opt-b", all)
	}
	body, err := codec.AppendValue([]byte{0x00, 0x53, 0x77}, "body")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := annotate(body, all); err != nil {
		t.Errorf("annotations that were taken can't be written: %v", err)
	}
}
