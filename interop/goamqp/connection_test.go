package goamqp

import (
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
			conn, _ := dial(t, &amqp.ConnOptions{SASLType: sasl})
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
	conn, _ := dial(t, &amqp.ConnOptions{IdleTimeout: 2 * time.Second})
	select {
	case <-conn.Done():
		t.Errorf("connection ended while idle: %v", conn.Err())
	case <-time.After(5 * time.Second):
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
	from, err := s.NewReceiver(waiting(t), "stop", nil)
	if err != nil {
		t.Fatal(err)
	}
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
	own := harness.Start(t, "--set", "address-settings[closed.#].auto-create-addresses=false",
		"--set", "address-settings[closed.#].auto-create-queues=false")
	conn, err := amqp.Dial(waiting(t), own.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closes(t, conn)
	s := begin(t, conn, nil)
	out, from := sender(t, s, "open", nil), receiver(t, s, "open", nil)
	for range 3 {
		_, sends := s.NewSender(waiting(t), "closed.one", nil)
		_, receives := s.NewReceiver(waiting(t), "closed.one", nil)
		for _, err := range []error{sends, receives} {
			var refused *amqp.Error
			if !errors.As(err, &refused) || refused.Condition != amqp.ErrCondNotFound || refused.Description == "" {
				t.Errorf("an unknown address was answered with %v, want %s and why", err, amqp.ErrCondNotFound)
			}
		}
		send(t, out, text("goes on"))
		accept(t, from)
	}
}
