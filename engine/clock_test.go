package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
)

// Messages expire in time by the clock as it is, also after it has been set: those in memory and those in the store only.
func TestExpiryFollowsTheClock(t *testing.T) {
	for _, c := range []struct {
		name     string
		set      time.Duration // the clock, once messages are there
		ttl      time.Duration
		patience time.Duration
	}{
		{"set forward", time.Hour, 50 * time.Minute, 2 * time.Minute},
		{"set back", -time.Hour, time.Second, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ahead atomic.Int64
			now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			opts := tiny
			opts.Now = now
			opts.Settings = set(engine.AddressSettings{ExpiryAddress: new("")}).Settings
			inWorld(t, opts, func(t *testing.T, w *world) {
				p := w.producer("q")
				fill := func(n int, ttl time.Duration) {
					for i := range n {
						m := msg(fmt.Sprint(i), true)
						m.Expiry = now().Add(ttl).UnixMilli()
						p.start(m)
					}
					later(0)
				}
				fill(1000, time.Second)
				later(2 * time.Second)
				if c.set > 0 {
					fill(3000, c.ttl)
				}
				ahead.Store(int64(c.set))
				if c.set < 0 {
					fill(3000, c.ttl)
				}
				if i := w.info("q"); i.Messages != 3000 || i.Stored == 0 || i.Stored == 3000 {
					t.Fatalf("queue = %+v, want 3000 in memory and in the store", i)
				}
				later(c.patience)
				if i := w.info("q"); i.Messages != 0 || i.Expired != 4000 {
					t.Errorf("%v later: queue = %+v, want all expired", c.patience, i)
				}
			})
		})
	}
}
