package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// worded types take one of a few words.
type worded interface{ words() []string }

// scalarReader types read their own text.
type scalarReader interface{ scalar(text string) error }

// decoder fills an Options from a tree and collects what doesn't fit.
type decoder struct {
	errs    Errors
	origins map[string]Origin // path of every value that was told → where
}

func (d *decoder) fail(at Origin, format string, args ...any) {
	d.errs = append(d.errs, &Error{At: at, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) value(path string, t *tree, into reflect.Value) {
	d.origins[path] = t.at
	if into.Kind() == reflect.Pointer {
		fresh := reflect.New(into.Type().Elem())
		d.value(path, t, fresh.Elem())
		into.Set(fresh)
		return
	}
	if reader, ok := into.Addr().Interface().(scalarReader); ok && t.kind == scalar {
		if err := reader.scalar(t.text); err != nil {
			d.fail(t.at, "%s: %v", path, err)
		}
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		d.mapping(path, t, into)
	case reflect.Slice:
		d.list(path, t, into)
	default:
		if t.kind != scalar {
			d.fail(t.at, "%s needs a value and has %s", path, t.kind)
			return
		}
		if err := setScalar(t.text, into); err != nil {
			d.fail(t.at, "%s: %v", path, err)
		}
	}
}

func (d *decoder) mapping(path string, t *tree, into reflect.Value) {
	if t.kind == null {
		return
	}
	if t.kind != mapping {
		d.fail(t.at, "%s must be a mapping and is %s", orTop(path), t.kind)
		return
	}
	for _, e := range t.keys {
		below := join(path, e.name)
		field, known := fieldByKey(into.Type(), e.name)
		switch {
		case known:
			d.value(below, e.value, into.FieldByIndex(field.Index))
		case isLater(below):
			d.fail(e.at, "%s is not supported by this version yet", generic(below))
		default:
			hint := ""
			if near := Closest(e.name, keysOf(into.Type(), path)); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			d.fail(e.at, "unknown key %q%s%s", e.name, in(path), hint)
		}
	}
}

// list replaces a slice.
func (d *decoder) list(path string, t *tree, into reflect.Value) {
	if t.kind == null {
		return
	}
	if t.kind != list {
		d.fail(t.at, "%s must be a list and is %s", path, t.kind)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), 0, len(t.values)))
	for i, item := range t.values {
		element := reflect.New(into.Type().Elem()).Elem()
		d.value(fmt.Sprintf("%s.%d", path, i), item, element)
		into.Set(reflect.Append(into, element))
	}
}

func setScalar(text string, into reflect.Value) error {
	if w, ok := into.Interface().(worded); ok {
		if !slices.Contains(w.words(), text) {
			if near := Closest(text, w.words()); near != "" {
				return fmt.Errorf("%q is not one of %s; did you mean %q?", text, strings.Join(w.words(), ", "), near)
			}
			return fmt.Errorf("%q is not one of %s", text, strings.Join(w.words(), ", "))
		}
		into.SetString(text)
		return nil
	}
	switch into.Kind() {
	case reflect.String:
		into.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		into.SetBool(text == "true")
	case reflect.Int:
		n, err := strconv.ParseInt(text, 10, into.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		into.SetInt(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%q is not a number such as 1.5", text)
		}
		into.SetFloat(f)
	case reflect.Uint16, reflect.Uint32:
		n, err := strconv.ParseUint(text, 10, into.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number from 0 to %d", text, uint64(1)<<into.Type().Bits()-1)
		}
		into.SetUint(n)
	default:
		panic("config: no reader for " + into.Type().String())
	}
	return nil
}

func fieldByKey(t reflect.Type, key string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("key") == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// keysOf lists what may stand below a path, also what later versions will understand: a slip in
// such a key deserves the right answer too.
func keysOf(t reflect.Type, path string) []string {
	var keys []string
	for i := range t.NumField() {
		keys = append(keys, t.Field(i).Tag.Get("key"))
	}
	prefix := generic(path) + "."
	for _, key := range later {
		if rest, ok := strings.CutPrefix(key, strings.TrimPrefix(prefix, ".")); ok && !strings.Contains(rest, ".") {
			keys = append(keys, rest)
		}
	}
	return keys
}

// keyedBy returns the key that tells the items of the list at a path apart, or "" where no list is.
func keyedBy(path []string) string {
	t, by := reflect.TypeOf(Options{}), ""
	for _, step := range path {
		switch t.Kind() {
		case reflect.Struct:
			field, ok := fieldByKey(t, step)
			if !ok {
				return ""
			}
			t, by = field.Type, field.Tag.Get("by")
		case reflect.Slice:
			t, by = t.Elem(), ""
		default:
			return ""
		}
	}
	return by
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func in(path string) string {
	if path == "" {
		return ""
	}
	return " in " + generic(path)
}

func orTop(path string) string {
	if path == "" {
		return "the configuration"
	}
	return path
}

// generic removes item numbers: listeners.0.tls is listeners.tls.
func generic(path string) string {
	var kept []string
	for step := range strings.SplitSeq(path, ".") {
		if !isIndex(step) {
			kept = append(kept, step)
		}
	}
	return strings.Join(kept, ".")
}
