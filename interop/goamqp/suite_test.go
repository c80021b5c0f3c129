// Package goamqp runs github.com/Azure/go-amqp, as an application would use it,
// against the leto binary.
package goamqp

import (
	"bytes"
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

// client is a session, and what it takes to know that go-amqp has sent its flows.
type client struct {
	*amqp.Session
	meter *meter
}

// dial connects and closes the connection, which has to go well, when the test ends.
func dial(t *testing.T, opts *amqp.ConnOptions) (*amqp.Conn, *meter) {
	t.Helper()
	raw, err := net.DialTimeout("tcp", broker.AMQP, patience)
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{Conn: raw}
	conn, err := amqp.NewConn(waiting(t), m, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, conn) })
	return conn, m
}

// tapped is a session with a record of what passes.
func tapped(t *testing.T) (*client, *wire.Tap) {
	t.Helper()
	raw, err := net.DialTimeout("tcp", broker.AMQP, patience)
	if err != nil {
		t.Fatal(err)
	}
	tap := &wire.Tap{Conn: raw}
	m := &meter{Conn: tap}
	conn, err := amqp.NewConn(waiting(t), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, conn) })
	return begin(t, conn, m), tap
}

func begin(t *testing.T, conn *amqp.Conn, m *meter) *client {
	t.Helper()
	s, err := conn.NewSession(waiting(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &client{s, m}
}

func closes(t *testing.T, conn *amqp.Conn) {
	if err := conn.Close(); err != nil {
		t.Errorf("connection close: %v", err)
	}
}

// session is a session on a connection of its own.
func session(t *testing.T) *client {
	t.Helper()
	conn, m := dial(t, nil)
	return begin(t, conn, m)
}

func sender(t *testing.T, s *client, address string, opts *amqp.SenderOptions) *amqp.Sender {
	t.Helper()
	link, err := s.NewSender(waiting(t), address, opts)
	if err != nil {
		t.Fatalf("sender to %q: %v", address, err)
	}
	return link
}

// consumer is a receiving link of a client.
type consumer struct {
	*amqp.Receiver
	meter *meter
}

func receiver(t *testing.T, s *client, address string, opts *amqp.ReceiverOptions) *consumer {
	t.Helper()
	link, err := s.NewReceiver(waiting(t), address, opts)
	if err != nil {
		t.Fatalf("receiver from %q: %v", address, err)
	}
	return &consumer{link, s.meter}
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

func receive(t *testing.T, from *consumer) *amqp.Message {
	t.Helper()
	m, err := from.Receive(waiting(t), nil)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return m
}

func accept(t *testing.T, from *consumer) *amqp.Message {
	t.Helper()
	m := receive(t, from)
	if err := from.AcceptMessage(waiting(t), m); err != nil {
		t.Fatalf("accept: %v", err)
	}
	return m
}

// empty wants nothing to come for ten credits.
func empty(t *testing.T, from *consumer) {
	t.Helper()
	drained(t, from, 10, 0)
}

// drained grants credit, receives as many messages as are wanted, and drains the
// rest of the credit: the broker answers only after it has sent what it has, so that
// any further message shows.
func drained(t *testing.T, from *consumer, credit uint32, want int) []*amqp.Message {
	t.Helper()
	grant(t, from, credit)
	var got []*amqp.Message
	for range want {
		got = append(got, receive(t, from))
	}
	if err := from.DrainCredit(waiting(t), nil); err != nil {
		t.Fatalf("drain: %v", err)
	}
	for m := from.Prefetched(); m != nil; m = from.Prefetched() {
		t.Errorf("message %q came for %d credits, more than the %d expected", m.GetData(), credit, want)
	}
	return got
}

// grant issues credit and waits until the flow is out: go-amqp sends it some time
// later, and forgets credit that it hasn't announced when it drains.
func grant(t *testing.T, from *consumer, credit uint32) {
	t.Helper()
	before := from.meter.flows()
	if err := from.IssueCredit(credit); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); from.meter.flows() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("go-amqp sends no flow")
		}
	}
}

// meter counts the flow frames that go-amqp writes, each with one call of Write.
type meter struct {
	net.Conn
	count atomic.Int64
}

func (m *meter) flows() int64 { return m.count.Load() }

// Write counts p if it is a flow.
func (m *meter) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	if frame, bad := wire.ReadFrame(bytes.NewReader(p)); bad == nil && frame.Code == wire.CodeFlow {
		m.count.Add(1)
	}
	return n, err
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
