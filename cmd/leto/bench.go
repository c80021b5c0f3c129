package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/cmd/leto/bench"
)

func init() { moreCommands = append(moreCommands, benchCommand()) }

func benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "put load on a broker and measure it",
		Description: "Works against any AMQP 1.0 broker. Checks that every message arrives once and in order.\n" +
			"With --consumers 0 it only fills, with --producers 0 it only drains. Exits with 7 when fewer arrive than asked.",
		Flags: []cli.Flag{
			urlFlag(), jsonFlag(),
			&cli.StringFlag{Name: "address", Value: "bench", Usage: "`ADDRESS` to send to and receive from"},
			&cli.IntFlag{Name: "queues", Value: 1, Usage: "spread over `N` queues: ADDRESS.0, ADDRESS.1, …"},
			&cli.IntFlag{Name: "producers", Value: 1, Usage: "`N` connections that send"},
			&cli.IntFlag{Name: "consumers", Value: 1, Usage: "`N` connections that receive"},
			&cli.Uint64Flag{Name: "count", Usage: "`N` messages in all"},
			&cli.DurationFlag{Name: "duration", Usage: "send for `D` (default 10s without --count)"},
			&cli.DurationFlag{Name: "warmup", Usage: "send for `D` before that, which is checked and not measured"},
			&cli.StringFlag{Name: "size", Value: "256", Usage: "`BYTES` of each body: 256, 1KiB, 10MiB"},
			&cli.Float64Flag{Name: "rate", Usage: "`N` messages per second in all, on a schedule that waits for nobody: latency counts from when a message was due (default: as fast as it goes)"},
			&cli.BoolFlag{Name: "durable", Usage: "send durable messages; without it they say that they are not"},
			&cli.BoolFlag{Name: "settled", Usage: "at most once: nothing is acknowledged"},
			&cli.BoolFlag{Name: "topic", Usage: "ask for a topic: every consumer gets every message"},
			&cli.IntFlag{Name: "credit", Value: 1000, Usage: "messages a consumer may have under way"},
			&cli.IntFlag{Name: "ahead", Usage: "producers wait when they are `N` messages ahead of the slowest consumer (default: never)"},
			&cli.IntFlag{Name: "ack-every", Usage: "settle `N` messages with one disposition (default: those that came in one read)"},
			&cli.IntFlag{Name: "inflight", Value: 1000, Usage: "unacknowledged messages of a producer; 1 is a closed loop"},
			&cli.DurationFlag{Name: "timeout", Value: 10 * time.Second, Usage: "give up when nothing arrives for `D`"},
			&cli.IntFlag{Name: "pid", Usage: "also report CPU time and memory of process `PID` and its descendants: a broker on this machine"},
		},
		Action: runBench,
	}
}

func runBench(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	o, err := benchOptions(c)
	if err != nil {
		return err
	}
	if !c.Bool("json") {
		o.Progress = func(sent, received uint64) {
			fmt.Fprintf(c.App.ErrWriter, "sent %d, received %d\n", sent, received)
		}
	}
	report, err := bench.Run(c.Context, o)
	if report == nil {
		return benchError(err)
	}
	print := printReport
	if c.Bool("json") {
		print = printReportJSON
	}
	if failed := print(c.App.Writer, report); failed != nil {
		return failed
	}
	switch {
	case err != nil:
		return benchError(err)
	case report.Duplicates > 0 || report.OutOfOrder > 0:
		return exitWith(exitFailed, "bench: %d messages came twice, %d out of order", report.Duplicates, report.OutOfOrder)
	case report.Refused > 0:
		return exitWith(exitRefused, "bench: the broker refused %d messages", report.Refused)
	case report.Lost > 0:
		return exitWith(exitTimeout, "bench: %d messages did not arrive", report.Lost)
	case o.Producers == 0 && report.Received < o.Count:
		return exitWith(exitTimeout, "bench: %d messages came, %d were asked for", report.Received, o.Count)
	}
	return nil
}

