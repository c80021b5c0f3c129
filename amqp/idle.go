package amqp

import (
	"time"

	"github.com/letomq/leto/codec"
)

// Tick does what is due at now and returns when it wants to be called next;
// the zero time: when something else happened.
func (c *Conn) Tick(now time.Time) time.Time {
	c.now = now
	var next time.Time
	due := func(t time.Time) bool {
		if !now.Before(t) {
			return true
		}
		if next.IsZero() || t.Before(next) {
			next = t
		}
		return false
	}
	switch c.state {
	case stateHeader, stateSASL, stateOpening:
		if c.cfg.HandshakeTimeout > 0 && due(c.started.Add(c.cfg.HandshakeTimeout)) {
			c.fail(ConditionResourceLimitExceeded, "no open within %v", c.cfg.HandshakeTimeout)
			c.state = stateClosed
		}
		return next
	case stateClosing:
		if due(c.closeAt) {
			c.state = stateClosed
		}
		return next
	case stateClosed:
		return time.Time{}
	}
	// Heartbeats are frames on channel 0 without a body [2.4.5].
	if c.peerIdle != idleTimeoutUnlimited && c.openSent {
		interval := c.peerIdle / heartbeatsPerInterval
		if due(c.lastOut.Add(interval)) {
			if len(c.out) == 0 {
				start := len(c.out)
				c.out = codec.BeginFrame(c.out, codec.FrameAMQP, 0)
				codec.EndFrame(c.out, start)
			}
			c.lastOut = now
			due(now.Add(interval))
		}
	}
	if c.cfg.IdleTimeout > 0 && due(c.lastIn.Add(c.cfg.IdleTimeout)) {
		c.fail(ConditionResourceLimitExceeded, "local-idle-timeout expired: nothing received for %v", c.cfg.IdleTimeout)
		return c.closeAt
	}
	c.trim()
	return next
}

// trim gives back memory that only a busier connection needs.
func (c *Conn) trim() {
	for _, s := range c.ours {
		if s != nil {
			s.outgoing.trim()
			s.incoming.trim()
		}
	}
}
