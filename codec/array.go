package codec

import "strconv"

// arrayHeader is an array whose elements are not decoded yet.
type arrayHeader struct {
	count      uint32
	described  bool
	descriptor []byte // encoded; nil unless described
	code       byte   // the elements' constructor
	elements   []byte
}

// readArrayHeader reads an array with its format code. The number of elements
// it returns fits the octets there are, and is at most MaxElements when an
// element takes none.
func readArrayHeader(b []byte) (a arrayHeader, rest []byte, err error) {
	if len(b) == 0 {
		return a, nil, &Error{Truncated, "array"}
	}
	if !isArray(b[0]) {
		return a, nil, &Error{WrongType, "array " + hexByte(b[0])}
	}
	content, rest, err := readSized(b[0], b[1:])
	if err != nil {
		return a, nil, err
	}
	a, err = readArrayContent(b[0], content)
	return a, rest, err
}

// readArrayContent reads what follows the size of an array of format code c.
func readArrayContent(c byte, content []byte) (a arrayHeader, err error) {
	var b []byte
	if a.count, b, err = readCount(c, content); err != nil {
		return a, err
	}
	if len(b) == 0 {
		// Some encoders leave the constructor of an empty array out.
		if a.count != 0 {
			return a, tooMany(c, a.count)
		}
		a.code = formatNull
		return a, nil
	}
	if b[0] == formatDescribed {
		after, err := skipDescriptor(b[1:])
		if err != nil {
			return a, err
		}
		a.described, a.descriptor = true, b[1:len(b)-len(after)]
		b = after
		if len(b) == 0 {
			return a, &Error{Truncated, "array constructor"}
		}
		if b[0] == formatDescribed {
			return a, &Error{Malformed, "array constructor with two descriptors"}
		}
	}
	a.code, a.elements = b[0], b[1:]
	return a, a.check(c)
}

// check compares the number of elements with the octets there are.
func (a *arrayHeader) check(c byte) error {
	n, have := uint64(a.count), uint64(len(a.elements))
	switch width := formatWidths[a.code]; {
	case width == unknownFormat:
		return unknownFormatError(a.code)
	case width == 0 && n > MaxElements:
		return tooMany(c, a.count)
	case width >= 0 && n*uint64(width) > have, width == sized8 && n > have, width == sized32 && n*4 > have:
		return tooMany(c, a.count)
	case width >= 0 && n*uint64(width) < have, n == 0 && have != 0:
		return &Error{Malformed, "array with octets behind its last element"}
	}
	return nil
}

// array decodes an array of format code c behind its size.
func (r *valueReader) array(c byte, content []byte, depth int) (v any, err error) {
	h, err := readArrayContent(c, content)
	if err != nil {
		return nil, err
	}
	if h.count > MaxElements {
		return nil, tooMany(c, h.count)
	}
	a := Array{Code: h.code}
	if h.described {
		if a.Descriptor, _, err = r.value(h.descriptor, depth+1); err != nil {
			return nil, err
		}
	}
	if formatWidths[h.code] == 0 {
		a.Elements, err = r.zeroWidth(c, h.code, h.count)
	} else {
		a.Elements, err = r.arrayElements(h, depth+1)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (r *valueReader) arrayElements(h arrayHeader, depth int) ([]any, error) {
	elements := make([]any, h.count)
	b := h.elements
	for i := range elements {
		var err error
		if elements[i], b, err = r.bare(h.code, b, depth); err != nil {
			return nil, err
		}
	}
	if len(b) != 0 {
		return nil, &Error{Malformed, "array with octets behind its last element"}
	}
	return elements, nil
}

// zeroWidth makes elements that take no octets, as long as the whole value has
// not had too many of them.
func (r *valueReader) zeroWidth(c, code byte, count uint32) ([]any, error) {
	r.zeroWidths += int(count)
	if r.zeroWidths > MaxZeroWidth {
		return nil, tooMany(c, count)
	}
	v, _, err := r.bare(code, nil, 0)
	if err != nil {
		return nil, err
	}
	elements := make([]any, count)
	for i := range elements {
		elements[i] = v
	}
	return elements, nil
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
	case formatBinary8, formatString8, formatSymbol8, formatList8, formatMap8, formatArray8:
		return c + 0x10
	}
	return 0
}

// appendArray writes the elements with the constructor a.Code, or with the
// next wider one that all of them fit.
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
	constructor := len(dst)
	for code := a.Code; code != 0; code = widerFormat(code) {
		var err error
		dst = append(dst[:constructor], code)
		fits := true
		for _, v := range a.Elements {
			if dst, fits, err = appendElement(dst, code, v, depth+1); err != nil {
				return nil, err
			}
			if !fits {
				break
			}
		}
		if fits {
			return endCompound(dst, at, len(a.Elements)), nil
		}
	}
	return nil, &Error{Unsupported, "element of an array of " + hexByte(a.Code)}
}

