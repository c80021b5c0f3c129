package goamqp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

// marked is a message that can be told from all others in a shared queue.
func marked(t *testing.T) *amqp.Message {
	m := text("marked")
	m.Properties = &amqp.MessageProperties{MessageID: address(t)}
	return m
}

// find browses a queue that all tests share until the message with the id is there.
func find(t *testing.T, queue string, id any) *amqp.Message {
	t.Helper()
	browsing := session(t)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		browser := receiver(t, browsing, queue, &amqp.ReceiverOptions{Credit: 10_000, SourceDistributionMode: amqp.SourceDistributionModeCopy})
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			m, err := browser.Receive(ctx, nil)
			cancel()
			if err != nil {
				break // seen all that is there
			}
			if m.Properties != nil && m.Properties.MessageID == id {
				return m
			}
		}
		if err := browser.Close(waiting(t)); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("message %v doesn't come to %s", id, queue)
	return nil
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	send(t, sender(t, s, to, nil), text("once"))
	from := receiver(t, s, to, nil)
	accept(t, from)
	if err := from.Close(waiting(t)); err != nil {
		t.Fatal(err)
	}
	empty(t, receiver(t, session(t), to, manual()))
}

func TestRejected(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	m := marked(t)
	m.Annotations = amqp.Annotations{"x-opt-mine": "kept"}
	send(t, sender(t, s, to, nil), m)
	from := receiver(t, s, to, manual())
	grant(t, from, 1)
	why := &amqp.Error{Condition: "app:bad-order", Description: "no such article 4711"}
	if err := from.RejectMessage(waiting(t), receive(t, from), why); err != nil {
		t.Fatal(err)
	}
	empty(t, from)

	dead := find(t, "DLQ", m.Properties.MessageID)
	for key, want := range map[string]string{"x-opt-ORIG-ADDRESS": to, "x-opt-ORIG-QUEUE": to, "x-opt-mine": "kept"} {
		if got := dead.Annotations[key]; got != want {
			t.Errorf("%s: got %v, want %q", key, got, want)
		}
	}
	reason := fmt.Sprint(dead.Annotations["x-opt-death-reason"])
	if !strings.Contains(reason, "no such article 4711") && !strings.Contains(reason, "app:bad-order") {
		t.Errorf("x-opt-death-reason: %q names neither the condition nor the description", reason)
	}
	if string(dead.GetData()) != "marked" {
		t.Errorf("body: %q", dead.GetData())
	}
}

func TestReleased(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	out := sender(t, s, to, nil)
	send(t, out, text("first"), text("second"))
	from := receiver(t, s, to, &amqp.ReceiverOptions{Credit: 1})
	for range 2 {
		m := receive(t, from)
		if string(m.GetData()) != "first" || deliveryCount(m) != 0 {
			t.Errorf("got %q with delivery-count %d, want the released message at its place, uncounted", m.GetData(), deliveryCount(m))
		}
		if err := from.ReleaseMessage(waiting(t), m); err != nil {
			t.Fatal(err)
		}
	}
	again := accept(t, from)
	if string(again.GetData()) != "first" || deliveryCount(again) != 0 || again.Header != nil && again.Header.FirstAcquirer {
		t.Errorf("got %q, header %+v; want no first acquirer", again.GetData(), again.Header)
	}
	if got := accept(t, from).GetData(); string(got) != "second" {
		t.Errorf("got %q", got)
	}
}

