package server

import (
	"fmt"
	"testing"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

func TestCase085_WindowGoesOnBeyond65535(t *testing.T) {
	r := start(t, nil)
	c := r.dial("c", nil)
	s := c.session()
	out := c.sender(s, "out", "q")
	m := volatile("x")
	const n = 70_000
	for range n {
		c.send(out, m, true)
	}
	c.close()
	r.depth("q", n, 0)
	// And the other way, where the client's window is what goes round.
	c = r.dial("d", func(cfg *amqp.Config) { cfg.IncomingWindow = 100 })
	in := c.receiver(c.session(), "in", "q", 500)
	c.until("all", func() bool { return in.received == n })
	c.close()
}

func TestCase103_SenderAndReceiverOnOneSession(t *testing.T) {
	r := start(t, nil)
	c := r.dial("c", nil)
	s := c.session()
	out, in := c.sender(s, "out", "q"), c.receiver(s, "in", "q", 50)
	const n = 10_000
	c.sendAll(out, n, func(i int) []byte { return data(fmt.Sprint(i)) })
	c.until("all back", func() bool { return in.received == n })
	c.close()
	r.depth("q", 0, 0)
}

func TestCase104_OneConsumerThatStopsHoldsUpNobody(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "a")
	p.receiver(1, "a", 5) // takes five and no more
	p.receiver(2, "b", 1000)
	p.sender(3, "b")
	for i := range 50 {
		p.send(p.transfer(0, true), data("for a"))
		p.send(p.transfer(3, true), data(fmt.Sprint(i)))
	}
	a, b := 0, 0
	for range 55 {
		switch d := p.receive(); d.body(t) {
		case "for a":
			a++
		case fmt.Sprint(b):
			b++
		default:
			t.Fatalf("message %d on b is %q", b, d.body(t))
		}
	}
	if a != 5 || b != 50 {
		t.Errorf("%d and %d", a, b)
	}
	p.quiet(codec.CodeTransfer)
}

func TestCase143_DrainOfAnEmptyQueue(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.receiver(0, "q", 0)
	p.credit(0, 0, 10, true)
	if f := p.drained(10); f.Available != codec.Some(uint32(0)) || !f.Handle.Set {
		t.Errorf("flow is %+v", f)
	}
	p.credit(0, 10, 0, true) // no credit at all
	p.drained(10)
	p.credit(0, 10, 1<<31, true)
	p.drained(1<<31 + 10)
	// After a drain the credit is used up.
	p.sender(1, "q")
	p.put(1, data("x"))
	p.quiet(codec.CodeTransfer)
	p.credit(0, 1<<31+10, 1, false)
	p.receive()
}

// TestNothingBehindADrain drains messages that take many frames. Meanwhile and afterwards the queue gives the link
// nothing more, not even to have it back at once: were the connection lost just then, that would count.
func TestNothingBehindADrain(t *testing.T) {
	r := start(t, nil)
	r.load("q", 3, 1<<20)
	p := r.opened("c")
	p.receiver(0, "q", 0)
	p.credit(0, 0, 10, true)
	for range 3 {
		p.receive()
	}
	p.drained(10)
	other := r.opened("other")
	other.sender(0, "q")
	other.put(0, data("late"))
	p.barrier()
	other.receiver(1, "q", 1)
	if h, _ := other.receive().sections(t); !h.FirstAcquirer.Or(false) {
		t.Errorf("header is %+v", h)
	}
}

func TestCase145_AnswerSaysDrain(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.receiver(0, "q", 0)
	p.barrier()
	p.flows()
	p.credit(0, 0, 10, true)
	p.barrier()
	flows := p.flows()
	if len(flows) != 1 || !flows[0].Drain || flows[0].Echo || flows[0].LinkCredit != codec.Some(uint32(0)) {
		t.Errorf("flows are %+v", flows)
	}
}

func TestCase146_DrainCountsOn(t *testing.T) {
	r := start(t, nil)
	r.load("q", 3, 10)
	p := r.opened("c")
	p.receiver(0, "q", 0)
	p.credit(0, 0, 10, true)
	for range 3 {
		strict[codec.Transfer](p.without(codec.CodeAttach))
	}
	f, _ := strict[codec.Flow](p)
	if f.DeliveryCount != codec.Some(uint32(10)) || f.LinkCredit != codec.Some(uint32(0)) || !f.Drain {
		t.Errorf("flow behind the transfers is %+v", f)
	}
}

