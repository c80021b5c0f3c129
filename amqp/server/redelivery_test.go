package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// patient has a rig run on a clock, with a delay of 40 ms at every address but those that begin with "hasty.".
func patient(c *clock) func(*Config, *ListenerOptions, *engineOptions) {
	return func(cfg *Config, l *ListenerOptions, o *engineOptions) {
		c.use(cfg, l, o)
		o.Settings = []engine.AddressSettings{
			{Match: "#", RedeliveryDelay: new(40 * time.Millisecond)},
			{Match: "hasty.#", RedeliveryDelay: new(time.Duration)},
		}
	}
}

// delayed waits until a queue has that many messages waiting for somebody, and for their time.
func (r *rig) delayed(queue string, waiting, delayed int) {
	r.t.Helper()
	var is engine.QueueInfo
	defer func() {
		if r.t.Failed() {
			r.t.Logf("queue %s: %+v", queue, is)
		}
	}()
	eventually(r.t, fmt.Sprintf("queue %s: %d waiting, %d delayed", queue, waiting, delayed), func() bool {
		for _, q := range r.broker.Queues() {
			if q.Name == queue {
				is = q
			}
		}
		return is.Messages == waiting && is.Delayed == delayed && is.Delivering == 0
	})
}

// How a consumer goes, with a delivery that it has said nothing of, one that a transaction has retired, and one that it has
// retired without settling it: what is only unsettled counts when the connection is lost, and waits never; what is rolled
// back counts once, and waits. A rollback comes with the control link, or by a discharge afterwards.
func TestEndsWithDeliveriesUnsettled(t *testing.T) {
	said := &codec.ErrorInfo{Condition: "app:bye"}
	for name, c := range map[string]struct {
		goes    func(r *rig, p *peer)
		silent  string // the one that nothing was said of
		control bool   // goes as well
	}{
		"detach":         {func(_ *rig, p *peer) { p.send(&codec.Detach{Handle: 2}); await[codec.Detach](p) }, "a", false},
		"detach, closed": {func(_ *rig, p *peer) { p.send(&codec.Detach{Handle: 2, Closed: true}); await[codec.Detach](p) }, "a", false},
		"detach with an error": {func(_ *rig, p *peer) {
			p.send(&codec.Detach{Handle: 2, Closed: true, Error: said})
			await[codec.Detach](p)
		}, "a", false},
		"end of the session":      {func(_ *rig, p *peer) { p.send(&codec.End{}); await[codec.End](p) }, "a", true},
		"end with an error":       {func(_ *rig, p *peer) { p.send(&codec.End{Error: said}); await[codec.End](p) }, "a", true},
		"close of the connection": {func(_ *rig, p *peer) { p.close() }, "a", true},
		"close with an error":     {func(_ *rig, p *peer) { p.send(&codec.Close{Error: said}); await[codec.Close](p) }, "a", true},
		"loss":                    {func(_ *rig, p *peer) { p.socket.Close() }, "a+1", true},
		"a fault of the peer": {func(_ *rig, p *peer) {
			p.write(rawFrame(codec.FrameAMQP, 9, []byte{1, 2, 3}))
			p.closed("amqp:decode-error")
		}, "a+1", true},
		"taken over by connection": {func(r *rig, p *peer) {
			r.opened("c").attach(receiverAttach("in", 0, "q"))
			p.detached("amqp:link:stolen")
		}, "a+1", false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			r := start(t, patient(clock))
			p := r.opened("c")
			p.control(0)
			p.sender(1, "q")
			for _, m := range []string{"a", "b", "c"} {
				p.put(1, data(m))
			}
			p.attach(receiverAttach("in", 2, "q"))
			p.credit(2, 0, 3, false)
			ids := p.expect("a", "b", "c")
			id := p.declare(0)
			p.retire(id, ids[1], ids[1], true, acceptedState)
			p.retire(id, ids[2], ids[2], false, acceptedState)
			p.barrier()
			c.goes(r, p)
			if !c.control {
				r.depth("q", 1, 2)
				p.discharge(0, id, true)
			}
			r.delayed("q", 1, 2)
			clock.advance(39)
			r.delayed("q", 1, 2)
			clock.advance(1)
			r.delayed("q", 3, 0)
			q := r.opened("other")
			q.receiver(0, "q", 3)
			q.expect(c.silent, "b+1", "c+1")
		})
	}
}

// One disposition may be about deliveries of many links, and about what there is no delivery of any more: each message goes
// as its own queue says.
func TestRangeOverLinks(t *testing.T) {
	clock := newClock()
	r := start(t, patient(clock))
	p := r.opened("c")
	for handle, queue := range []string{"q", "hasty.q"} {
		p.sender(uint32(handle), queue)
		for i := range 3 {
			p.put(uint32(handle), data(fmt.Sprint(i)))
		}
	}
	look := receiverAttach("look", 4, "q")
	look.Source.DistributionMode = "copy"
	p.attach(look)
	p.credit(4, 0, 1, false)
	p.expect("0")
	for i := range uint32(3) { // by turns
		for _, handle := range []uint32{2, 3} {
			if i == 0 {
				p.receiver(handle, []string{"q", "hasty.q"}[handle-2], 1)
			} else {
				p.credit(handle, i, 1, false)
			}
			p.expect(fmt.Sprint(i))
		}
	}
	p.dispose(3, 3, true, accepted) // "1" of q
	p.dispose(0, 1<<30, true, failed)
	p.barrier()
	r.delayed("q", 0, 2)
	r.delayed("hasty.q", 3, 0)
	p.credit(3, 3, 3, false)
	p.expect("0+1", "1+1", "2+1")
	clock.advance(40)
	r.delayed("q", 2, 0)
	p.credit(2, 3, 3, false)
	p.expect("0+1", "2+1")
}

