package foreign

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strings"

	"github.com/letomq/leto/interop/wire"
)

// Specimen is a message that every client is asked to write.
type Specimen struct {
	Name    string
	Encoded []byte
}

// MarshalJSON writes the bytes in hexadecimal.
func (s Specimen) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"name": s.Name, "encoded": hex.EncodeToString(s.Encoded)})
}

// Specimens are messages with every kind of body, every primitive type as a body, as an
// application property and where it is allowed as an id, and every section.
func Specimens() []Specimen {
	section := func(code uint64, value []byte) []byte { return wire.Described(code, value) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	var all []Specimen
	add := func(name string, parts ...[]byte) { all = append(all, Specimen{name, join(parts...)}) }
	one := section(wire.SectionValue, wire.String("body"))

	// Of the highest priority and therefore the first, so that what is sent arrives in order.
	add("header", section(wire.SectionHeader, wire.List(wire.Bool(true), wire.Ubyte(7))), one)
	data := func(b string) []byte { return section(wire.SectionData, wire.Binary([]byte(b))) }
	add("data", data("data"))
	add("data, three sections", data("one"), data(""), data("three"))
	add("data, empty", data(""))
	add("data, 60 KiB", data(strings.Repeat("0123456789abcdef", 60<<6)))
	sequence := func(items ...[]byte) []byte { return section(wire.SectionSequence, wire.List(items...)) }
	add("sequence", sequence(wire.String("a"), wire.Uint(7), wire.Null()))
	add("sequence, two sections", sequence(wire.String("a")), sequence(wire.Ubyte(1), wire.List(wire.Bool(true))))

	simple, compound := values()
	for _, v := range simple {
		add("value "+v.name, section(wire.SectionValue, v.encoded))
		add("property "+v.name, section(wire.SectionApplicationProperties, wire.Map(wire.String("p"), v.encoded)), one)
	}
	for _, v := range compound {
		add("value "+v.name, section(wire.SectionValue, v.encoded))
		add("annotation "+v.name, section(wire.SectionMessageAnnotations, wire.Map(wire.Symbol("x-opt-a"), v.encoded)), one)
	}
	uuid := append([]byte{0x98}, []byte("0123456789abcdef")...)
	for name, id := range map[string][]byte{"ulong": wire.Ulong(math.MaxUint64), "uuid": uuid, "binary": wire.Binary([]byte("id")), "string": wire.String("id")} {
		add("id "+name, section(wire.SectionProperties, wire.List(id, wire.Null(), wire.Null(), wire.Null(), wire.Null(), id)), one)
	}
	add("properties", section(wire.SectionProperties, wire.List(
		wire.String("id"), wire.Binary([]byte("user")), wire.String("to"), wire.String("subject"), wire.String("reply"), wire.String("correlation"),
		wire.Symbol("text/plain"), wire.Symbol("identity"), wire.Timestamp(253402300799999), wire.Timestamp(1234567890123),
		wire.String("group"), wire.Uint(math.MaxUint32), wire.String("reply-group"))), one)
	add("not durable", section(wire.SectionHeader, wire.List(wire.Bool(false))), one)
	add("every section", section(wire.SectionHeader, wire.List(wire.Bool(true))),
		section(wire.SectionMessageAnnotations, wire.Map(wire.Symbol("x-opt-b"), wire.Ubyte(1), wire.Symbol("x-opt-a"), wire.String("z"))),
		section(wire.SectionProperties, wire.List(wire.String("id"))),
		section(wire.SectionApplicationProperties, wire.Map(wire.String("z"), wire.Timestamp(5), wire.String("a"), wire.Bool(false))), data("body"),
		section(wire.SectionFooter, wire.Map(wire.Symbol("x-opt-f"), wire.Ulong(1))))
	return all
}

type value struct {
	name    string
	encoded []byte
}

func values() (simple, compound []value) {
	fixed := func(code byte, content ...byte) []byte { return append([]byte{code}, content...) }
	simple = []value{
		{"null", wire.Null()}, {"true", wire.Bool(true)}, {"false", wire.Bool(false)},
		{"ubyte", wire.Ubyte(255)}, {"ushort", fixed(0x60, 0xff, 0xff)},
		{"uint 0", wire.Uint(0)}, {"uint 255", wire.Uint(255)}, {"uint", wire.Uint(math.MaxUint32)},
		{"ulong 0", wire.Ulong(0)}, {"ulong 255", wire.Ulong(255)}, {"ulong", wire.Ulong(math.MaxUint64)},
		{"byte", fixed(0x51, 0x80)}, {"short", fixed(0x61, 0x80, 0)},
		{"int -1", fixed(0x54, 0xff)}, {"int", fixed(0x71, 0x80, 0, 0, 0)},
		{"long -1", fixed(0x55, 0xff)}, {"long", fixed(0x81, 0x80, 0, 0, 0, 0, 0, 0, 0)},
		{"float", fixed(0x72, 0x3f, 0xc0, 0, 0)}, {"float inf", fixed(0x72, 0x7f, 0x80, 0, 0)}, {"float NaN", fixed(0x72, 0x7f, 0xc0, 0, 0)},
		{"double", fixed(0x82, 0x40, 0x09, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18)}, {"double -inf", fixed(0x82, 0xff, 0xf0, 0, 0, 0, 0, 0, 0)},
		{"decimal32", fixed(0x74, 0x32, 0x80, 0, 1)}, {"decimal64", fixed(0x84, 0x31, 0xc0, 0, 0, 0, 0, 0, 1)},
		{"decimal128", fixed(0x94, []byte("0123456789abcdef")...)},
		{"char", fixed(0x73, 0, 0, 0, 'x')}, {"char beyond BMP", fixed(0x73, 0, 1, 0xf6, 0x80)},
		{"timestamp", wire.Timestamp(1234567890123)}, {"timestamp -1", wire.Timestamp(-1)},
		{"uuid", fixed(0x98, []byte("0123456789abcdef")...)},
		{"binary", wire.Binary([]byte{0, 0xff})}, {"binary 256", wire.Binary(make([]byte, 256))},
		{"string empty", wire.String("")}, {"string", wire.String("grüße ☃ \U0001F680")}, {"string 256", wire.String(strings.Repeat("s", 256))},
		{"symbol", wire.Symbol("a.symbol")}, {"symbol 256", wire.Symbol(strings.Repeat("y", 256))},
	}
	compound = []value{
		{"list", wire.List(wire.String("a"), wire.Uint(1), wire.Null(), wire.List(wire.Bool(true)))}, {"list empty", wire.List()},
		{"map", wire.Map(wire.String("z"), wire.Ubyte(1), wire.String("a"), wire.Map(wire.String("k"), wire.List(wire.Ubyte(1))))}, {"map empty", wire.Map()},
		{"array of uint", []byte{0xe0, 10, 2, 0x70, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff}},
		{"array of symbol", []byte{0xe0, 7, 2, 0xa3, 1, 'x', 2, 'y', 'z'}},
		{"described", append([]byte{0}, append(wire.Symbol("app:point:list"), wire.List(wire.Uint(1), wire.Uint(2))...)...)},
	}
	return simple, compound
}

// shelve writes the specimens to a file that programs read.
func shelve(path string, specimens []Specimen) error {
	text, err := json.Marshal(specimens)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
