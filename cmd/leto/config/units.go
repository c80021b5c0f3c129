package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size: a plain number of bytes, or a number with a unit of 1000 (kB, MB, GB)
// or 1024 (KiB, MiB, GiB).
type Bytes int64

var byteUnits = []struct {
	suffix string
	factor int64
}{ // longer ones first: "KiB" also ends in "B"
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// ParseBytes reads a size such as 65536, 64KiB or 1.5GB. Negative sizes are refused, except -1 (no limit).
func ParseBytes(text string) (Bytes, error) {
	number, factor := strings.TrimSpace(text), int64(1)
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n < 0 && (n != -1 || factor != 1) || n > math.MaxInt64/factor {
			return 0, fmt.Errorf("%q is out of range", text)
		}
		return Bytes(n * factor), nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f >= 0) || factor == 1 {
		return 0, fmt.Errorf("%q is not a size such as 64KiB, 100MB or 4096", text)
	}
	if f *= float64(factor); f >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is out of range", text)
	}
	return Bytes(f), nil
}

func (b *Bytes) scalar(text string) (err error) {
	*b, err = ParseBytes(text)
	return err
}

// String writes the size in the largest unit of 1024 that divides it.
func (b Bytes) String() string {
	for _, u := range []int{3, 2, 1, 0} {
		if unit := byteUnits[u]; b >= Bytes(unit.factor) && b%Bytes(unit.factor) == 0 {
			return strconv.FormatInt(int64(b)/unit.factor, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Duration is a time span written with its unit: 30s, 500ms, 1m30s. Zero needs none.
type Duration time.Duration

func (d *Duration) scalar(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil {
		if _, number := strconv.ParseFloat(text, 64); number == nil {
			return fmt.Errorf("%q has no unit: write %ss or %sms", text, text, text)
		}
		return fmt.Errorf("%q is not a time span such as 30s or 1m30s", text)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative", text)
	}
	*d = Duration(v)
	return nil
}

// Delay is a time span as Artemis has it in address-settings: a plain number of milliseconds, -1 for none, or a number
// with its unit.
type Delay int64

// NoDelay stands for no time span at all.
const NoDelay Delay = -1

func (d *Delay) scalar(text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < -1 {
			return fmt.Errorf("%q is neither -1 (none) nor a number of milliseconds", text)
		}
		*d = Delay(n)
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a time span such as 30s, or a number of milliseconds", text)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative", text)
	}
	*d = Delay(v.Milliseconds())
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }
