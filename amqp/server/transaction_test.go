package server

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

func controlAttach(name string, handle uint32) codec.Attach {
	return codec.Attach{
		Name: name, Handle: handle, Role: codec.RoleSender, SndSettleMode: codec.SettleUnsettled,
		Source:               &codec.Source{Outcomes: []codec.Symbol{"amqp:accepted:list", "amqp:rejected:list"}},
		Coordinator:          &codec.Coordinator{Capabilities: []codec.Symbol{codec.CapabilityLocalTransactions}},
		InitialDeliveryCount: codec.Some(uint32(0)),
	}
}

// control attaches a control link.
func (p *peer) control(handle uint32) {
	p.t.Helper()
	p.controlAs(controlAttach(fmt.Sprint("control ", handle), handle))
}

func (p *peer) controlAs(a codec.Attach) codec.Attach {
	p.t.Helper()
	p.send(&a)
	answer, _ := await[codec.Attach](p)
	if answer.Coordinator == nil {
		p.t.Fatalf("control link was refused: %+v", answer)
	}
	return answer
}

// ask sends a request on a control link.
func (p *peer) ask(handle uint32, r amqp.Coordination) {
	p.t.Helper()
	p.deliver(p.transfer(handle, false), r.Append(nil))
}

// answer returns the outcome of the request asked last.
func (p *peer) answer() codec.Outcome {
	p.t.Helper()
	for {
		d, _ := await[codec.Disposition](p)
		if d.Role == codec.RoleReceiver && !d.State.Transactional {
			return d.State.Outcome
		}
	}
}

// declare declares a transaction on a control link and returns its id.
func (p *peer) declare(handle uint32) []byte {
	p.t.Helper()
	p.ask(handle, amqp.Coordination{Declare: &codec.Declare{}})
	o := p.answer()
	if o.Kind != codec.StateDeclared || len(o.TxnID) == 0 || len(o.TxnID) > 32 {
		p.t.Fatalf("declare was answered with %v %s", o.Kind, text(o.Error))
	}
	return bytes.Clone(o.TxnID)
}

func (p *peer) askDischarge(handle uint32, id []byte, fail bool) {
	p.t.Helper()
	p.ask(handle, amqp.Coordination{Discharge: &codec.Discharge{TxnID: id, Fail: fail}})
}

// discharge ends a transaction, which must succeed.
func (p *peer) discharge(handle uint32, id []byte, fail bool) {
	p.t.Helper()
	p.askDischarge(handle, id, fail)
	if o := p.answer(); o.Kind != codec.StateAccepted {
		p.t.Fatalf("discharge was answered with %v %s", o.Kind, text(o.Error))
	}
}

// refuseDischarge commits a transaction, which must fail.
func (p *peer) refuseDischarge(handle uint32, id []byte, want codec.Symbol) *codec.ErrorInfo {
	p.t.Helper()
	p.askDischarge(handle, id, false)
	o := p.answer()
	if o.Kind != codec.StateRejected {
		p.t.Fatalf("discharge was answered with %v, want rejected", o.Kind)
	}
	return p.condition(o.Error, want)
}

// under puts a transfer under a transaction.
func under(id []byte, t *codec.Transfer) *codec.Transfer {
	t.State = codec.DeliveryState{Transactional: true, TxnID: id}
	return t
}

// postUnder posts a message and returns the outcome that it is to have.
func (p *peer) postUnder(id []byte, handle uint32, message []byte) codec.Outcome {
	p.t.Helper()
	p.deliver(under(id, p.transfer(handle, false)), message)
	d, _ := await[codec.Disposition](p)
	if !d.State.Transactional || !bytes.Equal(d.State.TxnID, id) || d.Role != codec.RoleReceiver {
		p.t.Fatalf("disposition of a message posted under %x is %+v", id, d)
	}
	return d.State.Outcome
}

func (p *peer) putUnder(id []byte, handle uint32, messages ...string) {
	p.t.Helper()
	for _, m := range messages {
		if o := p.postUnder(id, handle, data(m)); o.Kind != codec.StateAccepted {
			p.t.Fatalf("message under a transaction: %v %s", o.Kind, text(o.Error))
		}
	}
}

// retire gives deliveries an outcome under a transaction.
func (p *peer) retire(id []byte, first, last uint32, settled bool, o codec.Outcome) {
	p.t.Helper()
	p.send(&codec.Disposition{
		Role: codec.RoleReceiver, First: first, Last: codec.Some(last), Settled: settled,
		State: codec.DeliveryState{Transactional: true, TxnID: id, Outcome: o},
	})
}

var acceptedState = codec.Outcome{Kind: codec.StateAccepted}

// expect receives messages with these bodies and counts: "a" or "a+1".
func (p *peer) expect(want ...string) (ids []uint32) {
	p.t.Helper()
	for _, w := range want {
		d := p.receive()
		h, _ := d.sections(p.t)
		got := d.body(p.t)
		if h.DeliveryCount > 0 {
			got = fmt.Sprint(got, "+", h.DeliveryCount)
		}
		if got != w {
			p.t.Fatalf("received %s, want %s", got, w)
		}
		ids = append(ids, d.id())
	}
	return ids
}

// [4.2, 4.5.7] A control link is told what the coordinator can do.
func TestCoordinator(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	answer := p.controlAs(controlAttach("control", 0))
	want := "[amqp:local-transactions amqp:multi-txns-per-ssn amqp:multi-ssns-per-txn]"
	if got := fmt.Sprint(answer.Coordinator.Capabilities); got != want {
		t.Errorf("capabilities %s, want %s", got, want)
	}
	a := controlAttach("receiver", 1)
	a.Role, a.InitialDeliveryCount.Set = codec.RoleReceiver, false
	_, e := p.refused(a)
	p.condition(e, amqp.ConditionInvalidField)
	a = controlAttach("settled", 2)
	a.SndSettleMode = codec.SettleSettled
	_, e = p.refused(a)
	p.condition(e, amqp.ConditionInvalidField)
}

// Case 227, 229: posted messages appear at the commit, on several queues and from several sessions, and never after a rollback.
func TestTransactionPosting(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.control(0)
	p.sender(1, "q")
	p.channel = 1
	p.begin()
	p.sender(0, "r")
	p.channel = 0
	id := p.declare(0)
	p.putUnder(id, 1, "b", "c")
	p.channel = 1
	p.putUnder(id, 0, "x")
	p.channel = 0
	p.put(1, data("a"))
	r.depth("q", 1, 0)
	r.depth("r", 0, 0)
	p.discharge(0, id, false)
	r.depth("q", 3, 0)
	r.depth("r", 1, 0)

	id = p.declare(0)
	p.putUnder(id, 1, "d")
	p.discharge(0, id, true)
	r.depth("q", 3, 0)
	p.receiver(2, "q", 10)
	p.expect("a", "b", "c")
}

// The answers of a message in several frames, settled, and on a link that settles second [4.4.4.1].
func TestTransactionPostingModes(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.control(0)
	a := senderAttach("second", 1, "q")
	a.RcvSettleMode = codec.ReceiveSecond
	p.attach(a)
	p.sender(2, "q")
	id := p.declare(0)

	p.deliver(under(id, p.transfer(1, false)), data("second"))
	d, _ := await[codec.Disposition](p)
	if d.Settled || !d.State.Transactional || d.State.Kind != codec.StateAccepted {
		t.Errorf("disposition on a link that settles second is %+v", d)
	}
	p.deliver(under(id, p.transfer(2, true)), data("settled"))
	whole := data("parts")
	first := under(id, p.transfer(2, false))
	first.More = true
	p.send(first, whole[:4])
	p.send(&codec.Transfer{Handle: 2}, whole[4:]) // it need not say so again
	d, _ = await[codec.Disposition](p)
	if !d.Settled || !d.State.Transactional || d.State.Kind != codec.StateAccepted || d.First != first.DeliveryID.Value {
		t.Errorf("disposition is %+v", d)
	}
	p.discharge(0, id, false)
	p.receiver(3, "q", 10)
	p.expect("second", "settled", "parts")
}