// What outcomes say of the next attempt: neighbours that say different things, written at once, under a transaction too.
func TestOutcomesSayWhen(t *testing.T) {
	for _, transactional := range []bool{false, true} {
		clock := newClock()
		r := start(t, patient(clock))
		p := r.opened("c")
		p.control(0)
		p.sender(1, "q")
		says := []codec.Map{
			{{Key: codec.Symbol(deliveryDelay), Value: int64(10)}},
			{{Key: codec.Symbol(deliveryDelay), Value: uint32(30)}},
			nil,
			{{Key: codec.Symbol(deliveryTime), Value: codec.Timestamp(clock.now().UnixMilli() + 20)}},
			{{Key: codec.Symbol(deliveryDelay), Value: "soon"}},
			{{Key: codec.Symbol(deliveryDelay), Value: int64(-1)}, {Key: codec.Symbol("x-opt-a"), Value: "b"}},
		}
		for i := range says {
			p.put(1, data(fmt.Sprint(i)))
		}
		p.receiver(2, "q", 6)
		ids := p.expect("0", "1", "2", "3", "4", "5")
		var id []byte
		if transactional {
			id = p.declare(0)
		}
		var all []byte
		for i, s := range says {
			o := failed
			if s != nil {
				o.Annotations = must(t)(codec.AppendValue(nil, s))
			}
			all = append(all, encode(0, &codec.Disposition{
				Role: codec.RoleReceiver, First: ids[i], Last: codec.Some(ids[i]), Settled: true,
				State: codec.DeliveryState{Transactional: transactional, TxnID: id, Outcome: o},
			})...)
		}
		p.write(all)
		if transactional {
			p.discharge(0, id, false)
		}
		p.barrier()
		p.credit(2, 6, 6, false)
		d := p.receive()
		if _, kept := d.annotation(t, deliveryDelay); kept || d.body(t) != "5" {
			t.Errorf("at once comes %s, with its delay %v", d.body(t), kept)
		}
		if v, _ := d.annotation(t, "x-opt-a"); v != "b" {
			t.Errorf("annotation is %v", v)
		}
		for _, want := range []string{"0+1", "3+1", "1+1"} {
			clock.advance(9)
			p.quiet(codec.CodeTransfer)
			clock.advance(1)
			p.expect(want)
		}
		clock.advance(10)
		p.expect("2+1", "4+1")
	}
}

func TestCase134_DelayedDelivery(t *testing.T) {
	clock := newClock()
	r := start(t, patient(clock))
	p := r.connect()
	o := p.open(codec.Open{ContainerID: "c", MaxFrameSize: 65536, ChannelMax: 255, DesiredCapabilities: []codec.Symbol{"DELAYED_DELIVERY"}})
	if !slices.Contains(o.OfferedCapabilities, "DELAYED_DELIVERY") {
		t.Errorf("offered are %v", o.OfferedCapabilities)
	}
	p.begin()
	p.sender(0, "q")
	at := clock.now().UnixMilli() + 30
	for body, annotation := range map[string]codec.Pair{
		"time":  {Key: codec.Symbol(deliveryTime), Value: codec.Timestamp(at)},
		"delay": {Key: codec.Symbol(deliveryDelay), Value: uint64(60)},
	} {
		p.put(0, append(must(t)(codec.AppendMessageAnnotations(nil, codec.Map{annotation})), data(body)...))
	}
	p.receiver(1, "q", 10)
	clock.advance(29)
	p.quiet(codec.CodeTransfer)
	r.delayed("q", 0, 2)
	clock.advance(1)
	d := p.receive()
	if when, _ := d.annotation(t, deliveryTime); d.body(t) != "time" || when != codec.Timestamp(at) {
		t.Errorf("received %s with %v, want it as it was sent", d.body(t), when)
	}
	clock.advance(30)
	p.expect("delay")
	soon := must(t)(codec.AppendMessageAnnotations(nil, codec.Map{{Key: codec.Symbol(deliveryDelay), Value: "soon"}}))
	refused := p.post(0, append(soon, data("x")...))
	p.condition(refused.Error, amqp.ConditionInvalidField)
}

// Who unsubscribes while another has the subscription is told so, and it stays.
func TestCase127_UnsubscribeWhileInUse(t *testing.T) {
	r := start(t, nil)
	p, other := r.opened("c"), r.opened("c")
	p.attach(subscriber("S", 0, "news"))
	_, e := other.refused(codec.Attach{Name: "S", Handle: 0, Role: codec.RoleReceiver, Target: &codec.Target{}})
	other.condition(e, amqp.ConditionResourceLocked)
	p.credit(0, 0, 1, false)
	other.attach(topicSender("out", 1, "news"))
	other.put(1, data("a"))
	p.expect("a")
}
