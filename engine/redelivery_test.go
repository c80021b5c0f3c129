package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/letomq/leto/engine"
)

// returnCase is a line of the contract's table "What returns, counts and waits", or a case of one: what becomes of the
// first three of five messages in q. Where it doesn't say otherwise, q allows four attempts, and waits two seconds
// after the first, twice as long after each further one, and five seconds at the most.
type returnCase struct {
	event   string
	outcome engine.Outcome     // how the three are settled, in every manner; or
	happens func(r *returning) // what befalls them

	settings engine.AddressSettings
	before   uint32        // attempts of them that have failed before
	ttl      time.Duration // of the three

	goes   string // the queue where they are then, "" for none
	count  uint32 // with so many failed attempts
	waits  time.Duration
	says   string // the reason of death that they have, or of which the broker tells when it drops them
	barred bool   // not for the same consumer
	soon   bool   // a restart forgets that they wait
}

// returning is what a case has to do with.
type returning struct {
	*world
	c  *consumer
	ds []engine.Delivery
}

const second = time.Second

var (
	rejectedFor = engine.Outcome{Kind: engine.Rejected, Condition: "app:broken", Description: "no such order"}
	failedHere  = engine.Outcome{Kind: engine.Modified, Failed: true, UndeliverableHere: true}
	without     = engine.Outcome{} // settled without a state
)

// after is a modified outcome by which the message is to be tried again after a time.
func after(o engine.Outcome, d time.Duration) engine.Outcome {
	o.HasDelay, o.Delay = true, d.Milliseconds()
	return o
}

// at is a modified outcome that names the time by which the message is to be tried again. Time in a bubble begins with 2000.
func at(o engine.Outcome, d time.Duration) engine.Outcome {
	o.DueAt = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d).UnixMilli()
	return o
}

// What happens to the three.
func detach(r *returning) { r.c.Close(engine.ClosingClean) }
func lose(r *returning)   { r.c.Close(engine.ClosingLost) }

// under retires the three under a transaction, settled or not.
func under(r *returning, o engine.Outcome, settled bool) *transaction {
	x := r.begin()
	if !x.Retire(r.c.Consumer, settlements(r.ds...), o, settled, failed) {
		r.t.Fatal("retire: the transaction is too large")
	}
	return x
}

// rolledBack is a transaction that had retired the three, with an outcome that the receiver has settled or may speak of again.
func rolledBack(o engine.Outcome, settled bool, then ...func(*returning)) func(*returning) {
	return func(r *returning) {
		under(r, o, settled).rollback()
		for _, f := range then {
			f(r)
		}
	}
}

func settle(o engine.Outcome) func(*returning) { return func(r *returning) { r.c.settle(o, r.ds...) } }

// times does something to the three again and again, each time when they have come back.
func times(n int, f func(*returning)) func(*returning) {
	return func(r *returning) {
		for i := range n {
			if i > 0 {
				r.ds = slices.Clone(r.c.take(3))
			}
			f(r)
		}
	}
}

// acquiredUnder rolls back a transaction under which the three were acquired.
func acquiredUnder(then func(*returning, *transaction)) func(*returning) {
	return func(r *returning) {
		x := r.begin()
		for _, d := range r.ds {
			x.Acquire(r.c.Consumer, settlements(d)[0])
		}
		then(r, x)
	}
}