// Retired deliveries are gone with the commit; after a rollback those that were settled are back in order, counted [4.4.4.2].
// Cases 200, 232.
func TestTransactionRetiring(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.control(0)
	p.sender(1, "q")
	for i := range 10 {
		p.put(1, data(fmt.Sprint(i)))
	}
	p.receiver(2, "q", 10)
	ids := p.expect("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	id := p.declare(0)
	p.retire(id, ids[0], ids[3], true, acceptedState)
	p.discharge(0, id, false)
	r.depth("q", 0, 6)

	id = p.declare(0)
	p.retire(id, ids[6], ids[9], true, acceptedState)
	p.retire(id, ids[5], ids[5], true, codec.Outcome{Kind: codec.StateReleased})
	p.retire(id, ids[4], ids[4], true, codec.Outcome{Kind: codec.StateRejected})
	r.depth("q", 0, 6)
	p.discharge(0, id, true)
	p.credit(2, 10, 10, false)
	p.expect("4+1", "5+1", "6+1", "7+1", "8+1", "9+1")
}

// The source's default outcome is what a rollback makes of settled deliveries, unless that would lose them.
func TestTransactionDefaultOutcome(t *testing.T) {
	for _, c := range []struct {
		fallback codec.Outcome
		want     string
	}{
		{codec.Outcome{Kind: codec.StateReleased}, "m"},
		{codec.Outcome{Kind: codec.StateModified, DeliveryFailed: true}, "m+1"},
		{codec.Outcome{Kind: codec.StateModified}, "m"},
		{codec.Outcome{Kind: codec.StateAccepted}, "m+1"},
		{codec.Outcome{}, "m+1"},
	} {
		r := start(t, nil)
		p := r.opened("c")
		p.control(0)
		p.sender(1, "q")
		p.put(1, data("m"))
		a := receiverAttach("in", 2, "q")
		a.Source.DefaultOutcome = c.fallback
		p.attach(a)
		p.credit(2, 0, 10, false)
		ids := p.expect("m")
		id := p.declare(0)
		p.retire(id, ids[0], ids[0], true, acceptedState)
		p.discharge(0, id, true)
		p.expect(c.want)
	}
}

// An outcome that isn't settled is settled by us after the commit, before the discharge is answered; after a rollback the
// delivery is still the receiver's [4.4.2, 4.4.4.2].
func TestTransactionUnsettledOutcome(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.control(0)
	p.sender(1, "q")
	for _, m := range []string{"a", "b", "c"} {
		p.put(1, data(m))
	}
	p.channel = 1 // another session, which is told no later than the control link
	p.begin()
	p.receiver(0, "q", 10)
	ids := p.expect("a", "b", "c")
	p.channel = 0
	id := p.declare(0)
	p.channel = 1
	p.retire(id, ids[0], ids[1], false, codec.Outcome{Kind: codec.StateReleased})
	p.retire(id, ids[0], ids[1], false, acceptedState) // it thinks better of it
	p.channel = 0
	p.askDischarge(0, id, false)
	d, _ := await[codec.Disposition](p)
	if d.Role != codec.RoleSender || !d.Settled || d.State.Kind != codec.StateAccepted || d.First != ids[0] || d.Last.Or(0) != ids[1] {
		t.Errorf("first comes %+v", d)
	}
	if o := p.answer(); o.Kind != codec.StateAccepted {
		t.Errorf("discharge was answered with %v", o.Kind)
	}
	r.depth("q", 0, 1)

	id = p.declare(0)
	p.channel = 1
	p.retire(id, ids[2], ids[2], false, acceptedState)
	p.channel = 0
	p.discharge(0, id, true)
	r.depth("q", 0, 1)
	p.channel = 1
	p.dispose(ids[2], ids[2], true, codec.Outcome{Kind: codec.StateReleased})
	p.expect("c+1")
}

// An unsettled outcome that is settled later without saying it again stands.
func TestTransactionOutcomeSettledLater(t *testing.T) {
	for _, fail := range []bool{false, true} {
		r := start(t, nil)
		p := r.opened("c")
		p.control(0)
		p.sender(1, "q")
		p.put(1, data("a"))
		p.receiver(2, "q", 1)
		ids := p.expect("a")
		id := p.declare(0)
		p.retire(id, ids[0], ids[0], false, acceptedState)
		p.dispose(ids[0], ids[0], true, codec.Outcome{})
		p.discharge(0, id, fail)
		if fail {
			r.depth("q", 1, 0)
			p.credit(2, 1, 1, false)
			p.expect("a+1")
		} else {
			r.depth("q", 0, 0)
		}
	}
}

// Case 281: a modified outcome does in a transaction what it does outside of one.
func TestTransactionModified(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.control(0)
	p.sender(1, "q")
	p.put(1, data("a"))
	p.put(1, data("b"))
	p.receiver(2, "q", 2)
	ids := p.expect("a", "b")
	id := p.declare(0)
	p.retire(id, ids[0], ids[0], true, codec.Outcome{Kind: codec.StateModified, DeliveryFailed: true})
	p.retire(id, ids[1], ids[1], true, codec.Outcome{Kind: codec.StateModified, DeliveryFailed: true, UndeliverableHere: true})
	p.discharge(0, id, false)
	p.credit(2, 2, 2, false)
	p.expect("a+1")
	p.receiver(3, "q", 1)
	p.expect("b+1")
}

// What is acquired under a transaction is marked so, may only be retired under it, goes back with a rollback, and stays
// acquired with a commit [4.4.3].
func TestTransactionAcquiring(t *testing.T) {
	for _, fail := range []bool{false, true} {
		r := start(t, nil)
		p := r.opened("c")
		p.control(0)
		p.sender(1, "q")
		for _, m := range []string{"a", "b", "c"} {
			p.put(1, data(m))
		}
		p.receiver(2, "q", 0)
		id := p.declare(0)
		f := p.creditFlow(2, 0, 2, false)
		f.Properties = codec.Map{{Key: codec.Symbol("txn-id"), Value: id}}
		p.send(f)
		one, two := p.receive(), p.receive()
		for _, d := range []delivery{one, two} {
			if !d.State.Transactional || !bytes.Equal(d.State.TxnID, id) {
				t.Errorf("transfer's state is %+v", d.State)
			}
		}
		p.retire(id, one.id(), one.id(), false, acceptedState)
		p.askDischarge(0, id, fail)
		settled, _ := await[codec.Disposition](p)
		if settled.Role != codec.RoleSender || !settled.Settled || settled.First != one.id() {
			t.Errorf("first comes %+v", settled)
		}
		if fail {
			if settled.State.Kind != codec.StateNone || settled.Last.Or(0) != two.id() {
				t.Errorf("after a rollback comes %+v", settled)
			}
			p.answer()
			r.depth("q", 3, 0)
			p.credit(2, 2, 3, false)
			for _, want := range []string{"a+1", "b+1", "c"} {
				d := p.receive()
				h, _ := d.sections(t)
				if got := d.body(t); d.State.Transactional || !strings.HasPrefix(want, got) || (h.DeliveryCount == 1) != (want != "c") {
					t.Errorf("received %s+%d, %+v, want %s", got, h.DeliveryCount, d.State, want)
				}
			}
			continue
		}
		p.answer()
		r.depth("q", 1, 1)
		p.credit(2, 2, 1, false)
		if d := p.receive(); d.State.Transactional {
			t.Errorf("after the discharge comes %+v", d.State)
		}
		p.dispose(two.id(), two.id(), true, acceptedState)
		r.depth("q", 0, 1)
	}
}

// Case 236 and others: the condition of each misuse, and where it is told.
func TestTransactionMisuse(t *testing.T) {
	unknown := []byte("no such transaction")
	for name, c := range map[string]func(t *testing.T, r *rig, p *peer){
		"discharge of an unknown id": func(t *testing.T, r *rig, p *peer) {
			p.refuseDischarge(0, unknown, amqp.ConditionUnknownTransaction)
		},
		"discharge twice": func(t *testing.T, r *rig, p *peer) {
			id := p.declare(0)
			p.discharge(0, id, false)
			p.refuseDischarge(0, id, amqp.ConditionUnknownTransaction)
		},
		"discharge of another control link's": func(t *testing.T, r *rig, p *peer) {
			id := p.declare(0)
			p.control(9)
			p.refuseDischarge(9, id, amqp.ConditionUnknownTransaction)
			p.discharge(0, id, false)
		},
		"discharge of another connection's": func(t *testing.T, r *rig, p *peer) {
			id := p.declare(0)
			other := r.opened("other")
			other.control(0)
			other.refuseDischarge(0, id, amqp.ConditionUnknownTransaction)
			other.sender(1, "q")
			other.send(under(id, other.transfer(1, false)), data("m"))
			other.detached(amqp.ConditionUnknownTransaction)
		},
		"declare of a distributed transaction": func(t *testing.T, r *rig, p *peer) {
			p.ask(0, amqp.Coordination{Declare: &codec.Declare{GlobalID: []byte("xid")}})
			p.condition(p.answer().Error, amqp.ConditionNotImplemented)
		},
		"neither declare nor discharge": func(t *testing.T, r *rig, p *peer) {
			body, _ := codec.AppendAmqpValue(nil, "commit")
			p.deliver(p.transfer(0, false), body)
			p.condition(p.answer().Error, amqp.ConditionDecodeError)
			p.deliver(p.transfer(0, false), data("commit"))
			p.condition(p.answer().Error, amqp.ConditionDecodeError)
			p.declare(0)
		},
		"declare settled": func(t *testing.T, r *rig, p *peer) {
			p.controlAs(func() codec.Attach {
				a := controlAttach("mixed", 9)
				a.SndSettleMode = codec.SettleMixed
				return a
			}())
			p.deliver(p.transfer(9, true), (&amqp.Coordination{Declare: &codec.Declare{}}).Append(nil))
			p.detached(amqp.ConditionInvalidField)
		},
		"a controller that takes no rejected": func(t *testing.T, r *rig, p *peer) {
			a := controlAttach("plain", 9)
			a.Source.Outcomes = []codec.Symbol{"amqp:accepted:list"}
			p.controlAs(a)
			p.askDischarge(9, unknown, false)
			p.detached(amqp.ConditionUnknownTransaction)
		},
		"transactional work on the control link": func(t *testing.T, r *rig, p *peer) {
			id := p.declare(0)
			p.deliver(under(id, p.transfer(0, false)), (&amqp.Coordination{Declare: &codec.Declare{}}).Append(nil))
			p.detached(amqp.ConditionNotAllowed)
		},
		"post under an unknown id": func(t *testing.T, r *rig, p *peer) { // case 226
			p.send(under(unknown, p.transfer(1, false)), data("m"))
			p.detached(amqp.ConditionUnknownTransaction)
		},
		"post under a finished one": func(t *testing.T, r *rig, p *peer) {
			id := p.declare(0)
			p.discharge(0, id, true)
			p.send(under(id, p.transfer(1, false)), data("m"))
			p.detached(amqp.ConditionUnknownTransaction)
		},
		"outcome under an unknown id": func(t *testing.T, r *rig, p *peer) {
			p.put(1, data("m"))
			p.receiver(2, "q", 1)
			ids := p.expect("m")
			p.retire(unknown, ids[0], ids[0], true, acceptedState)
			p.ended(amqp.ConditionUnknownTransaction)
			r.depth("q", 1, 0)
		},
		"flow under an unknown id": func(t *testing.T, r *rig, p *peer) {
			p.receiver(2, "q", 0)
			f := p.creditFlow(2, 0, 1, false)
			f.Properties = codec.Map{{Key: codec.Symbol("txn-id"), Value: unknown}}
			p.send(f)
			p.detached(amqp.ConditionUnknownTransaction)
		},
		"acquiring by a browser": func(t *testing.T, r *rig, p *peer) {
			a := receiverAttach("browser", 2, "q")
			a.Source.DistributionMode = "copy"
			p.attach(a)
			id := p.declare(0)
			f := p.creditFlow(2, 0, 1, false)
			f.Properties = codec.Map{{Key: codec.Symbol("txn-id"), Value: id}}
			p.send(f)
			p.detached(amqp.ConditionNotImplemented)
		},
		"two transactions in one message": func(t *testing.T, r *rig, p *peer) {
			id := p.declare(0)
			first := under(id, p.transfer(1, false))
			first.More = true
			p.send(first, data("m")[:3])
			p.send(under(p.declare(0), &codec.Transfer{Handle: 1}), data("m")[3:])
			p.detached(amqp.ConditionIllegalState)
			p.refuseDischarge(0, id, amqp.ConditionTransactionRolledBack)
		},
		"a transaction in the middle of a message": func(t *testing.T, r *rig, p *peer) {
			first := p.transfer(1, false)
			first.More = true
			p.send(first, data("m")[:3])
			p.send(under(p.declare(0), &codec.Transfer{Handle: 1}), data("m")[3:])
			p.detached(amqp.ConditionIllegalState)
		},
		"discharge while a message is arriving": func(t *testing.T, r *rig, p *peer) { // [4.4.1]
			id := p.declare(0)
			p.putUnder(id, 1, "a")
			first := under(id, p.transfer(1, false))
			first.More = true
			p.send(first, data("m")[:3])
			p.askDischarge(0, id, false)
			p.detached(amqp.ConditionTransactionRolledBack)
			p.send(&codec.Transfer{Handle: 1}, data("m")[3:])
			p.detached(amqp.ConditionUnknownTransaction)
			r.depth("q", 0, 0)
		},
		"a message that didn't arrive": func(t *testing.T, r *rig, p *peer) {
			id := p.declare(0)
			first := under(id, p.transfer(1, false))
			first.More = true
			p.send(first, data("m")[:3])
			p.send(&codec.Detach{Handle: 1, Closed: true})
			p.detached("")
			p.refuseDischarge(0, id, amqp.ConditionTransactionRolledBack)
		},
		"an aborted message": func(t *testing.T, r *rig, p *peer) {
			id := p.declare(0)
			first := under(id, p.transfer(1, false))
			first.More = true
			p.send(first, data("m")[:3])
			p.send(&codec.Transfer{Handle: 1, Aborted: true})
			p.discharge(0, id, false)
			r.depth("q", 0, 0)
		},
		"a settled message that is too large": func(t *testing.T, r *rig, p *peer) {
			id := p.declare(0)
			p.deliver(under(id, p.transfer(1, true)), data(strings.Repeat("m", 5000)))
			p.detached(amqp.ConditionMessageSizeExceeded)
			p.refuseDischarge(0, id, amqp.ConditionTransactionRolledBack)
		},
		"a message that doesn't decode": func(t *testing.T, r *rig, p *peer) {
			id := p.declare(0)
			if o := p.postUnder(id, 1, []byte("nonsense")); o.Kind != codec.StateRejected {
				t.Errorf("outcome is %v", o.Kind)
			}
			p.refuseDischarge(0, id, amqp.ConditionTransactionRolledBack)
		},
		"outcome in another transaction": func(t *testing.T, r *rig, p *peer) { // [4.4.2]
			p.put(1, data("m"))
			p.receiver(2, "q", 1)
			ids := p.expect("m")
			one, two := p.declare(0), p.declare(0)
			p.retire(one, ids[0], ids[0], false, acceptedState)
			p.retire(two, ids[0], ids[0], true, acceptedState)
			p.detached(amqp.ConditionTransactionRolledBack)
			r.depth("q", 1, 0)
		},
		"outcome outside of the transaction": func(t *testing.T, r *rig, p *peer) {
			p.put(1, data("m"))
			p.receiver(2, "q", 1)
			ids := p.expect("m")
			id := p.declare(0)
			p.retire(id, ids[0], ids[0], false, acceptedState)
			p.dispose(ids[0], ids[0], true, codec.Outcome{Kind: codec.StateReleased})
			p.detached(amqp.ConditionIllegalState)
			p.discharge(0, id, false)
			r.depth("q", 0, 0)
		},
		"a post to an address that isn't": func(t *testing.T, r *rig, p *peer) { // case 230
			p.sender(5, "")
			id := p.declare(0)
			p.putUnder(id, 1, "a")
			to := append(properties(codec.Properties{To: codec.Some("nowhere")}), data("b")...)
			o := p.postUnder(id, 5, to)
			if o.Kind != codec.StateRejected {
				t.Fatalf("outcome is %v", o.Kind)
			}
			p.condition(o.Error, amqp.ConditionNotFound)
			p.refuseDischarge(0, id, amqp.ConditionTransactionRolledBack)
			r.depth("q", 0, 0)
		},
		"too many transactions": func(t *testing.T, r *rig, p *peer) {
			for range maxTransactions {
				p.declare(0)
			}
			p.ask(0, amqp.Coordination{Declare: &codec.Declare{}})
			p.condition(p.answer().Error, amqp.ConditionResourceLimitExceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(c *Config, _ *ListenerOptions, o *engineOptions) {
				c.MaxMessageSize = 4000
				o.Settings = []engine.AddressSettings{{Match: "nowhere", AutoCreateAddresses: new(false), AutoCreateQueues: new(false)}}
			})
			p := r.opened("c")
			p.control(0)
			p.sender(1, "q")
			c(t, r, p)
		})
	}
}

