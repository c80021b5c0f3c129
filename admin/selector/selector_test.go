package selector

import (
	"strings"
	"testing"
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

func FuzzParse(f *testing.F) {
	f.Add("a = 'x' AND NOT (b IN (1, 2.5) OR m.c-d LIKE '%_' ESCAPE '\\') OR e IS NOT NULL")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := Parse(text); err == nil {
			s.Match(of)
		}
	})
}
