package server

import (
	"sync/atomic"
	"time"

	"github.com/letomq/leto/engine"
)

// engineOptions shortens the signature of what changes a rig.
type engineOptions = engine.Options

// clock is a clock that only tests move.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(1_700_000_000_000)
	return c
}

func (c *clock) now() time.Time   { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(ms int64) { c.ms.Add(ms) }

// use has a rig run on the clock, without time-outs that would come true on it.
func (c *clock) use(cfg *Config, _ *ListenerOptions, o *engine.Options) {
	cfg.Now, o.Now = c.now, c.now
	cfg.IdleTimeout, cfg.HandshakeTimeout = 0, time.Hour
}