// Case 229, 235: what isn't discharged is rolled back with its control link, session or connection, and nothing stays.
func TestTransactionAbandoned(t *testing.T) {
	for name, abandon := range map[string]func(p *peer){
		"link":    func(p *peer) { p.send(&codec.Detach{Handle: 0, Closed: true}); p.detached("") },
		"detach":  func(p *peer) { p.send(&codec.Detach{Handle: 0}); await[codec.Detach](p) },
		"session": func(p *peer) { p.send(&codec.End{}); await[codec.End](p) },
		"close":   func(p *peer) { p.close() },
		"loss":    func(p *peer) { p.socket.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			p := r.opened("c")
			p.control(0)
			p.channel = 1
			p.begin()
			p.sender(1, "q")
			p.put(1, data("a"))
			p.put(1, data("b"))
			p.receiver(2, "q", 2)
			ids := p.expect("a", "b")
			p.channel = 0
			id := p.declare(0)
			p.channel = 1
			p.putUnder(id, 1, "c")
			p.retire(id, ids[0], ids[0], true, acceptedState)
			p.retire(id, ids[1], ids[1], false, acceptedState)
			p.barrier()
			p.channel = 0
			abandon(p)
			eventually(t, "no transaction", func() bool { return r.server.Stats().Transactions == 0 })
			if s := r.server.Stats(); s.TransactionsRolledBack != 1 {
				t.Errorf("%d rolled back", s.TransactionsRolledBack)
			}
			switch name {
			case "close", "loss":
				r.depth("q", 2, 0)
				q := r.opened("other")
				q.receiver(0, "q", 2)
				q.expect("a+1", "b+1")
			default:
				r.depth("q", 1, 1) // the receiver has settled a, which went back, and still has b
			}
		})
	}
}

