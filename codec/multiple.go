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
	case c == formatSymbol8 || c == formatSymbol32:
		s, err = appendSymbolsOf(nil, b, 1)
	case isArray(c):
		s, err = readSymbolArray(b)
	case isList(c):
		var count uint32
		if b, count, _, err = readCompound(b); err == nil {
			s, err = appendSymbolsOf(nil, b, count)
		}
	default:
		err = &Error{WrongType, hexByte(c)}
	}
	if err != nil {
		f.failWith(field, err)
		return nil
	}
	return s
}

// appendSymbolsOf reads count symbols, each with a constructor, that fill b.
func appendSymbolsOf(s []Symbol, b []byte, count uint32) ([]Symbol, error) {
	if count > MaxElements {
		return nil, &Error{TooMany, "list of " + strconv.FormatUint(uint64(count), 10)}
	}
	for range count {
		if len(b) == 0 {
			return nil, &Error{Truncated, "symbol"}
		}
		if b[0] != formatSymbol8 && b[0] != formatSymbol32 {
			return nil, &Error{WrongType, hexByte(b[0])}
		}
		v, rest, err := readSized(b[0], b[1:])
		if err != nil {
			return nil, err
		}
		if !isASCII(v) {
			return nil, &Error{Malformed, "symbol that is not ASCII"}
		}
		s, b = append(s, Symbol(v)), rest
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
	s := make([]Symbol, 0, a.count)
	b = a.elements
	for range a.count {
		v, rest, err := readSized(a.code, b)
		if err != nil {
			return nil, err
		}
		if !isASCII(v) {
			return nil, &Error{Malformed, "symbol that is not ASCII"}
		}
		s, b = append(s, Symbol(v)), rest
	}
	if len(b) != 0 {
		return nil, &Error{Malformed, "octets behind the last element"}
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
