package codec

import "strconv"

// symbols reads a field that may hold many symbols [1.4]: null, one symbol, an
// array of symbols, and, because some clients send it, a list of symbols.
// Null and empty mean the same; both give nil.
func (f *fields) symbols(field string) []Symbol {
	b := f.raw(field)
	if b == nil {
		return nil
	}
	var s []Symbol
	var err error
	switch c := b[0]; {
	case isArray(c):
		s, err = readSymbolArray(b)
	case isList(c):
		s, err = readSymbolList(b)
	default:
		s = make([]Symbol, 1)
		s[0], _, err = readSymbol(c, b[1:])
	}
	if err != nil {
		f.failWith(field, err)
		return nil
	}
	return s
}

// readSymbol reads a symbol behind its format code c.
func readSymbol(c byte, b []byte) (s Symbol, rest []byte, err error) {
	if c != formatSymbol8 && c != formatSymbol32 {
		return "", nil, &Error{WrongType, hexByte(c)}
	}
	v, rest, err := readSized(c, b)
	if err != nil {
		return "", nil, err
	}
	if !isASCII(v) {
		return "", nil, &Error{Malformed, "symbol that is not ASCII"}
	}
	return Symbol(v), rest, nil
}

func readSymbolList(b []byte) ([]Symbol, error) {
	b, count, _, err := readCompound(b)
	if err != nil || count == 0 && len(b) == 0 {
		return nil, err
	}
	if count > MaxElements {
		return nil, &Error{TooMany, "list of " + strconv.FormatUint(uint64(count), 10)}
	}
	s := make([]Symbol, count)
	for i := range s {
		if len(b) == 0 {
			return nil, &Error{Truncated, "symbol"}
		}
		if s[i], b, err = readSymbol(b[0], b[1:]); err != nil {
			return nil, err
		}
	}
	if len(b) != 0 {
		return nil, &Error{Malformed, "list with octets behind its last symbol"}
	}
	return s, nil
}

func readSymbolArray(b []byte) ([]Symbol, error) {
	a, _, err := readArrayHeader(b)
	if err != nil || a.count == 0 {
		return nil, err
	}
	if a.described || (a.code != formatSymbol8 && a.code != formatSymbol32) {
		return nil, &Error{WrongType, "array of " + hexByte(a.code)}
	}
	if a.count > MaxElements {
		return nil, &Error{TooMany, "array of " + strconv.FormatUint(uint64(a.count), 10)}
	}
	s := make([]Symbol, a.count)
	b = a.elements
	for i := range s {
		if s[i], b, err = readSymbol(a.code, b); err != nil {
			return nil, err
		}
	}
	if len(b) != 0 {
		return nil, &Error{Malformed, "array with octets behind its last symbol"}
	}
	return s, nil
}

// appendSymbols writes an array always, since some peers do not cope with a
// single symbol, and null for none.
func appendSymbols(dst []byte, s []Symbol) []byte {
	if len(s) == 0 {
		return append(dst, formatNull)
	}
	return appendRunArray(dst, formatSymbol8, s)
}
