package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// names of the types that a constructor stands for; the widths of one type share a name.
var names = map[byte]string{
	0x40: "null", 0x56: "boolean", 0x41: "boolean", 0x42: "boolean",
	0x50: "ubyte", 0x60: "ushort", 0x70: "uint", 0x52: "uint", 0x43: "uint", 0x80: "ulong", 0x53: "ulong", 0x44: "ulong",
	0x51: "byte", 0x61: "short", 0x71: "int", 0x54: "int", 0x81: "long", 0x55: "long",
	0x72: "float", 0x82: "double", 0x74: "decimal32", 0x84: "decimal64", 0x94: "decimal128",
	0x73: "char", 0x83: "timestamp", 0x98: "uuid",
	0xa0: "binary", 0xb0: "binary", 0xa1: "string", 0xb1: "string", 0xa3: "symbol", 0xb3: "symbol",
	0x45: "list", 0xc0: "list", 0xd0: "list", 0xc1: "map", 0xd1: "map", 0xe0: "array", 0xf0: "array",
}

// Describe is a value as text: type and content, the same for every encoding of a value.
// Pairs of a map are sorted, floating point numbers are shown as their bits.
func Describe(v []byte) (string, error) {
	if len(v) > 0 && v[0] == 0 {
		descriptor, value, err := Next(v[1:])
		if err != nil {
			return "", err
		}
		name, err := Describe(descriptor)
		if err != nil {
			return "", err
		}
		what, err := Describe(value)
		return "@" + name + " " + what, err
	}
	n, err := extent(v)
	if err != nil {
		return "", err
	}
	code, content := v[0], v[1:n]
	name, known := names[code]
	if !known {
		return "", fmt.Errorf("wire: no such constructor %#02x", code)
	}
	switch name {
	case "null":
		return name, nil
	case "boolean":
		yes := code == 0x41 || code == 0x56 && content[0] == 1
		return strconv.FormatBool(yes), nil
	case "ubyte", "ushort", "uint", "ulong", "timestamp":
		var u uint64
		for _, b := range content {
			u = u<<8 | uint64(b)
		}
		return fmt.Sprint(name, " ", u), nil
	case "byte", "short", "int", "long":
		return fmt.Sprint(name, " ", signed(content)), nil
	case "char":
		return fmt.Sprintf("char U+%04X", binary.BigEndian.Uint32(content)), nil
	case "float":
		if f := math.Float32frombits(binary.BigEndian.Uint32(content)); f != f {
			return "float NaN", nil
		}
		return fmt.Sprintf("float %x", content), nil
	case "double":
		if f := math.Float64frombits(binary.BigEndian.Uint64(content)); f != f {
			return "double NaN", nil
		}
		return fmt.Sprintf("double %x", content), nil
	case "string", "symbol":
		text, _ := Text(v[:n])
		return name + " " + strconv.Quote(text), nil
	case "binary":
		bytes, _ := Text(v[:n])
		return fmt.Sprintf("binary %x", bytes), nil
	case "list", "map":
		items, err := Items(v[:n])
		if err != nil {
			return "", err
		}
		return compoundText(name, items)
	case "array":
		return arrayText(code, content)
	}
	return fmt.Sprintf("%s %x", name, content), nil
}

func signed(content []byte) int64 {
	n := int64(int8(content[0]))
	for _, b := range content[1:] {
		n = n<<8 | int64(b)
	}
	return n
}

func compoundText(name string, items [][]byte) (string, error) {
	step := 1
	if name == "map" {
		step = 2
	}
	if len(items)%step != 0 {
		return "", fmt.Errorf("wire: map of %d items", len(items))
	}
	var texts []string
	for i := 0; i < len(items); i += step {
		var pair []string
		for _, item := range items[i : i+step] {
			text, err := Describe(item)
			if err != nil {
				return "", err
			}
			pair = append(pair, text)
		}
		texts = append(texts, strings.Join(pair, ": "))
	}
	if name == "map" {
		slices.Sort(texts)
	}
	return name + " [" + strings.Join(texts, ", ") + "]", nil
}

func arrayText(code byte, content []byte) (string, error) {
	width := 1
	if code == 0xf0 {
		width = 4
	}
	if len(content) < 2*width+1 {
		return "", ErrShort
	}
	count := int(content[width])
	if width == 4 {
		count = int(binary.BigEndian.Uint32(content[4:]))
	}
	rest := content[2*width:]
	var descriptor []byte
	if rest[0] == 0 {
		var err error
		if descriptor, rest, err = Next(rest[1:]); err != nil {
			return "", err
		}
		descriptor = append([]byte{0}, descriptor...)
	}
	if len(rest) == 0 {
		return "", ErrShort
	}
	constructor, rest := rest[0], rest[1:]
	texts := []string{names[constructor]}
	for range count {
		item := append(slices.Clone(descriptor), constructor)
		at := len(item)
		n, err := extent(append(item, rest...))
		if err != nil {
			return "", err
		}
		text, err := Describe(append(item, rest[:n-at]...))
		if err != nil {
			return "", err
		}
		texts, rest = append(texts, text), rest[n-at:]
	}
	return "array [" + strings.Join(texts, ", ") + "]", nil
}
