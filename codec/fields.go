package codec

import (
	"encoding/binary"
	"strconv"
	"unicode/utf8"
)

func be16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
func be64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// fields reads the fields of one composite value in their order [1.4]. Fields
// left out at the end read as null. The first error sticks: every later read
// finds null, and end returns it. A fields value lives on its reader's stack.
type fields struct {
	b    []byte // the list's content
	i    int    // where in b the next field starts
	left uint32 // fields not read yet
	name string // the composite, for errors
	err  error
}

// noFormat is what next returns when a declared field has no octets.
const noFormat byte = 0xff

// begin starts at the list in front of b, which may have up to most fields,
// and returns what follows the list.
func (f *fields) begin(b []byte, name string, most uint32) (rest []byte) {
	f.name = name
	if len(b) > 2 && b[0] == formatList8 && int(b[1]) <= len(b)-2 && b[1] != 0 && uint32(b[2]) <= most {
		size := 2 + int(b[1])
		f.b, f.left = b[3:size], uint32(b[2])
		return b[size:]
	}
	return f.beginSlow(b, most)
}

func (f *fields) beginSlow(b []byte, most uint32) (rest []byte) {
	if len(b) == 0 {
		f.err = &Error{Truncated, f.name}
		return nil
	}
	if !isList(b[0]) {
		f.err = &Error{WrongType, f.name + " " + hexByte(b[0])}
		return nil
	}
	content, count, rest, err := readCompound(b)
	switch {
	case err != nil:
		f.err = within(f.name, err)
		return nil
	case count > most:
		f.err = &Error{Malformed, f.name + " of " + strconv.FormatUint(uint64(count), 10) + " fields"}
		return nil
	}
	f.b, f.left = content, count
	return rest
}

// end returns the first error; octets behind the last field are one.
func (f *fields) end() error {
	if f.err == nil && f.i != len(f.b) {
		f.err = &Error{Malformed, f.name + " with octets behind its last field"}
	}
	return f.err
}

// next returns the next field's format code and moves behind it.
func (f *fields) next() byte {
	if f.left == 0 {
		return formatNull
	}
	if f.i >= len(f.b) {
		return noFormat
	}
	f.left--
	c := f.b[f.i]
	f.i++
	return c
}

// fail records that a field with format code c could not be read, because
// its octets are missing (known is true) or because c is of another type.
func (f *fields) fail(field string, c byte, known bool) {
	f.left = 0
	if f.err != nil {
		return
	}
	if known || (c == noFormat && f.i >= len(f.b)) {
		f.err = &Error{Truncated, f.name + "." + field}
		return
	}
	f.err = &Error{WrongType, f.name + "." + field + " " + hexByte(c)}
}

// failWith records an error from inside a field's value.
func (f *fields) failWith(field string, err error) {
	f.left = 0
	if f.err == nil {
		f.err = within(f.name+"."+field, err)
	}
}

func (f *fields) missing(field string) {
	f.left = 0
	if f.err == nil {
		f.err = &Error{MissingField, f.name + "." + field}
	}
}

func (f *fields) optUint(field string) Opt[uint32] {
	c := f.next()
	switch c {
	case formatNull:
		return Opt[uint32]{}
	case formatUint0:
		return Opt[uint32]{0, true}
	case formatSmallUint:
		if f.i < len(f.b) {
			v := f.b[f.i]
			f.i++
			return Opt[uint32]{uint32(v), true}
		}
	case formatUint:
		if b := f.b[f.i:]; len(b) >= 4 {
			f.i += 4
			return Opt[uint32]{be32(b), true}
		}
	}
	f.fail(field, c, c == formatSmallUint || c == formatUint)
	return Opt[uint32]{}
}

func (f *fields) uintOr(field string, def uint32) uint32 { return f.optUint(field).Or(def) }

func (f *fields) needUint(field string) uint32 {
	v := f.optUint(field)
	if !v.Set {
		f.missing(field)
	}
	return v.Value
}

