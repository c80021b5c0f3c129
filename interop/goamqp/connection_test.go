package goamqp

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/letomq/leto/interop/harness"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, sasl := range map[string]amqp.SASLType{"plain-header": nil, "anonymous": amqp.SASLTypeAnonymous()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, &amqp.ConnOptions{SASLType: sasl})
			properties := conn.Properties()
			if properties["product"] != "leto" {
				t.Errorf("open: product %v, want leto", properties["product"])
			}
			for _, key := range []string{"version", "platform"} {
				if value, _ := properties[key].(string); value == "" {
					t.Errorf("open: no %s", key)
				}
			}
		})
	}
}

// TestHeartbeats stays idle on a connection whose client closes after silence.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	conn := dial(t, &amqp.ConnOptions{IdleTimeout: time.Second})
	select {
	case <-conn.Done():
		t.Errorf("connection ended while idle: %v", conn.Err())
	case <-time.After(3 * time.Second):
	}
}

// TestStop has clients see a broker that is told to stop.
func TestStop(t *testing.T) {
	t.Parallel()
	own := harness.Start(t)
	conn, err := amqp.Dial(waiting(t), own.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := conn.NewSession(waiting(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	from := receiver(t, s, "stop", nil)
	own.Signal(syscall.SIGTERM)
	_, err = from.Receive(waiting(t), nil)
	var ended *amqp.ConnError
	if !errors.As(err, &ended) || ended.RemoteErr == nil || ended.RemoteErr.Condition != amqp.ErrCondConnectionForced {
		t.Errorf("got %v, want the condition %s", err, amqp.ErrCondConnectionForced)
	}
	select {
	case <-own.Ended():
	case <-time.After(patience):
		t.Error("broker still runs after SIGTERM")
	}
}

// TestRefusedAttach leaves the session and its other links as they are.
func TestRefusedAttach(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	out, from := sender(t, s, to, nil), receiver(t, s, to, nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := s.NewReceiver(ctx, to, &amqp.ReceiverOptions{Filters: []amqp.LinkFilter{amqp.NewSelectorFilter("this is ( not a selector")}})
	var refused *amqp.Error
	if !errors.As(err, &refused) || refused.Condition == "" || refused.Description == "" {
		t.Errorf("a broken selector was answered with %v, want an error that says why", err)
	}
	send(t, out, text("goes on"))
	accept(t, from)
}
