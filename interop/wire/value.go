// Package wire is a second, deliberately small reading of AMQP 1.0 for tests that
// must be exact about bytes: it writes frames as a peer would, reads what comes back,
// and finds the sections of a message. It shares nothing with leto's own codec, so
// that a misunderstanding there is not repeated here.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrShort is returned when a value reaches beyond the bytes that are there.
var ErrShort = errors.New("wire: value is cut short")

// Null is the null value.
func Null() []byte { return []byte{0x40} }

// Bool is a boolean.
func Bool(b bool) []byte {
	if b {
		return []byte{0x41}
	}
	return []byte{0x42}
}

// Ubyte is an unsigned byte.
func Ubyte(n uint8) []byte { return []byte{0x50, n} }

// Uint is an unsigned 32-bit integer, in four bytes whatever its value.
func Uint(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0x70}, n) }

// Ulong is an unsigned 64-bit integer, in eight bytes whatever its value.
func Ulong(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{0x80}, n) }

// Timestamp is milliseconds since 1970.
func Timestamp(ms int64) []byte { return binary.BigEndian.AppendUint64([]byte{0x83}, uint64(ms)) }

// String is UTF-8 text.
func String(s string) []byte { return sized(0xa1, 0xb1, []byte(s)) }

// Symbol is ASCII text from a known domain.
func Symbol(s string) []byte { return sized(0xa3, 0xb3, []byte(s)) }

// Binary is opaque octets.
func Binary(b []byte) []byte { return sized(0xa0, 0xb0, b) }

// List holds values that are encoded already.
func List(items ...[]byte) []byte { return compound(0xc0, 0xd0, items) }

// Map holds keys and values in turn, encoded already.
func Map(items ...[]byte) []byte { return compound(0xc1, 0xd1, items) }

// Described puts a numeric descriptor before a value.
func Described(code uint64, value []byte) []byte {
	head := []byte{0x00, 0x53, byte(code)}
	if code > 0xff {
		head = append([]byte{0x00}, Ulong(code)...)
	}
	return append(head, value...)
}

func sized(short, long byte, b []byte) []byte {
	if len(b) < 256 {
		return append([]byte{short, byte(len(b))}, b...)
	}
	return append(binary.BigEndian.AppendUint32([]byte{long}, uint32(len(b))), b...)
}

func compound(short, long byte, items [][]byte) []byte {
	var body []byte
	for _, item := range items {
		body = append(body, item...)
	}
	if len(body) < 255 && len(items) < 256 {
		return append([]byte{short, byte(len(body) + 1), byte(len(items))}, body...)
	}
	head := binary.BigEndian.AppendUint32([]byte{long}, uint32(len(body)+4))
	return append(binary.BigEndian.AppendUint32(head, uint32(len(items))), body...)
}

// Next cuts the first value off b. Both results share b's memory.
func Next(b []byte) (value, rest []byte, err error) {
	n, err := extent(b)
	if err != nil {
		return nil, nil, err
	}
	return b[:n], b[n:], nil
}

// extent is the length of the first value of b, its constructor included. The upper
// half of a constructor says how the length is found [1.2].
func extent(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, ErrShort
	}
	n := 0
	switch code := b[0]; code >> 4 {
	case 0x0:
		descriptor, err := extent(b[1:])
		if err != nil {
			return 0, err
		}
		value, err := extent(b[1+descriptor:])
		if err != nil {
			return 0, err
		}
		n = 1 + descriptor + value
	case 0x4:
		n = 1
	case 0x5, 0x6, 0x7, 0x8, 0x9:
		n = 1 + 1<<(code>>4-5)
	case 0xa, 0xc, 0xe:
		if len(b) < 2 {
			return 0, ErrShort
		}
		n = 2 + int(b[1])
	case 0xb, 0xd, 0xf:
		if len(b) < 5 {
			return 0, ErrShort
		}
		n = 5 + int(binary.BigEndian.Uint32(b[1:]))
	default:
		return 0, fmt.Errorf("wire: no such constructor %#02x", code)
	}
	if n > len(b) {
		return 0, ErrShort
	}
	return n, nil
}

// Items returns what a list or map holds, one encoded value each.
func Items(v []byte) ([][]byte, error) {
	var count, head int
	switch {
	case len(v) > 0 && v[0] == 0x45:
		return nil, nil
	case len(v) > 2 && (v[0] == 0xc0 || v[0] == 0xc1):
		count, head = int(v[2]), 3
	case len(v) > 8 && (v[0] == 0xd0 || v[0] == 0xd1):
		count, head = int(binary.BigEndian.Uint32(v[5:])), 9
	default:
		return nil, errors.New("wire: neither a list nor a map")
	}
	var items [][]byte
	for rest := v[head:]; count > 0; count-- {
		item, after, err := Next(rest)
		if err != nil {
			return nil, err
		}
		items, rest = append(items, item), after
	}
	return items, nil
}

// Number reads an unsigned integer of any width, or a boolean as 0 or 1.
func Number(v []byte) (n uint64, ok bool) {
	if len(v) == 0 {
		return 0, false
	}
	switch v[0] {
	case 0x42, 0x43, 0x44:
		return 0, true
	case 0x41:
		return 1, true
	case 0x50, 0x52, 0x53, 0x56, 0x60, 0x70, 0x80:
		for _, b := range v[1:] {
			n = n<<8 | uint64(b)
		}
		return n, true
	}
	return 0, false
}

// Text reads a string, symbol or binary.
func Text(v []byte) (s string, ok bool) {
	switch {
	case len(v) >= 2 && (v[0] == 0xa0 || v[0] == 0xa1 || v[0] == 0xa3):
		return string(v[2:]), true
	case len(v) >= 5 && (v[0] == 0xb0 || v[0] == 0xb1 || v[0] == 0xb3):
		return string(v[5:]), true
	}
	return "", false
}

// Code reads a described value: its numeric descriptor and what it describes.
func Code(v []byte) (code uint64, value []byte, err error) {
	if len(v) == 0 || v[0] != 0 {
		return 0, nil, errors.New("wire: not a described value")
	}
	descriptor, value, err := Next(v[1:])
	if err != nil {
		return 0, nil, err
	}
	code, ok := Number(descriptor)
	if !ok {
		return 0, nil, fmt.Errorf("wire: descriptor % x is not numeric", descriptor)
	}
	return code, value, nil
}