// returnCases are the contract's table, in its order.
var returnCases = []returnCase{
	{event: "accepted", outcome: accepted},
	{event: "accepted after failures", outcome: accepted, before: 2},

	{event: "failed", outcome: failed, goes: "q", count: 1, waits: 2 * second},
	{event: "failed twice", outcome: failed, before: 1, goes: "q", count: 2, waits: 4 * second},
	{event: "failed, and the delay is capped", outcome: failed, before: 2, goes: "q", count: 3, waits: 5 * second},
	{event: "failed without a delay", outcome: failed, settings: engine.AddressSettings{RedeliveryDelay: new(time.Duration)},
		goes: "q", count: 1},
	{event: "failed, delay without a cap of its own", outcome: failed, before: 4, goes: "q", count: 5, waits: 20 * second,
		settings: engine.AddressSettings{MaxRedeliveryDelay: new(time.Duration), RedeliveryMultiplier: new(3.0), MaxDeliveryAttempts: new(-1)}},
	{event: "failed, delay without a multiplier", outcome: failed, before: 2, goes: "q", count: 3, waits: 2 * second,
		settings: engine.AddressSettings{RedeliveryMultiplier: new(1.0)}},
	{event: "failed, delay that shrinks", outcome: failed, before: 2, goes: "q", count: 3, waits: second / 2,
		settings: engine.AddressSettings{RedeliveryMultiplier: new(0.5)}},
	{event: "failed, delay beyond the cap at first", outcome: failed, goes: "q", count: 1, waits: second,
		settings: engine.AddressSettings{MaxRedeliveryDelay: new(second)}},
	{event: "failed for the hundredth time", outcome: failed, before: 99, goes: "q", count: 100, waits: 5 * second,
		settings: engine.AddressSettings{MaxDeliveryAttempts: new(0)}},
	{event: "failed, the consumer says how long", outcome: after(failed, 7*second), goes: "q", count: 1, waits: 7 * second},
	{event: "failed, the consumer says how long where there is no delay", outcome: after(failed, 7*second), goes: "q", count: 1,
		waits: 7 * second, settings: engine.AddressSettings{RedeliveryDelay: new(time.Duration)}},
	{event: "failed, the consumer says not at all", outcome: after(failed, 0), goes: "q", count: 1},
	{event: "failed, the consumer says less than nothing", outcome: after(failed, -second), goes: "q", count: 1},
	{event: "failed, the consumer says when", outcome: at(failed, 9*second), goes: "q", count: 1, waits: 9 * second},
	{event: "failed, the consumer says when, and that is over", outcome: at(failed, -second), goes: "q", count: 1},
	{event: "failed, the consumer says when and how long", outcome: at(after(failed, second), 9*second), goes: "q", count: 1, waits: 9 * second},

	{event: "rollback of what was to be accepted", happens: rolledBack(accepted, true), goes: "q", count: 1, waits: 2 * second},
	{event: "second rollback", happens: rolledBack(accepted, true), before: 1, goes: "q", count: 2, waits: 4 * second},
	{event: "rollback of what was to be rejected", happens: rolledBack(rejectedFor, true), goes: "q", count: 1, waits: 2 * second},
	{event: "rollback of what was to be released", happens: rolledBack(released, true), goes: "q", count: 1, waits: 2 * second},
	{event: "rollback of what was to fail, the consumer says how long", happens: rolledBack(after(failed, 7*second), true),
		goes: "q", count: 1, waits: 2 * second},
	{event: "rollback of what was not to come here again", happens: rolledBack(failedHere, true), goes: "q", count: 1, waits: 2 * second},
	{event: "rollback without a delay", happens: rolledBack(accepted, true), settings: engine.AddressSettings{RedeliveryDelay: new(time.Duration)},
		goes: "q", count: 1},
	{event: "rollback of the last attempt", happens: rolledBack(accepted, true), before: 3, goes: "DLQ", count: 4,
		says: "max-delivery-attempts reached: 4"},
	{event: "rollback, then accepted", happens: rolledBack(accepted, false, settle(accepted))},
	{event: "rollback, then released", happens: rolledBack(accepted, false, settle(released)), goes: "q", count: 1, waits: 2 * second},
	{event: "rollback, then failed: one attempt", happens: rolledBack(accepted, false, settle(failed)), goes: "q", count: 1, waits: 2 * second},
	{event: "rollback, then rejected", happens: rolledBack(accepted, false, settle(rejectedFor)), goes: "DLQ", count: 1,
		says: "rejected: app:broken: no such order"},
	{event: "rollback, then settled without a state", happens: rolledBack(accepted, false, settle(without)), goes: "q", count: 1, waits: 2 * second},
	{event: "rollback, then detached", happens: rolledBack(accepted, false, detach), goes: "q", count: 1, waits: 2 * second},
	{event: "rollback, then connection lost: one attempt", happens: rolledBack(accepted, false, lose), goes: "q", count: 1, waits: 2 * second},
	{event: "rollback, then connection lost, where that doesn't count", happens: rolledBack(accepted, false, lose), goes: "q", count: 1,
		waits: 2 * second, settings: engine.AddressSettings{CountOnLoss: new(false)}},
	{event: "rollback, then released, of the last attempt", happens: rolledBack(accepted, false, settle(released)), before: 3,
		goes: "DLQ", count: 4, says: "max-delivery-attempts reached: 4"},
	{event: "rollback of what was acquired", happens: acquiredUnder(func(_ *returning, x *transaction) { x.rollback() }),
		goes: "q", count: 1, waits: 2 * second},
	{event: "rollback of what was acquired and retired", happens: acquiredUnder(func(r *returning, x *transaction) {
		x.retire(r.c, accepted, r.ds...)
		x.rollback()
	}), goes: "q", count: 1, waits: 2 * second},
	{event: "rollback after the link has gone", happens: func(r *returning) {
		x := under(r, accepted, true)
		detach(r)
		x.rollback()
	}, goes: "q", count: 1, waits: 2 * second},
	{event: "rollback of what wasn't settled after the link has gone", happens: func(r *returning) {
		x := under(r, accepted, false)
		detach(r)
		x.rollback()
	}, goes: "q", count: 1, waits: 2 * second},
	{event: "rollback with the connection: one attempt", happens: func(r *returning) {
		x := under(r, accepted, true)
		lose(r)
		x.rollback()
	}, goes: "q", count: 1, waits: 2 * second},
	{event: "commit that is refused", happens: func(r *returning) {
		x := under(r, released, true)
		x.Doom("something else went wrong")
		x.refused()
	}, goes: "q", count: 1, waits: 2 * second},

	{event: "rejected", outcome: rejectedFor, goes: "DLQ", count: 1, says: "rejected: app:broken: no such order"},
	{event: "rejected without an error", outcome: rejected, before: 1, goes: "DLQ", count: 2, says: "rejected"},
	{event: "rejected, without a dead-letter address", outcome: rejectedFor, settings: engine.AddressSettings{DeadLetterAddress: new("")},
		says: engine.DropRejected},
	{event: "rejected, policy redeliver", outcome: rejectedFor, settings: engine.AddressSettings{RejectPolicy: new(engine.RejectRedeliver)},
		goes: "q", count: 1, waits: 2 * second},
	{event: "rejected, policy redeliver, the last attempt", outcome: rejectedFor, before: 3, goes: "DLQ", count: 4,
		settings: engine.AddressSettings{RejectPolicy: new(engine.RejectRedeliver)},
		says:     "max-delivery-attempts reached: 4; rejected: app:broken: no such order"},

	{event: "released", outcome: released, goes: "q"},
	{event: "released after failures", outcome: released, before: 2, goes: "q", count: 2},
	{event: "released for the third time", happens: times(3, settle(released)), goes: "q"},
	{event: "released for the fourth time", happens: times(4, settle(released)), goes: "q", waits: second / 100, soon: true},
	{event: "modified", outcome: modified, goes: "q"},
	{event: "modified for the fourth time", happens: times(4, settle(modified)), goes: "q", waits: second / 100, soon: true},
	{event: "modified, not failed, the consumer says how long", outcome: after(modified, 7*second), goes: "q"},
	{event: "modified, not failed, the consumer says when", outcome: at(modified, 7*second), goes: "q"},

	{event: "undeliverable here", outcome: notHere, goes: "q", barred: true},
	{event: "undeliverable here, failed", outcome: failedHere, goes: "q", count: 1, waits: 2 * second, barred: true},
	{event: "undeliverable here, failed, the consumer says how long", outcome: after(failedHere, 7*second), goes: "q", count: 1,
		waits: 7 * second, barred: true},
	{event: "undeliverable here, failed, the last attempt", outcome: failedHere, before: 3, goes: "DLQ", count: 4,
		says: "max-delivery-attempts reached: 4"},

	{event: "detached", happens: detach, goes: "q"},
	{event: "detached after failures", happens: detach, before: 3, goes: "q", count: 3},
	{event: "settled after the link has gone", happens: func(r *returning) { detach(r); r.c.settle(failed, r.ds...) }, goes: "q"},
	{event: "accepted after the connection was lost", happens: func(r *returning) { lose(r); r.c.settle(accepted, r.ds...) }, goes: "q", count: 1},

	{event: "connection lost", happens: lose, goes: "q", count: 1},
	{event: "connection lost, and that doesn't count", happens: lose, settings: engine.AddressSettings{CountOnLoss: new(false)}, goes: "q"},
	{event: "connection lost in the last attempt", happens: lose, before: 3, goes: "DLQ", count: 4, says: "max-delivery-attempts reached: 4"},
	{event: "connection lost in the last attempt, and that doesn't count", happens: lose, before: 3, goes: "q", count: 3,
		settings: engine.AddressSettings{CountOnLoss: new(false)}},

	{event: "settled without a state", happens: settle(without), goes: "q"},

	{event: "failed in the last attempt", outcome: failed, before: 3, goes: "DLQ", count: 4, says: "max-delivery-attempts reached: 4"},
	{event: "failed in the last attempt, the consumer says how long", outcome: after(failed, 7*second), before: 3, goes: "DLQ", count: 4,
		says: "max-delivery-attempts reached: 4"},
	{event: "failed in the only attempt", outcome: failed, settings: engine.AddressSettings{MaxDeliveryAttempts: new(1)},
		goes: "DLQ", count: 1, says: "max-delivery-attempts reached: 1"},
	{event: "failed, attempts are endless", outcome: failed, before: 20, goes: "q", count: 21, waits: 5 * second,
		settings: engine.AddressSettings{MaxDeliveryAttempts: new(-1)}},
	{event: "failed in the last attempt, without a dead-letter address", outcome: failed, before: 3, says: engine.DropAttempts,
		settings: engine.AddressSettings{DeadLetterAddress: new("")}},
	{event: "failed in the last attempt, the dead-letter address has no queue", outcome: failed, before: 3, says: engine.DropNoQueue,
		settings: engine.AddressSettings{DeadLetterAddress: new("topic://nobody")}},
	{event: "failed in the last attempt, dead letters have a queue for each address", outcome: failed, before: 3, goes: "DLQ::DLQ.q", count: 4,
		settings: engine.AddressSettings{AutoCreateDeadLetterResources: new(true)}, says: "max-delivery-attempts reached: 4"},

	{event: "expired, and then released", ttl: second, happens: func(r *returning) { later(second); settle(released)(r) }, goes: "ExpiryQueue"},
	{event: "expired, and then failed", ttl: second, happens: func(r *returning) { later(second); settle(failed)(r) },
		goes: "ExpiryQueue", count: 1},
	{event: "expired, and then failed in the last attempt", ttl: 60 * second, before: 3, goes: "DLQ", count: 4,
		happens: func(r *returning) { later(60 * second); settle(failed)(r) }, says: "max-delivery-attempts reached: 4"},
	{event: "expired, and then accepted", ttl: second, happens: func(r *returning) { later(second); settle(accepted)(r) }},
	{event: "expires while it waits", ttl: second, happens: func(r *returning) { settle(failed)(r); later(second) },
		goes: "ExpiryQueue", count: 1},
	{event: "expired, without an expiry address", ttl: second, happens: func(r *returning) { settle(failed)(r); later(second) },
		settings: engine.AddressSettings{ExpiryAddress: new("")}, says: engine.DropExpired},
}

