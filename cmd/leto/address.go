package main

import (
	"fmt"
	"net/url"

	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/admin"
)

func addressCommand() *cli.Command {
	return &cli.Command{
		Name:  "address",
		Usage: "look at addresses and change them",
		Subcommands: []*cli.Command{
			{
				Name:    "ls",
				Aliases: []string{"list"},
				Usage:   "list the addresses of a broker",
				Flags:   []cli.Flag{adminURLFlag(), jsonFlag()},
				Action:  listAddresses,
			},
			{
				Name:      "show",
				Aliases:   []string{"info"},
				Usage:     "show an address, its queues and the settings in force there with the match that gave each",
				ArgsUsage: "ADDRESS",
				Flags:     []cli.Flag{adminURLFlag(), jsonFlag()},
				Action:    showAddress,
			},
			{
				Name:        "settings",
				Usage:       "show the settings that are, or would be, in force at an address",
				ArgsUsage:   "ADDRESS",
				Description: "The address need not exist.",
				Flags:       []cli.Flag{adminURLFlag(), jsonFlag()},
				Action:      showSettings,
			},
			{
				Name:      "create",
				Usage:     "make an address, for anycast with the queue of its name; one that is there is left as it is",
				ArgsUsage: "ADDRESS",
				Flags:     []cli.Flag{adminURLFlag(), routingFlag()},
				Action:    createAddress,
			},
			{
				Name:      "rm",
				Aliases:   []string{"delete"},
				Usage:     "delete an address with all its queues and their messages",
				ArgsUsage: "ADDRESS",
				Flags:     append(deleteFlags(), adminURLFlag(), yesFlag()),
				Action:    deleteAddress,
			},
		},
	}
}

func addressPath(name string) string { return "/api/v1/addresses/" + url.PathEscape(name) }

func listAddresses(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	var all []admin.Address
	if err := adminGet(c.Context, c.String("admin-url"), "/api/v1/addresses", &all); err != nil {
		return err
	}
	if c.Bool("json") {
		return printIndented(c, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(c.App.ErrWriter, "no addresses")
		return err
	}
	var rows [][]any
	for _, a := range all {
		name := a.Name
		if a.Temporary {
			name += " (temporary)"
		}
		rows = append(rows, []any{name, a.Routing, a.Queues, a.Producers, a.Unrouted})
	}
	return printTable(c, []string{"address", "routing", "queues", "producers", "unrouted"}, rows, 3, 4, 5)
}

// theAddress asks for the address that the only argument names.
func theAddress(c *cli.Context) (name string, a admin.AddressDetail, err error) {
	if name, err = oneArg(c, "ADDRESS"); err != nil {
		return name, a, err
	}
	return name, a, adminGet(c.Context, c.String("admin-url"), addressPath(name), &a)
}

func showAddress(c *cli.Context) error {
	_, a, err := theAddress(c)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printIndented(c, []admin.AddressDetail{a})
	}
	if _, err := fmt.Fprintf(c.App.Writer, "%s: %s, %s, %s found no queue\n", a.Name, a.Routing, plural(a.Producers, "producer"), plural(int(a.Unrouted), "message")); err != nil {
		return err
	}
	if len(a.QueueList) > 0 {
		if _, err := fmt.Fprintf(c.App.Writer, "\n%s\n", queueTable(a.QueueList, terminal(c.App.Writer))); err != nil {
			return err
		}
	}
	fmt.Fprintln(c.App.Writer)
	return printSettings(c, a.Settings)
}

func showSettings(c *cli.Context) error {
	name, err := oneArg(c, "ADDRESS")
	if err != nil {
		return err
	}
	var all []admin.Setting
	if err := adminGet(c.Context, c.String("admin-url"), addressPath(name)+"/settings", &all); err != nil {
		return err
	}
	if c.Bool("json") {
		return printIndented(c, all)
	}
	return printSettings(c, all)
}

func printSettings(c *cli.Context, all []admin.Setting) error {
	var rows [][]any
	for _, s := range all {
		match := s.Match
		if match == "" {
			match = "(default)"
		}
		rows = append(rows, []any{s.Key, s.Value, match})
	}
	return printTable(c, []string{"setting", "value", "match"}, rows)
}

func createAddress(c *cli.Context) error {
	name, err := oneArg(c, "ADDRESS")
	if err != nil {
		return err
	}
	return create(c, "address", name, addressPath(name))
}

func deleteAddress(c *cli.Context) error {
	name, a, err := theAddress(c)
	if err != nil {
		return err
	}
	messages := 0
	for _, q := range a.QueueList {
		messages += q.Messages + q.Delayed + q.Delivering
	}
	if err := confirm(c, "delete address %s with %s and %s", name, plural(a.Queues, "queue"), plural(messages, "message")); err != nil {
		return err
	}
	return remove(c, "address", name, addressPath(name))
}
