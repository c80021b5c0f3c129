package main

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/Azure/go-amqp"
	"github.com/urfave/cli/v2"
)

// composeMessage builds the message that the flags and the body of `leto send` describe.
func composeMessage(c *cli.Context) (*amqp.Message, error) {
	body, err := readBody(c)
	if err != nil {
		return nil, err
	}
	priority := c.Int("priority")
	if priority < 0 || priority > 9 {
		return nil, usageError("send: --priority must be 0 to 9")
	}
	ttl, delay := c.Duration("ttl"), c.Duration("delay")
	// Both travel in milliseconds: header.ttl as uint [3.2.1], the annotation as long.
	if ttl < 0 || ttl > 0 && ttl < time.Millisecond || ttl.Milliseconds() > 1<<32-1 {
		return nil, usageError("send: --ttl must be 1ms to 1193h")
	}
	if delay < 0 {
		return nil, usageError("send: --delay must not be negative")
	}
	message := &amqp.Message{
		Header: &amqp.MessageHeader{Durable: c.Bool("durable"), Priority: uint8(priority), TTL: ttl},
	}
	if delay > 0 {
		message.Annotations = amqp.Annotations{"x-opt-delivery-delay": delay.Milliseconds()}
	}
	if c.IsSet("subject") || c.IsSet("id") || c.IsSet("group") {
		message.Properties = &amqp.MessageProperties{}
		if c.IsSet("id") {
			message.Properties.MessageID = c.String("id")
		}
		if c.IsSet("subject") {
			message.Properties.Subject = new(c.String("subject"))
		}
		if c.IsSet("group") {
			message.Properties.GroupID = new(c.String("group"))
		}
	}
	for _, text := range c.StringSlice("property") {
		key, value, err := parseProperty(text)
		if err != nil {
			return nil, err
		}
		if message.ApplicationProperties == nil {
			message.ApplicationProperties = map[string]any{}
		}
		message.ApplicationProperties[key] = value
	}
	if utf8.Valid(body) && !c.IsSet("size") {
		message.Value = string(body)
	} else {
		message.Data = [][]byte{body}
	}
	return message, nil
}

// parseProperty reads K=V, where K may end in the name of a type: amount:int=5.
func parseProperty(text string) (key string, value any, err error) {
	key, raw, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return "", nil, usageError("send: --property %q is not K=V", text)
	}
	value = raw
	if name, kind, typed := cutLast(key, ":"); typed && name != "" {
		switch kind {
		case "int":
			n, e := strconv.ParseInt(raw, 10, 32)
			key, value, err = name, int32(n), e
		case "long":
			key = name
			value, err = strconv.ParseInt(raw, 10, 64)
		case "double":
			key = name
			value, err = strconv.ParseFloat(raw, 64)
		case "bool":
			key = name
			value, err = strconv.ParseBool(raw)
		}
		if err != nil {
			return "", nil, usageError("send: --property %s: %q is no %s", name, raw, kind)
		}
	}
	return key, value, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
