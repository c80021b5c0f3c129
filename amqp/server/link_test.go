package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// subscriber is the attach of a durable subscription to a topic.
func subscriber(name string, handle uint32, topic string) codec.Attach {
	a := receiverAttach(name, handle, topic)
	a.Source.Durable, a.Source.ExpiryPolicy = codec.TerminusUnsettledState, "never"
	a.Source.Capabilities = []codec.Symbol{"topic"}
	return a
}

func topicSender(name string, handle uint32, topic string) codec.Attach {
	a := senderAttach(name, handle, topic)
	a.Target.Capabilities = []codec.Symbol{"topic"}
	return a
}

func TestCase106_LinkStealing(t *testing.T) {
	r := start(t, nil)
	a, b := r.opened("same"), r.opened("same")
	link := receiverAttach("L", 0, "q")
	a.attach(link)
	a.credit(0, 0, 10, false)
	b.sender(1, "q")
	b.put(1, data("x"))
	a.receive() // and doesn't settle
	b.attach(link)
	a.detached(amqp.ConditionStolen)
	a.send(&codec.Detach{Closed: true})
	b.credit(0, 0, 10, false)
	d := b.receive()
	if h, _ := d.sections(t); h.DeliveryCount != 1 {
		t.Errorf("delivery-count is %d: a client that comes back has lost its connection", h.DeliveryCount)
	}
	b.dispose(d.id(), d.id(), true, accepted)
	r.depth("q", 0, 0)
	a.barrier()
	if s := r.server.Stats(); s.Links != 2 {
		t.Errorf("links: %d", s.Links)
	}
}

func TestStealingWithinASession(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.attach(receiverAttach("L", 0, "q"))
	again := receiverAttach("L", 1, "q")
	p.send(&again)
	// The victim's detach stands before or behind the thief's attach.
	var attach codec.Attach
	var detach codec.Detach
	for range 2 {
		switch f := p.frame(); f.code {
		case codec.CodeAttach:
			parse(p, &attach, f)
		case codec.CodeDetach:
			parse(p, &detach, f)
		default:
			t.Fatalf("got %s", f)
		}
	}
	if attach.Source == nil || detach.Error == nil || detach.Error.Condition != amqp.ConditionStolen || detach.Handle == attach.Handle {
		t.Fatalf("attach %+v, detach %+v", attach, detach)
	}
	p.send(&codec.Detach{Handle: 0, Closed: true})
	p.sender(2, "q")
	p.put(2, data("x"))
	p.credit(1, 0, 1, false)
	p.receive()
}

// TestIdentityMatrix is compound scenario 3: who is the same link as who.
func TestIdentityMatrix(t *testing.T) {
	type where string
	const session, connection, elsewhere where = "same session", "other session", "other connection"
	for _, container := range []string{"same", "other"} {
		for _, name := range []string{"L", "M"} {
			for _, roles := range [][2]codec.Role{
				{codec.RoleSender, codec.RoleSender}, {codec.RoleReceiver, codec.RoleReceiver}, {codec.RoleSender, codec.RoleReceiver},
			} {
				for _, at := range []where{session, connection, elsewhere} {
					if container == "other" && at != elsewhere {
						continue
					}
					steals := container == "same" && name == "L" && roles[0] == roles[1]
					t.Run(fmt.Sprintf("%s container, name %s, roles %v, %s", container, name, roles, at), func(t *testing.T) {
						r := start(t, nil)
						make := func(name string, handle uint32, role codec.Role) codec.Attach {
							if role == codec.RoleSender {
								return senderAttach(name, handle, "q")
							}
							return receiverAttach(name, handle, "q")
						}
						first := r.opened("same")
						second := first
						first.attach(make("L", 0, roles[0]))
						switch at {
						case connection:
							first.channel = 1
							first.begin()
						case elsewhere:
							second = r.opened(container)
						}
						link := make(name, 1, roles[1])
						second.send(&link)
						second.barrier()
						first.barrier()
						frames := second.aside
						if second != first {
							frames = append(frames, first.aside...)
						}
						attached, stolen := 0, 0
						for _, f := range frames {
							switch f.code {
							case codec.CodeAttach:
								attached++
							case codec.CodeDetach:
								var d codec.Detach
								parse(first, &d, f)
								if d.Error == nil || d.Error.Condition != amqp.ConditionStolen || !d.Closed {
									t.Errorf("detach is %+v", d)
								}
								stolen++
							}
						}
						if attached != 1 || stolen != 0 && !steals || stolen != 1 && steals {
							t.Errorf("%d attached, %d stolen, want a theft: %v", attached, stolen, steals)
						}
					})
				}
			}
		}
	}
}

