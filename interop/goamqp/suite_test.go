// Package goamqp runs github.com/Azure/go-amqp, as an application would use it,
// against the leto binary.
package goamqp

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// broker is shared by all tests; each uses addresses of its own.
var broker *harness.Broker

func TestMain(m *testing.M) { os.Exit(harness.Run(m, &broker)) }

// patience bounds every single wait of a test.
const patience = 20 * time.Second

var serial atomic.Int64

// address returns an address that no other test uses.
func address(t *testing.T) string {
	name := strings.NewReplacer("/", "-", ".", "-", " ", "-").Replace(t.Name())
	return fmt.Sprintf("%s-%d", name, serial.Add(1))
}

// waiting is a context for one test's waits.
func waiting(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// dial connects and closes the connection, which has to go well, when the test ends.
func dial(t *testing.T, opts *amqp.ConnOptions) *amqp.Conn {
	t.Helper()
	conn, err := amqp.Dial(waiting(t), broker.URL(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, conn) })
	return conn
}

// tapped is dial with a record of what passes.
func tapped(t *testing.T) (*amqp.Session, *wire.Tap) {
	t.Helper()
	raw, err := net.DialTimeout("tcp", broker.AMQP, patience)
	if err != nil {
		t.Fatal(err)
	}
	tap := &wire.Tap{Conn: raw}
	conn, err := amqp.NewConn(waiting(t), tap, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, conn) })
	session, err := conn.NewSession(waiting(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return session, tap
}

func closes(t *testing.T, conn *amqp.Conn) {
	if err := conn.Close(); err != nil {
		t.Errorf("connection close: %v", err)
	}
}

// session is a session on a connection of its own.
func session(t *testing.T) *amqp.Session {
	t.Helper()
	s, err := dial(t, nil).NewSession(waiting(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sender(t *testing.T, s *amqp.Session, address string, opts *amqp.SenderOptions) *amqp.Sender {
	t.Helper()
	link, err := s.NewSender(waiting(t), address, opts)
	if err != nil {
		t.Fatalf("sender to %q: %v", address, err)
	}
	return link
}

func receiver(t *testing.T, s *amqp.Session, address string, opts *amqp.ReceiverOptions) *amqp.Receiver {
	t.Helper()
	link, err := s.NewReceiver(waiting(t), address, opts)
	if err != nil {
		t.Fatalf("receiver from %q: %v", address, err)
	}
	return link
}

// manual are receiver options that leave credit to the test.
func manual() *amqp.ReceiverOptions { return &amqp.ReceiverOptions{Credit: -1} }

func send(t *testing.T, to *amqp.Sender, messages ...*amqp.Message) {
	t.Helper()
	for i, m := range messages {
		if err := to.Send(waiting(t), m, nil); err != nil {
			t.Fatalf("send %d: %v", i, err)
		}
	}
}

func receive(t *testing.T, from *amqp.Receiver) *amqp.Message {
	t.Helper()
	m, err := from.Receive(waiting(t), nil)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return m
}

func accept(t *testing.T, from *amqp.Receiver) *amqp.Message {
	t.Helper()
	m := receive(t, from)
	if err := from.AcceptMessage(waiting(t), m); err != nil {
		t.Fatalf("accept: %v", err)
	}
	return m
}

// empty drains a receiver with manual credit and wants nothing to come: the broker
// answers a drain only after it has sent what it has.
func empty(t *testing.T, from *amqp.Receiver) {
	t.Helper()
	if rest := drained(t, from, 10); len(rest) > 0 {
		t.Errorf("%d more messages, the first %q", len(rest), rest[0].GetData())
	}
}

// drained grants credit, drains, and returns what came.
func drained(t *testing.T, from *amqp.Receiver, credit uint32) []*amqp.Message {
	t.Helper()
	if err := from.IssueCredit(credit); err != nil {
		t.Fatal(err)
	}
	if err := from.DrainCredit(waiting(t), nil); err != nil {
		t.Fatalf("drain: %v", err)
	}
	var got []*amqp.Message
	for m := from.Prefetched(); m != nil; m = from.Prefetched() {
		got = append(got, m)
	}
	return got
}

func text(format string, args ...any) *amqp.Message {
	return amqp.NewMessage(fmt.Appendf(nil, format, args...))
}

func ptr[T any](v T) *T { return &v }

func deliveryCount(m *amqp.Message) uint32 {
	if m.Header == nil {
		return 0
	}
	return m.Header.DeliveryCount
}
