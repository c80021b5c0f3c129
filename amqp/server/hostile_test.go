package server

import (
	"testing"

	"github.com/letomq/leto/codec"
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
