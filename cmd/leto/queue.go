package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/admin"
	"github.com/letomq/leto/cmd/leto/config"
)

func queueCommand() *cli.Command {
	return &cli.Command{
		Name:  "queue",
		Usage: "look at queues and change them",
		Description: "A QUEUE is named as clients name it: orders is the queue of that name at the address of that name,\n" +
			"prices::audit the queue audit at the address prices.",
		Subcommands: []*cli.Command{
			{
				Name:    "ls",
				Aliases: []string{"list"},
				Usage:   "list the queues of a broker",
				Flags:   []cli.Flag{adminURLFlag(), jsonFlag()},
				Action:  listQueues,
			},
			{
				Name:      "show",
				Aliases:   []string{"info"},
				Usage:     "show one queue",
				ArgsUsage: "QUEUE",
				Flags:     []cli.Flag{adminURLFlag(), jsonFlag()},
				Action:    showQueue,
			},
			{
				Name:      "create",
				Usage:     "make a queue, and its address if there is none; one that is there is left as it is",
				ArgsUsage: "QUEUE",
				Flags:     []cli.Flag{adminURLFlag(), routingFlag()},
				Action:    createQueue,
			},
			{
				Name:      "rm",
				Aliases:   []string{"delete"},
				Usage:     "delete a queue with its messages",
				ArgsUsage: "QUEUE",
				Flags:     append(deleteFlags(), adminURLFlag(), yesFlag()),
				Action:    deleteQueue,
			},
			{
				Name:        "purge",
				Usage:       "remove the messages that wait in a queue",
				ArgsUsage:   "QUEUE",
				Description: "What consumers have stays with them. Interrupted, it stops where it is.",
				Flags:       append(selectionFlags(), adminURLFlag(), jsonFlag(), yesFlag()),
				Action:      purgeQueue,
			},
			{
				Name:      "move",
				Usage:     "move the messages that wait in a queue to another one",
				ArgsUsage: "QUEUE TO",
				Description: "TO is an address, or ADDRESS::QUEUE. Each message is in one of the two at any moment. Interrupted, it stops where it\n" +
					"is. `leto queue retry TO` moves them back.",
				Flags:  append(selectionFlags(), adminURLFlag(), jsonFlag(), yesFlag()),
				Action: moveMessages,
			},
			{
				Name:      "retry",
				Usage:     "send dead letters, or what has expired or been moved, back to where it came from",
				ArgsUsage: "QUEUE",
				Description: "They begin anew, with no attempt counted. Messages that don't say where they came from, or whose queue is gone and\n" +
					"may not be made on first use, stay.",
				Flags:  append(selectionFlags(), adminURLFlag(), jsonFlag(), yesFlag()),
				Action: retryMessages,
			},
			scheduledCommand(),
			{
				Name:        "pause",
				Usage:       "have a queue give nothing to consumers",
				ArgsUsage:   "QUEUE",
				Description: "It takes messages all the same, and is paused over a restart too.",
				Flags:       []cli.Flag{adminURLFlag()},
				Action:      func(c *cli.Context) error { return pauseQueue(c, "pause", "paused") },
			},
			{
				Name:      "resume",
				Usage:     "have a paused queue go on",
				ArgsUsage: "QUEUE",
				Flags:     []cli.Flag{adminURLFlag()},
				Action:    func(c *cli.Context) error { return pauseQueue(c, "resume", "gives messages") },
			},
			{
				Name:        "peek",
				Usage:       "show messages that wait in a queue, and why they died, without taking them",
				ArgsUsage:   "QUEUE",
				Description: "Unlike `leto browse` it needs no AMQP, and takes a filter.",
				Flags:       append(selectionFlags(), adminURLFlag(), jsonFlag(), bodyBytesFlag()),
				Action:      peekQueue,
			},
		},
	}
}

func routingFlag() cli.Flag {
	return &cli.StringFlag{Name: "routing", Usage: "anycast or multicast; what the address-settings say if it isn't given"}
}

func deleteFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "if-empty", Usage: "only if no message is in it"},
		&cli.BoolFlag{Name: "if-unused", Usage: "only if it isn't used by clients"},
	}
}

// queuePath returns the escaped path of a queue in the API.
func queuePath(name string) string { return "/api/v1/queues/" + url.PathEscape(name) }

func listQueues(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	var queues []admin.Queue
	if err := adminGet(c.Context, c.String("admin-url"), "/api/v1/queues", &queues); err != nil {
		return err
	}
	if c.Bool("json") {
		return printIndented(c, queues)
	}
	if len(queues) == 0 {
		_, err := fmt.Fprintln(c.App.ErrWriter, "no queues")
		return err
	}
	_, err := io.WriteString(c.App.Writer, queueTable(queues, terminal(c.App.Writer))+"\n")
	return err
}

// queueTable draws a frame on a terminal and plain columns elsewhere.
func queueTable(queues []admin.Queue, framed bool) string {
	var rows [][]any
	for _, q := range queues {
		name := q.Name
		if q.Temporary {
			name += " (temporary)"
		}
		size := fmt.Sprint(q.Bytes)
		if framed {
			size = config.Bytes(q.Bytes).String()
		}
		rows = append(rows, []any{name, q.Address, q.Routing, q.Messages, q.Delayed, q.Delivering, size, q.Consumers, q.Added, q.Acknowledged})
	}
	header := []string{"queue", "address", "routing", "messages", "delayed", "delivering", "bytes", "consumers", "added", "acknowledged"}
	return drawTable(header, rows, []int{4, 5, 6, 7, 8, 9, 10}, framed)
}

// theQueue asks for the queue that the only argument names.
func theQueue(c *cli.Context) (name string, q admin.Queue, err error) {
	if name, err = oneArg(c, "QUEUE"); err != nil {
		return name, q, err
	}
	return name, q, adminGet(c.Context, c.String("admin-url"), queuePath(name), &q)
}