func TestDrainOfMoreThanAWindow(t *testing.T) {
	r := start(t, nil)
	const n = 3*consumerWindow + 7
	r.load("q", n, 10)
	p := r.opened("c")
	p.receiver(0, "q", 0)
	p.credit(0, 0, 1<<20, true)
	for range n {
		p.receive()
	}
	p.drained(1 << 20)
	p.quiet(codec.CodeTransfer)
}

func TestCase148_DrainWhenTheQueueGoes(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	for i := range uint32(3) {
		p.receiver(i, fmt.Sprintf("q%d", i), 0)
	}
	p.receiver(3, "gone", 0)
	if err := r.broker.Delete("gone", "gone"); err != nil {
		t.Fatal(err)
	}
	// The drain and the detach cross each other.
	for i := range uint32(4) {
		p.credit(i, 0, 5, true)
	}
	p.detached(amqp.ConditionResourceDeleted)
	p.send(&codec.Detach{Handle: 3, Closed: true})
	for range 3 {
		p.drained(5)
	}
}

func TestCase149_DrainsUnderLoad(t *testing.T) {
	r := start(t, nil)
	feed := r.dial("feed", nil)
	out := feed.sender(feed.session(), "out", "q")
	done := make(chan struct{})
	message := volatile(string(make([]byte, 300<<10)))
	go func() {
		defer close(done)
		for range 60 {
			feed.send(out, message, true)
		}
		feed.flush()
	}()
	p := r.opened("c")
	p.receiver(0, "q", 0)
	count, got := uint32(0), 0
	for got < 60 {
		p.credit(0, count, 3, true)
		for answered := false; !answered; {
			f := p.frame()
			switch f.code {
			case codec.CodeTransfer:
				var x codec.Transfer
				parse(p, &x, f)
				if x.DeliveryID.Set {
					got++
				}
			case codec.CodeFlow:
				var v codec.Flow
				parse(p, &v, f)
				if v.Handle.Set && v.Drain {
					count += 3
					if v.DeliveryCount.Value != count || v.LinkCredit.Value != 0 {
						t.Fatalf("drained flow is %+v, want count %d", v, count)
					}
					answered = true
				}
			}
		}
		p.quiet(codec.CodeTransfer)
		p.flows()
	}
	<-done
	feed.close()
}

func TestDrainWhileAnEarlierDrainIsAnswered(t *testing.T) {
	// The answer to the first drain is under way when the second, with credit
	// of its own, is asked for and a message arrives for it.
	r := start(t, nil)
	p := r.pipe()
	p.open(codec.Open{ContainerID: "c", MaxFrameSize: 65536, ChannelMax: 1})
	p.begin()
	p.receiver(0, "q", 0)
	stall := p.sessionFlow()
	stall.Echo = true
	p.send(stall) // the writer stands still with the answer
	eventually(t, "writer stuck", func() bool {
		stuck := false
		r.server.each(func(c *connection) { stuck = c.writingSince.Load() != 0 })
		return stuck
	})
	p.credit(0, 0, 1, true)
	r.heard(5)
	feed := r.opened("feed")
	feed.sender(0, "q")
	feed.put(0, data("late"))
	feed.close()
	p.credit(0, 0, 10, true)
	r.heard(6)
	d := p.receive()
	if d.body(t) != "late" {
		t.Errorf("message is %q", d.body(t))
	}
	p.drained(10)
}

// heard waits until some connection has worked through n frames.
func (r *rig) heard(n uint64) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%d frames", n), func() bool { return r.frames() >= n })
}

// frames is how many the connection has worked through that has most.
func (r *rig) frames() (most uint64) {
	r.server.each(func(c *connection) {
		c.guard.Lock()
		most = max(most, c.machine.FramesIn)
		c.guard.Unlock()
	})
	return most
}

func TestCase152_NothingWithoutCredit(t *testing.T) {
	r := start(t, nil)
	r.load("q", 10, 10)
	p := r.opened("c")
	p.receiver(0, "q", 0)
	p.quiet(codec.CodeTransfer)
	p.credit(0, 0, 1, false)
	p.receive()
	p.quiet(codec.CodeTransfer)
	p.credit(0, 0, 2, false) // counted from the same place: one more
	p.receive()
	p.quiet(codec.CodeTransfer)
	r.depth("q", 8, 2)
}

