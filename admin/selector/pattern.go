package selector

import (
	"strings"
	"unicode/utf8"
)

// pattern is what stands behind LIKE: pieces with any characters between them. Matching neither copies the text nor
// goes back behind a piece that has been found: texts are as long as messages may be, and filters come from anywhere.
type pattern []piece

// piece is a part of a pattern without %: its first one begins the text and its last one ends it.
type piece struct {
	text  []rune // anyOne for _
	plain string // the same, where there is no _
}

// anyOne stands for one character, whichever it is.
const anyOne rune = -1

// readPattern reads a pattern in which % is any characters and _ is one, unless it stands behind the escape; 0 is none.
func readPattern(text string, escape rune) pattern {
	var p pattern
	var next piece
	plain, escaped := true, false
	end := func() {
		if plain {
			next.plain = string(next.text)
		}
		p, next, plain = append(p, next), piece{}, true
	}
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case escape != 0 && r == escape:
			escaped = true
			continue
		case r == '%':
			end()
			continue
		case r == '_':
			r, plain = anyOne, false
		}
		next.text = append(next.text, r)
	}
	end()
	return p
}

// match takes pieces from the front, each where it is first found, which leaves most to those behind it.
func (p pattern) match(text string) bool {
	first, last := p[0], p[len(p)-1]
	n, ok := first.begins(text)
	if !ok || len(p) == 1 {
		return ok && n == len(text)
	}
	text = text[n:]
	for _, middle := range p[1 : len(p)-1] {
		if n, ok = middle.find(text); !ok {
			return false
		}
		text = text[n:]
	}
	at := len(text)
	for range last.text {
		if at == 0 {
			return false
		}
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	_, ok = last.begins(text[at:])
	return ok
}

// begins reports whether text begins with the piece, and how many bytes that takes.
func (p piece) begins(text string) (n int, ok bool) {
	for _, want := range p.text {
		r, size := utf8.DecodeRuneInString(text[n:])
		if size == 0 || want != anyOne && want != r {
			return 0, false
		}
		n += size
	}
	return n, true
}

// find returns how many bytes of text it takes to get behind the first place where the piece is.
func (p piece) find(text string) (n int, ok bool) {
	if p.plain != "" {
		at := strings.Index(text, p.plain)
		return at + len(p.plain), at >= 0
	}
	for at := 0; ; {
		if n, ok = p.begins(text[at:]); ok {
			return at + n, true
		}
		if at == len(text) {
			return 0, false
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
}