// manners are the ways in which a receiver settles three deliveries with one outcome.
var manners = []struct {
	name   string
	settle func(r *returning, o engine.Outcome)
}{
	{"singly", func(r *returning, o engine.Outcome) {
		for _, d := range r.ds {
			r.c.settle(o, d)
		}
	}},
	{"as a range", func(r *returning, o engine.Outcome) { r.c.settle(o, r.ds...) }},
	{"out of order", func(r *returning, o engine.Outcome) {
		for _, i := range []int{1, 2, 0} {
			r.c.settle(o, r.ds[i])
		}
	}},
	{"as a range with what others have, and once more", func(r *returning, o engine.Outcome) {
		other := r.consumer("q")
		ds := other.take(2)
		r.c.settle(o, r.ds[2], ds[0], r.ds[0], ds[1], r.ds[1], r.ds[2])
		r.c.settle(failed, r.ds...)
		other.Close(engine.ClosingClean)
	}},
	{"in a transaction", func(r *returning, o engine.Outcome) {
		x := under(r, o, true)
		if i := r.info("q"); i.Delivering != 3 {
			r.t.Errorf("before the commit: queue = %+v, want three with the consumer", i)
		}
		x.commit()
	}},
	{"in a transaction, settled by the broker", func(r *returning, o engine.Outcome) {
		under(r, o, false).commit()
	}},
	{"in a transaction that outlives the link", func(r *returning, o engine.Outcome) {
		x := under(r, o, true)
		detach(r)
		x.commit()
	}},
}