func TestLinksAreNotStolenAcrossUsers(t *testing.T) {
	r := start(t, func(_ *Config, o *ListenerOptions, _ *engineOptions) {
		o.Verify = known(func(user, password string) bool { return user == password })
	})
	a := r.connect()
	a.login("alice", "alice")
	b := r.connect()
	b.login("bob", "bob")
	for _, p := range []*peer{a, b} {
		p.write(encode(0, &codec.Open{ContainerID: "same", MaxFrameSize: 65536, ChannelMax: 255}))
		strict[codec.Open](p)
		p.begin()
		p.attach(receiverAttach("L", 0, "q"))
	}
	a.quiet(codec.CodeDetach)
}

func TestCase109_ClosedFlagIsMirrored(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprint("closed=", closed), func(t *testing.T) {
			r := start(t, nil)
			p := r.opened("c")
			p.attach(topicSender("out", 0, "t"))
			p.attach(subscriber("sub", 1, "t"))
			for handle := range uint32(2) {
				p.send(&codec.Detach{Handle: handle, Closed: closed})
				d, _ := await[codec.Detach](p)
				if d.Closed != closed || d.Error != nil {
					t.Errorf("detach is %+v", d)
				}
			}
			// closed=false keeps the subscription, closed=true destroys it.
			p.attach(topicSender("out", 0, "t"))
			p.put(0, data("while away"))
			p.attach(subscriber("sub", 1, "t"))
			p.credit(1, 0, 1, false)
			if closed {
				p.quiet(codec.CodeTransfer)
			} else if d := p.receive(); d.body(t) != "while away" {
				t.Errorf("message is %q", d.body(t))
			}
		})
	}
}

func TestCase110_EveryEndIsAnswered(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.receiver(0, "q", 0)
	p.send(&codec.Detach{Handle: 0})
	await[codec.Detach](p)
	p.receiver(0, "q", 0)
	p.send(&codec.End{})
	await[codec.End](p)
	p.begin()
	p.receiver(0, "q", 0)
	p.close()
	r.idle()
}

func TestCase112_OneDetachEachWay(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.send(&codec.Transfer{}, data("x")) // no delivery-id
	p.detached(invalidField)
	p.send(&codec.Detach{Closed: true})
	p.quiet(codec.CodeDetach)
	p.sender(0, "q") // the handle is free again
	p.put(0, data("x"))
}

func TestCase113_NullTermini(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	in := receiverAttach("in", 0, "q")
	in.Source = nil
	_, e := p.refused(in)
	p.condition(e, notFound)
	in.Target = nil
	_, e = p.refused(in)
	p.condition(e, invalidField)
	out := senderAttach("out", 0, "q")
	out.Target = nil
	_, e = p.refused(out)
	p.condition(e, notFound)
	out.Source = nil
	_, e = p.refused(out)
	p.condition(e, notFound)
	in = receiverAttach("in", 0, "")
	in.Source.Address = codec.Opt[string]{}
	_, e = p.refused(in)
	p.condition(e, invalidField)
	// An address that is null is another matter: the anonymous terminus.
	out = senderAttach("anonymous", 0, "")
	out.Target.Address = codec.Opt[string]{}
	p.attach(out)
}

