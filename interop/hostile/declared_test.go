package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/letomq/leto/interop/wire"
)

// Where in a conversation a peer may put a value that is meant to hurt: each stage is what is said before, and a
// frame with the value in it.
var stages = []struct {
	name   string
	before func() [][]byte
	frame  func(value []byte) []byte
}{
	{"sasl", func() [][]byte { return [][]byte{wire.HeaderSASL} }, func(v []byte) []byte {
		return wire.NewFrame(1, 0, wire.Described(wire.CodeInit, wire.List(wire.Symbol("ANONYMOUS"), v)), nil)
	}},
	{"open", func() [][]byte { return [][]byte{wire.HeaderAMQP} }, func(v []byte) []byte {
		return frame(0, wire.CodeOpen, nil, wire.String("x"), wire.Null(), wire.Uint(65536), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), v)
	}},
	{"begin", opened, func(v []byte) []byte {
		return frame(0, wire.CodeBegin, nil, wire.Null(), wire.Uint(0), wire.Uint(10), wire.Uint(10), wire.Null(), wire.Null(), wire.Null(), v)
	}},
	{"attach", begun, func(v []byte) []byte {
		return frame(0, wire.CodeAttach, nil, wire.String("l"), wire.Uint(0), wire.Bool(true), wire.Null(), wire.Null(),
			wire.Described(0x28, wire.List(wire.String("declared"))), wire.Described(0x29, wire.List()),
			wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), v)
	}},
	{"filter", begun, func(v []byte) []byte {
		return frame(0, wire.CodeAttach, nil, wire.String("l"), wire.Uint(0), wire.Bool(true), wire.Null(), wire.Null(),
			wire.Described(0x28, wire.List(wire.String("declared"), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), v)),
			wire.Described(0x29, wire.List()))
	}},
	{"flow", begun, func(v []byte) []byte {
		return frame(0, wire.CodeFlow, nil, wire.Uint(0), wire.Uint(10), wire.Uint(0), wire.Uint(10), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Bool(true), v)
	}},
	{"disposition", begun, func(v []byte) []byte {
		return frame(0, wire.CodeDisposition, nil, wire.Bool(true), wire.Uint(0), wire.Uint(1<<31-2), wire.Bool(true),
			wire.Described(wire.CodeModified, wire.List(wire.Bool(true), wire.Bool(false), v)))
	}},
	{"transfer", func() [][]byte { return append(begun(), sender(0, 0, "l", "declared")) }, func(v []byte) []byte {
		return frame(0, wire.CodeTransfer, nil, wire.Uint(0), wire.Uint(0), wire.Binary([]byte{1}), wire.Uint(0), wire.Bool(false), wire.Bool(false), wire.Null(), v)
	}},
	{"annotations", func() [][]byte { return append(begun(), sender(0, 0, "l", "declared")) }, func(v []byte) []byte {
		return wire.Transfer(0, 0, false, append(wire.Described(wire.SectionMessageAnnotations, v), volatile(1, 10)[8:]...))
	}},
	{"properties", func() [][]byte { return append(begun(), sender(0, 0, "l", "declared")) }, func(v []byte) []byte {
		return wire.Transfer(0, 0, false, bytes.Join([][]byte{wire.Described(wire.SectionProperties, wire.List(wire.Null(), wire.Null(), v)), wire.Described(wire.SectionApplicationProperties, v), body(1, 10)}, nil))
	}},
	{"error", begun, func(v []byte) []byte {
		return frame(0, wire.CodeEnd, nil, wire.Described(wire.CodeError, wire.List(wire.Symbol("x:y"), wire.String("z"), v)))
	}},
}

func opened() [][]byte { return [][]byte{wire.HeaderAMQP, wire.Open("attacker", 1<<16)} }
func begun() [][]byte  { return append(opened(), begin(0, 1000)) }