// TestWhatReturnsCountsAndWaits plays the table with transient and durable messages, and with a restart where the
// messages are by then.
func TestWhatReturnsCountsAndWaits(t *testing.T) {
	for _, c := range returnCases {
		t.Run(c.event, func(t *testing.T) {
			if c.happens != nil {
				c.play(t, c.happens)
				return
			}
			for _, m := range manners {
				t.Run(m.name, func(t *testing.T) { c.play(t, func(r *returning) { m.settle(r, c.outcome) }) })
			}
		})
	}
}

func (c *returnCase) play(t *testing.T, happens func(*returning)) {
	defaults := engine.AddressSettings{
		Match: "#", RedeliveryDelay: new(2 * second), RedeliveryMultiplier: new(2.0), MaxRedeliveryDelay: new(5 * second), MaxDeliveryAttempts: new(4),
	}
	own := c.settings
	own.Match = "q"
	opts := engine.Options{Settings: []engine.AddressSettings{defaults, own}}
	for _, kind := range []string{"transient", "durable", "durable, restart"} {
		t.Run(kind, func(t *testing.T) {
			inWorld(t, opts, func(t *testing.T, w *world) {
				r := c.begin(w, kind != "transient")
				happens(r)
				synctest.Wait()
				if kind == "durable, restart" {
					w.restart()
					r.c = nil
				}
				c.judge(t, r)
			})
		})
	}
}

