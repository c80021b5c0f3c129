package codec

import (
	"bytes"
	"strconv"
)

// ReadAnnotations reads an encoded map of annotations, such as
// Outcome.Annotations. Keys are Symbol or uint64; other keys, duplicate keys
// and broken values are errors. Values are Raw: checked in their depth, not
// decoded, and copied. Null and nil give nil.
func ReadAnnotations(mapValue []byte) (Map, error) {
	if len(mapValue) == 0 || (len(mapValue) == 1 && mapValue[0] == formatNull) {
		return nil, nil
	}
	if !isMap(mapValue[0]) {
		return nil, &Error{WrongType, "annotations " + hexByte(mapValue[0])}
	}
	b, count, rest, err := readCompound(bytes.Clone(mapValue))
	switch {
	case err != nil:
		return nil, within("annotations", err)
	case len(rest) != 0:
		return nil, &Error{Malformed, "octets behind the annotations"}
	case count > MaxElements:
		return nil, &Error{TooMany, "annotations of " + strconv.FormatUint(uint64(count), 10)}
	}
	m := make(Map, count/2)
	for i := range m {
		if m[i].Key, b, err = readAnnotationKey(b); err != nil {
			return nil, within("annotation key", err)
		}
		after, err := validate(b, 1)
		if err != nil {
			return nil, within("annotation value", err)
		}
		n := len(b) - len(after)
		m[i].Value = Raw(b[:n:n])
		b = after
	}
	if len(b) != 0 {
		return nil, &Error{Malformed, "octets behind the last annotation"}
	}
	return m, checkDuplicates(m)
}

// readAnnotationKey reads a symbol or ulong [3.2.10].
func readAnnotationKey(b []byte) (key any, rest []byte, err error) {
	if len(b) > 0 {
		switch b[0] {
		case formatSymbol8, formatSymbol32, formatUlong, formatSmallUlong, formatUlong0:
		default:
			return nil, nil, &Error{Malformed, hexByte(b[0])}
		}
	}
	return ReadValue(b)
}

// MergeAnnotations writes a message-annotations section that holds the entries
// of section, octet for octet and in their order, with the values of add where
// add has the same key, and behind them the rest of add. section is a whole
// section or nil. Keys of add are Symbol, string (written as a symbol) or
// uint64; the last of equal keys counts. Without any entry to add the section
// is written as it is, so nothing for nil. dst is returned unchanged with an
// error.
func MergeAnnotations(dst []byte, section []byte, add Map) ([]byte, error) {
	if len(add) == 0 {
		return append(dst, section...), nil
	}
	if 2*len(add) > MaxElements {
		return dst, &Error{TooMany, "annotations to add of " + strconv.Itoa(len(add))}
	}
	var received []byte
	var count uint32
	if section != nil {
		value, err := openSection(section, CodeMessageAnnotations)
		if err != nil {
			return dst, err
		}
		if len(value) > 0 && !isMap(value[0]) {
			return dst, &Error{WrongType, "message-annotations " + hexByte(value[0])}
		}
		if received, count, _, err = readCompound(value); err != nil {
			return dst, within("message-annotations", err)
		}
	}
	index, err := indexAnnotations(add)
	if err != nil {
		return dst, err
	}
	out, err := index.merge(dst, received, count)
	if err != nil {
		return dst, within("message-annotations", err)
	}
	return out, nil
}

// annotationIndex finds entries of add by key. Up to fewAnnotations of them it
// looks through add; beyond, both the received and the added entries may be
// many, and maps keep the work linear.
type annotationIndex struct {
	add     Map
	symbols map[string]int
	numbers map[uint64]int
}

const fewAnnotations = 16

func indexAnnotations(add Map) (annotationIndex, error) {
	x := annotationIndex{add: add}
	if len(add) > fewAnnotations {
		x.symbols, x.numbers = make(map[string]int, len(add)), map[uint64]int{}
	}
	for i := range add {
		symbol, number, ok := annotationKey(add[i].Key)
		switch {
		case !ok:
			return x, &Error{Unsupported, "annotation key that is neither symbol nor ulong"}
		case x.symbols == nil:
		case symbol != "":
			x.symbols[symbol] = i
		default:
			x.numbers[number] = i
		}
	}
	return x, nil
}

// annotationKey returns a key as a symbol, or as a number with the symbol "".
// The empty symbol, which would look like a number, is no key.
func annotationKey(key any) (symbol string, number uint64, ok bool) {
	switch k := key.(type) {
	case Symbol:
		return string(k), 0, k != ""
	case string:
		return k, 0, k != ""
	case uint64:
		return "", k, true
	}
	return "", 0, false
}

