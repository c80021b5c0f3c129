package server

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// expressed is what a message says of how long it lives.
type expressed struct {
	name     string
	ttl      codec.Opt[uint32]
	absolute codec.Opt[codec.Timestamp]
}

// allLifetimes are all that there are at the edges, for messages sent at a time in unix milliseconds.
func allLifetimes(sent int64) (all []expressed) {
	absolutes := map[string]codec.Opt[codec.Timestamp]{
		"absent": {}, "zero": codec.Some(codec.Timestamp(0)), "past": codec.Some(codec.Timestamp(sent - 1)),
		"in 5 s": codec.Some(codec.Timestamp(sent + 5000)), "far": codec.Some(codec.Timestamp(sent + 1<<40)),
		"min": codec.Some(codec.Timestamp(math.MinInt64)), "max": codec.Some(codec.Timestamp(math.MaxInt64)),
	}
	for _, name := range slices.Sorted(maps.Keys(absolutes)) {
		all = append(all, expressed{"ttl absent, absolute " + name, codec.Opt[uint32]{}, absolutes[name]})
		for _, ttl := range []uint32{0, 1, 5000, 1 << 31, math.MaxUint32} {
			all = append(all, expressed{fmt.Sprintf("ttl %d, absolute %s", ttl, name), codec.Some(ttl), absolutes[name]})
		}
	}
	return all
}

// lives reports whether a message that was sent so is still there.
func (l expressed) lives(sent, now int64) bool {
	return !(l.ttl.Value > 0 && now-sent >= int64(l.ttl.Value)) && !(l.absolute.Value > 0 && now >= int64(l.absolute.Value))
}

func (l expressed) message(durable bool) []byte {
	h := codec.Header{Durable: codec.Some(durable), TTL: l.ttl}
	b := append(h.Append(nil), properties(codec.Properties{Subject: codec.Some(l.name), AbsoluteExpiryTime: l.absolute})...)
	return codec.AppendData(b, []byte(l.name+strings.Repeat(".", 3000)))
}

// TestExpiryMatrix is compound scenario 6: whatever a message says of how long it lives, and wherever it waits, it is delivered until then
// and expires from then on.
func TestExpiryMatrix(t *testing.T) {
	for name, c := range map[string]struct {
		durable, restarts bool
		memory            int64
	}{
		"in memory":       {false, false, 100 << 20},
		"in the store":    {true, false, 100_000}, // of which a queue may keep a quarter
		"after a restart": {true, true, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			for _, after := range []int64{0, 1, 4999, 5000, 1<<31 - 1, 1 << 31, math.MaxUint32, 1 << 40, 1 << 50} {
				clock, store := newClock(), memory.New()
				change := func(cfg *Config, l *ListenerOptions, o *engineOptions) {
					clock.use(cfg, l, o)
					o.Limits.MemoryBytes = c.memory
					o.Settings = []engine.AddressSettings{{Match: "q", ExpiryAddress: new("over")}}
				}
				sent := clock.ms.Load()
				send := func(r *rig) {
					p := r.opened("feed")
					p.sender(0, "q")
					for _, l := range allLifetimes(sent) {
						p.put(0, l.message(c.durable))
					}
				}
				var r *rig
				if c.restarts {
					t.Run("before", func(t *testing.T) { send(startOn(t, store, change)) })
				}
				if r = startOn(t, store, change); !c.restarts {
					send(r)
				}
				clock.advance(after)
				want, expired := map[string]bool{}, uint64(0)
				for _, l := range allLifetimes(sent) {
					if l.lives(sent, sent+after) {
						want[l.name] = true
					} else {
						expired++
					}
				}
				alive := uint32(len(want))
				p := r.opened("c")
				in := receiverAttach("in", 0, "q")
				in.SndSettleMode = codec.SettleSettled // what isn't settled takes memory
				p.attach(in)
				p.credit(0, 0, alive, false)
				for range alive {
					name, _, _ := strings.Cut(p.receive().body(t), "...")
					if !want[name] {
						t.Errorf("after %d ms: %s is delivered", after, name)
					}
					delete(want, name)
				}
				p.credit(0, alive, 10, true)
				p.drained(alive + 10)
				for name := range want {
					t.Errorf("after %d ms: %s isn't delivered", after, name)
				}
				eventually(t, "all else expires", func() bool {
					over := 0
					for _, q := range r.broker.Queues() {
						if q.Name == "over" {
							over = int(q.Messages)
						}
					}
					return over == int(expired)
				})
			}
		})
	}
}
