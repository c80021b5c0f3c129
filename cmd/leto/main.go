// Leto is an AMQP 1.0 broker and the commands that go with it.
//
//	leto serve                       run the broker
//	leto send orders hello           send a message
//	leto receive orders              take one
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/cmd/leto/config"
)

func main() {
	// The first signal ends what is under way in good order; a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code. Data goes to out, notes and errors to notes.
func run(ctx context.Context, args []string, in io.Reader, out, notes io.Writer) int {
	app := newApp()
	app.Reader, app.Writer, app.ErrWriter = in, out, notes
	args, err := reorder(app, args)
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	if err == nil {
		return exitDone
	}
	if text := err.Error(); text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			if !strings.HasPrefix(line, " ") { // an indented line goes on with the one before it
				line = "leto: " + line
			}
			fmt.Fprintln(notes, line)
		}
	}
	return exitCode(err)
}

// newApp builds the command tree. Every leaf is a command of the outside contract.
func newApp() *cli.App {
	app := &cli.App{
		Name:                      "leto",
		Usage:                     "an AMQP 1.0 broker",
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // --property text=a,b is one property
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              func(_ *cli.Context, err error, _ bool) error { return usageError("%v", err) },
		Action:                    rootAction,
		Commands: []*cli.Command{
			serveCommand(),
			sendCommand(),
			receiveCommand(),
			browseCommand(),
			queueCommand(),
			addressCommand(),
			storeCommand(),
			versionCommand(),
		},
	}
	app.Commands = append(app.Commands, moreCommands...)
	for _, command := range app.Commands {
		harden(command)
	}
	return app
}

// moreCommands are added by the init functions of files that hold a command too large for this list.
var moreCommands []*cli.Command

// harden gives a command and those below it our way to report a wrong flag: one line, no help page.
func harden(command *cli.Command) {
	command.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
		return usageError("%s: %v", command.Name, err)
	}
	command.HideHelpCommand = true // `leto send help` sends to an address of that name
	if command.Subcommands != nil && command.Action == nil {
		command.Action = groupAction
	}
	for _, sub := range command.Subcommands {
		harden(sub)
	}
}

// rootAction runs when no command was named, or an unknown one.
func rootAction(c *cli.Context) error {
	if !c.Args().Present() {
		return cli.ShowAppHelp(c)
	}
	return unknownCommand("", c.Args().First(), c.App.Commands)
}

// groupAction runs when a command such as `leto queue` was named without what to do, or with an unknown thing.
func groupAction(c *cli.Context) error {
	if !c.Args().Present() {
		return cli.ShowSubcommandHelp(c)
	}
	return unknownCommand(c.Command.Name+" ", c.Args().First(), c.Command.Subcommands)
}

func unknownCommand(group, name string, known []*cli.Command) error {
	var names []string
	for _, command := range known {
		if !command.Hidden && command.Name != "help" {
			names = append(names, command.Name)
		}
	}
	if near := config.Closest(name, names); near != "" {
		return usageError("unknown command %q; did you mean %q?", group+name, group+near)
	}
	return usageError("unknown command %q; there are %s", group+name, strings.Join(names, ", "))
}