func TestCase116_RefusalEchoes(t *testing.T) {
	r := start(t, noAutoCreate)
	p := r.opened("c")
	in := receiverAttach("in", 7, "missing")
	in.SndSettleMode, in.RcvSettleMode = codec.SettleSettled, codec.ReceiveSecond
	in.Properties = codec.Map{{Key: codec.Symbol("a"), Value: "b"}}
	a, e := p.refused(in)
	p.condition(e, notFound)
	if a.Name != "in" || a.Role != codec.RoleSender || a.SndSettleMode != codec.SettleSettled || a.RcvSettleMode != codec.ReceiveSecond || !a.InitialDeliveryCount.Set || a.Target == nil || a.Properties == nil {
		t.Errorf("attach is %+v", a)
	}
	out := senderAttach("out", 7, "missing")
	out.SndSettleMode = codec.SettleUnsettled
	a, e = p.refused(out)
	p.condition(e, notFound)
	if a.Name != "out" || a.Role != codec.RoleReceiver || a.SndSettleMode != codec.SettleUnsettled || a.Source == nil || a.InitialDeliveryCount.Set {
		t.Errorf("attach is %+v", a)
	}
}

// noAutoCreate turns creation on first use off.
func noAutoCreate(_ *Config, _ *ListenerOptions, o *engineOptions) {
	off := false
	o.Settings = append(o.Settings, engine.AddressSettings{Match: "#", AutoCreateAddresses: &off, AutoCreateQueues: &off})
}

func TestCase118_MissingNodes(t *testing.T) {
	r := start(t, noAutoCreate)
	p := r.opened("c")
	for _, address := range []string{"missing", "missing::queue", "queue://missing", "$missing"} {
		_, e := p.refused(receiverAttach("in", 0, address))
		p.condition(e, notFound)
		if !strings.Contains(e.Description, "missing") {
			t.Errorf("description is %q", e.Description)
		}
		_, e = p.refused(senderAttach("out", 0, address))
		p.condition(e, notFound)
	}
}

func TestCase119_ExpiryWithTheDetach(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	a := subscriber("sub", 0, "t")
	a.Source.ExpiryPolicy, a.Source.Timeout = "link-detach", 60
	if s := p.attach(a).Source; s.Durable != 0 || s.Timeout != 0 || s.ExpiryPolicy != "link-detach" {
		t.Errorf("source is %+v", s) // not what is in place
	}
	p.send(&codec.Detach{})
	await[codec.Detach](p)
	for _, q := range r.broker.Queues() {
		t.Errorf("queue %s is still there", q.Name)
	}
}