func TestCreditWithdrawn(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.receiver(0, "q", 100)
	p.credit(0, 0, 0, false)
	p.barrier()
	p.sender(1, "q")
	p.put(1, data("x"))
	p.quiet(codec.CodeTransfer)
	r.depth("q", 1, 0)
}

func TestCase154_ProducersNeverRunDry(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprintf("settled=%v", settled), func(t *testing.T) {
			r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.LinkCredit = 20 })
			p := r.opened("c")
			p.sender(0, "q")
			limit, sent, low := uint32(0), uint32(0), uint32(20)
			take := func() {
				for _, f := range p.flows() {
					if f.Handle.Set {
						limit = f.DeliveryCount.Value + f.LinkCredit.Value
					}
				}
			}
			p.barrier()
			take()
			if limit != 20 {
				t.Fatalf("first credit is %d", limit)
			}
			for sent < 200 {
				p.send(p.transfer(0, settled), volatile("x")) // a commit under way takes its credit, rightly
				sent++
				if !settled {
					await[codec.Disposition](p)
				}
				p.barrier()
				take()
				low = min(low, limit-sent)
			}
			if low == 0 {
				t.Error("credit ran out before it was topped up")
			}
		})
	}
}

func TestCase166_FewFlows(t *testing.T) {
	// At most about one flow for each half of the credit, also while commits
	// are under way all the time.
	for name, message := range map[string][]byte{"durable": data("x"), "volatile": volatile("x")} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.LinkCredit = 200 })
			c := r.dial("c", nil)
			out := c.sender(c.session(), "out", "q")
			flows := 0
			c.on = func(ev *amqp.Event) {
				if ev.Kind == amqp.EventFlow && ev.Link == out.Link {
					flows++
				}
			}
			const n = 20_000
			c.sendAll(out, n, func(int) []byte { return message })
			if limit := 2 * n / 100; flows > limit {
				t.Errorf("%d flows for %d messages, at most %d expected", flows, n, limit)
			}
			c.close()
		})
	}
}

func TestCase157_CreditOneForEver(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.receiver(1, "q", 0)
	outcomes := []codec.Outcome{accepted, released, failed, rejectedWith("app:no", "no")}
	count := uint32(0)
	for i := range 2000 {
		p.send(p.transfer(0, true), data("x"))
		p.credit(1, count, 1, false)
		d := p.receive()
		count++
		o := outcomes[i%4]
		p.dispose(d.id(), d.id(), true, o)
		if o.Kind == codec.StateReleased || o.Kind == codec.StateModified {
			p.credit(1, count, 1, false)
			d = p.receive()
			count++
			p.dispose(d.id(), d.id(), true, accepted)
		}
	}
	r.depth("q", 0, 0)
	r.depth("DLQ", 500, 0)
}

func TestCase161_CreditUnderMemoryPressure(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, o *engineOptions) {
		c.LinkCredit = 20
		o.Limits.MemoryBytes = 100 << 10
	})
	c := r.dial("c", nil)
	s := c.session()
	out := c.sender(s, "out", "q")
	message := volatile(string(make([]byte, 2<<10)))
	sent := 0
	for out.Link.Credit() > 0 || int(out.sent) != len(out.outcomes) {
		if out.Link.Credit() > 0 {
			c.send(out, message, false)
			if sent++; sent > 200 {
				t.Fatal("credit never ends")
			}
		}
		c.until("outcome", func() bool { return int(out.sent) == len(out.outcomes) })
	}
	refused := 0
	for _, o := range out.outcomes {
		if o.Kind == codec.StateRejected {
			refused++
			if o.Error.Condition != limitExceeded {
				t.Errorf("error is %s", text(o.Error))
			}
		}
	}
	if !r.broker.Pressure() {
		t.Fatal("no pressure")
	}
	// A link attached under pressure has to wait as well.
	late := c.sender(s, "late", "q")
	in := c.receiver(s, "in", "q", 0)
	if late.Link.Credit() != 0 {
		t.Fatal("credit under pressure")
	}
	in.credit = 100
	in.Grant(100)
	c.until("credit again", func() bool { return out.Link.Credit() > 10 && late.Link.Credit() > 10 })
	c.until("all taken", func() bool { return in.received == sent-refused })
	c.sendOne(out, message)
	c.close()
}

