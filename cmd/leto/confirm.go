package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"
)

func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "don't ask"}
}

// confirm asks before something is done that can't be undone. Where nobody can be asked --yes has to say it.
func confirm(c *cli.Context, format string, args ...any) error {
	if c.Bool("yes") {
		return nil
	}
	question := fmt.Sprintf(format, args...)
	in, ok := c.App.Reader.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return usageError("%s: %s? Nobody is here to be asked: say --yes", c.Command.Name, question)
	}
	fmt.Fprintf(c.App.ErrWriter, "%s? [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(c.App.ErrWriter)
	}
	if word := strings.ToLower(strings.TrimSpace(line)); word != "y" && word != "yes" {
		return usageError("%s: not confirmed, nothing was done", c.Command.Name)
	}
	return nil
}
