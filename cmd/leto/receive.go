package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/urfave/cli/v2"
)

// selectorFilter is the name under which a broker that applies a selector answers with it [3.5.8].
const selectorFilter = "apache.org:selector-filter:string"

// receiveWindow is how many messages may be under way to us.
const receiveWindow = 100

// maxHeld is how many messages wait for their answer before all of them get it.
const maxHeld = 10_000

func receiveCommand() *cli.Command {
	return &cli.Command{
		Name:      "receive",
		Usage:     "take messages from an address and print them",
		ArgsUsage: "ADDRESS",
		Description: "Takes one message, or --count of them, or with --follow whatever arrives until interrupted.\n" +
			"Exits with 7 when fewer came than asked for before --timeout.",
		Flags: append(readFlags(),
			&cli.BoolFlag{Name: "follow", Usage: "go on until interrupted"},
			&cli.StringFlag{Name: "ack", Value: "accept", Usage: "what to answer: accept, reject, release or modify (failed)"},
			&cli.StringFlag{Name: "durable", Usage: "receive from the durable subscription `NAME` and leave it in place"},
			&cli.StringFlag{Name: "shared", Usage: "share the subscription `NAME` with other receivers"},
		),
		Action: receive,
	}
}

func browseCommand() *cli.Command {
	return &cli.Command{
		Name:        "browse",
		Usage:       "print the messages of an address without taking them",
		ArgsUsage:   "ADDRESS",
		Description: "Prints what is there, at most --count messages, and ends when nothing came for --timeout.",
		Flags:       readFlags(),
		Action:      browse,
	}
}

func readFlags() []cli.Flag {
	return []cli.Flag{
		urlFlag(),
		&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Usage: "`N` messages"},
		&cli.DurationFlag{Name: "timeout", Usage: "longest wait `D` for the next message (receive: 10s, browse: 1s)"},
		&cli.StringFlag{Name: "filter", Usage: "only messages that the `SELECTOR` matches"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "text (bodies) or json (an object per line)"},
	}
}

// reading is what receive and browse were asked for.
type reading struct {
	address string
	count   int           // 0: no limit
	exact   bool          // fewer than count is a failure
	follow  bool          // wait for ever
	timeout time.Duration // longest wait for the next message
	ack     string
	// hold answers at the end: what is given back at once would come again and be counted again.
	hold    bool
	filter  string
	print   printer
	options amqp.ReceiverOptions
	// container is fixed where a subscription belongs to it.
	container string
	// keepLink leaves without closing the link, which would end a durable subscription.
	keepLink bool
}

func receive(c *cli.Context) error {
	r, err := readOptions(c)
	if err != nil {
		return err
	}
	r.follow, r.ack = c.Bool("follow"), c.String("ack")
	switch {
	case !c.IsSet("count") && !r.follow:
		r.count = 1
	case c.IsSet("count") && r.count == 0:
		return usageError("receive: --count must be 1 or more")
	}
	r.exact = r.count > 0
	if !c.IsSet("timeout") {
		r.timeout = 10 * time.Second
	}
	switch r.ack {
	case "accept", "reject", "release", "modify":
	default:
		return usageError("receive: --ack must be accept, reject, release or modify, not %q", r.ack)
	}
	if r.follow && c.IsSet("timeout") {
		return usageError("receive: --follow waits for ever: leave --timeout out")
	}
	if d, s := c.String("durable"), c.String("shared"); d != "" && s != "" && d != s {
		return usageError("receive: --durable and --shared together name one subscription, not %q and %q", d, s)
	}
	r.hold = r.count > 0 && (r.ack == "release" || r.ack == "modify")
	subscription(c, r)
	return r.run(c)
}

// subscription asks for what JMS calls durable and shared subscriptions, the way its AMQP mapping
// does it: the link's name is the subscription's, and belongs to the container unless shared.
func subscription(c *cli.Context, r *reading) {
	durable, shared := c.String("durable"), c.String("shared")
	if durable != "" {
		r.options.Name = durable
		r.options.SourceDurability = amqp.DurabilityUnsettledState
		r.options.SourceExpiryPolicy = amqp.ExpiryPolicyNever
		r.options.SourceCapabilities = append(r.options.SourceCapabilities, "topic")
		r.container, r.keepLink = "leto-cli", true
	}
	if shared != "" {
		r.options.Name = shared
		r.options.SourceCapabilities = append(r.options.SourceCapabilities, "shared", "global")
		if durable == "" {
			r.options.SourceCapabilities = append(r.options.SourceCapabilities, "topic")
		}
		r.container = ""
	}
}

