package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Origin is where a value was written, for messages: "leto.yaml:3:7", "environment LETO_LOG__LEVEL", "--set".
type Origin struct {
	Source       string // file name, "--listen", "environment LETO_…"
	Line, Column int    // 1-based; 0 where there is no text to point into
}

func (o Origin) String() string {
	if o.Line == 0 {
		return o.Source
	}
	return fmt.Sprintf("%s:%d:%d", o.Source, o.Line, o.Column)
}

// tree is a configuration before it is understood: what YAML, variables and flags have in common.
type tree struct {
	kind   kind
	at     Origin
	text   string  // of a scalar
	keys   []entry // of a mapping, in the order written
	values []*tree // of a list
}

type kind uint8

const (
	null kind = iota
	scalar
	mapping
	list
)

func (k kind) String() string { return [...]string{"nothing", "a value", "a mapping", "a list"}[k] }

type entry struct {
	name  string
	at    Origin // of the key
	value *tree
}

func (t *tree) get(name string) *tree {
	for i := range t.keys {
		if t.keys[i].name == name {
			return t.keys[i].value
		}
	}
	return nil
}

// put writes value at a path below t and makes mappings and list items on the way.
// by names the key that tells the items of a list apart, for steps that aren't indices.
func (t *tree) put(path []string, value *tree, by func(list []string) string) error {
	for depth, step := range path {
		if t.kind == null {
			t.kind, t.at = mapping, value.at
			if by(path[:depth]) != "" {
				t.kind = list
			}
		}
		var next *tree
		switch t.kind {
		case mapping:
			if next = t.get(step); next == nil {
				next = &tree{at: value.at}
				t.keys = append(t.keys, entry{step, value.at, next})
			}
		case list:
			key := by(path[:depth])
			index, ok := t.index(step, key)
			if !ok {
				return fmt.Errorf("%s has no item %q", strings.Join(path[:depth], "."), step)
			}
			if index == len(t.values) {
				item := &tree{kind: mapping, at: value.at}
				if key != "" && !isIndex(step) {
					item.keys = []entry{{key, value.at, &tree{kind: scalar, at: value.at, text: step}}}
				}
				t.values = append(t.values, item)
			}
			next = t.values[index]
		default:
			return fmt.Errorf("%s holds %s and has no keys", strings.Join(path[:depth], "."), t.kind)
		}
		t = next
	}
	*t = *value
	return nil
}

func isIndex(step string) bool {
	_, err := strconv.ParseUint(step, 10, 16)
	return err == nil
}

// index finds a list item by its number or by its key; the number after the last, or a new key, appends.
func (t *tree) index(step, key string) (int, bool) {
	if n, err := strconv.ParseUint(step, 10, 16); err == nil {
		return int(n), int(n) <= len(t.values)
	}
	if key == "" {
		return 0, false
	}
	for i, item := range t.values {
		if v := item.get(key); v != nil && v.text == step {
			return i, true
		}
	}
	return len(t.values), true
}

// splitPath cuts "address-settings[orders.#].default-durable" into its steps: a dot separates,
// and square brackets keep a step with dots together.
func splitPath(key string) ([]string, error) {
	var steps []string
	rest := key
	for rest != "" {
		if strings.HasPrefix(rest, "[") {
			step, after, ok := strings.Cut(rest[1:], "]")
			if !ok {
				return nil, fmt.Errorf("%q lacks a closing bracket", key)
			}
			steps, rest = append(steps, step), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			return append(steps, rest), nil
		}
		steps = append(steps, rest[:end])
		rest = strings.TrimPrefix(rest[end:], ".")
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("key is empty")
	}
	return steps, nil
}
