package server

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// A receiver that asks for a drain and at once thinks better of it has credit like any other.
func TestDrainTakenBackAtOnce(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.receiver(0, "q", 0)
	p.write(append(encode(0, p.creditFlow(0, 0, 10, true)), encode(0, p.creditFlow(0, 0, 10, false))...))
	p.barrier()
	out := r.opened("d")
	out.sender(0, "q")
	out.put(0, volatile("x"))
	p.receive()
}

// Drains asked for while the peer doesn't read leave one answer in the mailbox, not one each.
func TestDrainsUnread(t *testing.T) {
	r := start(t, nil)
	r.load("q", 3, 1)
	eventually(t, "the loader's connection gone", func() bool { return r.server.Stats().Connections == 0 })
	p := r.pipe()
	p.open(codec.Open{ContainerID: "c", MaxFrameSize: codec.DefaultMaxFrameSize, ChannelMax: 255})
	p.begin()
	p.receiver(0, "q", 0)
	p.credit(0, 0, 1, false) // the writer waits for us to read the transfer
	var c *connection
	r.server.each(func(only *connection) { c = only })
	eventually(t, "a write is under way", func() bool { return c.writingSince.Load() != 0 })
	for i := range 1000 {
		p.credit(0, 0, 10, i%2 == 0)
	}
	c.mail.mu.Lock()
	waiting := len(c.mail.deliveries)
	c.mail.mu.Unlock()
	if waiting > 10 {
		t.Errorf("%d letters wait", waiting)
	}
	p.credit(0, 0, 10, true)
	for range 3 {
		p.receive()
	}
	p.drained(10)
}

func TestLongNamesAreRefused(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	for _, a := range []codec.Attach{
		receiverAttach(strings.Repeat("n", 2049), 0, "q"), senderAttach(strings.Repeat("n", 60_000), 0, "q"),
	} {
		if _, e := p.refused(a); e.Condition != amqp.ConditionInvalidField {
			t.Errorf("refused with %v", text(e))
		}
	}
	p.attach(receiverAttach(strings.Repeat("n", 2048), 0, "q"))
	p.close()
	p = r.connect()
	p.open(codec.Open{ContainerID: strings.Repeat("c", 1025), MaxFrameSize: codec.DefaultMaxFrameSize})
	p.closed(amqp.ConditionInvalidField)
}

func TestLimitOfLinks(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engine.Options) { c.MaxLinks = 2 })
	p := r.opened("c")
	p.receiver(0, "q", 0)
	p.sender(1, "q")
	if _, e := p.refused(senderAttach("more", 2, "q")); e.Condition != amqp.ConditionResourceLimitExceeded {
		t.Errorf("refused with %v", text(e))
	}
	p.send(&codec.Detach{Handle: 1, Closed: true})
	await[codec.Detach](p)
	p.attach(senderAttach("more", 1, "q"))
}

// One disposition that modifies many deliveries is answered by one, and the messages share its annotations.
func TestModifiedRange(t *testing.T) {
	r := start(t, nil)
	const n = 300
	r.load("q", n, 1)
	p := r.opened("c")
	p.receiver(0, "q", n)
	for range n {
		p.receive()
	}
	value := strings.Repeat("v", 10_000)
	annotations, err := codec.AppendValue(nil, codec.Map{{Key: codec.Symbol("x-opt-a"), Value: value}})
	if err != nil {
		t.Fatal(err)
	}
	p.dispose(0, n-1, false, codec.Outcome{Kind: codec.StateModified, DeliveryFailed: true, Annotations: annotations})
	if d, _ := await[codec.Disposition](p); d.First != 0 || d.Last != codec.Some[uint32](n-1) || !d.Settled || !d.State.DeliveryFailed {
		t.Errorf("answer is %+v", d)
	}
	p.credit(0, n, n, false)
	for range n {
		if got, _ := p.receive().annotation(t, "x-opt-a"); got != value {
			t.Fatalf("annotation is %.20v", got)
		}
	}
}

// A peer that answers no detach is closed before its refused links take much memory; one that answers isn't.
func TestRefusedLinksThatStay(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	a := codec.Attach{Handle: 0, Name: "tx", SndSettleMode: codec.SettleSettled, Coordinator: &codec.Coordinator{}, InitialDeliveryCount: codec.Some[uint32](0)}
	for range 100 {
		p.refused(a)
	}
	go io.Copy(io.Discard, p.socket)
	write := func(b []byte) { // it is closed before we are done
		_ = p.socket.SetWriteDeadline(time.Now().Add(patience))
		_, _ = p.socket.Write(b)
	}
	for channel := range uint16(18) {
		if channel > 0 {
			write(encode(channel, &codec.Begin{IncomingWindow: 1, HandleMax: 1023}))
		}
		for handle := range uint32(1024) {
			a.Handle = handle
			write(encode(channel, &a))
		}
	}
	eventually(t, "the connection closed", func() bool { return r.server.Stats().ProtocolErrors > 0 })
	p.socket.Close()
}

// Sessions are limited over all connections, as links are.
func TestSessionsInAll(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engine.Options) { c.MaxLinks = 2 })
	r.opened("a")
	r.opened("b")
	p := r.opened("c")
	p.ended(amqp.ConditionResourceLimitExceeded)
}
