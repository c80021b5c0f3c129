package main

import (
	"github.com/urfave/cli/v2"
)

// Flags that more than one command has.

func urlFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "url", Value: "amqp://127.0.0.1:5672", EnvVars: []string{"LETO_URL"},
		Usage: "broker to speak to: amqp://[USER:PASSWORD@]HOST[:PORT] or amqps://…",
	}
}

func adminURLFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "admin-url", Value: "http://127.0.0.1:8161", EnvVars: []string{"LETO_ADMIN_URL"},
		Usage: "HTTP address of the broker: http://[USER:PASSWORD@]HOST:PORT",
	}
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print JSON"}
}

// oneArg returns the only argument of a command, named as in its usage.
func oneArg(c *cli.Context, name string) (string, error) {
	if c.NArg() == 0 {
		return "", usageError("%s: %s is missing", c.Command.Name, name)
	}
	if c.NArg() > 1 {
		return "", usageError("%s: unexpected argument %q", c.Command.Name, c.Args().Get(1))
	}
	if c.Args().First() == "" {
		return "", usageError("%s: %s is empty", c.Command.Name, name)
	}
	return c.Args().First(), nil
}

func noArgs(c *cli.Context) error {
	if c.Args().Present() {
		return usageError("%s: unexpected argument %q", c.Command.Name, c.Args().First())
	}
	return nil
}