// find returns where in add the last entry with the key is, -1 if nowhere.
func (x *annotationIndex) find(symbol []byte, number uint64) int {
	if x.symbols != nil {
		i, ok := x.numbers[number]
		if len(symbol) > 0 {
			i, ok = x.symbols[string(symbol)]
		}
		if !ok {
			return -1
		}
		return i
	}
	for i := len(x.add) - 1; i >= 0; i-- {
		s, n, _ := annotationKey(x.add[i].Key)
		if s == string(symbol) && n == number {
			return i
		}
	}
	return -1
}

// findEncoded is find for a key as it was received. Keys of an illegal type
// are nobody's.
func (x *annotationIndex) findEncoded(key []byte) int {
	switch c := key[0]; c {
	case formatSymbol8, formatSymbol32:
		if v, _, err := readSized(c, key[1:]); err == nil && len(v) > 0 {
			return x.find(v, 0)
		}
	case formatUlong0:
		return x.find(nil, 0)
	case formatSmallUlong:
		return x.find(nil, uint64(key[1]))
	case formatUlong:
		return x.find(nil, be64(key[1:]))
	}
	return -1
}

func (x *annotationIndex) merge(dst, received []byte, count uint32) ([]byte, error) {
	var few [fewAnnotations]bool
	done := few[:]
	if len(x.add) > len(few) {
		done = make([]bool, len(x.add))
	}
	dst = append(dst, formatDescribed, formatSmallUlong, byte(CodeMessageAnnotations), formatMap8, 0, 0)
	at := len(dst) - 3
	entries := int(count / 2)
	for b := received; count > 0; count -= 2 {
		value, err := Skip(b)
		if err != nil {
			return nil, err
		}
		after, err := Skip(value)
		if err != nil {
			return nil, err
		}
		key := b[:len(b)-len(value)]
		if i := x.findEncoded(key); i >= 0 {
			done[i] = true
			if dst, err = AppendValue(append(dst, key...), x.add[i].Value); err != nil {
				return nil, err
			}
		} else {
			dst = append(dst, b[:len(b)-len(after)]...)
		}
		b = after
		if count == 2 && len(b) != 0 {
			return nil, &Error{Malformed, "octets behind the last annotation"}
		}
	}
	for i := range x.add {
		symbol, number, _ := annotationKey(x.add[i].Key)
		if done[i] || x.find([]byte(symbol), number) != i {
			continue
		}
		var err error
		if symbol != "" {
			dst = appendSymbol(dst, Symbol(symbol))
		} else {
			dst = appendUlong(dst, number)
		}
		if dst, err = AppendValue(dst, x.add[i].Value); err != nil {
			return nil, err
		}
		entries++
	}
	return endCompound(dst, at, 2*entries), nil
}

// AppendMessageAnnotations writes a message-annotations section. Keys are
// Symbol, string (written as a symbol) or uint64.
func AppendMessageAnnotations(dst []byte, m Map) ([]byte, error) {
	return appendAnnotations(dst, CodeMessageAnnotations, m)
}

// AppendDeliveryAnnotations writes a delivery-annotations section, with keys as
// AppendMessageAnnotations has them.
func AppendDeliveryAnnotations(dst []byte, m Map) ([]byte, error) {
	return appendAnnotations(dst, CodeDeliveryAnnotations, m)
}

func appendAnnotations(dst []byte, code Code, m Map) ([]byte, error) {
	out, at := beginMapSection(dst, code)
	for i := range m {
		symbol, number, ok := annotationKey(m[i].Key)
		switch {
		case !ok:
			return dst, &Error{Unsupported, "annotation key that is neither symbol nor ulong"}
		case symbol != "":
			out = appendSymbol(out, Symbol(symbol))
		default:
			out = appendUlong(out, number)
		}
		var err error
		if out, err = AppendValue(out, m[i].Value); err != nil {
			return dst, err
		}
	}
	return endCompound(out, at, 2*len(m)), nil
}

// AppendApplicationProperties writes an application-properties section. Keys
// are strings [3.2.5].
func AppendApplicationProperties(dst []byte, m Map) ([]byte, error) {
	out, at := beginMapSection(dst, CodeApplicationProperties)
	for i := range m {
		key, ok := m[i].Key.(string)
		if !ok {
			return dst, &Error{Unsupported, "application property whose key is no string"}
		}
		var err error
		if out, err = AppendValue(appendString(out, key), m[i].Value); err != nil {
			return dst, err
		}
	}
	return endCompound(out, at, 2*len(m)), nil
}

func beginMapSection(dst []byte, code Code) (_ []byte, at int) {
	dst = append(dst, formatDescribed, formatSmallUlong, byte(code), formatMap8, 0, 0)
	return dst, len(dst) - 3
}