// A transaction that takes too long is rolled back; its controller is told so when it goes on.
func TestTransactionTimeout(t *testing.T) {
	clock := newClock()
	r := start(t, func(c *Config, l *ListenerOptions, o *engineOptions) {
		clock.use(c, l, o)
		c.TransactionTimeout = 50 * time.Millisecond
	})
	p := r.opened("c")
	p.control(0)
	p.sender(1, "q")
	p.put(1, data("a"))
	p.receiver(2, "q", 1)
	ids := p.expect("a")
	one, two, three := p.declare(0), p.declare(0), p.declare(0)
	p.putUnder(one, 1, "b")
	p.retire(one, ids[0], ids[0], true, acceptedState)
	r.depth("q", 0, 1)
	clock.advance(50)
	eventually(t, "rolled back", func() bool { return r.server.Stats().TransactionsKilled == 3 })
	r.depth("q", 1, 0)
	p.refuseDischarge(0, one, amqp.ConditionTransactionTimeout)
	p.refuseDischarge(0, one, amqp.ConditionUnknownTransaction)
	p.discharge(0, two, true)
	p.send(under(three, p.transfer(1, false)), data("m"))
	p.detached(amqp.ConditionTransactionTimeout)
	p.credit(2, 1, 1, false)
	p.expect("a+1")
}

