package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/admin"
)

func scheduledCommand() *cli.Command {
	number := &cli.Uint64Flag{Name: "number", Usage: "only the message of number `N`, as ls shows it"}
	return &cli.Command{
		Name:  "scheduled",
		Usage: "messages that wait for their time: sent for later, or failed and to be tried later",
		Subcommands: []*cli.Command{
			{
				Name:      "ls",
				Aliases:   []string{"list"},
				Usage:     "show them, in the order in which they are due, without taking them",
				ArgsUsage: "QUEUE",
				Flags:     append(selectionFlags(), adminURLFlag(), jsonFlag(), bodyBytesFlag()),
				Action:    peekScheduled,
			},
			{
				Name:        "cancel",
				Usage:       "delete them",
				ArgsUsage:   "QUEUE",
				Description: "With --count those first that are due first. Interrupted, it stops where it is.",
				Flags:       append(selectionFlags(), number, adminURLFlag(), jsonFlag(), yesFlag()),
				Action: func(c *cli.Context) error {
					return reschedule(c, "cancel", "delete %s of those that wait for their time in %s", "cancelled")
				},
			},
			{
				Name:      "deliver",
				Usage:     "have them be due now",
				ArgsUsage: "QUEUE",
				Description: "Each comes to its place by priority and number. With --count those first that are due first. Interrupted, it stops\n" +
					"where it is.",
				Flags: append(selectionFlags(), number, adminURLFlag(), jsonFlag(), yesFlag()),
				Action: func(c *cli.Context) error {
					return reschedule(c, "deliver", "have %s of those that wait for their time in %s be due now", "made due")
				},
			},
		},
	}
}

// reschedule carries out a command over the messages that wait for their time in the queue that the only argument names.
func reschedule(c *cli.Context, command, question, done string) error {
	name, q, err := theQueue(c)
	if err != nil {
		return err
	}
	selected, words, err := selection(c, q.Delayed)
	if err != nil {
		return err
	}
	body := admin.Rescheduling{Filter: selected.Filter, Count: selected.Count}
	if c.IsSet("number") {
		if c.Uint64("number") == 0 {
			return usageError("%s: --number must be 1 or more", c.Command.Name)
		}
		body.Number = new(c.Uint64("number"))
		words = fmt.Sprintf("message %d", *body.Number)
	}
	if err := confirm(c, question, words, name); err != nil {
		return err
	}
	return perform(c, queuePath(name)+"/scheduled/"+command, body, done)
}
