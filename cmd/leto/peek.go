package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/admin"
)

// pageSize is how many messages are asked for at once.
const pageSize = 200

// peekQueue shows messages that wait in a queue to be delivered.
func peekQueue(c *cli.Context) error { return peek(c, "messages") }

// peekScheduled shows messages that wait for their time.
func peekScheduled(c *cli.Context) error { return peek(c, "scheduled") }

// peek shows messages of a queue, all unless a count is given, with --json one object a line.
func peek(c *cli.Context, list string) error {
	name, err := oneArg(c, "QUEUE")
	if err != nil {
		return err
	}
	if c.IsSet("count") && c.Int("count") < 1 {
		return usageError("%s: --count must be 1 or more", c.Command.Name)
	}
	query := url.Values{"body_bytes": {strconv.Itoa(c.Int("body-bytes"))}}
	if filter := c.String("filter"); filter != "" {
		query.Set("filter", filter)
	}
	encoder := json.NewEncoder(c.App.Writer)
	for left := c.Int("count"); ; {
		n := pageSize
		if c.IsSet("count") {
			n = min(n, left)
		}
		query.Set("count", strconv.Itoa(n))
		var page admin.MessagePage
		if err := adminGet(c.Context, c.String("admin-url"), queuePath(name)+"/"+list+"?"+query.Encode(), &page); err != nil {
			return err
		}
		for _, m := range page.Messages {
			if c.Bool("json") {
				err = encoder.Encode(m)
			} else {
				err = printPeeked(c, m)
			}
			if err != nil {
				return err
			}
		}
		left -= len(page.Messages)
		if page.Next == "" || c.IsSet("count") && left == 0 {
			return nil
		}
		query.Set("after", page.Next)
	}
}

// peekTime is how times are written: to the millisecond.
const peekTime = "2006-01-02T15:04:05.000Z07:00"

// printPeeked writes what an operator asks first, a line, and the body.
func printPeeked(c *cli.Context, m admin.Message) error {
	head := fmt.Sprintf("#%d, %d bytes, priority %d", m.Number, m.Size, m.Priority)
	if m.DueAt != nil {
		head += ", due at " + m.DueAt.Format(peekTime)
	}
	if m.DeliveryCount > 0 {
		head += ", " + plural(int(m.DeliveryCount), "failed attempt")
	}
	if m.MessageID != nil {
		head += fmt.Sprintf(", id %v", m.MessageID)
	}
	if m.OriginalAddress != "" {
		head += ", from " + m.OriginalAddress
		if m.OriginalQueue != m.OriginalAddress {
			head += "::" + m.OriginalQueue
		}
	}
	switch {
	case m.DeathReason != "":
		head += ", died"
		if m.DiedAt != nil {
			head += " at " + m.DiedAt.Format(peekTime)
		}
		head += ": " + oneLine(m.DeathReason)
	case m.ExpiredAt != nil:
		head += ", expired at " + m.ExpiredAt.Format(peekTime)
	}
	if _, err := fmt.Fprintln(c.App.Writer, head); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(m.ApplicationProperties)) {
		if _, err := fmt.Fprintf(c.App.Writer, "    %s = %v\n", key, m.ApplicationProperties[key]); err != nil {
			return err
		}
	}
	body, more := m.Body, ""
	if m.BodyBase64 != "" {
		body = "base64 " + m.BodyBase64
	}
	if m.Truncated {
		more = " …"
	}
	if body == nil && more == "" {
		return nil
	}
	if text, ok := body.(string); ok {
		_, err := fmt.Fprintf(c.App.Writer, "    %s%s\n", text, more)
		return err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "    %s%s\n", text, more)
	return err
}
