package server

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// echo is a node that sends what it gets to all links that listen to it.
type echo struct {
	mu       sync.Mutex
	all      map[*NodeLink]bool
	attached []seen
	outcome  codec.Outcome
	overflow int
}

// seen is what a node has seen of a link.
type seen struct {
	Address, Name, Container, ReplyTo string
	Sender                            bool
	Properties                        codec.Map
}

func (e *echo) Attach(l *NodeLink) *amqp.Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[*NodeLink]bool{}
	}
	e.all[l] = true
	e.attached = append(e.attached, seen{l.Address, l.Name, l.Container, l.ReplyTo, l.Sender, l.Properties})
	return nil
}

func (e *echo) Message(_ *NodeLink, message []byte) codec.Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.all {
		if l.Sender && !l.Send(bytes.Clone(message)) {
			e.overflow++
		}
	}
	return e.outcome
}

func (e *echo) Detached(l *NodeLink) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.all[l] {
		panic("detached twice")
	}
	delete(e.all, l)
}

func (e *echo) links() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}

func TestNode(t *testing.T) {
	r := start(t, nil)
	e := &echo{outcome: accepted}
	r.server.Register("$echo", e)
	r.server.Register("$echo/special", refusing{})
	p := r.opened("client")
	out := senderAttach("request", 0, "$echo/x")
	out.Source = &codec.Source{Address: codec.Some("me")}
	out.Properties = codec.Map{{Key: codec.Symbol("paired"), Value: true}}
	if a := p.attach(out); a.Target.Address.Value != "$echo/x" || a.Properties == nil {
		t.Errorf("attach is %+v", a)
	}
	in := receiverAttach("request", 1, "$echo")
	in.Target = &codec.Target{Address: codec.Some("$me")}
	p.attach(in)
	_, refusal := p.refused(receiverAttach("special", 2, "$echo/special/y"))
	p.condition(refusal, amqp.ConditionUnauthorizedAccess)
	first, second := e.attached[0], e.attached[1]
	if first.Sender || first.Address != "$echo/x" || first.Name != "request" || first.Container != "client" || first.ReplyTo != "me" || len(first.Properties) != 1 {
		t.Errorf("first link is %+v", first)
	}
	if !second.Sender || second.Address != "$echo" || second.ReplyTo != "$me" {
		t.Errorf("second link is %+v", second)
	}

	// Whole, in pieces, settled; credit only afterwards.
	p.put(0, data("one"))
	x := p.transfer(0, true)
	x.More = true
	p.send(x, data("two")[:4])
	p.send(&codec.Transfer{}, data("two")[4:])
	x = p.transfer(0, false)
	x.More = true
	p.send(x, []byte("never ends"))
	p.send(&codec.Transfer{Aborted: true})
	p.quiet(codec.CodeTransfer)
	p.credit(1, 0, 1, false)
	if d := p.receive(); d.body(t) != "one" || !d.Settled.Value {
		t.Errorf("message is %+v", d)
	}
	p.quiet(codec.CodeTransfer)
	p.credit(1, 1, 5, true)
	if d := p.receive(); d.body(t) != "two" {
		t.Errorf("message is %+v", d)
	}
	p.drained(6)

	e.outcome = rejectedWith("app:no", "not today")
	if o := p.post(0, data("x")); o.Kind != codec.StateRejected || o.Error.Condition != "app:no" {
		t.Errorf("outcome is %+v", o)
	}
	e.outcome = accepted

	// A peer that never gives credit costs a bounded amount.
	for range maxNodeWaiting + 20 {
		p.put(0, data("x"))
	}
	e.mu.Lock()
	if e.overflow != 21 {
		t.Errorf("%d messages refused by Send", e.overflow)
	}
	e.mu.Unlock()
	x = p.transfer(0, false)
	x.More = true
	p.send(x)
	p.count().frames += 20
	p.write(bytes.Repeat(encode(0, &codec.Transfer{More: true}, make([]byte, 60_000)), 20))
	p.detached(amqp.ConditionMessageSizeExceeded)
	p.send(&codec.Detach{Handle: 0, Closed: true})
	p.socket.Close()
	eventually(t, "node's links gone", func() bool { return e.links() == 0 })
	if n := len(r.broker.Queues()); n != 0 {
		t.Errorf("%d queues", n)
	}
	r.idle()
}

func TestNodeLinksEnd(t *testing.T) {
	r := start(t, nil)
	e := &echo{outcome: accepted}
	r.server.Register("$echo", e)
	for name, leave := range map[string]func(p *peer){
		"detach": func(p *peer) { p.send(&codec.Detach{Handle: 0}); await[codec.Detach](p) },
		"end":    func(p *peer) { p.send(&codec.End{}); await[codec.End](p) },
		"close":  func(p *peer) { p.close() },
		"lost":   func(p *peer) { p.socket.Close() },
		"fault":  func(p *peer) { p.send(&codec.Transfer{Handle: 9}); p.ended(amqp.ConditionUnattachedHandle) },
		"stolen": func(p *peer) {
			r.opened("c").attach(receiverAttach("link", 0, "q"))
			p.detached(amqp.ConditionStolen)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := r.opened("c")
			p.attach(receiverAttach("link", 0, "$echo"))
			if n := e.links(); n != 1 {
				t.Fatalf("%d links", n)
			}
			leave(p)
			eventually(t, "link gone", func() bool { return e.links() == 0 })
		})
	}
}

func TestNodeAnswersFromAnyGoroutine(t *testing.T) {
	r := start(t, nil)
	e := &echo{outcome: accepted}
	r.server.Register("$echo", e)
	c := r.dial("c", nil)
	s := c.session()
	in := c.receiver(s, "in", "$echo", 50)
	out := c.sender(s, "out", "$echo")
	const n = 1000
	for i := range n {
		c.send(out, data(fmt.Sprint(i)), false)
		c.until("answers", func() bool { return in.received >= i-100 })
	}
	c.until("answers", func() bool { return in.received == n })
	c.close()
}

func TestPrefixesInsideNames(t *testing.T) {
	r := start(t, nil)
	r.server.Register("$echo", &echo{outcome: accepted})
	p := r.opened("c")
	p.sender(0, "not/$echo")
	p.put(0, data("x"))
	r.depth("not/$echo", 1, 0)
	in := receiverAttach("dynamic", 1, "")
	in.Source = &codec.Source{Dynamic: true}
	p.attach(in)
}
