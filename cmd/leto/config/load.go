package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Sources is where configuration comes from. Later fields win.
type Sources struct {
	File    string   // path of the YAML file; empty: none
	Environ []string // NAME=VALUE as os.Environ gives them; LETO_A__B sets a.b
	Set     []string // KEY=VALUE of --set; the value is YAML
	Flags   []Flag   // flags of their own

	// Check finds more that is wrong, once nothing else is; nil: nothing more can be.
	Check func(*Options) []Problem
}

// Flag is one key told by a command line flag.
type Flag struct {
	Name   string // as the user wrote it, for messages: "--listen"
	Key    string // the key that it sets
	Values []string
}

// Load merges the sources over the defaults and checks the result. The error is an Errors,
// an *Error, or what reading the file said.
func Load(from Sources) (Options, error) {
	root := &tree{kind: mapping}
	if from.File != "" {
		text, err := os.ReadFile(from.File)
		if err != nil {
			var why *fs.PathError
			if errors.As(err, &why) {
				err = why.Err
			}
			return Options{}, fmt.Errorf("configuration file %s: %w", from.File, err)
		}
		if root, err = parseYAML(from.File, text); err != nil {
			return Options{}, err
		}
	}
	d := decoder{origins: map[string]Origin{}}
	d.overlayEnviron(root, from.Environ)
	for _, set := range from.Set {
		key, value, ok := strings.Cut(set, "=")
		at := Origin{Source: "--set " + key}
		if !ok {
			d.fail(at, "is not KEY=VALUE, such as amqp.idle-timeout=30s")
			continue
		}
		d.overlay(root, at, key, value)
	}
	for _, flag := range from.Flags {
		d.overlayFlag(root, flag)
	}

	opts := Defaults()
	d.value("", root, reflect.ValueOf(&opts).Elem())
	if len(d.errs) == 0 {
		found := opts.Validate()
		if len(found) == 0 && from.Check != nil {
			found = from.Check(&opts)
		}
		for _, p := range found {
			d.fail(d.origin(p.Key), "%s: %s", p.Key, p.Text)
		}
	}
	if len(d.errs) > 0 {
		return Options{}, d.errs.sorted()
	}
	if at, told := d.origins["auth.users-file"]; told && at.Line > 0 && !filepath.IsAbs(opts.Auth.UsersFile) {
		opts.Auth.UsersFile = filepath.Join(filepath.Dir(from.File), opts.Auth.UsersFile)
	}
	return opts, nil
}

// origin finds where a path, or the nearest thing above it, was written.
func (d *decoder) origin(path string) Origin {
	for path != "" {
		if at, ok := d.origins[path]; ok {
			return at
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return Origin{}
}

// overlay writes one KEY=VALUE over the tree. The value is YAML, so that lists and mappings can be told too.
func (d *decoder) overlay(root *tree, at Origin, key, text string) {
	path, err := splitPath(key)
	if err != nil {
		d.fail(at, "%v", err)
		return
	}
	value, err := parseValue(at, text)
	if err != nil {
		d.fail(at, "%v", err)
		return
	}
	if err := root.put(path, value, keyedBy); err != nil {
		d.fail(at, "%v", err)
	}
}

// parseValue reads the text of a variable or of --set. What starts like a flow mapping or list is
// YAML; anything else is the value itself, so that "#" and ":" need no quotes.
func parseValue(at Origin, text string) (*tree, error) {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return &tree{kind: scalar, at: at, text: text}, nil
	}
	value, err := parseYAML(at.Source, []byte(text))
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			err = errors.New(e.Text)
		}
		return nil, err
	}
	value.relocate(at)
	return value, nil
}

// relocate gives a whole tree one origin: line and column within a flag help nobody.
func (t *tree) relocate(at Origin) {
	t.at = at
	for i := range t.keys {
		t.keys[i].at = at
		t.keys[i].value.relocate(at)
	}
	for _, v := range t.values {
		v.relocate(at)
	}
}

// overlayEnviron applies variables named LETO_A__B: two underscores are a step, one is a hyphen.
// Names without a step are not ours to judge: LETO_URL and its like belong to other commands.
func (d *decoder) overlayEnviron(root *tree, environ []string) {
	environ = slices.Clone(environ)
	slices.Sort(environ) // the same errors in the same order, whatever the order of the environment
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		rest, ours := strings.CutPrefix(name, "LETO_")
		if !ours || !strings.Contains(rest, "__") {
			continue
		}
		steps := strings.Split(strings.ToLower(rest), "__")
		for i := range steps {
			steps[i] = strings.ReplaceAll(steps[i], "_", "-")
		}
		d.overlay(root, Origin{Source: "environment " + name}, strings.Join(steps, "."), value)
	}
}

func (d *decoder) overlayFlag(root *tree, flag Flag) {
	at := Origin{Source: flag.Name}
	value := &tree{kind: scalar, at: at, text: flag.Values[0]}
	if flag.Key == "listeners" { // --listen, once or more, stands for the whole list
		value = &tree{kind: list, at: at}
		for _, bind := range flag.Values {
			item := &tree{kind: mapping, at: at}
			item.keys = []entry{{"bind", at, &tree{kind: scalar, at: at, text: bind}}}
			value.values = append(value.values, item)
		}
	}
	path := strings.Split(flag.Key, ".")
	if err := root.put(path, value, keyedBy); err != nil {
		d.fail(at, "%v", err)
	}
}
