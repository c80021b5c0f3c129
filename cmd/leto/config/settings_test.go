package config

import (
	"strings"
	"testing"
)

func TestDelays(t *testing.T) {
	o, err := Load(Sources{Set: []string{
		"address-settings[a].expiry-delay=1500", "address-settings[a].min-expiry-delay=2s", "address-settings[a].max-expiry-delay=-1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := o.AddressSettings[0]
	if *s.ExpiryDelay != 1500 || *s.MinExpiryDelay != 2000 || *s.MaxExpiryDelay != NoDelay {
		t.Errorf("%v %v %v", *s.ExpiryDelay, *s.MinExpiryDelay, *s.MaxExpiryDelay)
	}
	for text, want := range map[string]string{"-2": "neither -1", "-2s": "negative", "soon": "not a time span"} {
		_, err := Load(Sources{Set: []string{"address-settings[a].expiry-delay=" + text}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
