package bench

import (
	"net"
	"sync/atomic"
	"time"
)

// pace wakes a producer whenever its next message is due. The runtime's own
// timers wait in whole milliseconds where nothing else is to be done, which is
// longer than most brokers take: latencies would be the timer's.
type pace struct {
	start    time.Duration // the first message is due, from the run's start
	interval time.Duration // between one message and the next
	ticks    atomic.Uint64
	seen     uint64 // ticks the producer knows of
}

// due returns when message n is due, in nanoseconds since the run's start.
func (p *pace) due(n uint64) int64 { return int64(p.start) + int64(n)*int64(p.interval) }

// over reports, once for each time it happened, that a message has become due.
// A producer asks after it has set its read deadline and before it reads: a
// tick later than that ends the read.
func (p *pace) over() bool {
	if p == nil {
		return false
	}
	ticks := p.ticks.Load()
	again := ticks != p.seen
	p.seen = ticks
	return again
}

// run wakes the reader of socket at each tick until close is called on ticks.
func (p *pace) run(ticks ticker, socket net.Conn) {
	for ticks.wait() == nil {
		p.ticks.Add(1)
		_ = socket.SetReadDeadline(time.Unix(1, 0))
	}
}

// ticker ticks at a fixed interval, as exactly as the system can.
type ticker interface {
	wait() error // until the next tick, or an error after close
	close()
}