// begin gives a consumer three of five messages, after the attempts that have failed before.
func (c *returnCase) begin(w *world, durable bool) *returning {
	p := w.producer("q")
	begun := time.Now()
	for _, text := range []string{"a", "b", "c"} {
		m := msg(text, durable)
		if c.ttl != 0 {
			m.Expiry = begun.Add(c.ttl).UnixMilli()
		}
		p.publish(m)
	}
	p.send(durable, "d", "e")
	r := &returning{world: w, c: w.consumer("q")}
	for range c.before {
		r.c.settle(after(failed, 0), r.c.take(3)...)
	}
	r.ds = slices.Clone(r.c.take(3))
	return r
}

// want are the three as they are to be found, and what is behind them.
func (c *returnCase) want(behind ...string) []string {
	all := []string{}
	for _, text := range []string{"a", "b", "c"} {
		if c.count > 0 {
			text = fmt.Sprint(text, "+", c.count)
		}
		all = append(all, text)
	}
	return append(all, behind...)
}

func (c *returnCase) judge(t *testing.T, r *returning) {
	switch {
	case c.goes == "q" && (c.waits == 0 || c.soon && r.c == nil):
		r.expectQueue("q", c.want("d", "e")...)
	case c.goes == "q":
		waiting := func() {
			t.Helper()
			if i := r.info("q"); i.Delayed != 3 || i.Messages != 2 {
				t.Errorf("queue = %+v, want three that wait for their time", i)
			}
			r.expectQueue("q", "d", "e")
		}
		waiting()
		later(c.waits - time.Millisecond)
		waiting()
		later(time.Millisecond)
		r.expectQueue("q", c.want("d", "e")...)
	default:
		r.expectQueue("q", "d", "e")
	}
	if i := r.info("q"); i.Delayed != 0 || i.Delivering != 0 {
		t.Errorf("queue = %+v, want nothing that waits or is with a consumer", i)
	}
	if c.goes != "q" && c.goes != "" {
		c.died(t, r)
	}
	dropped := 0
	for _, d := range r.dropped {
		if dropped++; d.Queue != "q" || d.Reason != c.says {
			t.Errorf("dropped because %q, want %q", d.Reason, c.says)
		}
	}
	if want := 3; (dropped != 0 || c.goes == "" && c.says != "") && dropped != want {
		t.Errorf("%d are dropped, want %d", dropped, want)
	}
	if r.c == nil { // a restart has forgotten what was counted
		return
	}
	c.counted(t, r)
	if c.goes == "q" {
		c.goesOn(t, r)
	}
}

