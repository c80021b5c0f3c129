package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/go-amqp"
)

// connectTimeout bounds everything from the TCP connection to the peer's begin.
const connectTimeout = 10 * time.Second

// closeTimeout bounds a clean good-bye: a peer that doesn't answer it is left.
const closeTimeout = 5 * time.Second

// client is one connection with one session to any AMQP 1.0 broker.
type client struct {
	conn    *amqp.Conn
	session *amqp.Session
}

// dial connects as container, or as a name of its own when that is empty.
func dial(ctx context.Context, address, container string) (*client, error) {
	if !strings.Contains(address, "://") {
		address = "amqp://" + address
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return nil, usageError("--url: %q is not amqp://[USER:PASSWORD@]HOST[:PORT]", address)
	}
	switch parsed.Scheme {
	case "amqp", "amqps", "amqp+ssl":
	default:
		return nil, usageError("--url: scheme %q is neither amqp nor amqps", parsed.Scheme)
	}
	if container == "" {
		container = "leto-cli-" + strings.ToLower(rand.Text()[:10])
	}
	options := &amqp.ConnOptions{ContainerID: container}
	if parsed.User == nil {
		options.SASLType = amqp.SASLTypeAnonymous()
	}

	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := amqp.Dial(ctx, parsed.String(), options)
	if err != nil {
		return nil, dialError(parsed.Redacted(), err)
	}
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		_ = conn.Close() // the session's error says more
		return nil, dialError(parsed.Redacted(), err)
	}
	return &client{conn, session}, nil
}

// close ends session and connection. What was sent before is on the wire; errors have nobody to tell.
func (c *client) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = c.session.Close(ctx)
	_ = c.conn.Close()
}

// plural writes "1 message" or "3 messages".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