func TestCase121_DynamicNodes(t *testing.T) {
	r := start(t, nil)
	p, other := r.opened("c"), r.opened("d")
	in := receiverAttach("reply", 0, "")
	in.Source = &codec.Source{Dynamic: true, Capabilities: []codec.Symbol{"temporary-queue"}, DynamicNodeProperties: codec.Map{
		{Key: codec.Symbol("lifetime-policy"), Value: codec.Described{Descriptor: uint64(codec.CodeDeleteOnClose), Value: codec.List{}}},
	}}
	s := p.attach(in).Source
	if !s.Dynamic || s.Address.Value == "" || len(s.Capabilities) != 1 {
		t.Fatalf("source is %+v", s)
	}
	if v, _ := s.DynamicNodeProperties.Get("lifetime-policy"); v.(codec.Described).Descriptor != uint64(codec.CodeDeleteOnClose) {
		t.Errorf("properties are %v", s.DynamicNodeProperties)
	}
	// Others may send to it, by a link of its own and through the relay.
	other.sender(0, s.Address.Value)
	other.put(0, data("one"))
	relay := senderAttach("relay", 1, "")
	other.attach(relay)
	other.put(1, append(properties(codec.Properties{To: codec.Some(s.Address.Value)}), data("two")...))
	p.credit(0, 0, 2, false)
	for _, want := range []string{"one", "two"} {
		if got := p.receive().body(t); got != want {
			t.Errorf("message is %q, want %q", got, want)
		}
	}
	p.send(&codec.Detach{Handle: 0, Closed: true})
	await[codec.Detach](p)
	// A late reply goes nowhere and makes nothing.
	if o := other.post(1, append(properties(codec.Properties{To: codec.Some(s.Address.Value)}), data("late")...)); o.Kind != codec.StateRejected || o.Error.Condition != notFound {
		t.Errorf("outcome is %v: %s", o.Kind, text(o.Error))
	}
	if all := r.broker.Queues(); len(all) != 0 {
		t.Errorf("queues are %+v", all)
	}

	out := senderAttach("dynamic", 2, "")
	out.Target = &codec.Target{Dynamic: true}
	target := p.attach(out).Target
	if !target.Dynamic || target.Address.Value == "" || target.DynamicNodeProperties == nil {
		t.Fatalf("target is %+v", target)
	}
	p.put(2, data("x"))
	in = receiverAttach("own", 3, target.Address.Value)
	p.attach(in)
	p.credit(3, 0, 1, false)
	p.receive()

	in = receiverAttach("wrong", 4, "named")
	in.Source.Dynamic = true
	_, e := p.refused(in)
	p.condition(e, invalidField)
}

func TestDynamicNodesLiveAsTheirPolicySays(t *testing.T) {
	policy := func(c codec.Code) codec.Map {
		return codec.Map{{Key: codec.Symbol("lifetime-policy"), Value: codec.Described{Descriptor: uint64(c), Value: codec.List{}}}}
	}
	r := start(t, nil)
	alive := func(address string) bool {
		for _, a := range r.broker.Addresses() {
			if a.Name == address {
				return true
			}
		}
		return false
	}
	p := r.opened("c")
	dynamic := func(handle uint32, c codec.Code) string {
		t.Helper()
		in := receiverAttach(fmt.Sprint("dynamic ", handle), handle, "")
		in.Source = &codec.Source{Dynamic: true, DynamicNodeProperties: policy(c)}
		s := p.attach(in).Source
		v, _ := s.DynamicNodeProperties.Get("lifetime-policy")
		if v.(codec.Described).Descriptor != uint64(c) {
			t.Errorf("policy is %v, asked for %v", v, c)
		}
		return s.Address.Value
	}
	detach := func(handle uint32) {
		t.Helper()
		p.send(&codec.Detach{Handle: handle, Closed: true})
		await[codec.Detach](p)
	}
	a := dynamic(0, codec.CodeDeleteOnClose)
	p.sender(1, a)
	detach(0)
	if alive(a) {
		t.Error("delete-on-close outlives its link")
	}
	detach(1)

	a = dynamic(0, codec.CodeDeleteOnNoLinks)
	p.sender(1, a)
	detach(0)
	if !alive(a) {
		t.Error("delete-on-no-links is gone with a link on it")
	}
	detach(1)
	if alive(a) {
		t.Error("delete-on-no-links outlives its links")
	}

	a = dynamic(0, codec.CodeDeleteOnNoMessages)
	p.sender(1, a)
	p.put(1, data("x"))
	detach(0)
	if !alive(a) {
		t.Error("delete-on-no-messages is gone with a message in it")
	}
	p.receiver(2, a, 1)
	d := p.receive()
	p.dispose(d.id(), d.id(), true, accepted)
	p.barrier()
	if alive(a) {
		t.Error("delete-on-no-messages outlives its messages")
	}
	p.detached(amqp.ConditionResourceDeleted)
	p.send(&codec.Detach{Handle: 2, Closed: true})

	a = dynamic(0, codec.CodeDeleteOnNoLinksOrMessages)
	p.sender(3, a)
	p.put(3, data("x"))
	detach(0)
	detach(3)
	if !alive(a) {
		t.Error("delete-on-no-links-or-messages is gone with a message in it")
	}
	p.socket.Close() // and no policy outlives the connection
	eventually(t, "all gone", func() bool { return !alive(a) })
}

