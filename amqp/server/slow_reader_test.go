package server

import (
	"math"
	"net"
	"testing"
	"time"

	"github.com/letomq/leto/codec"
)

// TestSlowReader is compound scenario 9: a consumer with all the credit there
// is that reads nothing. It gets a bounded share, others don't notice, and it
// is cut off.
func TestSlowReader(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.WriteTimeout = 100 * time.Millisecond })
	const n = 4000
	r.load("q", n, 16<<10)
	slow := r.connect()
	_ = slow.socket.(*net.TCPConn).SetReadBuffer(4 << 10)
	slow.open(codec.Open{ContainerID: "slow", MaxFrameSize: 65536, ChannelMax: 1})
	slow.begin()
	slow.receiver(0, "q", math.MaxInt32)
	r.stuck()
	held := 0
	r.server.each(func(c *connection) {
		c.guard.Lock()
		defer c.guard.Unlock()
		if c.machine.Lent() && c.machine.Encoded() > 1<<20 {
			t.Errorf("%d bytes encoded", c.machine.Encoded())
		}
		for a := range c.links {
			held = a.link.Queued()
		}
	})
	if held > consumerWindow {
		t.Errorf("%d deliveries wait for the socket", held)
	}
	// Others get theirs meanwhile.
	c := r.dial("quick", nil)
	in := c.receiver(c.session(), "in", "q", 100)
	c.until("its share", func() bool { return in.received > n/4 })
	c.until("the rest, once the slow one is cut off", func() bool { return in.received == n })
	c.close()
	if s := r.server.Stats(); s.WriteTimeout != 1 {
		t.Errorf("stats are %+v", s)
	}
	r.idle()
	r.depth("q", 0, 0)
}