// Producers of a queue and of the anonymous relay wait for memory alike, and all go on.
func TestCase158_AllProducersWaitAndGoOn(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, o *engineOptions) {
		c.LinkCredit = 20
		o.Limits.MemoryBytes = 100 << 10
	})
	c := r.dial("c", nil)
	s := c.session()
	named, relay := c.sender(s, "named", "q"), c.sender(s, "relay", "")
	small := volatile("x")
	big := volatile(string(make([]byte, 2<<10)))
	for name, e := range map[string]*end{"named": named, "relay": relay} {
		if e.Link.Credit() == 0 {
			t.Fatalf("%s: no credit at first", name)
		}
	}
	volatileTo := func(body []byte) []byte {
		h := codec.Header{Durable: codec.Some(false)}
		out := h.Append(nil)
		out = append(out, properties(codec.Properties{To: codec.Some("q")})...)
		return codec.AppendData(out, body)
	}
	for sent := 0; named.Link.Credit() > 0 || relay.Link.Credit() > 0; sent++ {
		if sent > 200 {
			t.Fatal("credit never ends")
		}
		if named.Link.Credit() > 0 {
			c.send(named, big, false)
		}
		if relay.Link.Credit() > 0 {
			c.send(relay, volatileTo(make([]byte, 2<<10)), false)
		}
		c.until("outcomes", func() bool { return int(named.sent) == len(named.outcomes) && int(relay.sent) == len(relay.outcomes) })
	}
	if !r.broker.Pressure() {
		t.Fatal("no pressure")
	}
	in := c.receiver(s, "in", "q", 100)
	c.until("credit again", func() bool { return named.Link.Credit() > 10 && relay.Link.Credit() > 10 })
	before := in.received
	c.sendOne(named, small)
	c.sendOne(relay, volatileTo([]byte("x")))
	c.until("both arrive", func() bool { return in.received >= before+2 })
	c.close()
}

// sendOne sends one message and waits for its acceptance.
func (c *client) sendOne(e *end, message []byte) {
	c.t.Helper()
	c.send(e, message, false)
	c.until("outcome", func() bool { return len(e.outcomes) == int(e.sent) })
	if e.outcomes[e.sent-1].Kind != codec.StateAccepted {
		c.t.Errorf("outcome is %+v", e.outcomes[e.sent-1])
	}
}

func TestCase202_RefusalSaysWhy(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, o *engineOptions) { o.Limits.MemoryBytes = 10 << 10 })
	p := r.opened("c")
	p.sender(0, "q")
	var o codec.Outcome
	for range 20 {
		if o = p.post(0, volatile(string(make([]byte, 1<<10)))); o.Kind != codec.StateAccepted {
			break
		}
	}
	if o.Kind != codec.StateRejected || o.Error.Condition != limitExceeded || o.Error.Description == "" {
		t.Fatalf("outcome is %v: %s", o.Kind, text(o.Error))
	}
	queue, _ := o.Error.Info.Get("queue")
	reason, _ := o.Error.Info.Get("reason")
	if queue != "q" || reason != "memory" {
		t.Errorf("info is %v", o.Error.Info)
	}
}

func TestCase164_EchoFlood(t *testing.T) {
	r := start(t, nil)
	p := r.pipe()
	p.open(codec.Open{ContainerID: "c", MaxFrameSize: 65536, ChannelMax: 1})
	p.begin()
	p.receiver(0, "q", 1)
	f := p.creditFlow(0, 0, 1, false)
	f.Echo = true
	var burst []byte
	const n = 100_000
	for range n {
		burst = append(burst, encode(0, f)...)
	}
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		p.write(burst)
	}()
	<-wrote // though nobody reads the answers
	r.server.each(func(c *connection) {
		c.guard.Lock()
		if c.machine.Encoded() > 1<<16 {
			t.Errorf("%d bytes of answers", c.machine.Encoded())
		}
		c.guard.Unlock()
	})
	p.barrier()
	if got := len(p.flows()); got == 0 || got > n/100 {
		t.Errorf("%d answers to %d flows", got, n)
	}
}

func TestSenderThatSkipsDeliveriesGetsCredit(t *testing.T) {
	// A sender may count deliveries that never come; its flow says so.
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.LinkCredit = 10 })
	p := r.opened("c")
	p.sender(0, "q")
	p.barrier()
	p.flows()
	p.credit(0, 10, 0, false)
	p.barrier()
	flows := p.flows()
	if len(flows) == 0 || flows[0].DeliveryCount != codec.Some(uint32(10)) || flows[0].LinkCredit != codec.Some(uint32(10)) {
		t.Fatalf("flows are %+v", flows)
	}
}
