package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// ledger is one link on one queue, with the books kept on the other side of the engine.
type ledger struct {
	t    *rapid.T
	b    *engine.Broker
	p    *engine.Producer
	link *ledgerLink
	// all messages ever sent, by where they are
	sent, accepted, dead, purged int
	ticket                       uint64
	attached                     int
}

// ledgerLink is a sink that checks each delivery against the credit it has granted.
type ledgerLink struct {
	*engine.Consumer
	t        *rapid.T
	limit    uint64
	given    uint64
	drains   int
	draining bool
	open     []engine.Delivery // unsettled
	confirms map[uint64]bool
	ended    error
}

func (l *ledgerLink) Deliver(d engine.Delivery) {
	if l.given++; l.given > l.limit {
		l.t.Errorf("delivery %d with a limit of %d", l.given, l.limit)
	}
	if l.drains > 0 && !l.draining {
		l.t.Errorf("delivery after the drain was answered and before new credit")
	}
	l.open = append(l.open, d)
}

func (l *ledgerLink) Drained() {
	if !l.draining {
		l.t.Error("drained, but nobody drains")
	}
	l.drains++
	l.draining = false
}

func (l *ledgerLink) Unsettled(uint64)      {}
func (l *ledgerLink) Settled(ticket uint64) { delete(l.confirms, ticket) }
func (l *ledgerLink) Ended(err error)       { l.ended = err }

type ignoreResults struct{}

func (ignoreResults) Confirmed(uint64, engine.Result) {}

func (x *ledger) attach() {
	l := &ledgerLink{t: x.t, confirms: map[uint64]bool{}}
	c, err := x.b.Consumer(engine.ConsumerSpec{Address: "q"}, l)
	if err != nil {
		x.t.Fatal(err)
	}
	l.Consumer = c
	x.link = l
	x.attached++
}

// balance checks the books.
func (x *ledger) balance() {
	synctest.Wait()
	l := x.link
	if l.ended != nil {
		x.t.Fatalf("ended: %v", l.ended)
	}
	if len(l.confirms) > 0 {
		x.t.Fatalf("settlements %v were never confirmed", l.confirms)
	}
	q, err := x.b.Queue("q", "")
	if err != nil {
		x.t.Fatal(err)
	}
	if q.Delivering != len(l.open) {
		x.t.Fatalf("broker has %d outstanding, the link %d", q.Delivering, len(l.open))
	}
	if credit := int64(l.limit - l.given); q.Messages > 0 && credit > 0 && l.drains == 0 {
		x.t.Fatalf("%d messages wait although there is credit for %d", q.Messages, credit)
	}
	dead := 0
	if dlq, err := x.b.Queue("DLQ", ""); err == nil {
		dead = dlq.Messages
	}
	if dead != x.dead {
		x.t.Fatalf("%d dead letters, want %d", dead, x.dead)
	}
	// Released for the fourth time, a message pauses.
	if total := q.Messages + q.Delayed + q.Delivering + x.accepted + x.dead + x.purged; total != x.sent {
		x.t.Fatalf("%d messages waiting, %d pausing, %d out, %d accepted, %d dead, %d purged, but %d sent",
			q.Messages, q.Delayed, q.Delivering, x.accepted, x.dead, x.purged, x.sent)
	}
}

// TestCreditLedger walks at random over everything that a link can do and keeps both sides' books.
func TestCreditLedger(t *testing.T) {
	rapid.Check(t, func(outer *rapid.T) {
		var failure any // rapid's way to end a run is a panic, which must not leave through the bubble
		synctest.Test(t, func(*testing.T) {
			defer func() { failure = recover() }()
			walk(outer)
		})
		if failure != nil {
			panic(failure)
		}
	})
}

func walk(t *rapid.T) {
	b, err := engine.New(engine.Options{Settings: []engine.AddressSettings{{Match: "q", MaxDeliveryAttempts: new(3)}}}, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	x := &ledger{t: t, b: b}
	if x.p, err = b.Producer(engine.ProducerSpec{Address: "q"}, ignoreResults{}); err != nil {
		t.Fatal(err)
	}
	x.attach()
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		l := x.link
		switch rapid.SampledFrom([]string{"send", "send", "credit", "drain", "settle", "settle", "settle", "detach", "purge"}).Draw(t, "step") {
		case "send":
			for range rapid.IntRange(1, 5).Draw(t, "messages") {
				x.ticket++
				x.p.Publish(msg(fmt.Sprint(x.ticket), rapid.Bool().Draw(t, "durable")), x.ticket)
				x.sent++
			}
		case "credit":
			l.drains = 0
			l.limit = l.given + uint64(rapid.IntRange(0, 6).Draw(t, "credit"))
			l.SetLimit(l.limit)
		case "drain":
			l.limit = l.given + uint64(rapid.IntRange(0, 6).Draw(t, "credit"))
			l.drains, l.draining = 0, true
			l.Drain(l.limit)
			if l.drains != 1 {
				t.Fatalf("drained %d times, want once and at once", l.drains)
			}
			l.limit = l.given
		case "settle":
			x.settle()
		case "detach":
			// what was lost or detached goes back; those that had two failures before die of the loss
			how := rapid.SampledFrom([]engine.Closing{engine.ClosingClean, engine.ClosingLost}).Draw(t, "how")
			for _, d := range l.open {
				if how == engine.ClosingLost && d.Count == 2 {
					x.dead++
				}
			}
			l.open = nil
			l.Close(how)
			synctest.Wait()
			x.attach()
		case "purge":
			synctest.Wait() // so that it is known what there is
			n, err := b.Purge("q", "")
			if err != nil {
				t.Fatal(err)
			}
			x.purged += n
		}
		x.balance()
	}
}

// settle settles a range of what the link has, in one of all ways.
func (x *ledger) settle() {
	l := x.link
	if len(l.open) == 0 {
		return
	}
	from := rapid.IntRange(0, len(l.open)-1).Draw(x.t, "from")
	to := rapid.IntRange(from+1, len(l.open)).Draw(x.t, "to")
	o := rapid.SampledFrom([]engine.Outcome{accepted, rejected, released, modified, failed}).Draw(x.t, "outcome")
	batch := slices.Clone(l.open[from:to])
	l.open = slices.Delete(l.open, from, to) // before: some may come back at once
	for _, d := range batch {
		switch {
		case o.Kind == engine.Accepted:
			x.accepted++
		case o.Kind == engine.Rejected, o.Failed && d.Count == 2:
			x.dead++
		}
	}
	x.ticket++
	l.confirms[x.ticket] = true
	if l.Settle(settlements(batch...), o, x.ticket) {
		delete(l.confirms, x.ticket)
	}
}
