package server

import (
	"bytes"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// crowd takes every place in the lane, as peers would who have much to say and move no message.
func (r *rig) crowd() (leave func()) {
	var held []place
	for range cap(r.server.lane.places) {
		held = append(held, r.server.lane.enter())
	}
	return func() {
		for _, p := range held {
			r.server.lane.leave(p)
		}
	}
}

// echo asks for the session's flow.
func (p *peer) echo() {
	f := p.sessionFlow()
	f.Echo = true
	p.send(f)
}

// Who moves messages waits for nobody who doesn't.
func TestMessagesDontWaitForTheLane(t *testing.T) {
	r := start(t, nil)
	out, in := r.opened("out"), r.opened("in")
	out.sender(0, "q")
	in.receiver(0, "q", 1000)
	move := func() {
		out.post(0, volatile("x"))
		d := in.receive()
		in.dispose(d.id(), d.id(), true, codec.Outcome{Kind: codec.StateAccepted})
	}
	for range 2 * (framesOwed + framesPerMessage) / framesPerMessage {
		move()
	}
	idler := r.opened("idler")
	leave := r.crowd()
	idler.echo()
	for range 100 {
		move()
	}
	_ = idler.socket.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := idler.socket.Read(make([]byte, 100)); err == nil {
		t.Errorf("%d bytes came while others have their turn", n)
	}
	leave()
	await[codec.Flow](idler)
}

// Who has only asked for things gets its turn when others have had theirs, and all of its answers.
func TestLaneIsLeft(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	leave := r.crowd()
	const n = 3000 // more than a quantum of input
	f := p.sessionFlow()
	f.Echo = true
	p.write(bytes.Repeat(encode(0, f), n))
	leave()
	p.barrier() // what is asked for again before it is answered is answered once
	if len(p.flows()) == 0 {
		t.Error("no answer")
	}
	eventually(t, "every place is free", func() bool { return len(r.server.lane.places) == cap(r.server.lane.places) })
	p.close()
}

// A peer that owes as much as anybody may is out of the lane after a few hundred messages at most.
func TestDebtIsBounded(t *testing.T) {
	c := &connection{machine: amqp.New(amqp.Defaults(), time.Time{}), hasOpened: true}
	owes := func() bool { c.account(); return c.owes() }
	c.machine.FramesIn = 1 << 40
	if !owes() {
		t.Error("a peer that has moved nothing isn't in the lane")
	}
	c.moved = framesOwedMost / framesPerMessage
	if owes() {
		t.Errorf("still in the lane, owing %d frames", c.owed)
	}
	for range framesOwed {
		c.machine.FramesIn++
		if owes() {
			t.Errorf("in the lane with %d frames owed", c.owed)
		}
	}
}

// A place rests for as long as it was worked in, but only while messages move.
func TestLaneRests(t *testing.T) {
	moved := uint64(0)
	l := newLane(func() uint64 { return moved })
	for len(l.places) > 1 {
		<-l.places
	}
	work := func(d time.Duration) (waited time.Duration) {
		before := time.Now()
		p := l.enter()
		waited = time.Since(before)
		p.began = time.Now().Add(-d)
		l.leave(p)
		return waited
	}
	work(time.Second)
	if waited := work(0); waited > 500*time.Millisecond {
		t.Errorf("rests for %v while no message moves", waited)
	}
	moved++
	work(20 * time.Millisecond)
	if waited := work(0); waited < 19*time.Millisecond {
		t.Errorf("rests for %v behind 20 ms of work", waited)
	}
}
