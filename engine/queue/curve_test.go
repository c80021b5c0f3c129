package queue

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// The formula of delays, at its edges.
func TestDelay(t *testing.T) {
	half, least, most := func() float64 { return 0.5 }, func() float64 { return 0 }, func() float64 { return 0.999999 }
	for _, c := range []struct {
		name    string
		policy  Policy
		attempt uint32
		want    int64
	}{
		{"the first", Policy{Delay: 1000, Multiplier: 2}, 1, 1000},
		{"the second", Policy{Delay: 1000, Multiplier: 2}, 2, 2000},
		{"none has failed", Policy{Delay: 1000, Multiplier: 2}, 0, 0},
		{"no delay", Policy{Multiplier: 2, MaxDelay: 1000}, 3, 0},
		{"less than no delay", Policy{Delay: -5, Multiplier: 2}, 3, 0},
		{"fractions are cut off", Policy{Delay: 1001, Multiplier: 1.5}, 2, 1501},
		{"ten times at the most", Policy{Delay: 1000, Multiplier: 2}, 5, 10_000},
		{"capped", Policy{Delay: 1000, Multiplier: 2, MaxDelay: 3000}, 3, 3000},
		{"capped below the first", Policy{Delay: 1000, Multiplier: 2, MaxDelay: 300}, 1, 300},
		{"shrinks", Policy{Delay: 1000, Multiplier: 0.5}, 4, 125},
		{"shrinks to nothing", Policy{Delay: 1000, Multiplier: 0.5}, 11, 0},
		{"multiplied by nothing", Policy{Delay: 1000}, 1, 1000},
		{"multiplied by nothing once more", Policy{Delay: 1000}, 2, 0},
		{"less than nothing", Policy{Delay: 1000, Multiplier: -2}, 2, 0},
		{"overflows", Policy{Delay: 1000, Multiplier: 2, MaxDelay: math.MaxInt64}, 5000, MaxDelay},
		{"after all attempts that can be counted", Policy{Delay: 1000, Multiplier: 10, MaxDelay: 7000}, math.MaxUint32, 7000},
		{"after as many, the same", Policy{Delay: 1000, Multiplier: 1}, math.MaxUint32, 1000},
		{"longest", Policy{Delay: math.MaxInt64, Multiplier: 1, MaxDelay: math.MaxInt64}, 1, MaxDelay},
		{"spread down", Policy{Delay: 1000, Multiplier: 1, Spread: 0.25, Random: least}, 1, 750},
		{"spread up", Policy{Delay: 1000, Multiplier: 1, Spread: 0.25, Random: most}, 1, 1249},
		{"spread, in the middle", Policy{Delay: 1000, Multiplier: 1, Spread: 0.25, Random: half}, 1, 1000},
		{"spread over all", Policy{Delay: 1000, Multiplier: 1, Spread: 1, Random: least}, 1, 0},
		{"spread before it is capped", Policy{Delay: 1000, Multiplier: 2, MaxDelay: 2000, Spread: 0.5, Random: most}, 2, 2000},
		{"spread below the cap", Policy{Delay: 1000, Multiplier: 2, MaxDelay: 2000, Spread: 0.5, Random: least}, 2, 1000},
		{"spread of what is capped", Policy{Delay: 1000, Multiplier: 10, MaxDelay: 2000, Spread: 0.5, Random: least}, 2, 2000},
	} {
		if got := c.policy.delay(c.attempt); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// The pictures in docs/redelivery.md show what the code does. Each begins with the settings that it is of.
func TestPicturesOfDelays(t *testing.T) {
	page, err := os.ReadFile("../../docs/redelivery.md")
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for i, block := range strings.Split(string(page), "```") {
		var base, most string
		var multiplier, spread float64
		var attempts uint32
		block = strings.TrimPrefix(block, "text\n")
		head, _, _ := strings.Cut(block, "\n")
		if n, _ := fmt.Sscanf(head, "redelivery-delay %s multiplier %g factor %g max %s attempts %d", &base, &multiplier, &spread, &most, &attempts); i%2 == 0 || n != 5 {
			continue
		}
		pictures++
		p := Policy{Delay: millis(t, base), Multiplier: multiplier, Spread: spread, MaxDelay: millis(t, most)}
		if want := picture(head, p, attempts); block != want {
			t.Errorf("picture of %q isn't right; it is\n%s", head, want)
		}
	}
	if pictures < 3 {
		t.Errorf("%d pictures, want 3 or more", pictures)
	}
}

func millis(t *testing.T, text string) int64 {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d.Milliseconds()
}

// picture draws how long a message waits before each attempt, and when that is, if it always fails at once.
func picture(head string, p Policy, attempts uint32) string {
	const width = 40
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nattempt  waits        after in all\n", head)
	shortest, longest := p, p
	shortest.Random, longest.Random = func() float64 { return 0 }, func() float64 { return 1 } // which it doesn't quite reach
	top := int64(1)
	for n := range attempts {
		top = max(top, longest.delay(n))
	}
	var from, to int64
	for n := range attempts {
		low, high := shortest.delay(n), longest.delay(n)
		from, to = from+low, to+high
		bar := strings.Repeat("█", int(low*width/top)) + strings.Repeat("░", int(high*width/top-low*width/top))
		line := fmt.Sprintf("%7d  %-11s  %-17s  %s", n+1, span(low, high), span(from, to), bar)
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	return b.String()
}

func span(low, high int64) string {
	text := func(ms int64) string { return fmt.Sprint(time.Duration(ms) * time.Millisecond) }
	if high == low {
		return text(low)
	}
	return text(low) + "–" + text(high)
}