// Case 155: a control link never runs out of credit.
func TestControlLinkCredit(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.control(0)
	credit := int64(0)
	grants := func() {
		for _, f := range p.flows() {
			if f.Handle.Set {
				credit = int64(f.DeliveryCount.Value) + int64(f.LinkCredit.Value)
			}
		}
	}
	used := int64(0)
	for range 2000 {
		for used == credit {
			grants()
			if used == credit {
				f, _ := await[codec.Flow](p)
				credit = int64(f.DeliveryCount.Value) + int64(f.LinkCredit.Value)
			}
		}
		id := p.declare(0)
		used++
		for used == credit {
			grants()
			if used == credit {
				f, _ := await[codec.Flow](p)
				credit = int64(f.DeliveryCount.Value) + int64(f.LinkCredit.Value)
			}
		}
		p.discharge(0, id, used%3 == 0)
		used++
	}
}

// A node takes no part in transactions.
func TestTransactionToNode(t *testing.T) {
	r := start(t, nil)
	r.server.Register("$echo", &echo{})
	p := r.opened("c")
	p.control(0)
	p.sender(1, "$echo")
	p.send(under(p.declare(0), p.transfer(1, false)), data("m"))
	p.detached(amqp.ConditionNotImplemented)
}

// crowded is a store whose commits of new messages wait, and are then refused.
type crowded struct{ *gate }