func (f *fields) optUlong(field string) Opt[uint64] {
	c := f.next()
	switch c {
	case formatNull:
		return Opt[uint64]{}
	case formatUlong0:
		return Opt[uint64]{0, true}
	case formatSmallUlong:
		if f.i < len(f.b) {
			v := f.b[f.i]
			f.i++
			return Opt[uint64]{uint64(v), true}
		}
	case formatUlong:
		if b := f.b[f.i:]; len(b) >= 8 {
			f.i += 8
			return Opt[uint64]{be64(b), true}
		}
	}
	f.fail(field, c, c == formatSmallUlong || c == formatUlong)
	return Opt[uint64]{}
}

func (f *fields) needUlong(field string) uint64 {
	v := f.optUlong(field)
	if !v.Set {
		f.missing(field)
	}
	return v.Value
}

func (f *fields) optUshort(field string) Opt[uint16] {
	c := f.next()
	switch c {
	case formatNull:
		return Opt[uint16]{}
	case formatUshort:
		if b := f.b[f.i:]; len(b) >= 2 {
			f.i += 2
			return Opt[uint16]{be16(b), true}
		}
	}
	f.fail(field, c, c == formatUshort)
	return Opt[uint16]{}
}

func (f *fields) optUbyte(field string) Opt[uint8] {
	c := f.next()
	switch c {
	case formatNull:
		return Opt[uint8]{}
	case formatUbyte:
		if f.i < len(f.b) {
			v := f.b[f.i]
			f.i++
			return Opt[uint8]{v, true}
		}
	}
	f.fail(field, c, c == formatUbyte)
	return Opt[uint8]{}
}

func (f *fields) optBool(field string) Opt[bool] {
	c := f.next()
	switch c {
	case formatNull:
		return Opt[bool]{}
	case formatTrue:
		return Opt[bool]{true, true}
	case formatFalse:
		return Opt[bool]{false, true}
	case formatBool:
		if f.i < len(f.b) {
			v := f.b[f.i]
			f.i++
			if v > 1 {
				f.failWith(field, &Error{Malformed, "boolean " + hexByte(v)})
			}
			return Opt[bool]{v == 1, true}
		}
	}
	f.fail(field, c, c == formatBool)
	return Opt[bool]{}
}

// bool reads a boolean that defaults to false.
func (f *fields) bool(field string) bool { return f.optBool(field).Value }

func (f *fields) needBool(field string) bool {
	v := f.optBool(field)
	if !v.Set {
		f.missing(field)
	}
	return v.Value
}

func (f *fields) optTimestamp(field string) Opt[Timestamp] {
	c := f.next()
	switch c {
	case formatNull:
		return Opt[Timestamp]{}
	case formatTimestamp:
		if b := f.b[f.i:]; len(b) >= 8 {
			f.i += 8
			return Opt[Timestamp]{Timestamp(be64(b)), true}
		}
	}
	f.fail(field, c, c == formatTimestamp)
	return Opt[Timestamp]{}
}

// run reads a counted run of octets whose format is short or long; the result
// aliases the input. It is nil for null only.
func (f *fields) run(field string, short, long byte) []byte {
	c := f.next()
	switch c {
	case formatNull:
		return nil
	case short:
		if b := f.b[f.i:]; len(b) > 0 && int(b[0]) <= len(b)-1 {
			n := 1 + int(b[0])
			f.i += n
			return b[1:n:n]
		}
	case long:
		if b := f.b[f.i:]; len(b) >= 4 && uint64(be32(b)) <= uint64(len(b)-4) {
			n := 4 + int(be32(b))
			f.i += n
			return b[4:n:n]
		}
	}
	f.fail(field, c, c == short || c == long)
	return nil
}

// binary aliases the input.
func (f *fields) binary(field string) []byte {
	return f.run(field, formatBinary8, formatBinary32)
}

