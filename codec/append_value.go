package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// AppendValue writes v in its narrowest form. It takes every type that
// ReadValue gives, and: Raw as it is, Code as ulong, uint as ulong, int as
// long, []any as List, []Symbol and []string as arrays. Nil slices and maps
// are empty, not null. A type it doesn't know is ErrUnsupported; dst is
// returned unchanged with an error.
func AppendValue(dst []byte, v any) ([]byte, error) {
	out, err := appendAt(dst, v, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// appendAt writes a value that stands depth levels deep; it returns nil with
// an error.
func appendAt(dst []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, formatNull), nil
	case bool:
		return appendBool(dst, v), nil
	case string:
		return appendString(dst, v), nil
	case Symbol:
		return appendSymbol(dst, v), nil
	case []byte:
		return appendBinary(dst, v), nil
	case Raw:
		if len(v) == 0 {
			return nil, &Error{Unsupported, "empty Raw"}
		}
		return append(dst, v...), nil
	case uint8:
		return appendUbyte(dst, v), nil
	case uint16:
		return appendUshort(dst, v), nil
	case uint32:
		return appendUint(dst, v), nil
	case uint64:
		return appendUlong(dst, v), nil
	case uint:
		return appendUlong(dst, uint64(v)), nil
	case Code:
		return appendUlong(dst, uint64(v)), nil
	case int8:
		return append(dst, formatByte, byte(v)), nil
	case int16:
		return append(dst, formatShort, byte(v>>8), byte(v)), nil
	case int32:
		return appendInt(dst, v), nil
	case int64:
		return appendLong(dst, v), nil
	case int:
		return appendLong(dst, int64(v)), nil
	case float32:
		return binary.BigEndian.AppendUint32(append(dst, formatFloat), math.Float32bits(v)), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, formatDouble), math.Float64bits(v)), nil
	case Timestamp:
		return binary.BigEndian.AppendUint64(append(dst, formatTimestamp), uint64(v)), nil
	case Char:
		return binary.BigEndian.AppendUint32(append(dst, formatChar), uint32(v)), nil
	case UUID:
		return append(append(dst, formatUUID), v[:]...), nil
	case Decimal32:
		return append(append(dst, formatDecimal32), v[:]...), nil
	case Decimal64:
		return append(append(dst, formatDecimal64), v[:]...), nil
	case Decimal128:
		return append(append(dst, formatDecimal128), v[:]...), nil
	}
	return appendCompound(dst, v, depth)
}

// maxWriteDepth lets a value that was received be written some levels deeper
// than it came, and still stops at a slice that contains itself.
const maxWriteDepth = 2 * MaxDepth

func appendCompound(dst []byte, v any, depth int) ([]byte, error) {
	if depth >= maxWriteDepth {
		return nil, tooDeep()
	}
	switch v := v.(type) {
	case List:
		return appendList(dst, v, depth)
	case []any:
		return appendList(dst, v, depth)
	case Map:
		return appendMap(dst, v, depth)
	case Array:
		return appendArray(dst, v, depth)
	case []Symbol:
		if len(v) > MaxElements {
			return nil, &Error{TooMany, "array of " + strconv.Itoa(len(v))}
		}
		return appendRunArray(dst, formatSymbol8, v), nil
	case []string:
		if len(v) > MaxElements {
			return nil, &Error{TooMany, "array of " + strconv.Itoa(len(v))}
		}
		return appendRunArray(dst, formatString8, v), nil
	case Described:
		if _, ok := v.Descriptor.(Described); ok {
			return nil, &Error{Unsupported, "descriptor of a descriptor"}
		}
		dst, err := appendAt(append(dst, formatDescribed), v.Descriptor, depth+1)
		if err != nil {
			return nil, err
		}
		return appendAt(dst, v.Value, depth+1)
	}
	return nil, &Error{Unsupported, fmt.Sprintf("Go type %T", v)}
}

func appendList(dst []byte, l []any, depth int) ([]byte, error) {
	if len(l) == 0 {
		return append(dst, formatList0), nil
	}
	if len(l) > MaxElements {
		return nil, &Error{TooMany, "list of " + strconv.Itoa(len(l))}
	}
	at := len(dst)
	dst = append(dst, formatList8, 0, 0)
	var err error
	for _, v := range l {
		if dst, err = appendAt(dst, v, depth+1); err != nil {
			return nil, err
		}
	}
	return endCompound(dst, at, len(l)), nil
}

func appendMap(dst []byte, m Map, depth int) ([]byte, error) {
	if 2*len(m) > MaxElements {
		return nil, &Error{TooMany, "map of " + strconv.Itoa(len(m))}
	}
	at := len(dst)
	dst = append(dst, formatMap8, 0, 0)
	var err error
	for i := range m {
		if dst, err = appendAt(dst, m[i].Key, depth+1); err != nil {
			return nil, err
		}
		if dst, err = appendAt(dst, m[i].Value, depth+1); err != nil {
			return nil, err
		}
	}
	return endCompound(dst, at, 2*len(m)), nil
}

func appendInt(dst []byte, v int32) []byte {
	if v >= -128 && v <= 127 {
		return append(dst, formatSmallInt, byte(v))
	}
	return binary.BigEndian.AppendUint32(append(dst, formatInt), uint32(v))
}

func appendLong(dst []byte, v int64) []byte {
	if v >= -128 && v <= 127 {
		return append(dst, formatSmallLong, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, formatLong), uint64(v))
}
