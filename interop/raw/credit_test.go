package raw

import (
	"fmt"
	"testing"

	"github.com/letomq/leto/interop/wire"
)

// TestWithdrawnCredit grants credit and takes it back in the same write, with and
// without a drain. What the broker hasn't sent when it answers belongs to others.
func TestWithdrawnCredit(t *testing.T) {
	t.Parallel()
	const count = 5
	for _, drain := range []bool{true, false} {
		t.Run(fmt.Sprintf("drain=%v", drain), func(t *testing.T) {
			t.Parallel()
			for range 50 {
				to := address(t)
				fill(t, to, count)
				conn := connect(t)
				if err := conn.Send(wire.AttachReceiver(0, "fickle", to)); err != nil {
					t.Fatal(err)
				}
				if _, err := conn.Await(wire.CodeAttach); err != nil {
					t.Fatal(err)
				}
				if err := conn.Send(wire.Flow(0, 0, count), wire.Withdraw(0, 0, drain)); err != nil {
					t.Fatal(err)
				}
				kept := 0
				for answered := false; !answered; {
					frame, err := conn.Await(wire.CodeTransfer, wire.CodeFlow)
					if err != nil {
						t.Fatal(err)
					}
					if frame.Code == wire.CodeTransfer {
						kept++
					}
					answered = frame.Code == wire.CodeFlow && frame.Field(4) != nil
				}
				other := consumer(t, to, count)
				for i := kept; i < count; i++ {
					got, err := other.Accept()
					if err != nil {
						t.Fatalf("%d of %d messages came to a consumer that gave its credit back, and %d to another: %v", kept, count, i-kept, err)
					}
					if id, deliveries := describe(t, got.Message); id != uint64(i) || deliveries != 0 {
						t.Errorf("got message %d with delivery-count %d, want message %d, uncounted", id, deliveries, i)
					}
				}
			}
		})
	}
}

// TestOutcomeBeforeFlow releases a message and grants credit in the same write.
func TestOutcomeBeforeFlow(t *testing.T) {
	t.Parallel()
	to := address(t)
	fill(t, to, 3)
	conn := connect(t)
	receiver, err := wire.NewReceiver(conn, 0, "in", to, 1)
	if err != nil {
		t.Fatal(err)
	}
	for turn := range uint32(3) {
		got, err := receiver.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if id, _ := describe(t, got.Message); id != 0 {
			t.Fatalf("got message %d, want the one that was released before the credit was given", id)
		}
		if err := conn.Send(wire.Settle(got.ID, got.ID, wire.CodeReleased), wire.Flow(0, turn+1, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// fill sends messages 0 to count-1.
func fill(t *testing.T, to string, count int) {
	t.Helper()
	sender, err := wire.NewSender(connect(t), 0, "out", to)
	if err != nil {
		t.Fatal(err)
	}
	for id := range count {
		if err := sender.Send(message(uint64(id), 10)); err != nil {
			t.Fatal(err)
		}
	}
}
