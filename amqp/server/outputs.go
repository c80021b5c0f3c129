package server

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// outputs are the bytes of all connections that are encoded and that their peers haven't taken. They share a budget.
// Beyond half of it every connection encodes little ahead, and leaves its peer's input unread sooner. When all is used
// up, those go that have taken nothing for longest.
type outputs struct {
	limit   int64 // bytes; 0: none
	bytes   atomic.Int64
	evicted atomic.Uint64
	crowded chan struct{} // capacity one: the budget is used up
}

const (
	// outputAhead is how many bytes are encoded ahead of a socket, inputPause how many of answers a peer may leave
	// unread before its input is left unread too. Both are crowdedAhead while memory for output is short.
	outputAhead  = 256 << 10
	inputPause   = 1 << 20
	crowdedAhead = 16 << 10
	// inputQuantum is how much input is worked through before the answers to it are looked at: the answer to an attach
	// is ten times as long as the shortest attach.
	inputQuantum = 8 << 10
	// stuckTime is how long a peer must have taken nothing to be cut off for want of memory.
	stuckTime = 250 * time.Millisecond
)

// scarce reports whether connections should hold little.
func (s *outputs) scarce() bool { return s.limit > 0 && s.bytes.Load() > s.limit/2 }

// chargeOutput notes what the connection holds of output. Under its guard.
func (c *connection) chargeOutput() {
	held := int64(c.writing)
	if c.machine.Lent() {
		held += int64(c.machine.Encoded())
	}
	grown := held - c.outputHeld
	if grown == 0 {
		return
	}
	c.outputHeld = held
	s := &c.server.outputs
	if total := s.bytes.Add(grown); grown > 0 && s.limit > 0 && total > s.limit {
		select {
		case s.crowded <- struct{}{}:
		default:
		}
	}
}

// pause returns how many bytes of answers the peer may leave unread.
func (c *connection) pause() int {
	if c.server.outputs.scarce() {
		return crowdedAhead
	}
	return inputPause
}

// ahead returns how many bytes are encoded ahead of the socket.
func (c *connection) ahead() int {
	if c.server.outputs.scarce() {
		return crowdedAhead
	}
	return outputAhead
}

// makeRoom cuts off those who have read nothing for longest while the budget for output is used up.
func (s *Server) makeRoom(now time.Time) {
	excess := s.outputs.bytes.Load() - s.outputs.limit
	if s.outputs.limit == 0 || excess <= 0 {
		return
	}
	type stuck struct {
		c     *connection
		since int64
	}
	var all []stuck
	s.each(func(c *connection) {
		if since := c.writingSince.Load(); since != 0 && now.UnixNano()-since > int64(stuckTime) {
			all = append(all, stuck{c, since})
		}
	})
	slices.SortFunc(all, func(x, y stuck) int { return cmp.Compare(x.since, y.since) })
	for _, victim := range all {
		if excess <= 0 {
			break
		}
		c := victim.c
		c.guard.Lock()
		excess -= c.outputHeld
		c.guard.Unlock()
		s.outputs.evicted.Add(1)
		c.socket.Close()
		c.report(zerolog.WarnLevel, "no room for output that isn't read: connection cut off", nil)
	}
}
