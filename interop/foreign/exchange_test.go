package foreign

import (
	"testing"

	"github.com/letomq/leto/interop/wire"
)

// TestSame: what counts as the same message, and what doesn't.
func TestSame(t *testing.T) {
	section := wire.Described
	body := section(wire.SectionValue, wire.String("x"))
	with := func(parts ...[]byte) []byte {
		var m []byte
		for _, part := range append(parts, body) {
			m = append(m, part...)
		}
		return m
	}
	header := func(fields ...[]byte) []byte { return section(wire.SectionHeader, wire.List(fields...)) }
	annotations := func(pairs ...[]byte) []byte { return section(wire.SectionMessageAnnotations, wire.Map(pairs...)) }
	properties := func(fields ...[]byte) []byte { return section(wire.SectionProperties, wire.List(fields...)) }
	jms := annotations(wire.Symbol("x-opt-jms-dest"), []byte{0x51, 1})
	for name, c := range map[string]struct {
		want, got       []byte
		strict, loosely bool // whether they are the same
	}{
		"equal":             {with(), with(), true, true},
		"another body":      {with(), section(wire.SectionValue, wire.Symbol("x")), false, false},
		"no body":           {with(), nil, false, false},
		"default priority":  {with(), with(header(wire.Null(), wire.Ubyte(4))), true, true},
		"priority":          {with(), with(header(wire.Null(), wire.Ubyte(5))), false, false},
		"durable false":     {with(), with(header(wire.Bool(false))), false, true},
		"durable":           {with(), with(header(wire.Bool(true))), false, false},
		"delivery-count":    {with(), with(header(wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Uint(3))), true, true},
		"trailing nulls":    {with(properties(wire.String("i"))), with(properties(wire.String("i"), wire.Null(), wire.Null())), true, true},
		"empty sections":    {with(), with(annotations(), properties()), true, true},
		"annotation":        {with(), with(annotations(wire.Symbol("a"), wire.Null())), false, false},
		"noted by JMS":      {with(), with(jms), false, true},
		"order of a map":    {with(annotations(wire.Symbol("a"), wire.Null(), wire.Symbol("b"), wire.Null())), with(annotations(wire.Symbol("b"), wire.Null(), wire.Symbol("a"), wire.Null())), true, true},
		"width of a number": {section(wire.SectionValue, wire.Uint(7)), section(wire.SectionValue, []byte{0x52, 7}), true, true},
	} {
		for _, loosely := range []bool{false, true} {
			want := c.strict
			if loosely {
				want = c.loosely
			}
			if err := Same(c.want, c.got, loosely); (err == nil) != want {
				t.Errorf("%s, loosely %v: %v", name, loosely, err)
			}
		}
	}
}

// TestCheck: bytes count whatever the client makes of them.
func TestCheck(t *testing.T) {
	sent, other := wire.Described(wire.SectionValue, wire.String("x")), wire.Described(wire.SectionValue, wire.String("y"))
	for name, c := range map[string]struct {
		read          Read
		misread, good bool
	}{
		"as sent":                     {Read{Raw: sent, Again: sent}, false, true},
		"other bytes":                 {Read{Raw: other, Again: sent}, false, false},
		"other meaning":               {Read{Raw: sent, Again: other}, false, false},
		"nothing":                     {Read{}, false, false},
		"lost":                        {Read{Raw: sent, Lost: "can't"}, false, false},
		"misread":                     {Read{Again: other}, true, true},
		"misread, other bytes":        {Read{Raw: other, Again: other}, true, false},
		"lost as known, right bytes":  {Read{Raw: sent, Lost: "can't"}, true, true},
		"lost as known, without them": {Read{Lost: "can't"}, true, true},
	} {
		if err := c.read.Check(sent, c.misread); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
