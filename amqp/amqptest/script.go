package amqptest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Script is a parsed script.
type Script struct {
	Name  string
	Rule  string // the comment on its first line
	Lines []Line
}

// Line is one line of a script.
type Line struct {
	At     string // file:line
	Text   string
	Sign   string   // > >+ < = ! @ ?, or config, manual
	Verb   string   // the first word
	Words  []string // words that are no fields
	Fields []Field
}

// Field is a name=text of a line.
type Field struct{ Name, Text string }

func (l *Line) field(name string) (string, bool) {
	for _, f := range l.Fields {
		if f.Name == name {
			return f.Text, true
		}
	}
	return "", false
}

// take removes a field that isn't the performative's own.
func (l *Line) take(name, def string) string {
	for i, f := range l.Fields {
		if f.Name == name {
			l.Fields = append(append([]Field(nil), l.Fields[:i]...), l.Fields[i+1:]...)
			return f.Text
		}
	}
	return def
}

// LoadPrelude reads lines that scripts include.
func LoadPrelude(path string) (*Script, error) {
	s := &Script{Name: strings.TrimSuffix(filepath.Base(path), ".txt")}
	return s, s.load(path)
}

// Load reads a script; "include" looks in ../preludes.
func Load(path string) (*Script, error) {
	s, err := LoadPrelude(path)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(s.Rule, "# [") {
		return nil, fmt.Errorf("%s: the first line names no section and rule", path)
	}
	return s, nil
}

func (s *Script) load(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(text), "\n") {
		at := fmt.Sprintf("%s:%d", filepath.Base(path), i+1)
		line = strings.TrimSpace(line)
		if i == 0 && s.Rule == "" {
			s.Rule = line
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if name, ok := strings.CutPrefix(line, "include "); ok {
			if err := s.load(filepath.Join(filepath.Dir(path), "..", "preludes", name+".txt")); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			continue
		}
		times, rest := 1, line
		if count, body, ok := strings.Cut(line, "* "); ok {
			if n, err := strconv.Atoi(count); err == nil {
				times, rest = n, body
			}
		}
		for n := range times {
			text := rest
			if times > 1 {
				text = strings.ReplaceAll(rest, "%i", strconv.Itoa(n))
			}
			l, err := parseLine(text)
			if err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			l.At, l.Text = at, text
			s.Lines = append(s.Lines, l)
		}
	}
	return nil
}

func parseLine(text string) (l Line, err error) {
	words, err := split(text)
	if err != nil {
		return l, err
	}
	l.Sign, words = words[0], words[1:]
	switch l.Sign {
	case "config", "manual":
	default:
		if len(words) == 0 {
			return l, fmt.Errorf("nothing behind %s", l.Sign)
		}
		l.Verb, words = words[0], words[1:]
	}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if ok && !strings.HasPrefix(w, "`") {
			l.Fields = append(l.Fields, Field{name, value})
		} else {
			l.Words = append(l.Words, w)
		}
	}
	return l, nil
}

// split cuts a line at its spaces, except those in `…`.
func split(text string) (words []string, err error) {
	quoted, start := false, -1
	for i := 0; i <= len(text); i++ {
		end := i == len(text)
		if !end && text[i] == '`' {
			quoted = !quoted
		}
		if end || text[i] == ' ' && !quoted {
			if start >= 0 {
				words = append(words, text[start:i])
			}
			start = -1
		} else if start < 0 {
			start = i
		}
	}
	if quoted {
		return nil, fmt.Errorf("open ` in %q", text)
	}
	return words, nil
}
