package goamqp

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/letomq/leto/interop/harness"
)

// late is how much later than its time a message may come here, beside other tests.
const late = 5 * time.Second

// within wants a time to lie between two others.
func within(t *testing.T, what string, at, from, to time.Time) {
	t.Helper()
	if at.Before(from) || at.After(to) {
		t.Errorf("%s came %v after its time, want at most %v", what, at.Sub(from), to.Sub(from))
	}
}

// Messages that are sent for later come in the order of their times, behind those that wait for nothing, and not before.
func TestSentForLater(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	begun := time.Now().Truncate(time.Millisecond)
	for _, c := range []struct {
		body string
		key  string
		says any
	}{
		{"third", "x-opt-delivery-delay", int64(900)},
		{"second", "x-opt-delivery-time", begun.Add(500 * time.Millisecond)},
		{"first", "x-opt-delivery-delay", int32(-1)},
	} {
		m := text("%s", c.body)
		m.Annotations = amqp.Annotations{c.key: c.says}
		send(t, sender(t, s, to, nil), m)
	}
	from := receiver(t, s, to, nil)
	for i, after := range []time.Duration{0, 500 * time.Millisecond, 900 * time.Millisecond} {
		m := accept(t, from)
		if body := string(m.GetData()); body != []string{"first", "second", "third"}[i] {
			t.Errorf("message %d is %q", i, body)
		}
		within(t, string(m.GetData()), time.Now(), begun.Add(after), begun.Add(after+late))
	}
}

// What is no time is refused, and only that message.
func TestSentForNoTime(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	m := text("soon")
	m.Annotations = amqp.Annotations{"x-opt-delivery-delay": "soon"}
	out := sender(t, s, to, nil)
	if err := out.Send(waiting(t), m, nil); err == nil {
		t.Error("a delay of \"soon\" was taken")
	}
	send(t, sender(t, s, to, nil), text("now"))
	if got := string(accept(t, receiver(t, s, to, nil)).GetData()); got != "now" {
		t.Errorf("got %q", got)
	}
}

// A message that fails waits longer from attempt to attempt, as the settings say; the consumer may say otherwise; counts and times
// survive SIGKILL.
func TestRedeliveryDelays(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "leto.yaml")
	if err := os.WriteFile(file, []byte(`
address-settings:
  - match: orders
    redelivery-delay: 200
    redelivery-delay-multiplier: 2
    max-redelivery-delay: 700ms
    max-delivery-attempts: 6
`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := harness.Start(t, "--config", file)
	open := func() *client {
		conn, err := amqp.Dial(waiting(t), b.URL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := conn.NewSession(waiting(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		return &client{Session: s}
	}
	told := &amqp.ReceiverOptions{SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()} // when an outcome is safe
	s := open()
	m := text("poison")
	m.Header = &amqp.MessageHeader{Durable: true}
	send(t, sender(t, s, "orders", nil), m)
	from := receiver(t, s, "orders", told)
	failed, wait := time.Now(), time.Duration(0)
	for i, next := range []time.Duration{200, 400, 700, 1500, 700} {
		m := receive(t, from)
		within(t, fmt.Sprintf("attempt %d", i), time.Now(), failed.Add(wait), failed.Add(wait+late))
		if deliveryCount(m) != uint32(i) {
			t.Errorf("attempt %d has count %d", i, deliveryCount(m))
		}
		failed, wait = time.Now(), next*time.Millisecond
		opts := &amqp.ModifyMessageOptions{DeliveryFailed: true}
		if i == 3 {
			opts.Annotations = amqp.Annotations{"x-opt-delivery-delay": int64(1500), "x-opt-why": "because"}
		}
		if err := from.ModifyMessage(waiting(t), m, opts); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			if err := b.Again(); err != nil {
				t.Fatal(err)
			}
			s = open()
			from = receiver(t, s, "orders", told)
		}
		if i == 4 && m.Annotations["x-opt-why"] != "because" {
			t.Errorf("annotations are %v", m.Annotations)
		}
	}
	m = receive(t, from)
	if err := from.ModifyMessage(waiting(t), m, &amqp.ModifyMessageOptions{DeliveryFailed: true}); err != nil {
		t.Fatal(err)
	}
	dead := accept(t, receiver(t, s, "DLQ", nil))
	if deliveryCount(dead) != 6 || string(dead.GetData()) != "poison" {
		t.Errorf("dead letter %q has count %d", dead.GetData(), deliveryCount(dead))
	}
}
