package selector

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText and maxDepth bound what is read: filters come from whoever may use the API.
const (
	maxText  = 4096
	maxDepth = 64
)

// Parse reads a filter. Errors say at which character.
func Parse(text string) (*Selector, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("filter: it is longer than %d bytes", maxText)
	}
	p := &parser{text: text}
	p.next()
	root := p.or()
	if p.err == nil && p.token.kind != end {
		p.fail("%q isn't expected", p.token.text)
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Selector{root}, nil
}

type parser struct {
	text  string
	at    int // behind token
	token token
	depth int
	err   error // the first one
}

type token struct {
	kind  kind
	text  string // of a word: as it stands there
	value any    // of a literal
	at    int
}

type kind uint8

const (
	end kind = iota
	word
	quoted // an identifier in double quotes
	literal
	sign
)

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("filter: character %d: %s", utf8.RuneCountInString(p.text[:p.token.at])+1, fmt.Sprintf(format, args...))
	}
	p.at = len(p.text)
	p.token = token{at: len(p.text)}
}

// next reads the next token.
func (p *parser) next() {
	rest := strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace)
	at := len(p.text) - len(rest)
	p.token = token{at: at}
	p.at = at
	if rest == "" {
		return
	}
	switch r, _ := utf8.DecodeRuneInString(rest); {
	case r == '\'' || r == '"':
		p.quotedText(rest, byte(r))
	case r >= '0' && r <= '9' || (r == '-' || r == '+' || r == '.') && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		p.number(rest)
	case r == '_' || r == '$' || unicode.IsLetter(r):
		n := strings.IndexFunc(rest, func(r rune) bool {
			return r != '_' && r != '$' && r != '.' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		if n < 0 {
			n = len(rest)
		}
		if i := strings.IndexByte(rest[:n], '-'); i >= 0 && !strings.HasPrefix(rest, annotationPrefix) {
			n = i // only annotations have it in their names
		}
		p.token.kind, p.token.text = word, rest[:n]
		p.at += n
	default:
		n := 1
		if strings.HasPrefix(rest, "<>") || strings.HasPrefix(rest, "<=") || strings.HasPrefix(rest, ">=") {
			n = 2
		}
		if !strings.ContainsRune("=<>(),", r) {
			p.fail("%q isn't expected", r)
			return
		}
		p.token.kind, p.token.text = sign, rest[:n]
		p.at += n
	}
}

// annotationPrefix begins an identifier that names a message annotation.
const annotationPrefix = "m."

// quotedText reads a string in single quotes, or an identifier in double ones; a quote in it stands twice.
func (p *parser) quotedText(rest string, quote byte) {
	var text strings.Builder
	for i := 1; i < len(rest); i++ {
		if rest[i] != quote {
			text.WriteByte(rest[i])
			continue
		}
		if i+1 < len(rest) && rest[i+1] == quote {
			text.WriteByte(quote)
			i++
			continue
		}
		p.at += i + 1
		p.token.text = text.String()
		p.token.kind, p.token.value = literal, p.token.text
		if quote == '"' {
			p.token.kind = quoted
		}
		return
	}
	p.fail("the quote isn't closed")
}

func (p *parser) number(rest string) {
	n := 1
	for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '.' || rest[n] == 'e' || rest[n] == 'E' ||
		(rest[n] == '-' || rest[n] == '+') && (rest[n-1] == 'e' || rest[n-1] == 'E')) {
		n++
	}
	p.token.kind, p.token.text = literal, rest[:n]
	p.at += n
	if whole, err := strconv.ParseInt(rest[:n], 10, 64); err == nil {
		p.token.value = whole
	} else if f, err := strconv.ParseFloat(rest[:n], 64); err == nil {
		p.token.value = f
	} else {
		p.fail("%s isn't a number", rest[:n])
	}
}

// takes passes over a keyword or a sign if that is next.
func (p *parser) takes(text string) bool {
	if p.token.kind != word && p.token.kind != sign || !strings.EqualFold(p.token.text, text) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(text string) {
	if !p.takes(text) {
		p.fail("%s is expected", text)
	}
}

func (p *parser) or() node {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		p.fail("it is nested deeper than %d", maxDepth)
	}
	n := p.and()
	for p.takes("OR") {
		n = or(n, p.and())
	}
	return n
}

func (p *parser) and() node {
	n := p.not()
	for p.takes("AND") {
		n = and(n, p.not())
	}
	return n
}

func (p *parser) not() node {
	odd := false
	for p.takes("NOT") {
		odd = !odd
	}
	n := p.predicate()
	if odd {
		return not(n)
	}
	return n
}

func (p *parser) predicate() node {
	var a node
	if p.takes("(") {
		a = p.or()
		p.expect(")")
	} else {
		a = p.operand()
	}
	if p.token.kind == sign && strings.ContainsAny(p.token.text, "=<>") {
		s := p.token.text
		p.next()
		return compare(a, s, p.operand())
	}
	if p.takes("IS") {
		negated := p.takes("NOT")
		p.expect("NULL")
		return negate(negated, isNull(a))
	}
	negated := p.takes("NOT")
	switch {
	case p.takes("BETWEEN"):
		low := p.operand()
		p.expect("AND")
		return negate(negated, and(compare(a, ">=", low), compare(a, "<=", p.operand())))
	case p.takes("IN"):
		return negate(negated, p.in(a))
	case p.takes("LIKE"):
		pattern, escape := p.string(), rune(0)
		if p.takes("ESCAPE") {
			text := p.string()
			if utf8.RuneCountInString(text) != 1 {
				p.fail("ESCAPE takes one character")
			}
			escape, _ = utf8.DecodeRuneInString(text)
		}
		return negate(negated, like(a, pattern, escape))
	case negated:
		p.fail("BETWEEN, IN or LIKE is expected")
	}
	return a
}

func negate(yes bool, c condition) condition {
	if yes {
		return not(c)
	}
	return c
}

// in reads what may be in a list. A list that is empty has nothing in it.
func (p *parser) in(a node) condition {
	p.expect("(")
	n := condition(func(Lookup) truth { return no })
	for {
		n = or(n, compare(a, "=", p.operand()))
		if !p.takes(",") {
			break
		}
	}
	p.expect(")")
	return n
}

func (p *parser) string() string {
	text, ok := p.token.value.(string)
	if !ok || p.token.kind != literal {
		p.fail("a string in single quotes is expected")
		return ""
	}
	p.next()
	return text
}

// keywords are no identifiers, unless they stand in double quotes.
var keywords = map[string]bool{
	"AND": true, "OR": true, "NOT": true, "IN": true, "LIKE": true, "BETWEEN": true, "IS": true, "NULL": true, "ESCAPE": true,
}

func (p *parser) operand() node {
	t := p.token
	switch {
	case t.kind == literal:
		p.next()
		return operand(func(Lookup) any { return t.value })
	case t.kind == word && strings.EqualFold(t.text, "TRUE"), t.kind == word && strings.EqualFold(t.text, "FALSE"):
		p.next()
		value := strings.EqualFold(t.text, "TRUE")
		return operand(func(Lookup) any { return value })
	case t.kind == quoted, t.kind == word && !keywords[strings.ToUpper(t.text)]:
		p.next()
		return operand(func(of Lookup) any { return of(t.text) })
	case t.kind == end:
		p.fail("something is missing at the end")
	default:
		p.fail("%q isn't expected", t.text)
	}
	return operand(func(Lookup) any { return nil })
}