func benchOptions(c *cli.Context) (bench.Options, error) {
	size, err := parseBenchSize(c.String("size"))
	if err != nil {
		return bench.Options{}, usageError("bench: --size: %v", err)
	}
	u, err := url.Parse(c.String("url"))
	if err != nil || u.Scheme != "amqp" || u.Host == "" {
		return bench.Options{}, usageError("bench: --url must be amqp://HOST[:PORT], not %q", c.String("url"))
	}
	o := bench.Options{
		URL: u, Address: c.String("address"), Queues: c.Int("queues"),
		Producers: c.Int("producers"), Consumers: c.Int("consumers"),
		Count: c.Uint64("count"), Duration: c.Duration("duration"), Warmup: c.Duration("warmup"),
		Size: size, Rate: c.Float64("rate"), Durable: c.Bool("durable"), Settled: c.Bool("settled"),
		Topic: c.Bool("topic"), Credit: c.Int("credit"), Inflight: c.Int("inflight"), AckEvery: c.Int("ack-every"),
		Ahead: c.Int("ahead"),
		Idle:  c.Duration("timeout"), PID: c.Int("pid"),
	}
	if o.Count == 0 && o.Duration == 0 {
		o.Duration = 10 * time.Second
	}
	if err := o.Validate(); err != nil {
		return o, usageError("bench: %v", err)
	}
	return o, nil
}

func parseBenchSize(text string) (int, error) {
	number, unit := strings.TrimRight(text, "KMiB"), 1
	switch text[len(number):] {
	case "", "B":
	case "KiB":
		unit = 1 << 10
	case "MiB":
		unit = 1 << 20
	default:
		return 0, fmt.Errorf("%q isn't a size such as 256, 4KiB or 10MiB", text)
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0, fmt.Errorf("%q isn't a size such as 256, 4KiB or 10MiB", text)
	}
	return n * unit, nil
}

func benchError(err error) error {
	var connect *bench.ConnectError
	var refused *bench.RefusedError
	switch {
	case errors.As(err, &connect):
		return exitWith(exitConnect, "bench: %v", err)
	case errors.As(err, &refused) && refused.Cause != nil:
		switch refused.Cause.Condition {
		case amqp.ConditionNotFound:
			return exitWith(exitNotFound, "bench: %v", err)
		case amqp.ConditionUnauthorizedAccess, amqp.ConditionNotAllowed:
			return exitWith(exitForbidden, "bench: %v", err)
		}
	}
	return exitWith(exitFailed, "bench: %v", err)
}

func printReportJSON(w io.Writer, r *bench.Report) error { return json.NewEncoder(w).Encode([]any{r}) }

func printReport(w io.Writer, r *bench.Report) error {
	fmt.Fprintf(w, "sent      %d in %.2fs, %.0f/s", r.Sent, r.Seconds, r.SendRate)
	fmt.Fprintf(w, "\nreceived  %d, %.0f/s\n", r.Received, r.ReceiveRate)
	fmt.Fprintf(w, "checked   %d lost, %d twice, %d out of order, %d refused, %d foreign\n", r.Lost, r.Duplicates, r.OutOfOrder, r.Refused, r.Foreign)
	for _, l := range []struct {
		name string
		of   *bench.Latency
	}{{"confirm", r.Confirm}, {"delivery", r.Delivery}, {"late", r.Late}} {
		if l.of != nil {
			fmt.Fprintf(w, "%-9s p50 %.1f  p90 %.1f  p99 %.1f  p99.9 %.1f  max %.1f µs\n", l.name, l.of.P50, l.of.P90, l.of.P99, l.of.P999, l.of.Max)
		}
	}
	fmt.Fprintf(w, "client    %.2f µs of CPU per message\n", r.ClientCPU)
	if b := r.Broker; b != nil {
		fmt.Fprintf(w, "broker    %.2f µs of CPU per message, %.2f of it in the kernel; %.1f MiB resident, %.1f at most\n",
			b.CPU, b.System, float64(b.ResidentBefore)/(1<<20), float64(b.ResidentPeak)/(1<<20))
	}
	return nil
}
