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

// Each drain asked for again while one is under way leaves nothing behind in the mailbox.
func TestDrainsWhileOneIsUnderWay(t *testing.T) {
	r := start(t, nil)
	r.load("q", 3, 1)
	p := r.opened("c")
	p.receiver(0, "q", 0)
	var b []byte
	for i := range 1000 {
		b = append(b, encode(0, p.creditFlow(0, 0, 10, i%2 == 0))...)
	}
	b = append(b, encode(0, p.creditFlow(0, 0, 10, true))...)
	p.write(b)
	for range 3 {
		p.receive()
	}
	p.drained(10)
	p.quiet(codec.CodeFlow)
}
