package codec

import "bytes"

// MapEntry returns the value that a section of a map, such as application-properties, has under a key that is a string
// or a symbol, as it is encoded, aliasing the section. It is nil when there is none, or null, or when section is nil; of
// equal keys the first counts. Values are skipped, not decoded; nothing is allocated. A section in which the key's octets
// stand nowhere isn't even walked through: faults in it are found only otherwise.
func MapEntry(section []byte, key string) (value []byte, err error) {
	if len(section) < len(key) || !containsKey(section, key) {
		return nil, nil
	}
	code, m, err := ReadDescriptor(section)
	if err != nil {
		return nil, within("section", err)
	}
	if len(m) > 0 && !isMap(m[0]) {
		return nil, &Error{WrongType, code.String() + " " + hexByte(m[0])}
	}
	b, count, _, err := readCompound(m)
	if err != nil {
		return nil, within(code.String(), err)
	}
	for ; count > 0; count -= 2 {
		rest, err := Skip(b)
		if err != nil {
			return nil, within(code.String(), err)
		}
		after, err := Skip(rest)
		if err != nil {
			return nil, within(code.String(), err)
		}
		if isKey(b, key) {
			if rest[0] == formatNull {
				return nil, nil
			}
			n := len(rest) - len(after)
			return rest[:n:n], nil
		}
		b = after
	}
	return nil, nil
}

// isKey says whether the value at the start of b, which Skip has passed, is a string or a symbol that reads so.
func isKey(b []byte, key string) bool {
	switch b[0] {
	case formatString8, formatSymbol8, formatString32, formatSymbol32:
	default:
		return false
	}
	content, _, err := readSized(b[0], b[1:])
	return err == nil && string(content) == key
}

// containsKey looks for the octets of a key.
func containsKey(section []byte, key string) bool {
	var few [32]byte
	return bytes.Contains(section, append(few[:0], key...))
}

// AppendPlain appends a primitive value [1.6] that is encoded alone, in the widest encoding of its type: equal values of
// one type have equal octets then. Null, lists, maps, arrays and described values are errors.
func AppendPlain(dst, value []byte) ([]byte, error) {
	rest, err := Skip(value)
	if err != nil {
		return dst, err
	}
	c := value[0]
	if len(rest) > 0 {
		return dst, &Error{Malformed, "octets behind a value"}
	}
	b := value[1:]
	switch c {
	case formatDescribed, formatNull, formatList0, formatList8, formatList32, formatMap8, formatMap32, formatArray8, formatArray32:
		return dst, &Error{WrongType, "value " + hexByte(c)}
	case formatTrue:
		return append(dst, formatBool, 1), nil
	case formatFalse:
		return append(dst, formatBool, 0), nil
	case formatUint0:
		return append(dst, formatUint, 0, 0, 0, 0), nil
	case formatSmallUint:
		return append(dst, formatUint, 0, 0, 0, b[0]), nil
	case formatSmallInt:
		s := byte(int8(b[0]) >> 7)
		return append(dst, formatInt, s, s, s, b[0]), nil
	case formatUlong0:
		return append(dst, formatUlong, 0, 0, 0, 0, 0, 0, 0, 0), nil
	case formatSmallUlong:
		return append(dst, formatUlong, 0, 0, 0, 0, 0, 0, 0, b[0]), nil
	case formatSmallLong:
		s := byte(int8(b[0]) >> 7)
		return append(dst, formatLong, s, s, s, s, s, s, s, b[0]), nil
	case formatBinary8, formatString8, formatSymbol8:
		return append(append(dst, c+formatBinary32-formatBinary8, 0, 0, 0), b...), nil
	}
	return append(dst, value...), nil
}
