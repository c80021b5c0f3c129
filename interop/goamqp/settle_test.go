package goamqp

import (
	"fmt"
	"testing"

	"github.com/Azure/go-amqp"
)

// TestSettleModes sends and receives in every combination of modes that go-amqp has.
func TestSettleModes(t *testing.T) {
	t.Parallel()
	for _, sends := range []amqp.SenderSettleMode{amqp.SenderSettleModeUnsettled, amqp.SenderSettleModeSettled, amqp.SenderSettleModeMixed} {
		for _, confirms := range []amqp.ReceiverSettleMode{amqp.ReceiverSettleModeFirst, amqp.ReceiverSettleModeSecond} {
			for _, delivers := range []amqp.SenderSettleMode{amqp.SenderSettleModeUnsettled, amqp.SenderSettleModeSettled, amqp.SenderSettleModeMixed} {
				for _, settles := range []amqp.ReceiverSettleMode{amqp.ReceiverSettleModeFirst, amqp.ReceiverSettleModeSecond} {
					t.Run(fmt.Sprintf("%v-%v-%v-%v", sends, confirms, delivers, settles), func(t *testing.T) {
						t.Parallel()
						s, to := session(t), address(t)
						out := sender(t, s, to, &amqp.SenderOptions{SettlementMode: &sends, RequestedReceiverSettleMode: &confirms})
						from := receiver(t, s, to, &amqp.ReceiverOptions{Credit: 3, RequestedSenderSettleMode: &delivers, SettlementMode: &settles})
						for i := range 10 {
							send(t, out, text("%d", i))
						}
						for i := range 10 {
							if got := accept(t, from); string(got.GetData()) != fmt.Sprint(i) {
								t.Fatalf("message %d: got %q", i, got.GetData())
							}
						}
						if err := from.Close(waiting(t)); err != nil {
							t.Fatal(err)
						}
						empty(t, receiver(t, session(t), to, manual()))
					})
				}
			}
		}
	}
}

// TestMixedSender settles every other message itself.
func TestMixedSender(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	out, from := sender(t, s, to, nil), receiver(t, s, to, nil)
	for i := range 10 {
		if err := out.Send(waiting(t), text("%d", i), &amqp.SendOptions{Settled: i%2 == 0}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		if got := accept(t, from); string(got.GetData()) != fmt.Sprint(i) {
			t.Fatalf("message %d: got %q", i, got.GetData())
		}
	}
}

// TestSecondHoldsEveryOutcome settles second with each outcome, which go-amqp only
// reports as done when the broker has settled too.
func TestSecondHoldsEveryOutcome(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	m := marked(t)
	send(t, sender(t, s, to, nil), m)
	from := receiver(t, s, to, &amqp.ReceiverOptions{Credit: -1, SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()})
	step := func(settle func(*amqp.Message) error) *amqp.Message {
		t.Helper()
		grant(t, from, 1)
		got := receive(t, from)
		if err := settle(got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	step(func(m *amqp.Message) error { return from.ReleaseMessage(waiting(t), m) })
	step(func(m *amqp.Message) error {
		return from.ModifyMessage(waiting(t), m, &amqp.ModifyMessageOptions{DeliveryFailed: true})
	})
	if got := step(func(m *amqp.Message) error { return from.RejectMessage(waiting(t), m, nil) }); deliveryCount(got) != 1 {
		t.Errorf("delivery-count %d, want 1", deliveryCount(got))
	}
	empty(t, from)
	find(t, "DLQ", m.Properties.MessageID)
}
