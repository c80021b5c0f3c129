package main

import (
	"reflect"
	"slices"
	"testing"

	"github.com/letomq/leto/cmd/leto/config"
	"github.com/letomq/leto/engine"
)

// TestEffectiveSettingsHaveTheNamesOfTheConfiguration: what `leto address settings` shows can be written into the file.
func TestEffectiveSettingsHaveTheNamesOfTheConfiguration(t *testing.T) {
	var known []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.AddressSettings]()) {
		known = append(known, f.Tag.Get("key"))
	}
	for _, s := range engine.EffectiveSettings(nil, "a") {
		if !slices.Contains(known, s.Key) {
			t.Errorf("%s is no key of address-settings", s.Key)
		}
	}
}
