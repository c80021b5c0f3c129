package hostile

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/letomq/leto/interop/wire"
)

const mib = 1 << 20

// TestSettledHoarder: receivers of settled deliveries whose session takes no transfer.
func TestSettledHoarder(t *testing.T) {
	t.Parallel()
	b := start(t, "limits.memory=64MiB")
	c := connect(t, b)
	most := memory(t, b)
	const size = 16 << 10
	for i := range 12 {
		send(t, c, begin(uint16(i+1), 0), receiver(uint16(i+1), 0, fmt.Sprint("in", i), "hoard", 1), credit(uint16(i+1), 0, 0, 1000, false))
		if _, err := c.Await(wire.CodeAttach); err != nil {
			t.Fatal(err)
		}
	}
	p := connect(t, b)
	send(t, p, sender(0, 0, "out", "hoard"))
	drop(p)
	time.Sleep(200 * time.Millisecond)
	n := 0
	for i := range 12 * 500 {
		_ = p.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := p.Write(wire.Transfer(0, uint32(i), false, volatile(uint32(i), size))); err != nil {
			t.Log(err)
			break
		}
		n++
	}
	time.Sleep(500 * time.Millisecond)
	t.Logf("%d messages of %d", n, size)
	within(t, most, 100*mib)
	// The backlog fills the memory there is, so nobody gets credit; everything else goes on.
	connect(t, b)
}

// TestDrainFlood: a receiver that doesn't read asks for drain after drain.
func TestDrainFlood(t *testing.T) {
	t.Parallel()
	b := start(t, "limits.memory=64MiB")
	fill(t, b, "drains", 1000, 30000)
	most := memory(t, b)
	c := raw(t, b)
	send(t, c, begin(0, 1<<31-1), receiver(0, 0, "in", "drains", 0), credit(0, 0, 1<<31-1, 1000, false))
	time.Sleep(300 * time.Millisecond)
	w := flood(c, bytes.Repeat(credit(0, 0, 1<<31-1, 1000, true), 10000), 100, time.Second)
	t.Logf("%d bytes", w)
	within(t, most, 100*mib)
	alive(t, b)
}

// TestChurnUnread: links that come, are given a window of deliveries, and go, on a connection that doesn't read.
func TestChurnUnread(t *testing.T) {
	t.Parallel()
	b := start(t, "limits.memory=64MiB")
	fill(t, b, "churn", 600, 10)
	fill(t, b, "block", 1000, 30000)
	most := memory(t, b)
	c := raw(t, b)
	send(t, c, begin(0, 1<<31-1), receiver(0, 7, "block", "block", 0), credit(0, 7, 1<<31-1, 1000, false))
	time.Sleep(300 * time.Millisecond)
	once := bytes.Join([][]byte{receiver(0, 0, "in", "churn", 0), credit(0, 0, 1<<31-1, 1000, false), detach(0, 0)}, nil)
	w := flood(c, bytes.Repeat(once, 100), 200, time.Second)
	t.Logf("%d bytes", w)
	time.Sleep(1500 * time.Millisecond) // what has been written is worked through
	within(t, most, 80*mib)
	alive(t, b)
}

// TestModifiedAnnotations: one disposition writes large annotations on many messages.
func TestModifiedAnnotations(t *testing.T) {
	t.Parallel()
	b := start(t, "limits.memory=64MiB")
	const n = 8000
	p := connect(t, b)
	if _, err := wire.NewSender(p, 0, "out", "modified"); err != nil {
		t.Fatal(err)
	}
	drop(p)
	for i := range n {
		send(t, p, frame(0, wire.CodeTransfer, volatile(uint32(i), 10), wire.Uint(0), wire.Uint(uint32(i)), wire.Binary([]byte{1}), wire.Uint(0), wire.Bool(false), wire.Bool(false)))
		if i%500 == 499 {
			time.Sleep(30 * time.Millisecond)
		}
	}
	c := connect(t, b)
	send(t, c, receiver(0, 0, "in", "modified", 0), credit(0, 0, 1<<31-1, n, false))
	drop(c)
	time.Sleep(500 * time.Millisecond)
	most := memory(t, b)
	value := wire.Map(wire.Symbol("x-opt-a"), wire.Binary(make([]byte, 15<<10)))
	send(t, c, frame(0, wire.CodeDisposition, nil, wire.Bool(true), wire.Uint(0), wire.Uint(n), wire.Bool(true),
		wire.Described(wire.CodeModified, wire.List(wire.Bool(false), wire.Bool(false), value))))
	time.Sleep(1500 * time.Millisecond)
	within(t, most, 100*mib)
	alive(t, b)
}

