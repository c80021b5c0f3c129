package server

import (
	"bytes"
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// client is the protocol machine as a client, driven by one goroutine: for
// tests that need its windows and credit kept, rather than single frames.
type client struct {
	t       testing.TB
	socket  net.Conn
	machine *amqp.Conn
	in      []byte
	spare   []byte
	on      func(*amqp.Event) // sees every event first
	err     error             // why the socket can't be used any more
	failure *amqp.Error       // the broker's close, or the fault we found with it
}

// end is what a client knows of one of its links.
type end struct {
	*amqp.Link
	attached bool
	detached bool
	err      *amqp.Error

	partial  []byte
	messages []arrived
	outcomes map[uint64]codec.Outcome // by the number given to send
	sent     uint64
	keep     bool // deliveries aren't accepted on arrival
	credit   uint32
	received int
	bytes    int64
}

type arrived struct {
	id      uint32
	settled bool
	message []byte
}

func (r *rig) dial(container string, change func(*amqp.Config)) *client {
	r.t.Helper()
	return r.machine(r.connect().socket, container, change)
}

// machine opens a connection with one session over a socket.
func (r *rig) machine(socket net.Conn, container string, change func(*amqp.Config)) *client {
	r.t.Helper()
	cfg := amqp.Defaults()
	cfg.ContainerID = container
	if change != nil {
		change(&cfg)
	}
	c := &client{t: r.t, socket: socket, machine: amqp.New(cfg, time.Now())}
	opened := false
	c.on = func(ev *amqp.Event) { opened = opened || ev.Kind == amqp.EventOpened }
	c.until("open", func() bool { return opened || c.err != nil || c.failure != nil })
	c.on = nil
	return c
}

func (c *client) session() *amqp.Session {
	c.t.Helper()
	s := c.machine.Begin()
	c.until("begin", s.Live)
	return s
}

func (c *client) attach(s *amqp.Session, name string, role codec.Role, t amqp.Terms) *end {
	c.t.Helper()
	e := &end{Link: s.Attach(name, role, t), outcomes: map[uint64]codec.Outcome{}}
	e.Context = e
	c.until("attach", func() bool { return e.attached || e.detached })
	return e
}

func (c *client) sender(s *amqp.Session, name, address string) *end {
	c.t.Helper()
	return c.attach(s, name, codec.RoleSender, amqp.Terms{
		Source: &codec.Source{}, Target: &codec.Target{Address: codec.Some(address)}, SndSettleMode: codec.SettleMixed,
	})
}

// receiver attaches a link that keeps the broker supplied with credit.
func (c *client) receiver(s *amqp.Session, name, address string, credit uint32) *end {
	c.t.Helper()
	e := c.attach(s, name, codec.RoleReceiver, amqp.Terms{
		Source: &codec.Source{Address: codec.Some(address)}, Target: &codec.Target{}, SndSettleMode: codec.SettleMixed,
	})
	e.credit = credit
	e.Grant(credit)
	return e
}

// send gives a message to the link, as soon as it has credit.
func (c *client) send(e *end, message []byte, settled bool) {
	c.t.Helper()
	c.until("credit to send", func() bool { return e.Link.Credit() > 0 })
	e.Send(amqp.Sending{Body: message, Settled: settled, RefN: e.sent})
	e.sent++
}

// sendAll sends n messages and waits for their outcomes, which must be accepted.
func (c *client) sendAll(e *end, n int, message func(i int) []byte) {
	c.t.Helper()
	first := e.sent
	for i := range n {
		c.send(e, message(i), false)
	}
	c.until("outcomes", func() bool { return len(e.outcomes) == int(e.sent) })
	for i := first; i < e.sent; i++ {
		if e.outcomes[i].Kind != codec.StateAccepted {
			c.t.Fatalf("outcome of message %d is %+v", i, e.outcomes[i])
		}
	}
}

// until works until holds is true.
func (c *client) until(what string, holds func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if c.err != nil {
			c.t.Fatalf("%s: %v (%v)", what, c.err, c.failure)
		}
		c.step(deadline)
		if errors.Is(c.err, os.ErrDeadlineExceeded) {
			c.t.Fatalf("%s: not within %v", what, patience)
		}
	}
	c.flush()
}

func (c *client) flush() {
	for c.err == nil {
		out := c.machine.Output(time.Now(), c.spare)
		if len(out) == 0 {
			return
		}
		c.spare = out[:0]
		_ = c.socket.SetWriteDeadline(time.Now().Add(patience))
		_, c.err = c.socket.Write(out)
	}
}

// step writes what is due, reads once and works through it.
func (c *client) step(deadline time.Time) {
	c.flush()
	if c.err != nil {
		return
	}
	held := len(c.in)
	c.in = slices.Grow(c.in, max(c.machine.Want(c.in)-held, 64<<10))
	_ = c.socket.SetReadDeadline(deadline)
	n, err := c.socket.Read(c.in[held:cap(c.in)])
	c.in = c.in[:held+n]
	c.err = err
	used := 0
	for {
		n, ev := c.machine.Next(time.Now(), c.in[used:])
		used += n
		if ev == nil {
			break
		}
		c.handle(ev)
	}
	c.in = append(c.in[:0], c.in[used:]...)
}

func (c *client) handle(ev *amqp.Event) {
	if c.on != nil {
		c.on(ev)
	}
	var e *end
	if ev.Link != nil {
		e, _ = ev.Link.Context.(*end)
	}
	switch ev.Kind {
	case amqp.EventFailed, amqp.EventClosed:
		if c.failure == nil {
			c.failure = ev.Err
			if ev.Err == nil {
				c.failure = &amqp.Error{}
			}
		}
		c.machine.Close(nil)
	case amqp.EventAttached:
		e.attached = ev.Attach.Source != nil && ev.Attach.Target != nil
	case amqp.EventDetached, amqp.EventLinkFailed:
		e.detached, e.err = true, ev.Err
		ev.Link.Detach(ev.Closed, nil)
	case amqp.EventEnded:
		ev.Session.End(nil)
	case amqp.EventOutcome:
		if e.outcomes != nil {
			o := ev.State.Outcome
			o.Annotations = nil
			e.outcomes[ev.RefN] = o
		}
	case amqp.EventTransfer:
		if ev.First {
			e.partial = e.partial[:0]
		}
		e.partial = append(e.partial, ev.Payload...)
		if !ev.Last {
			return
		}
		e.received++
		e.bytes += int64(len(e.partial))
		if e.keep {
			e.messages = append(e.messages, arrived{ev.DeliveryID, ev.Settled, bytes.Clone(e.partial)})
		} else if !ev.Settled {
			ev.Session.Dispose(ev.DeliveryID, accepted)
		}
		if e.credit > 0 && e.Link.Credit() <= int64(e.credit/2) {
			e.Grant(e.credit)
		}
	}
}

// close closes the connection in good order.
func (c *client) close() {
	c.t.Helper()
	c.machine.Close(nil)
	c.until("close", func() bool { return c.machine.Done() || c.err != nil })
	c.socket.Close()
}