// appendElement writes v without constructor, as format c wants it. When v
// doesn't fit, fits is false and what dst holds behind its old end is void.
func appendElement(dst []byte, c byte, v any, depth int) (_ []byte, fits bool, err error) {
	at := len(dst)
	if dst, err = appendAt(dst, v, depth); err != nil {
		return nil, false, err
	}
	// What append wrote is the narrowest form: rewrite it in place to c.
	have := dst[at]
	switch formatWidths[c] {
	case 0:
		return dst[:at], have == c && len(dst) == at+1, nil
	case sized8:
		if c == formatList8 && have == formatList0 {
			return append(dst[:at], 1, 0), true, nil
		}
		return append(dst[:at], dst[at+1:]...), have == c, nil
	case sized32:
		return widenElement(dst, at, c)
	}
	return fixedElement(dst, at, c)
}

// widenElement turns the value at at into the form with sizes of four octets.
func widenElement(dst []byte, at int, c byte) (_ []byte, fits bool, err error) {
	have := dst[at]
	switch {
	case have == c:
		return append(dst[:at], dst[at+1:]...), true, nil
	case have == formatList0 && c == formatList32:
		return append(dst[:at], 0, 0, 0, 4, 0, 0, 0, 0), true, nil
	case have != c-0x10:
		return dst[:at], false, nil
	case c < formatList32:
		size := dst[at+1]
		dst = append(dst, 0, 0)
		copy(dst[at+4:], dst[at+2:len(dst)-2])
		copy(dst[at:], []byte{0, 0, 0, size})
		return dst, true, nil
	}
	// Compounds and arrays: format, size, count become size and count.
	size, count := dst[at+1], dst[at+2]
	dst = append(dst, 0, 0, 0, 0, 0)
	copy(dst[at+8:], dst[at+3:len(dst)-5])
	copy(dst[at:], []byte{0, 0, 0, 0, 0, 0, 0, count})
	n := uint32(size) - 1 + 4
	dst[at+2], dst[at+3] = byte(n>>8), byte(n)
	return dst, true, nil
}

// fixedElement turns the value at at into the form of fixed width c.
func fixedElement(dst []byte, at int, c byte) (_ []byte, fits bool, err error) {
	have := dst[at]
	width := int(formatWidths[c])
	if have == c {
		return append(dst[:at], dst[at+1:]...), true, nil
	}
	var v byte
	signed := false
	switch {
	case c == formatBool && (have == formatTrue || have == formatFalse):
		if have == formatTrue {
			v = 1
		}
	case (c == formatSmallUint || c == formatUint) && have == formatUint0:
	case (c == formatSmallUlong || c == formatUlong) && have == formatUlong0:
	case c == formatUint && have == formatSmallUint, c == formatUlong && have == formatSmallUlong:
		v = dst[at+1]
	case c == formatInt && have == formatSmallInt, c == formatLong && have == formatSmallLong:
		v, signed = dst[at+1], true
	default:
		return dst[:at], false, nil
	}
	var fill byte
	if signed && v >= 0x80 {
		fill = 0xff
	}
	dst = dst[:at]
	for range width - 1 {
		dst = append(dst, fill)
	}
	return append(dst, v), true, nil
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
	} else {
		dst = append(dst, formatArray8, 0, 0, short+0x10)
		for _, v := range s {
			n := len(v)
			dst = append(append(dst, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), v...)
		}
	}
	return endCompound(dst, at, len(s))
}