// values that are larger than the bytes that carry them; room is what a frame of the stage may hold.
var values = []struct {
	class, name string
	value       func(room int) []byte
}{
	{"sizes", "sizes that aren't there", func(int) []byte {
		return bytes.Join([][]byte{{0xd1}, be(0xffffffff), be(0xfffffffe), wire.Symbol("a"), {0xb0}, be(0x7fffffff)}, nil)
	}},
	{"counts", "counts beyond the bytes", func(int) []byte { return bytes.Join([][]byte{{0xd1}, be(6), be(0xfffffffe), {0x40, 0x40}}, nil) }},
	{"counts", "arrays of elements without bytes", func(room int) []byte {
		// Each is 14 bytes and stands for 65,536 nulls.
		one := bytes.Join([][]byte{{0xf0}, be(5), be(65536), {0x40}}, nil)
		var items [][]byte
		for i := 0; i < room/20; i++ {
			items = append(items, wire.Symbol(fmt.Sprintf("%04d", i)), one)
		}
		return wire.Map(items...)
	}},
	{"depth", "lists in lists", func(room int) []byte {
		v := wire.Null()
		for len(v) < room-10 {
			v = append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{0xd0}, uint32(len(v)+4)), 1), v...)
		}
		return wire.Map(wire.Symbol("a"), v)
	}},
	{"depth", "descriptions of descriptions", func(room int) []byte {
		return wire.Map(wire.Symbol("a"), append(bytes.Repeat([]byte{0}, room-40), 0x40))
	}},
	{"keys", "maps of many keys", func(room int) []byte {
		var items [][]byte
		for i := 0; i < room/8; i++ {
			items = append(items, wire.Symbol(fmt.Sprintf("%05d", i)), wire.Null())
		}
		return wire.Map(items...)
	}},
	{"keys", "maps whose keys are maps", func(room int) []byte {
		var items [][]byte
		for i := 0; i < room/16; i++ {
			items = append(items, wire.Map(wire.Uint(uint32(i)), wire.Map()), wire.Null())
		}
		return wire.Map(items...)
	}},
	{"keys", "many small values", func(room int) []byte {
		return wire.Map(wire.Symbol("a"), append(append([]byte{0xd0}, append(be(uint32(room-60+4)), be(uint32(room-60))...)...), bytes.Repeat([]byte{0x45}, room-60)...))
	}},
}

func be(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// TestValues: values that are meant to be dear, wherever a peer may put one.
func TestValues(t *testing.T) {
	for _, v := range values {
		against(t, v.class, v.name, attack{run: func(a *attacker) {
			early, later := v.value(15_000), v.value(60_000) // before open frames are small
			var said [][]byte
			for _, s := range stages {
				value := later
				if s.name == "open" || s.name == "sasl" {
					value = early
				}
				said = append(said, bytes.Join(append(s.before(), s.frame(value)), nil))
			}
			a.each(4, func(k int) {
				for i := k; a.going(); i++ {
					c := a.dial()
					if c == nil {
						return
					}
					drop(c)
					a.say(c, said[i%len(said)])
					a.pause(time.Millisecond)
					a.drop(c)
				}
			})
		}})
	}
}

// TestFrameSizes: frames that say they are larger than may be, or smaller than they are, at every stage.
func TestFrameSizes(t *testing.T) {
	heads := [][]byte{
		{0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0}, {0x7f, 0xff, 0xff, 0xff, 2, 0, 0, 0}, {0x80, 0, 0, 0, 2, 0, 0, 0},
		{0, 0, 0, 7, 2, 0, 0, 0}, {0, 0, 0, 0, 2, 0, 0, 0}, {0, 0, 0, 16, 255, 0, 0, 0}, {0, 0, 0, 16, 1, 0, 0, 0}, {0, 1, 0, 1, 2, 0, 0, 0},
	}
	for _, s := range []struct {
		name   string
		before [][]byte
		kind   byte
	}{
		{"the header", nil, 0}, {"SASL", [][]byte{wire.HeaderSASL}, 1}, {"open", [][]byte{wire.HeaderAMQP}, 0},
		{"begin", opened(), 0}, {"attach", begun(), 0},
	} {
		against(t, "sizes", "frame sizes at "+s.name, attack{strict: s.name == "open" || s.name == "begin", run: func(a *attacker) {
			a.each(4, func(k int) {
				for i := k; a.going(); i++ {
					c := a.dial()
					if c == nil {
						return
					}
					head := bytes.Clone(heads[i%len(heads)])
					head[5] = s.kind
					a.say(c, append(s.before, head, make([]byte, 100))...)
					if i%16 == 0 {
						a.drop(c)
					}
				}
			})
		}})
	}
}

// TestBegunFrames, case 74: as many connections as there may be, each with most of a frame, whose end never comes.
func TestBegunFrames(t *testing.T) {
	for _, s := range []struct {
		name        string
		connections int
		before      [][]byte
		begun       []byte
	}{
		{"before open", some(9000, 2500), nil, append(append([]byte{}, wire.HeaderAMQP...), append([]byte{0, 0, 0x3f, 0xff, 2, 0, 0, 0}, make([]byte, 16_300)...)...)},
		{"in SASL", some(9000, 2500), nil, append(append([]byte{}, wire.HeaderSASL...), append([]byte{0, 0, 0x3f, 0xff, 2, 1, 0, 0}, make([]byte, 16_300)...)...)},
		{"after open", some(5000, 1500), opened(), append([]byte{0, 1, 0, 0, 2, 0, 0, 0}, make([]byte, 65_000)...)},
	} {
		against(t, "begun frames", "begun frames "+s.name, attack{strict: s.name == "in SASL", builds: true, run: func(a *attacker) {
			n := files(s.connections)
			a.each(8, func(k int) {
				for i := k; i < n; i += 8 {
					c := a.dial()
					if c == nil || !a.going() {
						return
					}
					a.say(c, s.before...)
					a.say(c, s.begun)
				}
			})
			a.built()
			a.hold()
		}})
	}
}
