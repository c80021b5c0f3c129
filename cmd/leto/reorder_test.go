package main

import (
	"slices"
	"strings"
	"testing"
)

func TestReorder(t *testing.T) {
	for in, want := range map[string]string{
		"send orders hi --count 2":              "send --count 2 -- orders hi",
		"send --count 2 orders hi":              "send --count 2 -- orders hi",
		"send orders --count=2 hi --settled":    "send --count=2 --settled -- orders hi",
		"send orders --settled hi":              "send --settled -- orders hi", // a boolean takes no word
		"--url amqp://h send orders hi":         "send --url amqp://h -- orders hi",
		"send orders -":                         "send -- orders -",
		"send orders -- --not-a-flag":           "send -- orders --not-a-flag",
		"send orders -n 2 -- -x --count 3":      "send -n 2 -- orders -x --count 3",
		"send orders -p a=1 -p b=2":             "send -p a=1 -p b=2 -- orders",
		"send orders hi --count -1":             "send --count -1 -- orders hi", // a value may look like a flag
		"queue ls --json":                       "queue ls --json",
		"queue --json ls":                       "queue ls --json",
		"receive send":                          "receive -- send", // an argument that is also a command's name
		"version":                               "version",
		"--version":                             "version",
		"send --help":                           "send --help",
		"serve --listen a:1 --listen b:2":       "serve --listen a:1 --listen b:2",
		"receive orders --durable sub --follow": "receive --durable sub --follow -- orders", // here durable takes a word
		"send orders hi --durable --count 2":    "send --durable --count 2 -- orders hi",    // and here it doesn't
		"":                                      "",
	} {
		got, err := reorder(newApp(), append([]string{"leto"}, strings.Fields(in)...))
		if err != nil || !slices.Equal(got[1:], strings.Fields(want)) {
			t.Errorf("%q became %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestReorderRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"send orders hi --count":   "flag --count needs a value",
		"send orders hi --cuont 2": "unknown flag --cuont; did you mean --count?",
		"send orders --zzz":        "unknown flag --zzz; --help lists those there are",
		"queue ls --jsn":           "unknown flag --jsn; did you mean --json?",
		"version --filter=a":       "unknown flag --filter=a; --help lists those there are", // other commands' flags aren't ours
	} {
		_, err := reorder(newApp(), append([]string{"leto"}, strings.Fields(in)...))
		if err == nil || err.Error() != want || exitCode(err) != exitUsage {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}
