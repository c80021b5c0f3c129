package wire

import "testing"

func TestDescribe(t *testing.T) {
	for want, encodings := range map[string][][]byte{
		"null":       {Null()},
		"true":       {{0x41}, {0x56, 1}},
		"uint 0":     {{0x43}, {0x52, 0}, Uint(0)},
		"ulong 7":    {{0x53, 7}, Ulong(7)},
		"int -2":     {{0x54, 0xfe}, {0x71, 0xff, 0xff, 0xff, 0xfe}},
		"float NaN":  {{0x72, 0x7f, 0xc0, 0, 0}, {0x72, 0xff, 0xc0, 0, 1}},
		`symbol "a"`: {Symbol("a"), {0xb3, 0, 0, 0, 1, 'a'}},
		"list []":    {{0x45}, {0xc0, 1, 0}, List()},
		`map [string "a": null, string "b": true]`: {
			Map(String("b"), Bool(true), String("a"), Null()), Map(String("a"), Null(), String("b"), []byte{0x56, 1})},
		"array [uint, uint 1, uint 2]":           {{0xe0, 4, 2, 0x52, 1, 2}, {0xf0, 0, 0, 0, 13, 0, 0, 0, 2, 0x70, 0, 0, 0, 1, 0, 0, 0, 2}},
		`array [string, @symbol "x" string "y"]`: {{0xe0, 8, 1, 0x00, 0xa3, 1, 'x', 0xa1, 1, 'y'}},
	} {
		for _, encoded := range encodings {
			if got, err := Describe(encoded); err != nil || got != want {
				t.Errorf("% x: %q, %v, want %q", encoded, got, err, want)
			}
		}
	}
	for _, bad := range [][]byte{nil, {0x00}, {0x01}, {0xc0, 5, 1}, {0xc1, 2, 1, 0x40}, {0xe0, 1, 1}, {0xa1, 2, 'x'}} {
		if got, err := Describe(bad); err == nil {
			t.Errorf("% x: %q, want an error", bad, got)
		}
	}
}
