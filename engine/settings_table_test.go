package engine

import (
	"strings"
	"testing"
)

func TestMatchWords(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"#", []string{"a", "a.b", "a.b.c", ""}, nil},
		{"a.#", []string{"a", "a.b", "a.b.c"}, []string{"b", "ab", "b.a"}},
		{"#.c", []string{"c", "a.c", "a.b.c", "c.c"}, []string{"c.a", "ac"}},
		{"a.*", []string{"a.b", "a."}, []string{"a", "a.b.c", "b.a"}},
		{"*", []string{"a", ""}, []string{"a.b"}},
		{"*.b.*", []string{"a.b.c"}, []string{"b.b", "a.c.b"}},
		{"a.#.z", []string{"a.z", "a.b.z", "a.z.z", "a.b.c.z"}, []string{"a", "z", "a.z.b"}},
		{"#.b.#", []string{"b", "a.b", "b.c", "a.b.c.b"}, []string{"a", "a.c"}},
		{"#.*", []string{"a", "a.b"}, nil},
		{"a.#.b.#.c", []string{"a.b.c", "a.x.b.y.c", "a.b.b.c"}, []string{"a.c", "a.b"}},
		{"a*.#", []string{"a*", "a*.b"}, []string{"ab", "a"}}, // '*' is a word, not part of one
	} {
		for _, address := range c.yes {
			if !matchWords(strings.Split(c.pattern, "."), strings.Split(address, ".")) {
				t.Errorf("%q doesn't match %q", c.pattern, address)
			}
		}
		for _, address := range c.no {
			if matchWords(strings.Split(c.pattern, "."), strings.Split(address, ".")) {
				t.Errorf("%q matches %q", c.pattern, address)
			}
		}
	}
}

func TestSettingsAreInheritedKeyByKey(t *testing.T) {
	table := compileSettings([]AddressSettings{
		{Match: "orders.eu.special", MaxDeliveryAttempts: new(5)},
		{Match: "orders.*", MaxDeliveryAttempts: new(3), ExpiryAddress: new("")},
		{Match: "#", DeadLetterAddress: new("dead"), MaxDeliveryAttempts: new(1), CountOnLoss: new(false)},
		{Match: "orders.#", MaxDeliveryAttempts: new(2), DeadLetterAddress: new("orders.dead")},
		{Match: "orders.eu.*", MaxDeliveryAttempts: new(4)},
		{Match: "*.eu.#", DeadLetterAddress: new("eu.dead"), AutoDeleteQueues: new(true)},
	})
	for _, c := range []struct {
		address, dead, expiry string
		attempts              int
		autoDelete            bool
	}{
		{"other", "dead", "ExpiryQueue", 1, false},
		{"orders", "orders.dead", "ExpiryQueue", 2, false},
		{"orders.us", "orders.dead", "", 3, false},
		{"orders.us.a", "orders.dead", "ExpiryQueue", 2, false},
		{"orders.eu", "orders.dead", "", 3, true}, // 'orders' is more specific than '*', both match
		{"orders.eu.x", "orders.dead", "ExpiryQueue", 4, true},
		{"orders.eu.special", "orders.dead", "ExpiryQueue", 5, true},
		{"x.eu.y", "eu.dead", "ExpiryQueue", 1, true},
	} {
		s := table.find(c.address)
		if s.DeadLetterAddress != c.dead || s.ExpiryAddress != c.expiry || s.MaxDeliveryAttempts != c.attempts ||
			s.AutoDeleteQueues != c.autoDelete || s.CountOnLoss {
			t.Errorf("%s: %+v, want %+v", c.address, *s, c)
		}
		if table.find(c.address) != s {
			t.Errorf("%s: equal settings are not shared", c.address)
		}
	}
	if s := compileSettings(nil).find("x"); *s != DefaultSettings() {
		t.Errorf("without settings: %+v, want the defaults", *s)
	}
}
