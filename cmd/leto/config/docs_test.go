package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestKeysAreDocumented: every key that is read stands in docs/configuration.md.
func TestKeysAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		for i := range of.NumField() {
			key := of.Field(i).Tag.Get("key")
			if key == "" {
				continue
			}
			if path != "" {
				key = path + "." + key
			}
			switch at := of.Field(i).Type; {
			case at.Kind() == reflect.Struct:
				walk(key, at)
				continue
			case at.Kind() == reflect.Slice && key == "address-settings":
				walk("", at.Elem())
				continue
			case at.Kind() == reflect.Slice && at.Elem().Kind() == reflect.Struct:
				walk(key+"[]", at.Elem())
				continue
			}
			if key != "match" && !strings.Contains(string(text), "`"+key+"`") {
				t.Errorf("%s isn't in docs/configuration.md", key)
			}
		}
	}
	walk("", reflect.TypeFor[Options]())
}
