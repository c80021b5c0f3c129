package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/urfave/cli/v2"
)

// sendWindow is how many messages may wait for their outcome. Enough to keep a link busy over a
// network, little enough that an abort leaves few in doubt.
const sendWindow = 500

func sendCommand() *cli.Command {
	return &cli.Command{
		Name:      "send",
		Usage:     "send messages to an address",
		ArgsUsage: "ADDRESS [BODY | -]",
		Description: "The body is the argument, standard input (-), the content of --file, or --size bytes.\n" +
			"Text is sent as an amqp-value string, anything else as data.",
		Flags: []cli.Flag{
			urlFlag(),
			&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "read the body from `FILE`"},
			&cli.IntFlag{Name: "size", Usage: "make a body of so many `BYTES`"},
			&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Value: 1, Usage: "send the message `N` times"},
			&cli.StringSliceFlag{Name: "property", Aliases: []string{"p"}, Usage: "application property `K=V`; K:int=V, long, double or bool give V that type"},
			&cli.StringFlag{Name: "subject", Usage: "subject `S`"},
			&cli.StringFlag{Name: "id", Usage: "message id `ID`"},
			&cli.StringFlag{Name: "group", Usage: "group id `G`"},
			&cli.DurationFlag{Name: "ttl", Usage: "time to live `D`, such as 30s"},
			&cli.DurationFlag{Name: "delay", Usage: "deliver after `D`, such as 30s"},
			&cli.IntFlag{Name: "priority", Value: 4, Usage: "`P` from 0 (low) to 9 (high)"},
			&cli.BoolFlag{Name: "durable", Value: true, Usage: "survive a restart of the broker; --durable=false to not"},
			&cli.BoolFlag{Name: "settled", Usage: "don't wait for the broker's answer (at most once)"},
			&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "longest wait `D` for the broker to take a message"},
		},
		Action: send,
	}
}

func send(c *cli.Context) error {
	address := c.Args().First()
	if address == "" {
		return usageError("send: ADDRESS is missing")
	}
	count := c.Int("count")
	if count < 1 {
		return usageError("send: --count must be 1 or more")
	}
	if c.Duration("timeout") <= 0 {
		return usageError("send: --timeout must be more than 0")
	}
	message, err := composeMessage(c)
	if err != nil {
		return err
	}
	peer, err := dial(c.Context, c.String("url"), "")
	if err != nil {
		return err
	}
	defer peer.close()

	options := &amqp.SenderOptions{SettlementMode: amqp.SenderSettleModeUnsettled.Ptr()}
	if c.Bool("settled") {
		options.SettlementMode = amqp.SenderSettleModeSettled.Ptr()
	}
	ctx, cancel := context.WithTimeout(c.Context, connectTimeout)
	defer cancel()
	link, err := peer.session.NewSender(ctx, address, options)
	if err != nil {
		return amqpError("address "+address, err)
	}
	s := sender{link: link, address: address, timeout: c.Duration("timeout"), settled: c.Bool("settled")}
	begin := time.Now()
	if err := s.send(c.Context, message, count); err != nil {
		if s.done > 0 {
			fmt.Fprintf(c.App.ErrWriter, "%s sent before that\n", plural(s.done, "message"))
		}
		return err
	}
	took := time.Since(begin)
	if count > 1 {
		fmt.Fprintf(c.App.ErrWriter, "sent %s to %s in %s (%.0f/s)\n",
			plural(count, "message"), address, took.Round(time.Millisecond), float64(count)/took.Seconds())
	}
	return nil
}

// sender sends with a window of unconfirmed messages and stops at the first that isn't accepted.
type sender struct {
	link    *amqp.Sender
	address string
	timeout time.Duration // for one message to be taken
	settled bool

	pending []amqp.SendReceipt // oldest first
	done    int                // messages accepted, or sent settled
}

func (s *sender) send(ctx context.Context, message *amqp.Message, count int) error {
	for range count {
		if err := s.one(ctx, message); err != nil {
			return err
		}
	}
	for len(s.pending) > 0 {
		if err := s.confirm(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *sender) one(ctx context.Context, message *amqp.Message) error {
	if len(s.pending) == sendWindow {
		if err := s.confirm(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.settled {
		if err := s.link.Send(ctx, message, nil); err != nil {
			return s.sendError(ctx, err)
		}
		s.done++
		return nil
	}
	receipt, err := s.link.SendWithReceipt(ctx, message, nil)
	if err != nil {
		return s.sendError(ctx, err)
	}
	s.pending = append(s.pending, receipt)
	return nil
}

// sendError tells a broker that gave no credit from one that ended the link: the client reports
// the first as a transfer limit.
func (s *sender) sendError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return exitWith(exitTimeout, "address %s: the broker takes no messages: no credit for %s", s.address, s.timeout)
	}
	return amqpError("address "+s.address, err)
}

// confirm waits for the outcome of the oldest message.
func (s *sender) confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	state, err := s.pending[0].Wait(ctx)
	if err != nil {
		return amqpError(fmt.Sprintf("message %d to %s", s.done+1, s.address), err)
	}
	s.pending = s.pending[1:]
	switch outcome := state.(type) {
	case *amqp.StateAccepted:
		s.done++
		return nil
	case *amqp.StateRejected:
		reason := "no reason given"
		if outcome.Error != nil {
			reason = conditionText(outcome.Error)
		}
		return exitWith(exitRefused, "message %d to %s was rejected: %s", s.done+1, s.address, reason)
	case *amqp.StateReleased:
		return exitWith(exitRefused, "message %d to %s was released: nobody takes it at present", s.done+1, s.address)
	case *amqp.StateModified:
		return exitWith(exitRefused, "message %d to %s was given back (modified)", s.done+1, s.address)
	default:
		return exitWith(exitFailed, "message %d to %s ended in state %T", s.done+1, s.address, outcome)
	}
}

// readBody finds the body: argument, standard input, file or a number of bytes. Exactly one of them.
func readBody(c *cli.Context) ([]byte, error) {
	if c.NArg() > 2 {
		return nil, usageError("send: unexpected argument %q", c.Args().Get(2))
	}
	given := 0
	for _, is := range []bool{c.NArg() == 2, c.IsSet("file"), c.IsSet("size")} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return nil, usageError("send: the body is missing: give BODY, - for standard input, --file or --size")
	case given > 1:
		return nil, usageError("send: give one body: BODY, - for standard input, --file or --size")
	case c.IsSet("size"):
		if n := c.Int("size"); n < 0 || n > maxBody {
			return nil, usageError("send: --size must be 0 to %d", maxBody)
		}
		return make([]byte, c.Int("size")), nil
	case c.IsSet("file"):
		file, err := os.Open(c.String("file"))
		if err != nil {
			return nil, usageError("send: --file: %v", err)
		}
		defer file.Close()
		return readAll(file)
	case c.Args().Get(1) == "-":
		return readAll(c.App.Reader)
	}
	return []byte(c.Args().Get(1)), nil
}

// maxBody bounds what is read into memory before the broker is asked: 1 GiB.
const maxBody = 1 << 30

func readAll(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	if len(body) > maxBody {
		return nil, usageError("send: the body is larger than %d bytes", maxBody)
	}
	return body, nil
}
