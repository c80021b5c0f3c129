// Package footprint measures what the leto binary costs while it does nothing:
// idle, per connection, per queue, and the time until it listens.
package footprint

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// The aims, in bytes but for the start.
const (
	aimIdle            = 25 << 20
	aimConnection      = 20 << 10
	aimUnauthenticated = 8 << 10
	aimQueue           = 600
	aimStart           = 100 * time.Millisecond
)

const (
	connections = 2000
	queues      = 50_000
)

// growth is how much anonymous memory n things take that make brings about, per thing.
func growth(t *testing.T, b *harness.Broker, n int, what string, aim int64, make func()) {
	t.Helper()
	before := anonymous(t, b)
	make()
	after := anonymous(t, b)
	each := (after - before) / int64(n)
	t.Logf("%s: %d bytes each (%d of them: %.1f MiB)", what, each, n, float64(after-before)/(1<<20))
	if each > aim {
		t.Errorf("%s: %d bytes each, the aim is %d", what, each, aim)
	}
}

// anonymous is the anonymous memory once it has stopped changing.
func anonymous(t *testing.T, b *harness.Broker) int64 {
	t.Helper()
	last := int64(-1)
	for range 50 {
		g, err := b.Gauges()
		if err != nil {
			t.Fatal(err)
		}
		if last >= 0 && max(g.Anonymous, last)-min(g.Anonymous, last) < 128<<10 {
			return g.Anonymous
		}
		last = g.Anonymous
		time.Sleep(100 * time.Millisecond)
	}
	return last
}

func TestIdle(t *testing.T) {
	var times []time.Duration
	for range 5 {
		start := time.Now()
		b := harness.Start(t)
		times = append(times, time.Since(start))
		g, err := b.Gauges()
		if err != nil {
			t.Fatal(err)
		}
		resident, err := b.Metric("process_resident_memory_bytes")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("ready after %v; %v, %.1f MiB resident", times[len(times)-1].Round(time.Millisecond), g, resident/(1<<20))
		if resident > aimIdle {
			t.Errorf("idle: %.0f bytes resident, the aim is %d", resident, aimIdle)
		}
	}
	slices.Sort(times)
	if median := times[len(times)/2]; median > aimStart {
		t.Errorf("start: the median is %v, the aim is %v", median, aimStart)
	}
}

func TestConnections(t *testing.T) {
	b := harness.Start(t)
	growth(t, b, connections, "connection with one session and two links", aimConnection, func() {
		for i := range connections {
			c, err := wire.Connect(b.AMQP, fmt.Sprint("idle-", i))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			if err := c.Send(wire.AttachSender(0, "out", "footprint"), wire.AttachReceiver(1, "in", "footprint")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := c.Await(wire.CodeAttach); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestUnauthenticated(t *testing.T) {
	b := harness.Start(t)
	growth(t, b, connections, "connection that has said nothing", aimUnauthenticated, func() {
		for range connections {
			c, err := net.Dial("tcp", b.AMQP)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
		}
	})
}

func TestQueues(t *testing.T) {
	b := harness.Start(t)
	c, err := wire.Connect(b.AMQP, "queues")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	growth(t, b, queues, "idle queue", aimQueue, func() {
		for i := range queues {
			if err := c.Send(wire.AttachSender(0, "out", fmt.Sprint("footprint.", i)), wire.Detach(0)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Await(wire.CodeDetach); err != nil {
				t.Fatal(err)
			}
		}
	})
}
