// Package selector reads and applies the filters that commands over messages take: the comparisons of a JMS selector
// joined by AND, OR and NOT, without arithmetic.
//
//	amount >= 100 AND (region IN ('eu', 'uk') OR JMSPriority > 6)
//	m.x-opt-death-reason LIKE '%timeout%'
//
// As in SQL, a comparison with what isn't there is unknown, and so is one of values of different kinds; what is unknown
// isn't selected.
package selector

import (
	"cmp"
	"strings"
)

// Selector is a filter that has been read. It may be used by many at once.
type Selector struct{ root node }

// Lookup returns the value of an identifier: a string, bool, int64 or float64, or nil where there is none.
type Lookup func(name string) any

// Match reports whether the filter selects what a Lookup speaks for.
func (s *Selector) Match(of Lookup) bool { return s.root.truth(of) == yes }

// truth is the value of a condition.
type truth uint8

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// node is a part of a filter: a condition, or a value.
type node interface {
	truth(of Lookup) truth
	value(of Lookup) any
}

// condition is a node that has no value but its truth.
type condition func(of Lookup) truth

func (c condition) truth(of Lookup) truth { return c(of) }

func (c condition) value(of Lookup) any {
	switch c(of) {
	case yes:
		return true
	case no:
		return false
	}
	return nil
}

// operand is an identifier or a literal.
type operand func(of Lookup) any

func (o operand) value(of Lookup) any { return o(of) }

func (o operand) truth(of Lookup) truth {
	if b, ok := o(of).(bool); ok {
		return truthOf(b)
	}
	return unknown
}

func and(a, b node) condition {
	return func(of Lookup) truth { // the lesser of the two
		if t := a.truth(of); t != no {
			return min(t, b.truth(of))
		}
		return no
	}
}

func or(a, b node) condition {
	return func(of Lookup) truth { // the greater of the two
		if t := a.truth(of); t != yes {
			return max(t, b.truth(of))
		}
		return yes
	}
}

func not(a node) condition { return func(of Lookup) truth { return yes - a.truth(of) } }

func isNull(a node) condition { return func(of Lookup) truth { return truthOf(a.value(of) == nil) } }

// compare applies one of = <> < <= > >=.
func compare(a node, sign string, b node) condition {
	return func(of Lookup) truth {
		order, ordered, known := relate(a.value(of), b.value(of))
		switch {
		case !known:
			return unknown
		case sign == "=":
			return truthOf(order == 0)
		case sign == "<>":
			return truthOf(order != 0)
		case !ordered:
			return unknown
		case sign == "<":
			return truthOf(order < 0)
		case sign == "<=":
			return truthOf(order <= 0)
		case sign == ">":
			return truthOf(order > 0)
		}
		return truthOf(order >= 0)
	}
}

// relate compares two values of a kind; ordered is false for those that are only equal or not.
func relate(a, b any) (order int, ordered, known bool) {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b), false, true
		}
	case bool:
		if b, ok := b.(bool); ok {
			order = 1
			if a == b {
				order = 0
			}
			return order, false, true
		}
	case int64:
		switch b := b.(type) {
		case int64:
			return cmp.Compare(a, b), true, true
		case float64:
			return cmp.Compare(float64(a), b), true, true
		}
	case float64:
		switch b := b.(type) {
		case int64:
			return cmp.Compare(a, float64(b)), true, true
		case float64:
			return cmp.Compare(a, b), true, true
		}
	}
	return 0, false, false
}

// like matches a pattern in which % is any characters and _ is one, unless it stands behind the escape.
func like(a node, pattern string, escape rune) condition {
	p := readPattern(pattern, escape)
	return func(of Lookup) truth {
		text, ok := a.value(of).(string)
		if !ok {
			return unknown
		}
		return truthOf(p.match(text))
	}
}
