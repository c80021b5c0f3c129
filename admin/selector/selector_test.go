package selector

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

var values = map[string]any{
	"amount": int64(100), "rate": 0.5, "region": "eu", "urgent": true, "big": int64(1<<53 + 1),
	"m.x-opt-death-reason": "rejected: a_b%", "has space": "x", "and": "quoted",
}

func of(name string) any { return values[name] }

func TestMatch(t *testing.T) {
	for text, want := range map[string]bool{
		"amount = 100": true, "amount <> 100": false, "amount >= 100.0": true, "amount < 1e2": false, "amount > -5": true,
		"region = 'eu'": true, "region = 'it''s'": false, "region < 'x'": false, "region <> 'uk'": true,
		"urgent": true, "NOT urgent": false, "urgent = TRUE": true, "not not urgent": true, "urgent = 'true'": false,
		"region IN ('uk', 'eu')": true, "region NOT IN ('uk', 'eu')": false, "missing IN ('x')": false,
		"amount BETWEEN 1 AND 100": true, "amount NOT BETWEEN 1 AND 100": false, "rate BETWEEN 0 AND 1": true,
		"missing IS NULL": true, "amount IS NOT NULL": true, "missing = 1": false, "NOT missing = 1": false,
		"missing = 1 OR amount = 100": true, "missing = 1 AND amount = 100": false,
		"amount = 1 OR urgent AND region = 'eu'": true, "(amount = 1 OR urgent) AND region = 'uk'": false,
		"region LIKE 'e%'": true, "region LIKE '_'": false, "region NOT LIKE '%u'": false, "amount LIKE '1%'": false,
		"m.x-opt-death-reason LIKE 'rejected%'":                      true,
		`"m.x-opt-death-reason" LIKE '%a\_b\%' ESCAPE '\'`:           true,
		`m.x-opt-death-reason LIKE '%axb%'`:                          false,
		`"has space" = 'x' AND "and" = 'quoted'`:                     true,
		"big = 9007199254740993":                                     true,
		"big = 9007199254740992":                                     false,
		"amount = 'eu' OR region = 100":                              false,
		"NOT (amount = 'eu')":                                        false,
		strings.Repeat("(", 60) + "urgent" + strings.Repeat(")", 60): true,
	} {
		s, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if s.Match(of) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "character 1: something is missing", "amount =": "character 9: something is missing", "= 1": `character 1: "="`,
		"amount = 1 1": "character 12:", "region = 'eu": "character 10: the quote", "a ! b": "character 3:",
		"a IN ()": `")" isn't expected`, "a IN (1": ") is expected", "a NOT 1": "BETWEEN, IN or LIKE", "a LIKE 1": "a string",
		"a LIKE 'x' ESCAPE 'xy'": "one character", "a BETWEEN 1 OR 2": "AND is expected", "(a = 1": ") is expected",
		"a IS 1": "NULL is expected", "ä = 1 ?": "character 7:", "1.2.3 = a": "isn't a number",
		strings.Repeat("(", 65) + "a": "nested deeper", strings.Repeat("a", 5000): "longer",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", text, err, want)
		}
	}
}

// matchSlowly is what LIKE says, by its definition.
func matchSlowly(pattern, text []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(text) == 0
	case pattern[0] == '%':
		return matchSlowly(pattern[1:], text) || len(text) > 0 && matchSlowly(pattern, text[1:])
	}
	return len(text) > 0 && (pattern[0] == '_' || pattern[0] == text[0]) && matchSlowly(pattern[1:], text[1:])
}

func TestPatterns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func(from string, most int) []rune {
		all := []rune(from)
		out := make([]rune, random.IntN(most+1))
		for i := range out {
			out[i] = all[random.IntN(len(all))]
		}
		return out
	}
	matched := 0
	for range 20_000 {
		pattern, text := some("aaäb%_", 7), some("aaäb", 8)
		want := matchSlowly(pattern, text)
		if got := readPattern(string(pattern), 0).match(string(text)); got != want {
			t.Fatalf("%q LIKE %q: %v", string(text), string(pattern), got)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d match", matched)
	}
}

// A pattern that is made to go back and forth over a long text takes no time, and no memory, to speak of.
func TestCase224_HostilePatterns(t *testing.T) {
	long := strings.Repeat("a", 16<<20)
	for _, pattern := range []string{"%a%a%a%a%a%b", "%" + strings.Repeat("a", 2000) + "b%", strings.Repeat("%a", 1000) + "%b", "%_a%_b", "%" + strings.Repeat("a", 2000) + "b"} {
		s, err := Parse("x LIKE '" + pattern + "'")
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		if s.Match(func(string) any { return long }) {
			t.Errorf("%.20s matches", pattern)
		}
		took := time.Since(begun)
		runtime.ReadMemStats(&after)
		if took > 5*time.Second { // what goes back takes minutes
			t.Errorf("%.20s takes %v", pattern, took)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 1<<20 {
			t.Errorf("%.20s allocates %d bytes", pattern, made)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a = 'x' AND NOT (b IN (1, 2.5) OR m.c-d LIKE '%_' ESCAPE '\\') OR e IS NOT NULL")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := Parse(text); err == nil {
			s.Match(of)
		}
	})
}