func TestModifiedFailed(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	m := text("again")
	m.Annotations = amqp.Annotations{"x-opt-old": "as sent", "x-opt-changed": "as sent"}
	send(t, sender(t, s, to, nil), m)
	from := receiver(t, s, to, nil)
	for attempt := range uint32(3) {
		got := receive(t, from)
		if deliveryCount(got) != attempt {
			t.Errorf("attempt %d: delivery-count %d", attempt, deliveryCount(got))
		}
		err := from.ModifyMessage(waiting(t), got, &amqp.ModifyMessageOptions{DeliveryFailed: true, Annotations: amqp.Annotations{
			"x-opt-changed": int64(attempt), "x-opt-new": []any{"a", map[string]any{"k": uint8(1)}},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	got := accept(t, from)
	if deliveryCount(got) != 3 {
		t.Errorf("delivery-count %d, want 3", deliveryCount(got))
	}
	for key, want := range map[string]any{"x-opt-old": "as sent", "x-opt-changed": int64(2), "x-opt-new": []any{"a", map[string]any{"k": uint8(1)}}} {
		if !equal(got.Annotations[key], want) {
			t.Errorf("%s: got %#v, want %#v", key, got.Annotations[key], want)
		}
	}
}

func TestModifiedNotFailed(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	send(t, sender(t, s, to, nil), text("again"))
	from := receiver(t, s, to, nil)
	if err := from.ModifyMessage(waiting(t), receive(t, from), nil); err != nil {
		t.Fatal(err)
	}
	if got := accept(t, from); deliveryCount(got) != 0 {
		t.Errorf("delivery-count %d, want 0", deliveryCount(got))
	}
}

func TestUndeliverableHere(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	send(t, sender(t, s, to, nil), text("for another"))
	here := receiver(t, s, to, manual())
	grant(t, here, 1)
	err := here.ModifyMessage(waiting(t), receive(t, here), &amqp.ModifyMessageOptions{UndeliverableHere: true, DeliveryFailed: true})
	if err != nil {
		t.Fatal(err)
	}
	there := receiver(t, s, to, nil)
	if got := accept(t, there); string(got.GetData()) != "for another" || deliveryCount(got) != 1 {
		t.Errorf("got %q with delivery-count %d, want 1", got.GetData(), deliveryCount(got))
	}
	empty(t, here)
}

func TestAttemptsEndInDLQ(t *testing.T) {
	t.Parallel()
	const attempts = 10
	s, to := session(t), address(t)
	m := marked(t)
	send(t, sender(t, s, to, nil), m)
	from := receiver(t, s, to, manual())
	for attempt := range uint32(attempts) {
		grant(t, from, 1)
		got := receive(t, from)
		if deliveryCount(got) != attempt {
			t.Errorf("attempt %d: delivery-count %d", attempt, deliveryCount(got))
		}
		if err := from.ModifyMessage(waiting(t), got, &amqp.ModifyMessageOptions{DeliveryFailed: true}); err != nil {
			t.Fatal(err)
		}
	}
	empty(t, from)
	dead := find(t, "DLQ", m.Properties.MessageID)
	if deliveryCount(dead) != attempts {
		t.Errorf("delivery-count %d in DLQ, want it kept at %d", deliveryCount(dead), attempts)
	}
	if dead.Annotations["x-opt-ORIG-QUEUE"] != to || dead.Annotations["x-opt-death-reason"] == nil {
		t.Errorf("annotations: %v", dead.Annotations)
	}
}

// TestDetachReturnsMessages closes a link, a session and a connection that hold
// messages.
func TestDetachReturnsMessages(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *amqp.Conn, *client, *consumer) error{
		"link":       func(t *testing.T, _ *amqp.Conn, _ *client, r *consumer) error { return r.Close(waiting(t)) },
		"session":    func(t *testing.T, _ *amqp.Conn, s *client, _ *consumer) error { return s.Close(waiting(t)) },
		"connection": func(_ *testing.T, c *amqp.Conn, _ *client, _ *consumer) error { return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := address(t)
			send(t, sender(t, session(t), to, nil), text("0"), text("1"), text("2"))
			conn, m := dial(t, nil)
			s := begin(t, conn, m)
			from := receiver(t, s, to, &amqp.ReceiverOptions{Credit: 3})
			for range 3 {
				receive(t, from)
			}
			if err := end(t, conn, s, from); err != nil {
				t.Fatal(err)
			}
			next := receiver(t, session(t), to, nil)
			for i := range 3 {
				if got := accept(t, next); string(got.GetData()) != fmt.Sprint(i) || deliveryCount(got) != 0 {
					t.Errorf("got %q with delivery-count %d, want %d, uncounted after a clean close", got.GetData(), deliveryCount(got), i)
				}
			}
		})
	}
}
