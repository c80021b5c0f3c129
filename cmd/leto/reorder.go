package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/cmd/leto/config"
)

// reorder moves flags before arguments, since the flag parser stops at the first argument:
// `leto send orders hi --count 2` becomes `leto send --count 2 -- orders hi`. Flags that stand
// before the command's name go behind it. What follows "--" is an argument whatever it looks like.
func reorder(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	words := args[1:]
	if len(words) == 1 && (words[0] == "--version" || words[0] == "-v") {
		words = []string{"version"}
	}
	var path, flags, rest []string
	commands, known := app.Commands, allFlags(app.Commands)
	inPath := true
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			rest = append(rest, words[i+1:]...)
			break
		}
		if len(word) > 1 && word[0] == '-' {
			flags = append(flags, word)
			name, _, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
			valued, exists := known[name]
			if !exists && name != "help" && name != "h" {
				return nil, unknownFlag(word, name, known)
			}
			if valued && !hasValue {
				if i+1 == len(words) {
					return nil, usageError("flag %s needs a value", word)
				}
				i++
				flags = append(flags, words[i])
			}
			continue
		}
		if command := find(commands, word); inPath && command != nil {
			path = append(path, word)
			commands, known = command.Subcommands, takesValue(command.Flags)
			if len(commands) > 0 {
				known = allFlags(commands)
			}
			continue
		}
		inPath = false
		rest = append(rest, word)
	}
	ordered := slices.Concat(args[:1], path, flags)
	if len(rest) > 0 {
		ordered = append(append(ordered, "--"), rest...)
	}
	return ordered, nil
}

func unknownFlag(word, name string, known map[string]bool) error {
	if near := config.Closest(name, slices.Sorted(maps.Keys(known))); near != "" {
		return usageError("unknown flag %s; did you mean --%s?", word, near)
	}
	return usageError("unknown flag %s; --help lists those there are", word)
}

func find(commands []*cli.Command, name string) *cli.Command {
	i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(name) })
	if i < 0 {
		return nil
	}
	return commands[i]
}

// takesValue maps the names of flags to whether the next word belongs to them.
func takesValue(flags []cli.Flag) map[string]bool {
	names := map[string]bool{}
	for _, flag := range flags {
		valued := true
		if doc, ok := flag.(cli.DocGenerationFlag); ok {
			valued = doc.TakesValue()
		}
		for _, name := range flag.Names() {
			names[name] = valued
		}
	}
	return names
}

// allFlags unites the flags of a command tree, for words that stand before the command is known.
func allFlags(commands []*cli.Command) map[string]bool {
	names := map[string]bool{}
	for _, command := range commands {
		for name, valued := range takesValue(command.Flags) {
			names[name] = valued
		}
		for name, valued := range allFlags(command.Subcommands) {
			names[name] = valued
		}
	}
	return names
}
