package config

import (
	"os"
	"path/filepath"
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

// TestExamplesLoad: every configuration that docs/redelivery.md shows is one.
func TestExamplesLoad(t *testing.T) {
	text, err := os.ReadFile("../../../docs/redelivery.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```yaml\n")
	for i, part := range parts[1:] {
		example, _, _ := strings.Cut(part, "```")
		path := filepath.Join(t.TempDir(), "leto.yaml")
		if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Sources{File: path}); err != nil {
			t.Errorf("example %d: %v", i+1, err)
		}
	}
	if len(parts) < 4 {
		t.Errorf("%d examples, want 3 or more", len(parts)-1)
	}
}
