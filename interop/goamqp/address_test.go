package goamqp

import (
	"testing"

	"github.com/Azure/go-amqp"
)

func TestQueue(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]struct {
		prefix       string
		capabilities []string
	}{
		"default":    {},
		"prefix":     {prefix: "queue://"},
		"capability": {capabilities: []string{"queue"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, to := session(t), form.prefix+address(t)
			one := receiver(t, s, to, &amqp.ReceiverOptions{Credit: -1, SourceCapabilities: form.capabilities})
			two := receiver(t, s, to, &amqp.ReceiverOptions{Credit: -1, SourceCapabilities: form.capabilities})
			out := sender(t, s, to, &amqp.SenderOptions{TargetCapabilities: form.capabilities})
			send(t, out, text("1"), text("2"), text("3"))
			got := map[string]int{}
			for i, from := range []*consumer{one, two} {
				for _, m := range drained(t, from, 2, 2-i) {
					got[string(m.GetData())]++
					if err := from.AcceptMessage(waiting(t), m); err != nil {
						t.Fatal(err)
					}
				}
			}
			if len(got) != 3 || got["1"] != 1 || got["2"] != 1 || got["3"] != 1 {
				t.Errorf("two consumers of a queue got %v, want each message once", got)
			}
		})
	}
}

func TestTopic(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]struct {
		prefix       string
		capabilities []string
	}{
		"prefix":     {prefix: "topic://"},
		"capability": {capabilities: []string{"topic"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, to := session(t), form.prefix+address(t)
			opts := func() *amqp.ReceiverOptions {
				return &amqp.ReceiverOptions{Credit: -1, SourceCapabilities: form.capabilities}
			}
			out := sender(t, s, to, &amqp.SenderOptions{TargetCapabilities: form.capabilities})
			send(t, out, text("nobody listens"))
			one, two := receiver(t, s, to, opts()), receiver(t, s, to, opts())
			send(t, out, text("1"), text("2"))
			late := receiver(t, s, to, opts())
			for i, from := range []*consumer{one, two} {
				var got string
				for _, m := range drained(t, from, 10, 2) {
					got += string(m.GetData())
				}
				if got != "12" {
					t.Errorf("subscriber %d got %q, want a copy of both in order", i, got)
				}
			}
			empty(t, late)
		})
	}
}

func TestQueueByFullName(t *testing.T) {
	t.Parallel()
	s, base := session(t), address(t)
	left, right := receiver(t, s, base+"::left", manual()), receiver(t, s, base+"::right", manual())
	send(t, sender(t, s, base+"::left", nil), text("to the left"))
	grant(t, left, 1)
	if got := accept(t, left).GetData(); string(got) != "to the left" {
		t.Errorf("got %q", got)
	}
	empty(t, right)
}

func TestAnonymousRelay(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	from := receiver(t, s, to, nil)
	out := sender(t, s, "", nil)
	m := text("routed by to")
	m.Properties = &amqp.MessageProperties{To: &to}
	send(t, out, m)
	got := accept(t, from)
	if string(got.GetData()) != "routed by to" || *got.Properties.To != to {
		t.Errorf("got %q to %q", got.GetData(), *got.Properties.To)
	}
	if err := out.Send(waiting(t), text("routed by nothing"), nil); err == nil {
		t.Error("a message without to was accepted on a link without target")
	}
	send(t, out, m)
	accept(t, from)
}

func TestRequestResponse(t *testing.T) {
	t.Parallel()
	service, s := address(t), session(t)
	requests := receiver(t, s, service, nil)
	client := session(t)
	replies := receiver(t, client, "", &amqp.ReceiverOptions{DynamicAddress: true, Credit: 10})
	other := receiver(t, client, "", &amqp.ReceiverOptions{DynamicAddress: true, Credit: -1})
	if replies.Address() == "" || replies.Address() == other.Address() {
		t.Fatalf("dynamic addresses %q and %q", replies.Address(), other.Address())
	}
	out := sender(t, client, service, nil)
	for _, id := range []any{"text", uint64(1<<63 + 1), amqp.UUID{1, 2, 3}, []byte{0, 255}} {
		request := text("question")
		request.Properties = &amqp.MessageProperties{MessageID: id, ReplyTo: ptr(replies.Address())}
		send(t, out, request)

		asked := accept(t, requests)
		answer := text("answer")
		answer.Properties = &amqp.MessageProperties{CorrelationID: asked.Properties.MessageID}
		send(t, sender(t, s, *asked.Properties.ReplyTo, nil), answer)

		got := accept(t, replies)
		if string(got.GetData()) != "answer" || !equal(got.Properties.CorrelationID, id) {
			t.Errorf("answer %q with correlation-id %T %v, want %T %v", got.GetData(), got.Properties.CorrelationID, got.Properties.CorrelationID, id, id)
		}
	}
	empty(t, other)
}

func TestDynamicSender(t *testing.T) {
	t.Parallel()
	s := session(t)
	out := sender(t, s, "", &amqp.SenderOptions{DynamicAddress: true})
	if out.Address() == "" {
		t.Fatal("no address for a dynamic target")
	}
	send(t, out, text("temporary"))
	if got := accept(t, receiver(t, s, out.Address(), nil)); string(got.GetData()) != "temporary" {
		t.Errorf("got %q", got.GetData())
	}
}