func TestCase122_OthersDontConsumeATemporaryQueue(t *testing.T) {
	r := start(t, nil)
	p, other := r.opened("c"), r.opened("c")
	in := receiverAttach("reply", 0, "")
	in.Source = &codec.Source{Dynamic: true}
	address := p.attach(in).Source.Address.Value
	_, e := other.refused(receiverAttach("thief", 0, address))
	other.condition(e, notAllowed)
	browse := receiverAttach("browser", 0, address)
	browse.Source.DistributionMode = "copy"
	_, e = other.refused(browse)
	other.condition(e, notAllowed)
	other.sender(1, address)
	other.put(1, data("x"))
	p.credit(0, 0, 1, false)
	p.receive()
}

func TestCase128_NeverTwoOnADurableSubscription(t *testing.T) {
	r := start(t, nil)
	a, b := r.opened("jms"), r.opened("jms")
	a.attach(subscriber("sub", 0, "t"))
	a.credit(0, 0, 10, false)
	b.attach(subscriber("sub", 0, "t"))
	a.detached(amqp.ConditionStolen)
	b.credit(0, 0, 10, false)
	b.attach(topicSender("out", 1, "t"))
	b.put(1, data("x"))
	b.receive()
	for _, q := range r.broker.Queues() {
		if q.Consumers != 1 {
			t.Errorf("queue %s has %d consumers", q.Name, q.Consumers)
		}
	}
	if n := len(r.broker.Queues()); n != 1 {
		t.Errorf("%d queues", n)
	}
}

func TestCase130_RoutingTypeStays(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.attach(subscriber("sub", 0, "t"))
	out := senderAttach("out", 1, "t")
	out.Target.Capabilities = []codec.Symbol{"queue"}
	_, e := p.refused(out)
	p.condition(e, notAllowed)
	out.Target.Capabilities = []codec.Symbol{"queue", "topic"}
	_, e = p.refused(out)
	p.condition(e, invalidField)
	out.Target.Capabilities = nil
	if a := p.attach(out); len(a.Target.Capabilities) != 0 {
		t.Errorf("capabilities are %v", a.Target.Capabilities)
	}
	p.put(1, data("x"))
	p.credit(0, 0, 1, false)
	p.receive()
	for _, a := range r.broker.Addresses() {
		if a.Name == "t" && a.Routing != engine.Multicast {
			t.Errorf("routing is %v", a.Routing)
		}
	}
}

func TestCase131_AnonymousRelayIsOffered(t *testing.T) {
	r := start(t, nil)
	o := r.connect().open(codec.Open{ContainerID: "c", MaxFrameSize: 65536, DesiredCapabilities: []codec.Symbol{"ANONYMOUS-RELAY", "SHARED-SUBS"}})
	if !slices.Equal(o.OfferedCapabilities, []codec.Symbol{"ANONYMOUS-RELAY", "DELAYED_DELIVERY"}) {
		t.Errorf("offered are %v", o.OfferedCapabilities)
	}
}