// TestLinkNames: links with long names.
func TestLinkNames(t *testing.T) {
	t.Parallel()
	b := start(t, "limits.memory=64MiB")
	most := memory(t, b)
	c := raw(t, b)
	drop(c)
	for ch := range 10 {
		flood(c, begin(uint16(ch), 1000), 1, time.Second)
		for i := range 200 {
			name := string(bytes.Repeat([]byte{'a' + byte(ch)}, 60_000)) + fmt.Sprint(i)
			flood(c, receiver(uint16(ch), uint32(i), name, "names", 0), 1, time.Second)
		}
	}
	time.Sleep(500 * time.Millisecond)
	within(t, most, 100*mib)
	alive(t, b)
}

// TestManyLinks: as many links as one connection may have, most of them refused, and none given up.
func TestManyLinks(t *testing.T) {
	t.Parallel()
	b := start(t, "limits.memory=64MiB")
	base, _ := b.Gauges()
	most := memory(t, b)
	c := raw(t, b)
	drop(c)
	for ch := range uint16(256) {
		said := [][]byte{begin(ch, 1000)}
		for i := range uint32(1024) {
			said = append(said, receiver(ch, i, fmt.Sprint(ch, ".", i), "links", 0))
		}
		flood(c, bytes.Join(said, nil), 1, time.Second)
	}
	c.Close()
	within(t, most, 64*mib)
	b.Settled(t, base, 64*mib, 10*time.Second)
	alive(t, b)
}

// TestDeclaredSizes: connections that announce large frames.
func TestDeclaredSizes(t *testing.T) {
	t.Parallel()
	b := start(t, "limits.memory=64MiB")
	most := memory(t, b)
	for range 2000 {
		c := raw(t, b)
		send(t, c, []byte{0, 1, 0, 0, 2, 0, 0, 0})
	}
	time.Sleep(500 * time.Millisecond)
	within(t, most, 100*mib)
	alive(t, b)
}

// TestOpenProperties: opens whose properties are many small values.
func TestOpenProperties(t *testing.T) {
	t.Parallel()
	b := start(t, "limits.memory=64MiB")
	most := memory(t, b)
	items := make([][]byte, 14000)
	for i := range items {
		items[i] = wire.Null()
	}
	o := frame(0, wire.CodeOpen, nil, wire.String("x"), wire.Null(), wire.Uint(65536), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(),
		wire.Map(wire.Symbol("a"), wire.List(items...)))
	for range 1000 {
		c := silent(t, b)
		send(t, c, wire.HeaderAMQP, o)
	}
	time.Sleep(500 * time.Millisecond)
	within(t, most, 100*mib)
	alive(t, b)
}

// TestBurstThenIdle: connections that were busy once.
func TestBurstThenIdle(t *testing.T) {
	t.Parallel()
	b := start(t, "limits.memory=64MiB", "amqp.idle-timeout=4s")
	for range 600 {
		c := raw(t, b)
		drop(c)
		send(t, c, begin(0, 1000), bytes.Repeat([]byte{0, 0, 0, 8, 2, 0, 0, 0}, 20000))
	}
	settles(t, b, 40*mib, 10*time.Second)
	alive(t, b)
}
