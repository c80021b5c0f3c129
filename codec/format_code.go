package codec

// Format codes: the octet in front of an encoded value that says how the
// octets after it are to be read [1.2, 1.6]. The high half of the octet gives
// the width: 4 none, 5 one octet, 6 two, 7 four, 8 eight, 9 sixteen, a and b
// a counted run of octets, c and d a compound, e and f an array.
const (
	formatDescribed  byte = 0x00
	formatNull       byte = 0x40
	formatTrue       byte = 0x41
	formatFalse      byte = 0x42
	formatUint0      byte = 0x43
	formatUlong0     byte = 0x44
	formatList0      byte = 0x45
	formatUbyte      byte = 0x50
	formatByte       byte = 0x51
	formatSmallUint  byte = 0x52
	formatSmallUlong byte = 0x53
	formatSmallInt   byte = 0x54
	formatSmallLong  byte = 0x55
	formatBool       byte = 0x56
	formatUshort     byte = 0x60
	formatShort      byte = 0x61
	formatUint       byte = 0x70
	formatInt        byte = 0x71
	formatFloat      byte = 0x72
	formatChar       byte = 0x73
	formatDecimal32  byte = 0x74
	formatUlong      byte = 0x80
	formatLong       byte = 0x81
	formatDouble     byte = 0x82
	formatTimestamp  byte = 0x83
	formatDecimal64  byte = 0x84
	formatDecimal128 byte = 0x94
	formatUUID       byte = 0x98
	formatBinary8    byte = 0xa0
	formatString8    byte = 0xa1
	formatSymbol8    byte = 0xa3
	formatBinary32   byte = 0xb0
	formatString32   byte = 0xb1
	formatSymbol32   byte = 0xb3
	formatList8      byte = 0xc0
	formatMap8       byte = 0xc1
	formatList32     byte = 0xd0
	formatMap32      byte = 0xd1
	formatArray8     byte = 0xe0
	formatArray32    byte = 0xf0
)

// formatWidths gives the number of octets behind a format code of fixed width,
// and one of the values below for the others.
var formatWidths = func() (w [256]int8) {
	for i := range w {
		w[i] = unknownFormat
	}
	for _, c := range []byte{formatNull, formatTrue, formatFalse, formatUint0, formatUlong0, formatList0} {
		w[c] = 0
	}
	for _, c := range []byte{formatUbyte, formatByte, formatSmallUint, formatSmallUlong, formatSmallInt, formatSmallLong, formatBool} {
		w[c] = 1
	}
	for _, c := range []byte{formatUshort, formatShort} {
		w[c] = 2
	}
	for _, c := range []byte{formatUint, formatInt, formatFloat, formatChar, formatDecimal32} {
		w[c] = 4
	}
	for _, c := range []byte{formatUlong, formatLong, formatDouble, formatTimestamp, formatDecimal64} {
		w[c] = 8
	}
	for _, c := range []byte{formatDecimal128, formatUUID} {
		w[c] = 16
	}
	for _, c := range []byte{formatBinary8, formatString8, formatSymbol8, formatList8, formatMap8, formatArray8} {
		w[c] = sized8
	}
	for _, c := range []byte{formatBinary32, formatString32, formatSymbol32, formatList32, formatMap32, formatArray32} {
		w[c] = sized32
	}
	return w
}()

// Entries of formatWidths that are no width.
const (
	unknownFormat = -1 // no format code
	sized8        = -2 // a size of one octet follows
	sized32       = -3 // a size of four octets follows
)

// isList, isMap and isArray tell the compound formats apart; list0 is a list.
func isList(c byte) bool  { return c == formatList8 || c == formatList0 || c == formatList32 }
func isMap(c byte) bool   { return c == formatMap8 || c == formatMap32 }
func isArray(c byte) bool { return c == formatArray8 || c == formatArray32 }