func TestCase133_AnonymousRelayErrors(t *testing.T) {
	to := func(address string) []byte {
		return append(properties(codec.Properties{To: codec.Some(address)}), data("x")...)
	}
	for name, c := range map[string]struct {
		message []byte
		want    codec.Symbol
	}{
		"unknown address": {to("missing"), notFound},
		"no properties":   {data("x"), amqp.ConditionPreconditionFailed},
		"no to":           {append(properties(codec.Properties{Subject: codec.Some("s")}), data("x")...), amqp.ConditionPreconditionFailed},
		"empty to":        {to(""), amqp.ConditionPreconditionFailed},
		"to isn't text":   {append(section(codec.CodeProperties, 0xc0, 5, 3, 0x40, 0x40, 0x52, 1), data("x")...), amqp.ConditionPreconditionFailed},
		"no valid name":   {to("a\x01b"), invalidField},
		"malformed":       {[]byte{0, 0x53, 0x75}, decodeError},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, noAutoCreate)
			p := r.opened("c")
			p.attach(senderAttach("relay", 0, ""))
			o := p.post(0, c.message)
			if o.Kind != codec.StateRejected || o.Error.Condition != c.want {
				t.Fatalf("outcome is %v: %s", o.Kind, text(o.Error))
			}
			if tag, _ := o.Error.Info.Get("delivery-tag"); string(tag.([]byte)) != "\x00\x00\x00\x00" {
				t.Errorf("info is %v", o.Error.Info)
			}
			// Settled: there is nothing but the link to tell it by.
			p.send(p.transfer(0, true), c.message)
			e := p.detached(c.want)
			if tag, _ := e.Info.Get("delivery-tag"); string(tag.([]byte)) != "\x00\x00\x00\x01" {
				t.Errorf("info is %v", e.Info)
			}
			p.send(&codec.Detach{Closed: true})
			// Rejected isn't among what the sender understands.
			deaf := senderAttach("deaf", 1, "")
			deaf.Source.Outcomes = []codec.Symbol{"amqp:accepted:list"}
			p.attach(deaf)
			p.send(p.transfer(1, false), c.message)
			p.detached(c.want)
			p.barrier() // the session lives
		})
	}
}

