package server

import (
	"fmt"
	"testing"

	"github.com/letomq/leto/codec"
)

// TestOutcomeMatrix is compound scenario 5 on the wire: what a consumer may say
// of three deliveries, in every way of saying it; where each message ends up,
// with which count and in which order.
func TestOutcomeMatrix(t *testing.T) {
	type fate struct {
		back  bool // in the queue again
		count uint32
		dead  bool
		here  bool // this link may have it again
	}
	gone, again := fate{}, fate{back: true, here: true}
	states := map[string]struct {
		state codec.DeliveryState
		fate  fate
	}{
		"accepted": {codec.DeliveryState{Outcome: accepted}, gone},
		"rejected": {codec.DeliveryState{Outcome: rejectedWith("app:no", "no")}, fate{dead: true, count: 1}},
		"released": {codec.DeliveryState{Outcome: released}, again},
		"null":     {codec.DeliveryState{}, again},
		"received": {codec.DeliveryState{Outcome: codec.Outcome{Kind: codec.StateReceived}}, again},
	}
	annotations := must(t)(codec.AppendValue(nil, codec.Map{{Key: codec.Symbol("x-opt-a"), Value: "b"}}))
	for flags := range 8 {
		o := codec.Outcome{Kind: codec.StateModified, DeliveryFailed: flags&1 != 0, UndeliverableHere: flags&2 != 0}
		f := fate{back: true, here: !o.UndeliverableHere}
		if o.DeliveryFailed {
			f.count = 1
		}
		if flags&4 != 0 {
			o.Annotations = annotations
		}
		states[fmt.Sprintf("modified %03b", flags)] = struct {
			state codec.DeliveryState
			fate  fate
		}{codec.DeliveryState{Outcome: o}, f}
	}
	says := func(p *peer, first, last uint32, settled bool, s codec.DeliveryState) {
		p.send(&codec.Disposition{Role: codec.RoleReceiver, First: first, Last: codec.Some(last), Settled: settled, State: s})
	}
	ways := map[string]func(p *peer, settled bool, s codec.DeliveryState){
		"single": func(p *peer, settled bool, s codec.DeliveryState) {
			for id := range uint32(3) {
				says(p, id, id, settled, s)
			}
		},
		"range": func(p *peer, settled bool, s codec.DeliveryState) { says(p, 0, 2, settled, s) },
		"range beyond": func(p *peer, settled bool, s codec.DeliveryState) {
			says(p, 0, 1<<31-1, settled, s)
		},
		"out of order": func(p *peer, settled bool, s codec.DeliveryState) {
			for _, id := range []uint32{2, 0, 1} {
				says(p, id, id, settled, s)
			}
		},
		"twice": func(p *peer, settled bool, s codec.DeliveryState) {
			says(p, 0, 2, settled, s)
			says(p, 0, 2, settled, s)
			says(p, 0, 2, true, codec.DeliveryState{Outcome: rejectedWith("app:late", "changed its mind")})
		},
	}
	detached := func(p *peer, settled bool, s codec.DeliveryState) {
		p.send(&codec.Detach{Handle: 1, Closed: true})
		await[codec.Detach](p)
		says(p, 0, 2, settled, s)
	}
	for name, c := range states {
		for _, presettled := range []bool{false, true} {
			for _, settled := range []bool{true, false} {
				for way, say := range ways {
					want := c.fate
					if !settled && (name == "null" || name == "received") {
						continue // says nothing yet
					}
					if presettled {
						if way != "range" {
							continue
						}
						want = gone
					}
					t.Run(fmt.Sprintf("%s/presettled=%v/settled=%v/%s", name, presettled, settled, way), func(t *testing.T) {
						r := start(t, nil)
						p, id := outcomeRig(r, presettled)
						say(p, settled, c.state)
						p.barrier()
						switch {
						case want.dead:
							r.depth("q", 0, 0)
							r.depth("DLQ", 3, 0)
							p.receiver(2, "DLQ", 3)
						case want.back:
							r.depth("q", 3, 0)
							p.credit(1, 3, 3, false)
							if !want.here {
								p.quiet(codec.CodeTransfer)
								p.receiver(2, "q", 3)
							}
						default:
							r.depth("q", 0, 0)
							r.depth("DLQ", 0, 0)
							return
						}
						order := []int{0, 1, 2}
						if want.dead && way == "out of order" {
							order = []int{2, 0, 1} // dead letters arrive as they die
						}
						for _, i := range order {
							d := p.receive()
							if d.body(t) != fmt.Sprint(i) {
								t.Errorf("message %d is %q", i, d.body(t))
							}
							if h, _ := d.sections(t); h.DeliveryCount != want.count {
								t.Errorf("delivery-count is %d, want %d", h.DeliveryCount, want.count)
							}
							if _, found := d.annotation(t, "x-opt-a"); found != (c.state.Annotations != nil) {
								t.Errorf("annotation is there: %v", found)
							}
							if d.id() <= id {
								t.Errorf("delivery-id %d goes back", d.id())
							}
						}
					})
				}
				if presettled {
					continue
				}
				t.Run(fmt.Sprintf("%s/settled=%v/after detach", name, settled), func(t *testing.T) {
					r := start(t, nil)
					p, _ := outcomeRig(r, false)
					detached(p, settled, c.state)
					p.quiet(codec.CodeEnd)
					r.depth("q", 3, 0)
					r.depth("DLQ", 0, 0)
					p.receiver(2, "q", 3)
					for i := range 3 {
						d := p.receive()
						if h, _ := d.sections(t); d.body(t) != fmt.Sprint(i) || h.DeliveryCount != 0 {
							t.Errorf("message %d is %q, count %d", i, d.body(t), h.DeliveryCount)
						}
					}
				})
			}
		}
	}
}

// outcomeRig gives a peer three deliveries, 0 to 2, on handle 1, and returns the last id.
func outcomeRig(r *rig, presettled bool) (*peer, uint32) {
	r.t.Helper()
	p := r.opened("c")
	p.sender(0, "q")
	for i := range 3 {
		p.put(0, data(fmt.Sprint(i)))
	}
	in := receiverAttach("in", 1, "q")
	if presettled {
		in.SndSettleMode = codec.SettleSettled
	}
	p.attach(in)
	p.credit(1, 0, 3, false)
	var id uint32
	for i := range uint32(3) {
		d := p.receive()
		if id = d.id(); id != i || d.Settled.Value != presettled {
			r.t.Fatalf("delivery %d is %+v", i, d.Transfer)
		}
	}
	return p, id
}