func browse(c *cli.Context) error {
	r, err := readOptions(c)
	if err != nil {
		return err
	}
	if !c.IsSet("timeout") {
		r.timeout = time.Second
	}
	r.options.SourceDistributionMode = amqp.SourceDistributionModeCopy
	// A broker that knows no copies hands out the messages themselves: they must go back.
	r.ack, r.hold = "release", true
	return r.run(c)
}

func readOptions(c *cli.Context) (*reading, error) {
	address, err := oneArg(c, "ADDRESS")
	if err != nil {
		return nil, err
	}
	r := &reading{address: address, count: c.Int("count"), timeout: c.Duration("timeout")}
	if r.count < 0 {
		return nil, usageError("%s: --count must not be negative", c.Command.Name)
	}
	if c.IsSet("timeout") && r.timeout <= 0 {
		return nil, usageError("%s: --timeout must be more than 0", c.Command.Name)
	}
	if r.filter = c.String("filter"); r.filter != "" {
		r.options.Filters = []amqp.LinkFilter{amqp.NewSelectorFilter(r.filter)}
	}
	switch c.String("output") {
	case "text":
		r.print = printText
	case "json":
		r.print = printJSON
	default:
		return nil, usageError("%s: --output must be text or json, not %q", c.Command.Name, c.String("output"))
	}
	r.options.Credit = -1 // issued by hand: never more than count, so that nothing is taken and put back
	return r, nil
}

func (r *reading) run(c *cli.Context) error {
	peer, err := dial(c.Context, c.String("url"), r.container)
	if err != nil {
		return err
	}
	defer peer.close()
	attach, cancel := context.WithTimeout(c.Context, connectTimeout)
	link, err := peer.session.NewReceiver(attach, r.address, &r.options)
	cancel()
	if err != nil {
		return amqpError("address "+r.address, err)
	}
	if !r.keepLink {
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			_ = link.Close(ctx) // everything was settled or goes back; the exit code is decided
		}()
	}

	if r.filter != "" && link.LinkSourceFilterValue(selectorFilter) == nil {
		return exitWith(exitFailed, "address %s: the broker doesn't apply filters", r.address)
	}

	got, err := r.read(c.Context, link, func(m *amqp.Message) error { return r.print(c.App.Writer, m) })
	if err != nil {
		return err
	}
	if r.exact && got < r.count {
		return exitWith(exitTimeout, "address %s: %d of %s", r.address, got, plural(r.count, "message"))
	}
	return nil
}

// read prints until enough came, the wait was too long, or ctx ended. It returns how many came.
func (r *reading) read(ctx context.Context, link *amqp.Receiver, print func(*amqp.Message) error) (got int, err error) {
	var credit int           // issued and not used
	var held []*amqp.Message // not answered yet
	answer := func() error {
		for _, m := range held {
			// Also when interrupted: giving back is what was asked for.
			if err := r.settle(context.WithoutCancel(ctx), link, m); err != nil {
				return amqpError("address "+r.address, err)
			}
		}
		held = held[:0]
		return nil
	}
	defer func() {
		if e := answer(); err == nil {
			err = e
		}
	}()
	for r.count == 0 || got < r.count {
		if credit <= receiveWindow/2 {
			more := receiveWindow - credit
			if r.count > 0 {
				more = min(more, r.count-got-credit)
			}
			if more > 0 {
				if err := link.IssueCredit(uint32(more)); err != nil {
					return got, amqpError("address "+r.address, err)
				}
				credit += more
			}
		}
		m, err := r.next(ctx, link)
		if err != nil {
			return got, err
		}
		if m == nil {
			return got, nil
		}
		credit--
		got++
		if err := print(m); err != nil {
			return got, fmt.Errorf("output: %w", err)
		}
		held = append(held, m)
		if !r.hold || len(held) == maxHeld {
			if err := answer(); err != nil {
				return got, err
			}
		}
	}
	return got, nil
}

// next waits for a message. None in time, or an interrupt, is nil without an error.
func (r *reading) next(ctx context.Context, link *amqp.Receiver) (*amqp.Message, error) {
	if m := link.Prefetched(); m != nil {
		return m, nil
	}
	wait := ctx
	if !r.follow {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, r.timeout)
		defer cancel()
	}
	m, err := link.Receive(wait, nil)
	if err != nil && wait.Err() != nil && errors.Is(err, wait.Err()) {
		return nil, nil
	}
	return m, amqpError("address "+r.address, err)
}

func (r *reading) settle(ctx context.Context, link *amqp.Receiver, m *amqp.Message) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	switch r.ack {
	case "accept":
		return link.AcceptMessage(ctx, m)
	case "reject":
		return link.RejectMessage(ctx, m, nil)
	case "release":
		return link.ReleaseMessage(ctx, m)
	case "modify":
		return link.ModifyMessage(ctx, m, &amqp.ModifyMessageOptions{DeliveryFailed: true})
	}
	panic("receive: no answer " + r.ack)
}
