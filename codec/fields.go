package codec

import (
	"encoding/binary"
	"errors"
	"strconv"
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

// fail records that the field at f.i is cut off or of another type. Like the
// two below it stays out of its callers, which are hot.
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

// missing records that a mandatory field is null or left out.
//
//go:noinline
func (f *fields) missing(field string) {
	f.left = 0
	if f.err == nil {
		f.err = &Error{MissingField, f.name + "." + field}
	}
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