func (c crowded) Commit(records []engine.Record) error {
	if !c.engaged.Load() || !slices.ContainsFunc(records, func(r engine.Record) bool { return r.Kind == engine.RecordEnqueue }) {
		return nil
	}
	if err := c.gate.Commit(records); err != nil {
		return err
	}
	return engine.ErrStoreFull
}

// What the peer says of a delivery while the commit of its transaction is under way counts when that is refused: the
// delivery is the link's again, and nobody would speak of it any more.
func TestTransactionRefusedAfterOutcome(t *testing.T) {
	store := crowded{newGate()}
	store.engaged.Store(false)
	r := startOn(t, store, nil)
	p := r.opened("c")
	p.control(0)
	p.sender(1, "q")
	p.sender(2, "other")
	for _, m := range []string{"a", "b", "c", "d", "e"} {
		p.put(1, data(m))
	}
	p.receiver(3, "q", 5)
	ids := p.expect("a", "b", "c", "d", "e")
	id := p.declare(0)
	p.putUnder(id, 2, "x")
	p.retire(id, ids[0], ids[4], false, acceptedState)
	p.barrier()
	store.engaged.Store(true)
	heard := r.frames()
	p.askDischarge(0, id, false)
	p.dispose(ids[0], ids[0], true, acceptedState)
	p.dispose(ids[1], ids[1], true, codec.Outcome{}) // a failed attempt, as a rollback makes of it
	p.dispose(ids[2], ids[2], false, acceptedState)
	p.dispose(ids[3], ids[3], false, codec.Outcome{Kind: codec.StateReceived})
	store.pending(r, heard+5)
	store.release()
	rejected, settled := false, false
	for !rejected || !settled {
		d, _ := await[codec.Disposition](p)
		switch {
		case d.Role == codec.RoleReceiver:
			rejected = true
			p.condition(d.State.Error, amqp.ConditionTransactionRolledBack)
		case d.First != ids[2] || !d.Settled || d.State.Kind != codec.StateAccepted:
			t.Errorf("disposition is %+v", d)
		default:
			settled = true
		}
	}
	r.depth("q", 1, 2) // b is back, d and e are still with the link
	p.credit(3, 5, 1, false)
	p.expect("b+1")
	p.dispose(ids[3], ids[4], true, acceptedState)
	r.depth("q", 0, 1)
}

// After a rollback what was consumed is at its places, with one more attempt; and so is, uncounted, what a session had that
// ended.
func TestCase232_Order(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.control(0)
	p.sender(1, "q")
	var first, again []string
	for i := range 10 {
		m := fmt.Sprint(i)
		first, again = append(first, m), append(again, m+"+1")
		p.put(1, data(m))
	}
	p.channel = 1
	p.begin()
	p.receiver(0, "q", 10)
	ids := p.expect(first...)
	p.channel = 0
	id := p.declare(0)
	p.channel = 1
	for _, i := range []int{7, 2, 3, 9, 0, 1, 4, 8, 6, 5} {
		p.retire(id, ids[i], ids[i], i%2 == 0, acceptedState) // what isn't settled stays with the link
	}
	p.send(&codec.End{})
	await[codec.End](p)
	p.channel = 0
	p.discharge(0, id, true)
	p.receiver(2, "q", 10)
	p.expect(again...)

	p.channel = 2
	p.begin()
	p.channel = 0
	p.send(&codec.Detach{Handle: 2, Closed: true})
	await[codec.Detach](p)
	p.channel = 2
	p.receiver(0, "q", 10)
	p.expect(again...)
	p.send(&codec.End{})
	await[codec.End](p)
	p.channel = 0
	p.receiver(3, "q", 10)
	p.expect(again...)
}