// counted checks what the queue says of how messages have left it.
func (c *returnCase) counted(t *testing.T, r *returning) {
	var acknowledged, killed, expired uint64
	switch {
	case c.goes == "" && c.says == "":
		acknowledged = 3
	case c.goes == "ExpiryQueue" || c.says == engine.DropExpired:
		expired = 3
	case c.goes != "q":
		killed = 3
	}
	if i := r.info("q"); i.Acknowledged != acknowledged || i.Killed != killed || i.Expired != expired {
		t.Errorf("queue = %+v, want %d acknowledged, %d killed, %d expired", i, acknowledged, killed, expired)
	}
}

// died checks the three where dead or expired messages go, and what they say of it.
func (c *returnCase) died(t *testing.T, r *returning) {
	reader := r.consumer(c.goes)
	ds := slices.Clone(reader.take(3))
	slices.SortFunc(ds, func(a, b engine.Delivery) int { return int(a.Message.Payload[0]) - int(b.Message.Payload[0]) })
	expect(t, c.goes, ds, c.want()...)
	for i, d := range ds {
		want := map[string]any{engine.OrigAddress: "q", engine.OrigQueue: "q", engine.OrigMessageID: int64(r.ds[i].Number)}
		if c.says != "" {
			want[engine.DeathReason], want[engine.DeathTime] = c.says, time.Now().UnixMilli()
		} else {
			want[engine.ActualExpiry] = time.Now().UnixMilli()
		}
		for _, a := range d.Annotations {
			if a.Value != want[a.Key] {
				t.Errorf("%s = %v, want %v", a.Key, a.Value, want[a.Key])
			}
			delete(want, a.Key)
		}
		if len(want) > 0 {
			t.Errorf("annotations %v are missing", want)
		}
	}
	reader.settle(accepted, ds...)
}