func (f *fields) optString(field string) Opt[string] {
	b := f.run(field, formatString8, formatString32)
	if b == nil {
		return Opt[string]{}
	}
	if !utf8.Valid(b) {
		f.failWith(field, &Error{Malformed, "string that is not UTF-8"})
		return Opt[string]{}
	}
	return Opt[string]{string(b), true}
}

func (f *fields) string(field string) string { return f.optString(field).Value }

func (f *fields) needString(field string) string {
	v := f.optString(field)
	if !v.Set {
		f.missing(field)
	}
	return v.Value
}

func (f *fields) optSymbol(field string) Opt[Symbol] {
	b := f.run(field, formatSymbol8, formatSymbol32)
	if b == nil {
		return Opt[Symbol]{}
	}
	if !isASCII(b) {
		f.failWith(field, &Error{Malformed, "symbol that is not ASCII"})
		return Opt[Symbol]{}
	}
	return Opt[Symbol]{Symbol(b), true}
}

func (f *fields) symbolOr(field string, def Symbol) Symbol { return f.optSymbol(field).Or(def) }

func (f *fields) needSymbol(field string) Symbol {
	v := f.optSymbol(field)
	if !v.Set {
		f.missing(field)
	}
	return v.Value
}

// raw returns the next field as it is encoded, checked shallowly, aliasing
// the input; nil for null.
func (f *fields) raw(field string) []byte {
	if f.left == 0 {
		return nil
	}
	f.left--
	b := f.b[f.i:]
	if len(b) > 0 && b[0] == formatNull {
		f.i++
		return nil
	}
	rest, err := Skip(b)
	if err != nil {
		f.failWith(field, err)
		return nil
	}
	n := len(b) - len(rest)
	f.i += n
	return b[:n:n]
}

// rawMap is raw for a field that must be a map.
func (f *fields) rawMap(field string) []byte {
	b := f.raw(field)
	if b != nil && !isMap(b[0]) {
		f.failWith(field, &Error{WrongType, hexByte(b[0])})
		return nil
	}
	return b
}

// value reads a field of any type into Go values of its own.
func (f *fields) value(field string) any {
	if f.left == 0 {
		return nil
	}
	f.left--
	v, rest, err := ReadValue(f.b[f.i:])
	if err != nil {
		f.failWith(field, err)
		return nil
	}
	f.i = len(f.b) - len(rest)
	return v
}

// fieldMap reads a map, nil for null. Keys should be symbols; strings are let
// pass, since Map.Get finds both.
func (f *fields) fieldMap(field string) Map {
	if f.left > 0 && f.i < len(f.b) && f.b[f.i] != formatNull && !isMap(f.b[f.i]) {
		f.fail(field, f.b[f.i], false)
		return nil
	}
	m, _ := f.value(field).(Map)
	return m
}

// described returns the code and content of a field that holds a described
// value, and what follows within the list; ok is false for null and after an
// error. An unknown descriptor is code 0. The caller moves on with skipTo.
func (f *fields) described(field string) (code Code, content []byte, ok bool) {
	if f.left == 0 {
		return 0, nil, false
	}
	f.left--
	b := f.b[f.i:]
	if len(b) > 0 && b[0] == formatNull {
		f.i++
		return 0, nil, false
	}
	code, content, err := describedAs(b)
	if err != nil {
		f.failWith(field, err)
		return 0, nil, false
	}
	return code, content, true
}

// skipTo moves to rest, which is the end of f.b.
func (f *fields) skipTo(rest []byte) { f.i = len(f.b) - len(rest) }

// describedAs is ReadDescriptor with code 0 for unknown descriptors.
func describedAs(b []byte) (code Code, rest []byte, err error) {
	if len(b) > 2 && b[0] == formatDescribed && b[1] == formatSmallUlong {
		code, rest = Code(b[2]), b[3:]
	} else if code, rest, err = readDescriptorSlow(b); err != nil {
		return 0, nil, err
	}
	if !code.known() {
		code = 0
	}
	return code, rest, nil
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
