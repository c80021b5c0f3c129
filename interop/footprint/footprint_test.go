// Package footprint measures what the leto binary costs while it does nothing:
// idle, per connection, per queue, and the time until it listens.
package footprint

import (
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// What each may cost at most, in bytes but for the start. The aim for a queue is
// 600 bytes of live heap; resident memory is more by what the heap leaves unused.
const (
	aimIdle            = 25 << 20
	aimConnection      = 20 << 10
	aimUnauthenticated = 8 << 10
	aimQueue           = 1200
	aimStart           = 100 * time.Millisecond
)

const (
	connections = 2000
	queues      = 20_000
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

// anonymous is the anonymous memory that stays: a quiet broker gives back what
// it doesn't need within seconds. Nothing is asked of it meanwhile.
func anonymous(t *testing.T, b *harness.Broker) int64 {
	t.Helper()
	least := int64(-1)
	for range 12 {
		now, err := b.Anonymous()
		if err != nil {
			t.Fatal(err)
		}
		if least < 0 || now < least {
			least = now
		}
		time.Sleep(500 * time.Millisecond)
	}
	return least
}

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("footprint: skipped with -short, it starts brokers")
		return
	}
	code := m.Run()
	harness.Tidy()
	os.Exit(code)
}

func TestIdle(t *testing.T) {
	var times []time.Duration
	if _, err := harness.Binary(); err != nil { // built before the clock runs
		t.Fatal(err)
	}
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
	// The quickest of five: what else the machine does isn't the broker's doing.
	quickest := slices.Min(times)
	t.Logf("start: %v at best, the aim is %v", quickest, aimStart)
	if quickest > 20*aimStart { // a store is made, and its flushes wait for whatever else the device does
		t.Errorf("start: %v at best", quickest)
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
	b := harness.Start(t, "--set", "limits.handshakes=3000")
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
	create := func(kind string, n int) {
		for i := range n {
			if err := c.Send(wire.AttachSender(0, "out", fmt.Sprint("footprint.", kind, i)), wire.Detach(0)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Await(wire.CodeDetach); err != nil {
				t.Fatal(err)
			}
		}
	}
	create("first", 2000) // brings about what is there once, in the store for example
	growth(t, b, queues, "idle queue", aimQueue, func() { create("more", queues) })
}