// goesOn checks who may have the three now, if the consumer is there still.
func (c *returnCase) goesOn(t *testing.T, r *returning) {
	if r.c.Gone() {
		return
	}
	here := r.c.rest()
	if !c.barred {
		expect(t, "the same consumer", here, c.want("d", "e")...)
		return
	}
	expect(t, "the same consumer", here, "d", "e")
	expect(t, "another one", r.consumer("q").rest(), c.want()...)
}

// What has failed elsewhere doesn't make a message wait longer.
func TestAttemptsElsewhereDontDelay(t *testing.T) {
	opts := engine.Options{Settings: []engine.AddressSettings{
		{Match: "#", RedeliveryDelay: new(second), RedeliveryMultiplier: new(2.0)}, {Match: "q", MaxDeliveryAttempts: new(2)},
	}}
	bothKinds(t, opts, func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a")
		c, dead := w.consumer("q"), w.consumer("DLQ")
		for range 2 {
			c.settle(after(failed, 0), c.take(1)...)
		}
		dead.settle(failed, dead.take(1)...)
		later(second - time.Millisecond)
		w.expectQueue("DLQ")
		later(time.Millisecond)
		w.expectQueue("DLQ", "a+3")
	})
}

// Each delivery in a transaction waits as long as its own outcome says, from when it is decided.
func TestTransactionOfManyDelays(t *testing.T) {
	bothKinds(t, set(engine.AddressSettings{RedeliveryDelay: new(second)}), func(t *testing.T, w *world, durable bool) {
		w.producer("q").send(durable, "a", "b", "c", "d", "e")
		c := w.consumer("q")
		ds := c.take(5)
		later(10 * second)
		x := w.begin()
		for i, o := range []engine.Outcome{after(failed, 3*second), after(failed, 2*second), failed, at(failed, 14*second), at(failed, 15*second)} {
			x.retire(c, o, ds[i])
		}
		later(second)
		x.commit()
		for i, want := range []string{"", "c+1", "b+1", "a+1, d+1", "e+1"} {
			if i > 0 {
				later(second)
			}
			if got := strings.Join(texts(c.rest()), ", "); got != want {
				t.Errorf("after %d s: %q, want %q", i, got, want)
			}
		}
	})
}

// A refused commit has barred nobody: those that were not to come here again may.
func TestRefusedTransactionBarsNobody(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, engine.Options{}, store, func(t *testing.T, w *world) {
		p, c := w.producer("q"), w.consumer("q")
		p.send(true, "a", "b")
		ds := slices.Clone(c.take(2))
		c.settle(notHere, ds[1]) // that stands
		x := w.begin()
		x.post(p, true, "z")
		x.retire(c, failedHere, ds[0])
		store.fail(engine.ErrStoreFull)
		x.refused()
		store.fail(nil)
		expect(t, "the same consumer", c.rest(), "a+1")
		w.expectQueue("q", "b")
	})
}

// A transaction whose commit takes longer than a message has to wait brings it once, though its home asks for others.
func TestCommitThatTakesLongerThanTheDelay(t *testing.T) {
	store := &watchedStore{}
	inWorldOn(t, set(engine.AddressSettings{RedeliveryDelay: new(second)}), store, func(t *testing.T, w *world) {
		w.producer("q").send(true, "a", "b", "c")
		c := w.consumer("q")
		ds := slices.Clone(c.take(3))
		c.settle(after(failed, time.Hour), ds[1:]...)
		x := w.begin()
		x.retire(c, failed, ds[0])
		resume := store.hold()
		_, decided := x.Commit(x, 1)
		time.Sleep(2 * second)
		resume()
		x.end(engine.Result{}, decided)
		w.expectQueue("q", "a+1")
		later(time.Hour)
		c.Close(engine.ClosingClean)
		expect(t, "all", w.consumer("q").rest(), "a+1", "b+1", "c+1")
		w.restart()
		if i := w.info("q"); i.Messages != 3 || i.Delayed != 0 {
			t.Errorf("queue = %+v, want three messages", i)
		}
	})
}
