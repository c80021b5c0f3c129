package amqptest

import (
	"time"

	"github.com/letomq/leto/amqp"
)

// End is one of two machines that talk to each other.
type End struct {
	Conn *amqp.Conn
	// Handle acts on an event; it answers what wants an answer.
	Handle func(*amqp.Event)
	// Wrote and Took see each frame as it is written, and as it is read.
	Wrote, Took func(Frame)

	other   *End
	pipe    []byte // written, not read by the other end
	unread  []byte // read, not consumed
	taken   []byte // read, not yet whole frames for Took
	spare   []byte
	written int
}

// Pair is two machines and what is on its way between them.
type Pair struct {
	Client, Server *End
	Now            time.Time
}

// NewPair makes the machines. Nothing is written yet.
func NewPair(client, server amqp.Config) *Pair {
	now := time.Unix(1_700_000_000, 0)
	client.Server, server.Server = false, true
	p := &Pair{Now: now, Client: &End{Conn: amqp.New(client, now)}, Server: &End{Conn: amqp.New(server, now)}}
	p.Client.other, p.Server.other = p.Server, p.Client
	return p
}

// Write takes what e has to write by now, and returns how many octets that is.
func (p *Pair) Write(e *End) int {
	out := e.Conn.Output(p.Now, e.spare)
	e.pipe = append(e.pipe, out...)
	e.written += len(out)
	if e.Wrote != nil {
		frames(out, e.Wrote)
	}
	if out != nil {
		e.spare = out[:0]
	}
	return len(out)
}

// Read hands e at most limit octets of what the other end has written, and
// returns how many there were.
func (p *Pair) Read(e *End, limit int) int {
	n := min(limit, len(e.other.pipe))
	e.unread = append(e.unread, e.other.pipe[:n]...)
	if e.Took != nil {
		e.taken = append(e.taken, e.other.pipe[:n]...)
		e.taken = e.taken[frames(e.taken, e.Took):]
	}
	e.other.pipe = e.other.pipe[:copy(e.other.pipe, e.other.pipe[n:])]
	used := 0
	for {
		m, ev := e.Conn.Next(p.Now, e.unread[used:])
		used += m
		if ev == nil {
			break
		}
		e.Handle(ev)
	}
	e.unread = e.unread[:copy(e.unread, e.unread[used:])]
	return n
}

// Settle moves octets until nothing is on its way. It panics when that takes
// more than rounds.
func (p *Pair) Settle(rounds int) {
	for range rounds {
		moved := p.Write(p.Client) + p.Write(p.Server)
		moved += p.Read(p.Client, 1<<30) + p.Read(p.Server, 1<<30)
		if moved == 0 {
			return
		}
	}
	panic("amqptest: the machines don't come to rest")
}

// Written returns how many octets e has written.
func (e *End) Written() int { return e.written }

// frames calls f for each whole frame of b and returns how long they are.
func frames(b []byte, f func(Frame)) int {
	n := 0
	for {
		frame, rest, err := ReadFrame(b[n:])
		if err != nil {
			return n
		}
		f(frame)
		n = len(b) - len(rest)
	}
}
