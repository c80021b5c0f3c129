package hostile

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// empty takes what is in a queue and returns how many messages that were.
func empty(t testing.TB, b *harness.Broker, address string) (n int) {
	t.Helper()
	return settleAll(t, b, address, wire.Described(wire.CodeAccepted, wire.List()))
}

// settleAll gives every message that is in a queue an outcome, one by one, until a drain says that nothing is left.
func settleAll(t testing.TB, b *harness.Broker, address string, outcome []byte) (n int) {
	t.Helper()
	c := connect(t, b)
	send(t, c, receiver(0, 0, fmt.Sprint("all-", serial.Add(1)), address, 0))
	if _, err := c.Await(wire.CodeAttach); err != nil {
		t.Fatal(err)
	}
	send(t, c, credit(0, 0, 1<<31-1, 1<<20, true))
	for {
		f, err := c.Await(wire.CodeTransfer, wire.CodeFlow)
		if err != nil {
			t.Fatal(err)
		}
		if f.Code == wire.CodeFlow {
			break
		}
		n++
		send(t, c, frame(0, wire.CodeDisposition, nil, wire.Bool(true), wire.Uint(uint32(f.Number(1))), wire.Null(), wire.Bool(true), outcome))
	}
	if err := c.Hangup(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRejectStorm: messages rejected, failed once too often and expired in delivery, and a dead-letter queue that rejects, too.
func TestRejectStorm(t *testing.T) {
	t.Parallel()
	b := start(t, "address-settings[storm.#].max-delivery-attempts=1")
	base, _ := b.Gauges()
	const n = 400
	fill(t, b, "storm.a", n, 10)
	fill(t, b, "storm.b", n, 10)
	if got := settleAll(t, b, "storm.a", wire.Described(wire.CodeRejected, wire.List(wire.Described(wire.CodeError, wire.List(wire.Symbol("x:y"), wire.String("z")))))); got != n {
		t.Errorf("%d of %d rejected", got, n)
	}
	if got := settleAll(t, b, "storm.b", wire.Described(wire.CodeModified, wire.List(wire.Bool(true), wire.Bool(true)))); got != n {
		t.Errorf("%d of %d failed", got, n)
	}
	// Released and barred by everybody in the dead-letter queue changes nothing; rejected there they are gone.
	for _, o := range [][]byte{
		wire.Described(wire.CodeModified, wire.List(wire.Bool(true), wire.Bool(true))),
		wire.Described(wire.CodeModified, wire.List(wire.Bool(false), wire.Bool(true))),
		wire.Described(wire.CodeRejected, wire.List()),
	} {
		if got := settleAll(t, b, "DLQ", o); got != 2*n {
			t.Errorf("%d of %d in the dead-letter queue", got, 2*n)
		}
	}
	// Expired while a consumer has them: released they go, accepted they are done.
	p := connect(t, b)
	s, err := wire.NewSender(p, 0, "out", "storm.c")
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(20) {
		m := append(wire.Described(wire.SectionHeader, wire.List(wire.Bool(true), wire.Null(), wire.Uint(300))), body(i, 10)...)
		if err := s.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, b)
	r, err := wire.NewReceiver(c, 0, "in", "storm.c", 100)
	if err != nil {
		t.Fatal(err)
	}
	var held []uint32
	for range 20 {
		d, err := r.Receive()
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, d.ID)
	}
	time.Sleep(400 * time.Millisecond)
	send(t, c, wire.Settle(held[0], held[9], wire.CodeAccepted), wire.Settle(held[10], held[19], wire.CodeReleased))
	count(t, b, "leto_messages_expired_total", 10)
	count(t, b, `leto_queue_messages_sum{state="ready"}`, 10) // counted when they leave, there when that is committed
	if got := empty(t, b, "ExpiryQueue"); got != 10 {
		t.Errorf("%d expired", got)
	}
	for _, c := range []*wire.Conn{c, p} {
		if err := c.Hangup(); err != nil {
			t.Error(err)
		}
	}
	b.Settled(t, base, 64*mib, 10*time.Second)
	zero(t, b, "leto_connections", "leto_sessions", "leto_links", "leto_consumers", "leto_memory_used_bytes",
		`leto_queue_messages_sum{state="ready"}`, `leto_queue_messages_sum{state="delivering"}`)
	count(t, b, "leto_messages_dropped_total", 2*n)
}

// count waits for a metric's value.
func count(t testing.TB, b *harness.Broker, name string, want float64) {
	t.Helper()
	var now float64
	for range 100 {
		if now, _ = b.Metric(name); now == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s: %v, want %v", name, now, want)
}

// TestFragments: messages in fragments of a byte, and messages that never end, as many as there is memory for.
func TestFragments(t *testing.T) {
	b := start(t, "limits.memory=64MiB")
	base, _ := b.Gauges()
	most := memory(t, b)
	beside(t, b, func() {
		c := connect(t, b)
		s, err := wire.NewSender(c, 0, "out", "fragments")
		if err != nil {
			t.Fatal(err)
		}
		m := volatile(7, 1500)
		var cuts []int
		for i := 1; i < len(m); i++ {
			cuts = append(cuts, i)
		}
		if answer, err := s.Deliver(m, cuts...); err != nil || answer.Code != wire.CodeDisposition {
			t.Errorf("a byte at a time: %#x %v", answer.Code, err)
		}
		for range 4 {
			c := raw(t, b)
			drop(c)
			said := [][]byte{begin(0, 1000)}
			for h := range uint32(40) {
				said = append(said, sender(0, h, fmt.Sprint("more", h), "fragments"), wire.Transfer(h, h, true, make([]byte, 60_000)))
			}
			send(t, c, said...)
			for h := range uint32(40) {
				flood(c, bytes.Repeat(wire.Continue(h, true, make([]byte, 60_000)), 10), 1, time.Second)
			}
			flood(c, wire.Continue(0, true, nil), 2000, time.Second)
			defer c.Close()
		}
		// They hold all there is for messages that have arrived in part, and end none.
		if s, err = wire.NewSender(c, 1, "large", "large"); err != nil {
			t.Fatal(err)
		}
		large := volatile(8, 1<<20)
		cuts = nil
		for i := 60_000; i < len(large); i += 60_000 {
			cuts = append(cuts, i)
		}
		if answer, err := s.Deliver(large, cuts...); err != nil || answer.Code != wire.CodeDisposition {
			t.Errorf("a good client's large message: %#x %v", answer.Code, err)
		}
		if err := c.Hangup(); err != nil {
			t.Error(err)
		}
	})
	within(t, most, 80*mib)
	if got := empty(t, b, "fragments"); got != 1 {
		t.Errorf("%d messages", got)
	}
	if empty(t, b, "large") == 0 {
		t.Error("the large message isn't there")
	}
	b.Settled(t, base, 64*mib, 10*time.Second)
	zero(t, b, "leto_connections", "leto_sessions", "leto_links", "leto_partial_bytes", "leto_memory_used_bytes")
}

// TestBeyondTheLimit: many more connections than are allowed, of which half say nothing.
func TestBeyondTheLimit(t *testing.T) {
	b := start(t, "limits.connections=100")
	base, _ := b.Gauges()
	beside(t, b, func() {
		for i := range 1000 {
			c := silent(t, b)
			drop(c)
			if i%2 == 0 {
				_, _ = c.Write(bytes.Join([][]byte{wire.HeaderAMQP, wire.Open("x", 1<<16)}, nil))
			}
			defer c.Close()
		}
	})
	b.Settled(t, base, 64*mib, 10*time.Second)
	zero(t, b, "leto_connections")
	alive(t, b)
}
