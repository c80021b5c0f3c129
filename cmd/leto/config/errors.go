package config

import (
	"cmp"
	"slices"
	"strings"
)

// Error is one thing wrong in what was told, and where it was told.
type Error struct {
	At   Origin
	Text string
}

func (e *Error) Error() string {
	if e.At == (Origin{}) {
		return e.Text
	}
	return e.At.String() + ": " + e.Text
}

// Errors is everything that was found wrong, by source and place.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (es Errors) sorted() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(a.At.Source, b.At.Source),
			cmp.Compare(a.At.Line, b.At.Line),
			cmp.Compare(a.At.Column, b.At.Column),
		)
	})
	return es
}
