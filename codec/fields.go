package codec

import (
	"encoding/binary"
	"errors"
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

// fail records that the field at f.i is cut off or of another type.
//
//go:noinline
func (f *fields) fail(field string) {
	f.left = 0
	if f.err != nil {
		return
	}
	b := f.b[f.i:]
	if _, err := Skip(b); errors.Is(err, ErrTruncated) {
		f.err = &Error{Truncated, f.name + "." + field}
		return
	}
	f.err = &Error{WrongType, f.name + "." + field + " " + hexByte(b[0])}
}

// failWith records an error from inside a field's value.
//
//go:noinline
func (f *fields) failWith(field string, err error) {
	f.left = 0
	if f.err == nil {
		f.err = within(f.name+"."+field, err)
	}
}

//go:noinline
func (f *fields) missing(field string) {
	f.left = 0
	if f.err == nil {
		f.err = &Error{MissingField, f.name + "." + field}
	}
}

func (f *fields) optUint(field string) Opt[uint32] {
	if f.left == 0 {
		return Opt[uint32]{}
	}
	f.left--
	if b, i := f.b, f.i; i < len(b) {
		switch b[i] {
		case formatNull:
			f.i = i + 1
			return Opt[uint32]{}
		case formatUint0:
			f.i = i + 1
			return Opt[uint32]{0, true}
		case formatSmallUint:
			if i+1 < len(b) {
				f.i = i + 2
				return Opt[uint32]{uint32(b[i+1]), true}
			}
		case formatUint:
			if i+4 < len(b) {
				f.i = i + 5
				return Opt[uint32]{be32(b[i+1:]), true}
			}
		}
	}
	f.fail(field)
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
	if f.left == 0 {
		return Opt[uint64]{}
	}
	f.left--
	if b, i := f.b, f.i; i < len(b) {
		switch b[i] {
		case formatNull:
			f.i = i + 1
			return Opt[uint64]{}
		case formatUlong0:
			f.i = i + 1
			return Opt[uint64]{0, true}
		case formatSmallUlong:
			if i+1 < len(b) {
				f.i = i + 2
				return Opt[uint64]{uint64(b[i+1]), true}
			}
		case formatUlong:
			if i+8 < len(b) {
				f.i = i + 9
				return Opt[uint64]{be64(b[i+1:]), true}
			}
		}
	}
	f.fail(field)
	return Opt[uint64]{}
}

func (f *fields) needUlong(field string) uint64 {
	v := f.optUlong(field)
	if !v.Set {
		f.missing(field)
	}
	return v.Value
}

// fixed returns the octets of a field of the one fixed-width format c, nil
// for null and after an error.
func (f *fields) fixed(field string, c byte, width int) []byte {
	if f.left == 0 {
		return nil
	}
	f.left--
	if b, i := f.b, f.i; i < len(b) {
		switch {
		case b[i] == formatNull:
			f.i = i + 1
			return nil
		case b[i] == c && i+width < len(b):
			f.i = i + 1 + width
			return b[i+1 : i+1+width]
		}
	}
	f.fail(field)
	return nil
}

func (f *fields) optUshort(field string) Opt[uint16] {
	if b := f.fixed(field, formatUshort, 2); b != nil {
		return Opt[uint16]{be16(b), true}
	}
	return Opt[uint16]{}
}

func (f *fields) optUbyte(field string) Opt[uint8] {
	if b := f.fixed(field, formatUbyte, 1); b != nil {
		return Opt[uint8]{b[0], true}
	}
	return Opt[uint8]{}
}

func (f *fields) optTimestamp(field string) Opt[Timestamp] {
	if b := f.fixed(field, formatTimestamp, 8); b != nil {
		return Opt[Timestamp]{Timestamp(be64(b)), true}
	}
	return Opt[Timestamp]{}
}

func (f *fields) optBool(field string) Opt[bool] {
	if f.left == 0 {
		return Opt[bool]{}
	}
	f.left--
	if b, i := f.b, f.i; i < len(b) {
		switch b[i] {
		case formatFalse:
			f.i = i + 1
			return Opt[bool]{false, true}
		case formatTrue:
			f.i = i + 1
			return Opt[bool]{true, true}
		case formatNull:
			f.i = i + 1
			return Opt[bool]{}
		case formatBool:
			if i+1 < len(b) {
				f.i = i + 2
				if b[i+1] > 1 {
					f.failWith(field, &Error{Malformed, "boolean " + hexByte(b[i+1])})
				}
				return Opt[bool]{b[i+1] == 1, true}
			}
		}
	}
	f.fail(field)
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

// run reads a counted run of octets whose format is short or long; the result
// aliases the input. It is nil for null and after an error only.
func (f *fields) run(field string, short, long byte) []byte {
	if f.left == 0 {
		return nil
	}
	f.left--
	if b := f.b[f.i:]; len(b) > 0 {
		switch c := b[0]; c {
		case formatNull:
			f.i++
			return nil
		case short:
			if len(b) > 1 && int(b[1]) <= len(b)-2 {
				n := 2 + int(b[1])
				f.i += n
				return b[2:n:n]
			}
		case long:
			if v, rest, err := readSized(c, b[1:]); err == nil {
				f.i = len(f.b) - len(rest)
				return v
			}
		}
	}
	f.fail(field)
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
	if f.left == 0 || f.skipNull() {
		return nil
	}
	f.left--
	b := f.b[f.i:]
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
	if f.left == 0 || f.skipNull() {
		return nil
	}
	if f.i < len(f.b) && !isMap(f.b[f.i]) {
		f.fail(field)
		return nil
	}
	m, _ := f.value(field).(Map)
	return m
}

// skipNull moves behind the next field if it is null.
func (f *fields) skipNull() bool {
	if f.i < len(f.b) && f.b[f.i] == formatNull {
		f.left--
		f.i++
		return true
	}
	return false
}

// described returns the code and content of a field that holds a described
// value, and what follows within the list; ok is false for null and after an
// error. An unknown descriptor is code 0. The caller moves on with skipTo.
func (f *fields) described(field string) (code Code, content []byte, ok bool) {
	if f.left == 0 || f.skipNull() {
		return 0, nil, false
	}
	f.left--
	code, content, err := describedAs(f.b[f.i:])
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
