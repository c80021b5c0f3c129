package raw

import (
	"testing"

	"github.com/letomq/leto/interop/wire"
)

// TestLostConnectionCounts cuts the connection of a consumer that holds messages.
func TestLostConnectionCounts(t *testing.T) {
	t.Parallel()
	to := address(t)
	fill(t, to, 3)
	lost, err := wire.Connect(broker.AMQP, "raw-lost")
	if err != nil {
		t.Fatal(err)
	}
	holds, err := wire.NewReceiver(lost, 0, "in", to, 2)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := holds.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	if err := lost.Close(); err != nil {
		t.Fatal(err)
	}
	next := consumer(t, to, 10)
	counts := map[uint64]uint64{}
	for range 3 {
		got, err := next.Accept()
		if err != nil {
			t.Fatal(err)
		}
		id, count := describe(t, got.Message)
		counts[id] = count
	}
	if counts[0] != 1 || counts[1] != 1 || counts[2] != 0 {
		t.Errorf("delivery-counts by message: %v; want 1 for the two that were lost", counts)
	}
}

// describe reads the message-id and the delivery-count.
func describe(t *testing.T, encoded []byte) (id, count uint64) {
	t.Helper()
	m, err := wire.Split(encoded)
	if err != nil {
		t.Fatal(err)
	}
	properties, _, err := wire.Next(m.Bare)
	if err != nil {
		t.Fatal(err)
	}
	id, _ = wire.Number(field(t, properties, 0))
	count, _ = wire.Number(field(t, m.Header, 4))
	return id, count
}

// field is field i of a section that is a list, nil when it isn't there.
func field(t *testing.T, section []byte, i int) []byte {
	t.Helper()
	_, list, err := wire.Code(section)
	if err != nil {
		t.Fatal(err)
	}
	items, err := wire.Items(list)
	if err != nil {
		t.Fatal(err)
	}
	if i >= len(items) {
		return nil
	}
	return items[i]
}