func showQueue(c *cli.Context) error {
	_, q, err := theQueue(c)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printIndented(c, []admin.Queue{q})
	}
	rows := [][]any{
		{"queue", q.Name}, {"address", q.Address}, {"routing", q.Routing}, {"durable", q.Durable}, {"temporary", q.Temporary},
		{"messages", q.Messages}, {"on disk only", q.Stored + q.Spilled}, {"delayed", q.Delayed}, {"delivering", q.Delivering}, {"bytes", q.Bytes},
		{"consumers", q.Consumers}, {"paused", q.Paused}, {"added", q.Added}, {"acknowledged", q.Acknowledged},
		{"expired", q.Expired}, {"dead-lettered", q.Killed},
	}
	return printTable(c, []string{"key", "value"}, rows)
}

func createQueue(c *cli.Context) error {
	name, err := oneArg(c, "QUEUE")
	if err != nil {
		return err
	}
	return create(c, "queue", name, queuePath(name))
}

// create makes a queue or an address, and says so.
func create(c *cli.Context, kind, name, path string) error {
	body := map[string]string{}
	switch routing := c.String("routing"); routing {
	case "":
	case string(config.Anycast), string(config.Multicast):
		body["routing"] = routing
	default:
		return usageError("create: --routing is anycast or multicast, not %q", routing)
	}
	status, err := adminChange(c.Context, c.String("admin-url"), http.MethodPut, path, body, nil)
	if err != nil {
		return err
	}
	told := "was there already"
	if status == http.StatusCreated {
		told = "created"
	}
	_, err = fmt.Fprintf(c.App.ErrWriter, "%s %s: %s\n", kind, name, told)
	return err
}

func deleteQueue(c *cli.Context) error {
	name, q, err := theQueue(c)
	if err != nil {
		return err
	}
	if err := confirm(c, "delete queue %s with %s", name, plural(q.Messages+q.Delayed+q.Delivering, "message")); err != nil {
		return err
	}
	return remove(c, "queue", name, queuePath(name))
}

// remove deletes a queue or an address, and says so.
func remove(c *cli.Context, kind, name, path string) error {
	only := url.Values{}
	for _, flag := range []string{"if-empty", "if-unused"} {
		if c.Bool(flag) {
			only.Set(strings.ReplaceAll(flag, "-", "_"), "true")
		}
	}
	if len(only) > 0 {
		path += "?" + only.Encode()
	}
	if _, err := adminChange(c.Context, c.String("admin-url"), http.MethodDelete, path, nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.App.ErrWriter, "%s %s: deleted\n", kind, name)
	return err
}

func purgeQueue(c *cli.Context) error {
	return clearQueue(c, "purge", "purge %s from %s", "purged")
}

func retryMessages(c *cli.Context) error {
	return clearQueue(c, "retry", "send %s of %s back to where they came from", "sent back")
}

func bodyBytesFlag() cli.Flag {
	return &cli.IntFlag{Name: "body-bytes", Value: 4 << 10, Usage: "show `N` bytes of a body at most"}
}

func selectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "filter", Usage: "only those that `SELECTOR` selects, such as \"amount > 10 AND m.x-opt-death-reason LIKE '%timeout%'\""},
		&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Usage: "`N` messages at most"},
	}
}

// selection returns what the flags say, and in words what of so many messages that is.
func selection(c *cli.Context, messages int) (body admin.Clearing, words string, err error) {
	if c.IsSet("count") && c.Int("count") < 1 {
		return body, "", usageError("%s: --count must be 1 or more", c.Command.Name)
	}
	words = plural(messages, "message")
	if c.IsSet("count") {
		body.Count = new(c.Int("count"))
		if *body.Count < messages {
			words = fmt.Sprintf("%d of %s", *body.Count, plural(messages, "message"))
		}
	}
	if c.IsSet("filter") {
		if c.String("filter") == "" { // a script's variable that isn't set must not mean all
			return body, "", usageError("%s: --filter is empty", c.Command.Name)
		}
		body.Filter = new(c.String("filter"))
		words = "what is selected of " + words
	}
	return body, words, nil
}

// clearQueue carries out a command over the messages of the queue that the only argument names.
func clearQueue(c *cli.Context, command, question, done string) error {
	name, q, err := theQueue(c)
	if err != nil {
		return err
	}
	messages := q.Messages
	if command == "purge" { // takes what waits for its time, too
		messages += q.Delayed
	}
	body, words, err := selection(c, messages)
	if err != nil {
		return err
	}
	if err := confirm(c, question, words, name); err != nil {
		return err
	}
	return perform(c, queuePath(name)+"/"+command, body, done)
}

func moveMessages(c *cli.Context) error {
	if c.NArg() != 2 {
		return usageError("move: QUEUE and TO are needed")
	}
	name, to := c.Args().Get(0), c.Args().Get(1)
	var q admin.Queue
	if err := adminGet(c.Context, c.String("admin-url"), queuePath(name), &q); err != nil {
		return err
	}
	body, words, err := selection(c, q.Messages)
	if err != nil {
		return err
	}
	if err := confirm(c, "move %s from %s to %s", words, name, to); err != nil {
		return err
	}
	body.To = to
	return perform(c, queuePath(name)+"/move", body, "moved")
}

func pauseQueue(c *cli.Context, command, done string) error {
	name, err := oneArg(c, "QUEUE")
	if err != nil {
		return err
	}
	if _, err := adminChange(c.Context, c.String("admin-url"), http.MethodPost, queuePath(name)+"/"+command, struct{}{}, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.ErrWriter, "queue %s: %s\n", name, done)
	return err
}