func TestAnonymousRelayRoutes(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.attach(subscriber("sub", 5, "topic"))
	p.attach(senderAttach("relay", 0, ""))
	for _, to := range []string{"a", "queue://b", "c::d", "topic"} {
		p.put(0, append(properties(codec.Properties{To: codec.Some(to)}), data("x")...))
	}
	want := map[string]string{"a": "a", "b": "b", "d": "c"}
	for _, q := range r.broker.Queues() {
		if q.Address == "topic" {
			if q.Messages != 1 {
				t.Errorf("topic's queue has %d messages", q.Messages)
			}
			continue
		}
		if want[q.Name] != q.Address || q.Messages != 1 {
			t.Errorf("queue %+v", q)
		}
		delete(want, q.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing are %v", want)
	}
}

func TestCase136_ConsumersMaximum(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.put(0, data(strings.Repeat("x", 1000)))
	p.put(0, data("small"))
	in := receiverAttach("narrow", 1, "q")
	in.MaxMessageSize = 100
	p.attach(in)
	p.credit(1, 0, 1, false)
	if d := p.receive(); d.body(t) != "small" {
		t.Fatalf("message is %q", d.body(t))
	}
	p.quiet(codec.CodeTransfer)
	out := r.server.Stats().MessagesOut
	p.barrier()
	if got := r.server.Stats().MessagesOut; got != out {
		t.Errorf("%d messages sent to nobody", got-out)
	}
	r.depth("q", 1, 1)
	p.receiver(2, "q", 1)
	if d := p.receive(); len(d.body(t)) != 1000 {
		t.Fatalf("message is %q", d.body(t))
	}
	// The same for a link whose deliveries are settled at once: it isn't lost.
	p.put(0, data(strings.Repeat("y", 1000)))
	in = receiverAttach("narrow, settled", 3, "q")
	in.MaxMessageSize, in.SndSettleMode = 100, codec.SettleSettled
	p.attach(in)
	p.credit(3, 0, 1, false)
	p.quiet(codec.CodeTransfer)
	p.credit(2, 1, 1, false)
	p.receive()
}

func TestCase137_IdleLinksStay(t *testing.T) {
	clock := newClock()
	r := start(t, clock.use)
	p := r.opened("c")
	p.sender(0, "q")
	p.receiver(1, "q", 10)
	clock.advance(24 * 3600 * 1000)
	p.quiet(codec.CodeDetach)
	p.put(0, data("x"))
	p.receive()
}

func TestCase140_QueryPartsBelongToTheName(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q?consumer.exclusive=true")
	p.put(0, data("x"))
	p.receiver(1, "q", 1)
	p.quiet(codec.CodeTransfer)
	p.receiver(2, "q?consumer.exclusive=true", 1)
	p.receive()
}

func TestCase194_OutcomesInAnyForm(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	for i, field := range [][]byte{
		{0xa3, 18, 'a', 'm', 'q', 'p', ':', 'a', 'c', 'c', 'e', 'p', 't', 'e', 'd', ':', 'l', 'i', 's', 't'},
		{0xe0, 21, 1, 0xa3, 18, 'a', 'm', 'q', 'p', ':', 'a', 'c', 'c', 'e', 'p', 't', 'e', 'd', ':', 'l', 'i', 's', 't'},
		{0xc0, 21, 1, 0xa3, 18, 'a', 'm', 'q', 'p', ':', 'a', 'c', 'c', 'e', 'p', 't', 'e', 'd', ':', 'l', 'i', 's', 't'},
		{0x40},
	} {
		source := append([]byte{0xa1, 1, 'q', 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40}, field...)
		source = append([]byte{0, 0x53, 0x28, 0xc0, byte(len(source) + 1), 10}, source...)
		attach := append([]byte{0xa1, 2, 'i', byte('0' + i), 0x52, byte(i), 0x41, 0x40, 0x40}, source...)
		attach = append([]byte{0, 0x53, 0x12, 0xc0, byte(len(attach) + 1), 6}, attach...)
		p.write(rawFrame(0, 0, attach))
		a, _ := await[codec.Attach](p)
		if a.Source == nil || len(a.Source.Outcomes) != 4 {
			t.Errorf("form %d: source is %+v", i, a.Source)
		}
		if a.Source != nil && a.Source.DistributionMode != "move" {
			t.Errorf("distribution-mode is %q", a.Source.DistributionMode)
		}
	}
}

// TestRefusalMatrix is compound scenario 4: whatever the reason, a refusal has
// the same form, and the links beside it don't notice.
func TestRefusalMatrix(t *testing.T) {
	r := start(t, func(cfg *Config, l *ListenerOptions, o *engineOptions) {
		off := false
		o.Settings = []engine.AddressSettings{{Match: "closed.#", AutoCreateAddresses: &off, AutoCreateQueues: &off}}
		o.Limits.Queues = 3
	})
	r.server.Register("$no", refusing{})
	p := r.opened("c")
	p.sender(0, "q")
	p.receiver(1, "q", 1000)
	p.attach(subscriber("sub", 2, "topic"))
	p.sender(3, "third")
	work := func() {
		t.Helper()
		p.put(0, data("still works"))
		p.receive()
	}
	work()
	in := func(address string, change func(*codec.Attach)) codec.Attach {
		a := receiverAttach("refused", 9, address)
		if change != nil {
			change(&a)
		}
		return a
	}
	out := func(address string, change func(*codec.Attach)) codec.Attach {
		a := senderAttach("refused", 9, address)
		if change != nil {
			change(&a)
		}
		return a
	}
	for name, c := range map[string]struct {
		attach codec.Attach
		want   codec.Symbol
	}{
		"unknown, in":        {in("closed.x", nil), notFound},
		"unknown, out":       {out("closed.x", nil), notFound},
		"reserved, in":       {in("$cbs", nil), notFound}, // case 77
		"reserved, out":      {out("$cbs", nil), notFound},
		"name, in":           {in("a\nb", nil), invalidField},
		"name, out":          {out("a\nb", nil), invalidField},
		"long name, in":      {in(strings.Repeat("n", 2000), nil), invalidField},
		"long name, out":     {out(strings.Repeat("n", 2000), nil), invalidField},
		"queue limit, in":    {in("fourth", nil), limitExceeded},
		"queue limit, out":   {out("fourth", nil), limitExceeded},
		"routing, in":        {in("topic", func(a *codec.Attach) { a.Source.Capabilities = []codec.Symbol{"queue"} }), notAllowed},
		"routing, out":       {out("topic", func(a *codec.Attach) { a.Target.Capabilities = []codec.Symbol{"queue"} }), notAllowed},
		"prefix, in":         {in("topic://q", nil), notAllowed},
		"prefix, out":        {out("topic://q", nil), notAllowed},
		"both, in":           {in("queue://q", func(a *codec.Attach) { a.Source.Capabilities = []codec.Symbol{"topic"} }), invalidField},
		"null, in":           {in("q", func(a *codec.Attach) { a.Source = nil }), notFound},
		"null, out":          {out("q", func(a *codec.Attach) { a.Target = nil }), notFound},
		"dynamic limit, in":  {in("", func(a *codec.Attach) { a.Source = &codec.Source{Dynamic: true} }), limitExceeded},
		"dynamic limit, out": {out("", func(a *codec.Attach) { a.Target = &codec.Target{Dynamic: true} }), limitExceeded},
		"dynamic and named":  {out("q", func(a *codec.Attach) { a.Target.Dynamic = true }), invalidField},
		"settled coordinator": {out("", func(a *codec.Attach) {
			a.Target, a.Coordinator, a.SndSettleMode = nil, &codec.Coordinator{}, codec.SettleSettled
		}), invalidField},
		"no delivery-count":    {out("q", func(a *codec.Attach) { a.InitialDeliveryCount.Set = false }), invalidField},
		"subscription unnamed": {in("topic", func(a *codec.Attach) { a.Name = ""; a.Source.Durable = 2 }), invalidField},
		"node, in":             {in("$no", nil), amqp.ConditionUnauthorizedAccess},
		"node, out":            {out("$no/thing", nil), amqp.ConditionUnauthorizedAccess},
	} {
		t.Run(name, func(t *testing.T) {
			p.t = t
			before := r.server.Stats()
			answer, e := p.refused(c.attach)
			p.condition(e, c.want)
			if e.Description == "" {
				t.Error("no description")
			}
			if answer.Role == c.attach.Role || answer.SndSettleMode != c.attach.SndSettleMode {
				t.Errorf("attach is %+v", answer)
			}
			work()
			if after := r.server.Stats(); after.Links != before.Links {
				t.Errorf("links: %d, were %d", after.Links, before.Links)
			}
		})
	}
	p.t = t
	if n := len(r.broker.Queues()); n != 3 {
		t.Errorf("%d queues", n)
	}
}

// refusing is a node for nobody.
type refusing struct{}

func (refusing) Attach(l *NodeLink) *amqp.Error {
	l.Send(data("into the void"))
	return amqp.Errorf(amqp.ConditionUnauthorizedAccess, "nobody may")
}
func (refusing) Message(*NodeLink, []byte) codec.Outcome { return accepted }
func (refusing) Detached(*NodeLink)                      {}

// A receiver that attaches by name with a null source finds its durable
// subscription, and ends it by closing the link [2.6.3].
func TestUnsubscribe(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	sub := subscriber("S", 0, "news")
	p.attach(sub)
	lookup := codec.Attach{Name: "S", Handle: 0, Role: codec.RoleReceiver, Target: &codec.Target{}}

	q := r.opened("c2")
	_, e := q.refused(lookup)
	q.condition(e, amqp.ConditionNotFound)

	p.send(&codec.Detach{Handle: 0})
	await[codec.Detach](p)
	found := p.attach(lookup)
	if found.Source.Address.Value != "news" {
		t.Fatalf("source is %+v", found.Source)
	}
	p.send(&codec.Detach{Handle: 0, Closed: true})
	await[codec.Detach](p)
	_, e = p.refused(lookup)
	p.condition(e, amqp.ConditionNotFound)
}
