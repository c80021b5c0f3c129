package codec

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// ReadValue decodes the value at the start of b and returns what follows it.
//
// The Go types are nil, bool, uint8 to uint64, int8 to int64, float32,
// float64, Decimal32, Decimal64, Decimal128, Char, Timestamp, UUID, []byte,
// string, Symbol, List, Map, Array and Described. Nothing aliases b, and what
// is allocated is at most a small multiple of the value's size and of
// MaxZeroWidth.
//
// Beyond what Skip checks: nesting, numbers of elements, every element's size,
// strings for UTF-8, symbols for ASCII, and map keys for duplicates. Chars are
// not checked.
func ReadValue(b []byte) (v any, rest []byte, err error) {
	var r valueReader
	return r.value(b, 0)
}

// valueReader decodes one value.
type valueReader struct {
	zeroWidths int // array elements without octets so far
}

// emptyList and emptyMap spare an allocation for each of the many that
// a few octets can hold.
var (
	emptyList any = List{}
	emptyMap  any = Map{}
)

func (r *valueReader) value(b []byte, depth int) (v any, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, &Error{Truncated, "value"}
	}
	if b[0] == formatDescribed {
		return r.described(b[1:], depth)
	}
	return r.bare(b[0], b[1:], depth)
}

func (r *valueReader) described(b []byte, depth int) (v any, rest []byte, err error) {
	if depth >= MaxDepth {
		return nil, nil, tooDeep()
	}
	if len(b) > 0 && b[0] == formatDescribed {
		return nil, nil, &Error{Malformed, "descriptor of a descriptor"}
	}
	var d Described
	if d.Descriptor, b, err = r.value(b, depth+1); err != nil {
		return nil, nil, err
	}
	if d.Value, b, err = r.value(b, depth+1); err != nil {
		return nil, nil, err
	}
	return d, b, nil
}

// bare decodes a value behind its format code c.
func (r *valueReader) bare(c byte, b []byte, depth int) (v any, rest []byte, err error) {
	width := int(formatWidths[c])
	switch {
	case width == unknownFormat:
		return nil, nil, unknownFormatError(c)
	case width >= 0:
		if len(b) < width {
			return nil, nil, truncated(c, len(b))
		}
		v, err = readFixed(c, b[:width])
		return v, b[width:], err
	}
	content, rest, err := readSized(c, b)
	if err != nil {
		return nil, nil, err
	}
	switch c {
	case formatBinary8, formatBinary32:
		return append([]byte{}, content...), rest, nil
	case formatString8, formatString32:
		if !utf8.Valid(content) {
			return nil, nil, &Error{Malformed, "string that is not UTF-8"}
		}
		return string(content), rest, nil
	case formatSymbol8, formatSymbol32:
		if !isASCII(content) {
			return nil, nil, &Error{Malformed, "symbol that is not ASCII"}
		}
		return Symbol(content), rest, nil
	}
	if depth >= MaxDepth {
		return nil, nil, tooDeep()
	}
	switch {
	case isArray(c):
		v, err = r.array(c, content, depth)
	case isMap(c):
		v, err = r.readMap(c, content, depth)
	default:
		v, err = r.readList(c, content, depth)
	}
	return v, rest, err
}

// readFixed decodes a value of fixed width behind its format code.
func readFixed(c byte, b []byte) (any, error) {
	switch c {
	case formatNull:
		return nil, nil
	case formatTrue:
		return true, nil
	case formatFalse:
		return false, nil
	case formatBool:
		if b[0] > 1 {
			return nil, &Error{Malformed, "boolean " + hexByte(b[0])}
		}
		return b[0] == 1, nil
	case formatUint0:
		return uint32(0), nil
	case formatUlong0:
		return uint64(0), nil
	case formatList0:
		return emptyList, nil
	case formatUbyte:
		return b[0], nil
	case formatByte:
		return int8(b[0]), nil
	case formatSmallUint:
		return uint32(b[0]), nil
	case formatSmallUlong:
		return uint64(b[0]), nil
	case formatSmallInt:
		return int32(int8(b[0])), nil
	case formatSmallLong:
		return int64(int8(b[0])), nil
	case formatUshort:
		return be16(b), nil
	case formatShort:
		return int16(be16(b)), nil
	case formatUint:
		return be32(b), nil
	case formatInt:
		return int32(be32(b)), nil
	case formatFloat:
		return math.Float32frombits(be32(b)), nil
	case formatChar:
		return Char(be32(b)), nil
	case formatDecimal32:
		return Decimal32(b), nil
	case formatUlong:
		return be64(b), nil
	case formatLong:
		return int64(be64(b)), nil
	case formatDouble:
		return math.Float64frombits(be64(b)), nil
	case formatTimestamp:
		return Timestamp(be64(b)), nil
	case formatDecimal64:
		return Decimal64(b), nil
	case formatDecimal128:
		return Decimal128(b), nil
	case formatUUID:
		return UUID(b), nil
	}
	return nil, unknownFormatError(c)
}

func (r *valueReader) readList(c byte, content []byte, depth int) (any, error) {
	count, b, err := readElements(c, content)
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return emptyList, nil
	}
	l := make(List, count)
	for i := range l {
		if l[i], b, err = r.value(b, depth+1); err != nil {
			return nil, err
		}
	}
	if len(b) != 0 {
		return nil, &Error{Malformed, "list with octets behind its last element"}
	}
	return l, nil
}

func (r *valueReader) readMap(c byte, content []byte, depth int) (any, error) {
	count, b, err := readElements(c, content)
	if err != nil {
		return nil, err
	}
	if count%2 != 0 {
		return nil, &Error{Malformed, "map of " + strconv.FormatUint(uint64(count), 10) + " keys and values"}
	}
	if count == 0 {
		return emptyMap, nil
	}
	m := make(Map, count/2)
	for i := range m {
		if m[i].Key, b, err = r.value(b, depth+1); err != nil {
			return nil, err
		}
		if m[i].Value, b, err = r.value(b, depth+1); err != nil {
			return nil, err
		}
	}
	if len(b) != 0 {
		return nil, &Error{Malformed, "map with octets behind its last value"}
	}
	return m, checkDuplicates(m)
}

// readElements reads the count of a list or map and checks it against the limits.
func readElements(c byte, content []byte) (count uint32, b []byte, err error) {
	count, b, err = readCount(c, content)
	switch {
	case err != nil:
		return 0, nil, err
	case count > MaxElements || uint64(count) > uint64(len(b)):
		return 0, nil, tooMany(c, count)
	case count == 0 && len(b) != 0:
		return 0, nil, &Error{Malformed, "compound with octets behind its last element"}
	}
	return count, b, nil
}
