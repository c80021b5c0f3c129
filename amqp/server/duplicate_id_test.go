package server

import (
	"fmt"
	"testing"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// identified is a message with an id in the application properties or, as a symbol key, the annotations.
func identified(t testing.TB, code codec.Code, key any, id any) []byte {
	t.Helper()
	m := codec.Map{{Key: "a", Value: int32(1)}, {Key: key, Value: id}}
	b := must(t)(codec.AppendValue(nil, codec.Described{Descriptor: uint64(code), Value: m}))
	return append(b, section(codec.CodeAmqpValue, 0x40)...)
}

func TestCase241_DuplicatesByProperty(t *testing.T) {
	properties, annotations := codec.CodeApplicationProperties, codec.CodeMessageAnnotations
	r := start(t, nil)
	p := r.opened("producer")
	p.sender(0, "q")
	want := 0
	for _, id := range []any{
		"1", codec.Symbol("1"), []byte("1"), int32(1), int64(1), uint64(1), true, codec.UUID{1}, codec.Timestamp(1), 1.0,
	} {
		p.put(0, identified(t, properties, "_AMQ_DUPL_ID", id))
		p.put(0, identified(t, properties, "_AMQ_DUPL_ID", id))
		p.put(0, identified(t, annotations, codec.Symbol("x-opt-dup-id"), id))
		want++
		r.depth("q", want, 0)
	}
	p.deliver(p.transfer(0, true), identified(t, properties, "_AMQ_DUPL_ID", "settled"))
	p.deliver(p.transfer(0, true), identified(t, properties, "_AMQ_DUPL_ID", "settled"))
	p.put(0, identified(t, properties, "_AMQ_DUPL_ID", nil)) // none
	p.put(0, identified(t, properties, "_AMQ_DUPL_ID", nil))
	p.put(0, identified(t, properties, "x-opt-dup-id", "1")) // in the wrong place
	p.put(0, identified(t, annotations, codec.Symbol("_AMQ_DUPL_ID"), "1"))
	r.depth("q", want+5, 0)
	if got := r.broker.Totals().Duplicates; got != 21 {
		t.Errorf("%d duplicates, want 21", got)
	}
	p.close()
}

func TestDuplicateIDsThatAreNone(t *testing.T) {
	long := make([]byte, maxDuplicateID)
	for _, c := range []struct {
		name string
		id   any
		want codec.Symbol
	}{
		{"long", string(long), amqp.ConditionInvalidField},
		{"list", codec.List{"1"}, amqp.ConditionInvalidField},
		{"map", codec.Map{{Key: "1", Value: "1"}}, amqp.ConditionInvalidField},
		{"described", codec.Described{Descriptor: uint64(1), Value: "1"}, amqp.ConditionInvalidField},
		{"empty string", "", amqp.ConditionInvalidField},
		{"empty binary", []byte{}, amqp.ConditionInvalidField},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, func(_ *Config, _ *ListenerOptions, o *engine.Options) {
				o.Settings = []engine.AddressSettings{{Match: "off", IDCacheSize: new(0)}}
			})
			p := r.opened("producer")
			p.sender(0, "q")
			p.sender(1, "off")
			m := identified(t, codec.CodeApplicationProperties, "_AMQ_DUPL_ID", c.id)
			if o := p.post(0, m); o.Kind != codec.StateRejected || o.Error == nil || o.Error.Condition != c.want {
				t.Errorf("outcome %+v %s, want rejected with %s", o, text(o.Error), c.want)
			}
			p.put(1, m) // nobody asks for it
			p.put(1, m)
			r.depth("off", 2, 0)
			p.close()
		})
	}
	t.Run("broken map", func(t *testing.T) {
		r := start(t, nil)
		p := r.opened("producer")
		p.sender(0, "q")
		m := section(codec.CodeApplicationProperties, append([]byte{0xc1, 17, 2, 0xa1, 12}, "_AMQ_DUPL_ID\xa1\xff"...)...)
		m = append(m, section(codec.CodeAmqpValue, 0x40)...)
		if o := p.post(0, m); o.Kind != codec.StateRejected || o.Error == nil || o.Error.Condition != amqp.ConditionDecodeError {
			t.Errorf("outcome %+v, want rejected with decode-error", o)
		}
		p.close()
	})
}

// BenchmarkDuplicateID is what a message's sections cost to be looked through.
func BenchmarkDuplicateID(b *testing.B) {
	r := start(b, nil)
	p := &incoming{anonymous: true, attachment: &attachment{conn: &connection{server: r.server}}}
	for _, n := range []int{0, 5, 50} {
		for _, there := range []bool{false, true} {
			if n == 0 && there {
				continue
			}
			b.Run(fmt.Sprint(n, " properties, id ", there), func(b *testing.B) {
				var m codec.Map
				for i := range n {
					m = append(m, codec.Pair{Key: fmt.Sprint("property-", i), Value: "value"})
				}
				if there {
					m = append(m, codec.Pair{Key: duplicateProperty, Value: "0123456789abcdef"})
				}
				var s codec.Sections
				if n > 0 {
					s.ApplicationProperties = must(b)(codec.AppendValue(nil, codec.Described{
						Descriptor: uint64(codec.CodeApplicationProperties), Value: m,
					}))
				}
				message := &engine.Message{Address: "q"}
				b.ReportAllocs()
				for b.Loop() {
					if id, err := p.duplicateID(&s, message); err != nil || (id != engine.DuplicateID{}) != there {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