// What the coordinator offers holds: the sessions of a connection share transactions, and a session has several.
func TestCase233_SessionsShareTransactions(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	a := p.controlAs(controlAttach("control", 0))
	for _, want := range []codec.Symbol{codec.CapabilityMultiTxnsPerSession, codec.CapabilityMultiSessionsPerTxn} {
		if !slices.Contains(a.Coordinator.Capabilities, want) {
			t.Errorf("coordinator offers %v, without %s", a.Coordinator.Capabilities, want)
		}
	}
	one, two := p.declare(0), p.declare(0)
	for channel := range uint16(2) {
		p.channel = 1 + channel
		p.begin()
		handle := uint32(channel)
		p.sender(handle, "q")
		p.putUnder(one, handle, fmt.Sprint("one ", channel))
		p.putUnder(two, handle, fmt.Sprint("two ", channel))
	}
	p.channel = 0
	p.discharge(0, two, false)
	r.depth("q", 2, 0)
	p.discharge(0, one, true)
	p.receiver(1, "q", 10)
	p.expect("two 0", "two 1")
	r.depth("q", 0, 2)
}

// A commit that is refused at one of its queues changes none, what it had retired is back, and nothing of it is left. What
// a kill leaves of one is seen by interop/crash.
func TestCase235_AllOrNothing(t *testing.T) {
	store := crowded{newGate()}
	store.engaged.Store(false)
	r := startOn(t, store, nil)
	p := r.opened("c")
	p.control(0)
	p.sender(1, "q")
	for _, m := range []string{"a", "b", "c"} {
		p.put(1, data(m))
	}
	targets := []string{"x", "y", "z"}
	for i, address := range targets {
		p.sender(uint32(2+i), address)
	}
	p.receiver(5, "q", 3)
	ids := p.expect("a", "b", "c")
	store.engaged.Store(true)
	store.release()
	id := p.declare(0)
	p.putUnder(id, 2, "1")
	p.retire(id, ids[0], ids[1], true, acceptedState)
	p.putUnder(id, 3, "2")
	p.retire(id, ids[2], ids[2], true, codec.Outcome{Kind: codec.StateRejected})
	p.putUnder(id, 4, "3")
	p.refuseDischarge(0, id, amqp.ConditionTransactionRolledBack)
	r.depth("q", 3, 0)
	for _, address := range append(targets, "DLQ") {
		r.depth(address, 0, 0)
	}
	p.credit(5, 3, 3, false)
	p.expect("a+1", "b+1", "c+1")
	if s := r.server.Stats(); s.Transactions != 0 || s.TransactionsRefused != 1 {
		t.Errorf("%d transactions are open, %d were refused", s.Transactions, s.TransactionsRefused)
	}
	store.engaged.Store(false)
	id = p.declare(0)
	p.putUnder(id, 2, "1")
	p.putUnder(id, 3, "2")
	p.retire(id, ids[2]+1, ids[2]+3, true, acceptedState)
	p.discharge(0, id, false)
	r.depth("q", 0, 0)
	r.depth("x", 1, 0)
	r.depth("y", 1, 0)
}

// counted is a store that counts its commits.
type counted struct {
	forgetful
	commits atomic.Uint64
}

func (c *counted) Commit([]engine.Record) error {
	c.commits.Add(1)
	time.Sleep(100 * time.Microsecond) // as a device takes, or less
	return nil
}

// Many unsettled durable messages are committed together, and their outcomes share dispositions.
func TestCase260_ManyAtOnce(t *testing.T) {
	store := &counted{}
	r := startOn(t, store, nil)
	p := r.opened("c")
	p.sender(0, "q")
	const messages = 20_000
	credit, sent, settled, dispositions := uint32(0), uint32(0), uint32(0), 0
	body := data("m")
	for settled < messages {
		for sent < messages && credit > 0 {
			p.deliver(p.transfer(0, false), body)
			sent++
			credit--
		}
		switch f := p.frame(); f.code {
		case codec.CodeFlow:
			var flow codec.Flow
			parse(p, &flow, f)
			if flow.Handle.Set {
				credit = flow.LinkCredit.Value - (sent - flow.DeliveryCount.Value)
			}
		case codec.CodeDisposition:
			var d codec.Disposition
			parse(p, &d, f)
			settled += d.Last.Or(d.First) - d.First + 1
			dispositions++
		}
	}
	if commits := store.commits.Load(); dispositions > messages/4 || commits > messages/4 {
		t.Errorf("%d messages took %d dispositions and %d commits", messages, dispositions, commits)
	}
}
