package codec

import "encoding/binary"

func appendUint(dst []byte, v uint32) []byte {
	switch {
	case v == 0:
		return append(dst, formatUint0)
	case v <= 0xff:
		return append(dst, formatSmallUint, byte(v))
	}
	return append(dst, formatUint, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func appendOptUint(dst []byte, v Opt[uint32]) []byte {
	if !v.Set {
		return append(dst, formatNull)
	}
	return appendUint(dst, v.Value)
}

func appendUlong(dst []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(dst, formatUlong0)
	case v <= 0xff:
		return append(dst, formatSmallUlong, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, formatUlong), v)
}

func appendUshort(dst []byte, v uint16) []byte {
	return append(dst, formatUshort, byte(v>>8), byte(v))
}

func appendUbyte(dst []byte, v uint8) []byte { return append(dst, formatUbyte, v) }

func appendOptUbyte(dst []byte, v Opt[uint8]) []byte {
	if !v.Set {
		return append(dst, formatNull)
	}
	return append(dst, formatUbyte, v.Value)
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, formatTrue)
	}
	return append(dst, formatFalse)
}

func appendOptBool(dst []byte, v Opt[bool]) []byte {
	if !v.Set {
		return append(dst, formatNull)
	}
	return appendBool(dst, v.Value)
}

func appendOptTimestamp(dst []byte, v Opt[Timestamp]) []byte {
	if !v.Set {
		return append(dst, formatNull)
	}
	return binary.BigEndian.AppendUint64(append(dst, formatTimestamp), uint64(v.Value))
}

// appendRun writes a counted run of octets whose one-octet form is short; the
// form with a size of four octets is 16 formats above it.
func appendRun[T ~string | ~[]byte](dst []byte, short byte, v T) []byte {
	if len(v) <= 0xff {
		dst = append(dst, short, byte(len(v)))
	} else {
		dst = binary.BigEndian.AppendUint32(append(dst, short+0x10), uint32(len(v)))
	}
	return append(dst, v...)
}

func appendString(dst []byte, v string) []byte { return appendRun(dst, formatString8, v) }

func appendOptString(dst []byte, v Opt[string]) []byte {
	if !v.Set {
		return append(dst, formatNull)
	}
	return appendString(dst, v.Value)
}

// appendNonEmptyString writes null for "".
func appendNonEmptyString(dst []byte, v string) []byte {
	if v == "" {
		return append(dst, formatNull)
	}
	return appendString(dst, v)
}

func appendSymbol(dst []byte, v Symbol) []byte { return appendRun(dst, formatSymbol8, v) }

func appendOptSymbol(dst []byte, v Opt[Symbol]) []byte {
	if !v.Set {
		return append(dst, formatNull)
	}
	return appendSymbol(dst, v.Value)
}

// appendNonEmptySymbol writes null for "".
func appendNonEmptySymbol(dst []byte, v Symbol) []byte {
	if v == "" {
		return append(dst, formatNull)
	}
	return appendSymbol(dst, v)
}

func appendBinary(dst []byte, v []byte) []byte { return appendRun(dst, formatBinary8, v) }

// appendOptBinary writes null for nil.
func appendOptBinary(dst []byte, v []byte) []byte {
	if v == nil {
		return append(dst, formatNull)
	}
	return appendBinary(dst, v)
}

// appendRaw writes a value that is encoded already, null for nil.
func appendRaw(dst []byte, v []byte) []byte {
	if v == nil {
		return append(dst, formatNull)
	}
	return append(dst, v...)
}

// beginComposite starts a described list of count fields as a list8 and
// returns where the list starts, for endCompound.
func beginComposite(dst []byte, code Code, count byte) (_ []byte, at int) {
	dst = append(dst, formatDescribed, formatSmallUlong, byte(code), formatList8, 0, count)
	return dst, len(dst) - 3
}

// endComposite fills in the size of the list that starts at at, and widens it
// to a list32 when it has outgrown the list8 it was begun as.
func endComposite(dst []byte, at int) []byte {
	if size := len(dst) - at - 2; size <= 0xff {
		dst[at+1] = byte(size)
		return dst
	}
	return endCompound(dst, at, int(dst[at+2]))
}

// endCompound is endComposite for any list8 or map8 of count elements; the
// octet for the count at at+2 is filled in too.
func endCompound(dst []byte, at, count int) []byte {
	size := len(dst) - at - 2
	if size <= 0xff && count <= 0xff {
		dst[at+1], dst[at+2] = byte(size), byte(count)
		return dst
	}
	dst = append(dst, 0, 0, 0, 0, 0, 0)
	copy(dst[at+9:], dst[at+3:len(dst)-6])
	dst[at] += 0x10
	binary.BigEndian.PutUint32(dst[at+1:], uint32(size-1+4))
	binary.BigEndian.PutUint32(dst[at+5:], uint32(count))
	return dst
}

// appendFields writes a map of a performative, null for nil. Such a map is
// built by this process or was decoded by it, so one that cannot be encoded
// is a fault of the program.
func appendFields(dst []byte, m Map) []byte {
	if m == nil {
		return append(dst, formatNull)
	}
	return mustAppend(dst, m)
}

func mustAppend(dst []byte, v any) []byte {
	dst, err := AppendValue(dst, v)
	if err != nil {
		panic("codec: field of a performative: " + err.Error())
	}
	return dst
}
