package server

import (
	"context"
	"fmt"
	"testing"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

func TestCase193_UnsettledOutcomesAreSettledInReturn(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.receiver(1, "q", 100)
	const n = 10
	for range n {
		p.put(0, data("x"))
	}
	for range n {
		p.receive()
	}
	settled := map[uint32]codec.StateKind{}
	collect := func(until int) {
		t.Helper()
		for len(settled) < until {
			d, _ := await[codec.Disposition](p)
			if d.Role != codec.RoleSender || !d.Settled {
				t.Fatalf("disposition is %+v", d)
			}
			for id := d.First; id <= d.Last.Or(d.First); id++ {
				if _, twice := settled[id]; twice {
					t.Errorf("delivery %d is settled twice", id)
				}
				settled[id] = d.State.Kind
			}
		}
	}
	p.dispose(2, 2, false, accepted)
	collect(1)
	p.dispose(0, 4, false, accepted) // one of them again
	collect(5)
	p.dispose(9, 9, false, rejectedWith("app:no", "no"))
	collect(6)
	p.dispose(5, 6, false, failed)
	collect(8)
	for id, kind := range settled {
		want := codec.StateAccepted
		switch id {
		case 9:
			want = codec.StateRejected
		case 5, 6:
			want = codec.StateModified
		}
		if kind != want {
			t.Errorf("delivery %d is settled with %v", id, kind)
		}
	}
	p.quiet(codec.CodeDisposition)
}

func TestCase193_AfterTheCommit(t *testing.T) {
	// What the broker settles has been committed.
	store := newGate()
	store.engaged.Store(false)
	r := startOn(t, store, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.put(0, data("x"))
	p.receiver(1, "q", 1)
	d := p.receive()
	store.engaged.Store(true)
	p.dispose(d.id(), d.id(), false, accepted)
	p.quiet(codec.CodeDisposition)
	store.release()
	if d, _ := await[codec.Disposition](p); d.Role != codec.RoleSender || !d.Settled || d.State.Kind != codec.StateAccepted {
		t.Errorf("disposition is %+v", d)
	}
}

// TestOutcomesWhileTheBrokerStops are of deliveries that went back already. Nothing says that they hold: no settlement,
// and no close without an error, which a peer takes to confirm what it has settled.
func TestOutcomesWhileTheBrokerStops(t *testing.T) {
	store := newGate()
	store.engaged.Store(false)
	r := startOn(t, store, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.put(0, data("x"))
	p.put(0, data("y"))
	p.receiver(1, "q", 2)
	first, second := p.receive(), p.receive()
	store.engaged.Store(true)
	p.dispose(first.id(), first.id(), false, accepted) // the stop waits for it
	p.barrier()
	stopped := make(chan error)
	go func() { stopped <- r.server.Shutdown(context.Background()) }()
	eventually(t, "second is back", func() bool { return r.broker.Totals().Consumers == 0 })
	p.dispose(second.id(), second.id(), false, accepted)
	p.barrier()
	heard := r.frames()
	p.send(&codec.Close{})
	r.heard(heard + 1)
	store.release()
	settled := 0
	var end codec.Close
	for f := p.frame(); ; f = p.frame() {
		if f.code == codec.CodeClose {
			parse(p, &end, f)
			break
		}
		if f.code != codec.CodeDisposition {
			continue
		}
		var d codec.Disposition
		if parse(p, &d, f); d.Role != codec.RoleSender {
			continue
		}
		if settled++; d.First != first.id() || d.Last.Or(d.First) != first.id() {
			t.Errorf("disposition is %+v", d)
		}
	}
	if settled != 1 || end.Error == nil || end.Error.Condition != amqp.ConditionConnectionForced {
		t.Errorf("%d settled, close is %+v", settled, end.Error)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestSettledSecond(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	out := senderAttach("out", 0, "q")
	out.RcvSettleMode = codec.ReceiveSecond
	if a := p.attach(out); a.RcvSettleMode != codec.ReceiveSecond {
		t.Errorf("rcv-settle-mode is %d", a.RcvSettleMode)
	}
	p.send(p.transfer(0, false), data("x"))
	d, _ := await[codec.Disposition](p)
	if d.Settled || d.State.Kind != codec.StateAccepted {
		t.Errorf("disposition is %+v", d)
	}
	p.send(&codec.Disposition{Role: codec.RoleSender, First: 0, Settled: true, State: codec.DeliveryState{Outcome: accepted}})
	in := receiverAttach("in", 1, "q")
	in.RcvSettleMode = codec.ReceiveSecond
	p.attach(in)
	p.credit(1, 0, 1, false)
	x := p.receive()
	p.dispose(x.id(), x.id(), false, accepted)
	if d, _ := await[codec.Disposition](p); d.Role != codec.RoleSender || !d.Settled {
		t.Errorf("disposition is %+v", d)
	}
	r.depth("q", 0, 0)
}

func TestCase196_ModifiedWithNothingSet(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.put(0, data("x"))
	p.receiver(1, "q", 3)
	for _, modified := range [][]byte{{0x45}, {0xc0, 4, 3, 0x40, 0x40, 0x40}} {
		d := p.receive()
		state := append([]byte{0x00, 0x53, 0x27}, modified...)
		fields := append([]byte{0x41, 0x52, byte(d.id()), 0x40, 0x41}, state...)
		p.write(rawFrame(0, 0, append([]byte{0, 0x53, 0x15, 0xc0, byte(1 + len(fields)), 5}, fields...)))
	}
	if h, _ := p.receive().sections(t); h.DeliveryCount != 0 {
		t.Errorf("delivery-count is %d", h.DeliveryCount)
	}
}

func TestCase197_RejectedGoesToTheDeadLetters(t *testing.T) {
	none := ""
	for _, to := range []*string{nil, &none} {
		t.Run(fmt.Sprint("none=", to != nil), func(t *testing.T) {
			r := start(t, func(_ *Config, _ *ListenerOptions, o *engineOptions) {
				o.Settings = []engine.AddressSettings{{Match: "q", DeadLetterAddress: to}}
			})
			p := r.opened("c")
			p.sender(0, "q")
			p.put(0, data("x"))
			p.receiver(1, "q", 10)
			d := p.receive()
			p.dispose(d.id(), d.id(), true, rejectedWith("app:bad", "no good"))
			p.quiet(codec.CodeTransfer)
			r.depth("q", 0, 0)
			if to != nil {
				r.depth("DLQ", 0, 0)
				return
			}
			p.receiver(2, "DLQ", 1)
			d = p.receive()
			for key, want := range map[string]any{"x-opt-ORIG-ADDRESS": "q", "x-opt-ORIG-QUEUE": "q", "x-opt-death-reason": "rejected: app:bad: no good"} {
				if v, _ := d.annotation(t, key); v != want {
					t.Errorf("%s is %v, want %v", key, v, want)
				}
			}
			if h, _ := d.sections(t); h.DeliveryCount != 1 {
				t.Errorf("delivery-count is %d", h.DeliveryCount)
			}
		})
	}
}

func TestCase199_ReleasedComesAgainAtOnce(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.put(0, data("x"))
	p.receiver(1, "q", 2)
	d := p.receive()
	p.dispose(d.id(), d.id(), true, released)
	again := p.receive()
	if h, _ := again.sections(t); h.DeliveryCount != 0 || h.FirstAcquirer.Or(false) {
		t.Errorf("header is %+v", h)
	}
}

func TestCase200_OrderAfterReturns(t *testing.T) {
	for name, back := range map[string]func(p *peer){
		"released out of order": func(p *peer) {
			for _, id := range []uint32{2, 6, 0} {
				p.dispose(id, id, true, released)
			}
			p.dispose(1, 1, true, released)
			p.dispose(3, 5, true, released)
			p.dispose(7, 9, true, released)
		},
		"detached": func(p *peer) {
			p.send(&codec.Detach{Handle: 1, Closed: true})
			await[codec.Detach](p)
		},
		"session ended": func(p *peer) {
			p.send(&codec.End{})
			await[codec.End](p)
		},
		"connection lost": func(p *peer) { p.socket.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			p := r.opened("c")
			p.sender(0, "q")
			for i := range 10 {
				p.put(0, data(fmt.Sprint(i)))
			}
			p.receiver(1, "q", 10)
			for range 10 {
				p.receive()
			}
			back(p)
			r.depth("q", 10, 0)
			other := r.opened("d")
			other.receiver(0, "q", 10)
			for i := range 10 {
				d := other.receive()
				if d.body(t) != fmt.Sprint(i) {
					t.Fatalf("message %d is %q", i, d.body(t))
				}
				h, _ := d.sections(t)
				if want := name == "connection lost"; (h.DeliveryCount == 1) != want {
					t.Errorf("delivery-count is %d", h.DeliveryCount)
				}
			}
		})
	}
}

func TestCase203_RejectedWithOddErrors(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.receiver(1, "q", 10)
	errors := [][]byte{
		{0x40}, // none at all
		{0x00, 0x53, 0x1d, 0xc0, 5, 1, 0xa3, 2, 'a', 'b'},
	}
	for i, e := range errors {
		p.put(0, data("x"))
		d := p.receive()
		rejected := append([]byte{0x00, 0x53, 0x25, 0xc0, byte(1 + len(e)), 1}, e...)
		fields := append([]byte{0x41, 0x52, byte(d.id()), 0x40, 0x41}, rejected...)
		p.write(rawFrame(0, 0, append([]byte{0, 0x53, 0x15, 0xc0, byte(1 + len(fields)), 5}, fields...)))
		r.depth("DLQ", i+1, 0)
	}
	// Far more text than anybody wants to keep.
	p.put(0, data("x"))
	d := p.receive()
	p.dispose(d.id(), d.id(), true, rejectedWith("app:long", string(make([]byte, 10_000))))
	r.depth("DLQ", 3, 0)
	p.receiver(2, "DLQ", 3)
	for range 3 {
		reason, _ := p.receive().annotation(t, "x-opt-death-reason")
		if s, ok := reason.(string); !ok || s == "" || len(s) > 2048 {
			t.Errorf("reason is %v", reason)
		}
	}
}

func TestCase206_PendingConfirmsAreBounded(t *testing.T) {
	store := newGate()
	r := startOn(t, store, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.LinkCredit = 50 })
	p := r.opened("c")
	p.sender(0, "q")
	for range 50 {
		p.send(p.transfer(0, false), data("x"))
	}
	p.barrier()
	for _, f := range p.flows() {
		if limit := f.DeliveryCount.Value + f.LinkCredit.Value; limit > 50 {
			t.Errorf("credit up to %d with nothing committed", limit)
		}
	}
	p.send(p.transfer(0, false), data("one too many"))
	p.detached(amqp.ConditionTransferLimitExceeded)
	store.release()
	r.depth("q", 50, 0)
}

func TestCase208_AcceptedStaysAccepted(t *testing.T) {
	for name, leave := range map[string]func(p *peer){
		"detach": func(p *peer) { p.write(encode(0, &codec.Detach{Handle: 1, Closed: true})) },
		"end":    func(p *peer) { p.write(encode(0, &codec.End{})) },
		"close":  func(p *peer) { p.write(encode(0, &codec.Close{})) },
		"eof":    func(p *peer) { p.socket.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			p := r.opened("c")
			p.sender(0, "q")
			const n = 100
			for range n {
				p.put(0, data("x"))
			}
			p.receiver(1, "q", n)
			for range n {
				p.receive()
			}
			p.dispose(0, n-1, true, accepted)
			leave(p)
			r.depth("q", 0, 0)
		})
	}
}

func TestCase209_OutcomeBeforeTheDetach(t *testing.T) {
	for name, leave := range map[string]body{"detach": &codec.Detach{Closed: true}, "end": &codec.End{}} {
		t.Run(name, func(t *testing.T) {
			store := newGate()
			r := startOn(t, store, nil)
			p := r.opened("c")
			p.sender(0, "q")
			for range 3 {
				p.send(p.transfer(0, false), data("x"))
			}
			p.send(leave)
			eventually(t, "link released", func() bool { return r.server.Stats().Links == 0 })
			store.release()
			p.accepted(3)
			f := p.without(codec.CodeFlow).frame()
			switch v := f.code; {
			case name == "detach" && v == codec.CodeDetach, name == "end" && v == codec.CodeEnd:
			default:
				t.Errorf("got %s", f)
			}
			r.depth("q", 3, 0)
		})
	}
}

func TestCase211_WhatCounts(t *testing.T) {
	r := start(t, nil)
	feed := r.opened("feed")
	feed.sender(0, "q")
	feed.put(0, data("x"))
	p := r.opened("c")
	p.receiver(0, "q", 100)
	want := uint32(0)
	check := func() delivery {
		t.Helper()
		d := p.receive()
		if h, _ := d.sections(t); h.DeliveryCount != want {
			t.Fatalf("delivery-count is %d, want %d", h.DeliveryCount, want)
		}
		return d
	}
	for range 3 {
		d := check()
		p.dispose(d.id(), d.id(), true, released)
	}
	for range 2 {
		d := check()
		p.dispose(d.id(), d.id(), true, failed)
		want++
	}
	d := check()
	p.dispose(d.id(), d.id(), true, codec.Outcome{Kind: codec.StateModified})
	check()
	p.socket.Close()
	want++
	p = r.opened("c")
	p.receiver(0, "q", 100)
	d = check()
	p.dispose(d.id(), d.id(), true, rejectedWith("app:no", ""))
	want++
	p.receiver(1, "DLQ", 1)
	check()
}

func TestCase212_ExactlyAsManyAttempts(t *testing.T) {
	three := 3
	r := start(t, func(_ *Config, _ *ListenerOptions, o *engineOptions) {
		o.Settings = []engine.AddressSettings{{Match: "q", MaxDeliveryAttempts: &three}}
	})
	p := r.opened("c")
	p.sender(0, "q")
	const n = 20
	for range n {
		p.put(0, data("x"))
	}
	p.receiver(1, "q", 1000)
	for attempt := range uint32(3) {
		var first, last uint32
		for i := range n {
			d := p.receive()
			if h, _ := d.sections(t); h.DeliveryCount != attempt {
				t.Fatalf("delivery-count is %d in attempt %d", h.DeliveryCount, attempt)
			}
			if i == 0 {
				first = d.id()
			}
			last = d.id()
		}
		p.dispose(first, last, true, failed)
	}
	p.quiet(codec.CodeTransfer)
	r.depth("q", 0, 0)
	r.depth("DLQ", n, 0)
}

func TestCase280_StatesThatAreNone(t *testing.T) {
	unknown := []byte{0x00, 0xa3, 7, 'a', 'p', 'p', ':', 'x', 'y', 'z', 0x45}
	symbolic := append(append([]byte{0x00, 0xa3, 18}, "amqp:accepted:list"...), 0x45)
	for name, c := range map[string]struct {
		state    []byte
		fallback codec.Outcome
		gone     bool
		count    uint32
	}{
		"null":                      {[]byte{0x40}, codec.Outcome{}, false, 0},
		"null, default accepted":    {[]byte{0x40}, accepted, true, 0},
		"null, default modified":    {[]byte{0x40}, failed, false, 1},
		"received":                  {[]byte{0x00, 0x53, 0x23, 0xc0, 3, 2, 0x43, 0x44}, codec.Outcome{}, false, 0},
		"unknown":                   {unknown, codec.Outcome{}, false, 0},
		"unknown, default modified": {unknown, failed, false, 1},
		"accepted as a list0":       {[]byte{0x00, 0x53, 0x24, 0x45}, codec.Outcome{}, true, 0},
		"symbolic accepted":         {symbolic, codec.Outcome{}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			p := r.opened("c")
			p.sender(0, "q")
			p.put(0, data("x"))
			in := receiverAttach("in", 1, "q")
			in.Source.DefaultOutcome = c.fallback
			p.attach(in)
			p.credit(1, 0, 1, false)
			d := p.receive()
			fields := append([]byte{0x41, 0x52, byte(d.id()), 0x40, 0x41}, c.state...)
			p.write(rawFrame(0, 0, append([]byte{0, 0x53, 0x15, 0xc0, byte(1 + len(fields)), 5}, fields...)))
			p.barrier()
			if c.gone {
				r.depth("q", 0, 0)
				return
			}
			r.depth("q", 1, 0)
			p.credit(1, 1, 1, false)
			if h, _ := p.receive().sections(t); h.DeliveryCount != c.count {
				t.Errorf("delivery-count is %d", h.DeliveryCount)
			}
		})
	}
}
