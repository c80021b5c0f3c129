package codec

import (
	"encoding/binary"
	"strconv"
)

// appendArray writes the elements with the constructor a.Code, or with the
// next wider one that takes all of them. Every element is encoded once, by
// itself, and then put into the form of the constructor: trying one constructor
// after the other would double the work at each level of arrays in arrays.
func appendArray(dst []byte, a Array, depth int) ([]byte, error) {
	if len(a.Elements) > MaxElements {
		return nil, &Error{TooMany, "array of " + strconv.Itoa(len(a.Elements))}
	}
	if formatWidths[a.Code] == unknownFormat {
		return nil, &Error{Unsupported, "array of " + hexByte(a.Code)}
	}
	at := len(dst)
	dst = append(dst, formatArray8, 0, 0)
	if a.Descriptor != nil {
		if _, ok := a.Descriptor.(Described); ok {
			return nil, &Error{Unsupported, "descriptor of a descriptor"}
		}
		var err error
		if dst, err = appendAt(append(dst, formatDescribed), a.Descriptor, depth+1); err != nil {
			return nil, err
		}
	}
	code := a.Code
	var encoded []byte
	for _, v := range a.Elements {
		start := len(encoded)
		var err error
		if encoded, err = appendAt(encoded, v, depth+1); err != nil {
			return nil, err
		}
		for !takes(code, encoded[start]) {
			if code = widerFormat(code); code == 0 {
				return nil, &Error{Unsupported, "element of an array of " + hexByte(a.Code)}
			}
		}
	}
	dst = append(dst, code)
	for len(encoded) > 0 {
		rest, err := Skip(encoded)
		if err != nil {
			return nil, err
		}
		dst = appendElement(dst, code, encoded[:len(encoded)-len(rest)])
		encoded = rest
	}
	return endCompound(dst, at, len(a.Elements)), nil
}

// widerFormat gives the format that takes everything c takes and more, 0 when
// there is none.
func widerFormat(c byte) byte {
	switch c {
	case formatTrue, formatFalse:
		return formatBool
	case formatUint0:
		return formatSmallUint
	case formatSmallUint:
		return formatUint
	case formatUlong0:
		return formatSmallUlong
	case formatSmallUlong:
		return formatUlong
	case formatSmallInt:
		return formatInt
	case formatSmallLong:
		return formatLong
	case formatList0:
		return formatList8
	}
	if formatWidths[c] == sized8 {
		return c + 0x10
	}
	return 0
}

// takes tells whether a value written in the format narrow can be written in
// the format c as well.
func takes(c, narrow byte) bool {
	if c == narrow {
		return true
	}
	for narrow = widerFormat(narrow); narrow != 0; narrow = widerFormat(narrow) {
		if narrow == c {
			return true
		}
	}
	return false
}

// appendElement writes the encoded value e without its constructor, in the
// format c, which takes it.
func appendElement(dst []byte, c byte, e []byte) []byte {
	have := e[0]
	switch width := formatWidths[c]; {
	case have == c:
		return append(dst, e[1:]...)
	case width == sized8: // list0 as list8
		return append(dst, 1, 0)
	case width == sized32 && have == formatList0:
		return append(dst, 0, 0, 0, 4, 0, 0, 0, 0)
	case width == sized32 && have < formatList8:
		return append(append(dst, 0, 0, 0, e[1]), e[2:]...)
	case width == sized32: // the size counts the count
		dst = binary.BigEndian.AppendUint32(dst, uint32(e[1])-1+4)
		dst = append(dst, 0, 0, 0, e[2])
		return append(dst, e[3:]...)
	default:
		return appendFixedElement(dst, int(width), e)
	}
}

// appendFixedElement writes a boolean without octets, or an integer of at most
// one octet, as a big-endian number of width octets.
func appendFixedElement(dst []byte, width int, e []byte) []byte {
	var last, fill byte
	switch e[0] {
	case formatTrue:
		last = 1
	case formatSmallUint, formatSmallUlong:
		last = e[1]
	case formatSmallInt, formatSmallLong:
		last = e[1]
		fill = byte(int8(last) >> 7)
	}
	for range width - 1 {
		dst = append(dst, fill)
	}
	return append(dst, last)
}

// appendRunArray writes an array of strings or symbols.
func appendRunArray[T ~string](dst []byte, short byte, s []T) []byte {
	wide := false
	for _, v := range s {
		wide = wide || len(v) > 0xff
	}
	at := len(dst)
	if !wide {
		dst = append(dst, formatArray8, 0, 0, short)
		for _, v := range s {
			dst = append(append(dst, byte(len(v))), v...)
		}
		return endCompound(dst, at, len(s))
	}
	dst = append(dst, formatArray8, 0, 0, short+0x10)
	for _, v := range s {
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(v))), v...)
	}
	return endCompound(dst, at, len(s))
}
