package codec

import "unicode/utf8"

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

func (f *fields) needBinary(field string) []byte {
	b := f.binary(field)
	if b == nil {
		f.missing(field)
	}
	return b
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

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
