package config

import (
	"testing"
	"time"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "4096": 4096, "64KiB": 65536, "100 MiB": 100 << 20, "1GB": 1e9, "1.5KiB": 1536, "12B": 12, "-1": -1, "8TiB": 8 << 40,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "KiB", "-2", "-1KiB", "1.5", "64 kb", "9223372036854775808", "9223372036854775807KiB", "1e30GB", "NaNKiB"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
	for b, want := range map[Bytes]string{65536: "64KiB", 100 << 20: "100MiB", 1000: "1000", 3 << 30: "3GiB", 0: "0", -1: "-1", 4 << 40: "4TiB"} {
		if got := b.String(); got != want {
			t.Errorf("%d is written as %q, want %q", int64(b), got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"250ms": 250 * time.Millisecond, "1m30s": 90 * time.Second, "0": 0, "0s": 0} {
		var d Duration
		if err := d.scalar(text); err != nil || time.Duration(d) != want {
			t.Errorf("%q: got %s, %v, want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "30", "-1s", "soon"} {
		var d Duration
		if err := d.scalar(text); err == nil {
			t.Errorf("%q was read as %s", text, d)
		}
	}
}

func TestClosest(t *testing.T) {
	keys := []string{"name", "data", "max-frame-size", "max-message-size"}
	for word, want := range map[string]string{
		"nmae": "name", "nam": "name", "max-fram-size": "max-frame-size", "max_frame_size": "max-frame-size",
		"colour": "", "x": "", "": "",
	} {
		if got := Closest(word, keys); got != want {
			t.Errorf("closest to %q is %q, want %q", word, got, want)
		}
	}
}
