// Package spill fills queues with messages that need not survive, far beyond limits.memory, and looks at memory, order
// and disk.
package spill

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("spill: skipped with -short, it starts brokers")
		return
	}
	code := m.Run()
	harness.Tidy()
	os.Exit(code)
}

// memory is limits.memory, in MiB. A message takes 448 bytes in memory, so that a small part of the backlog fits.
const (
	memory  = 64
	backlog = 500_000
)

func begin(t *testing.T, data string) *harness.Broker {
	t.Helper()
	b, err := harness.Begin(data, "--set", fmt.Sprintf("limits.memory=%dMiB", memory))
	if err == nil {
		err = b.Ready()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop() })
	return b
}

// bench runs `leto bench` and returns what it reports.
func bench(t *testing.T, b *harness.Broker, args ...string) map[string]any {
	t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, append([]string{"bench", "--json", "--url", b.URL(), "--timeout", "60s"}, args...)...).Output()
	if err != nil {
		t.Fatalf("bench %v: %v\n%s", args, err, out)
	}
	var report map[string]any
	if json.Unmarshal(out, &report) != nil {
		var all []map[string]any
		if err := json.Unmarshal(out, &all); err != nil || len(all) != 1 {
			t.Fatalf("bench %v: %s", args, out)
		}
		report = all[0]
	}
	return report
}

// peak watches the broker's anonymous memory until it is asked for the most there was.
func peak(t *testing.T, b *harness.Broker) func() int64 {
	stop, result := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			if now, err := b.Anonymous(); err == nil {
				most = max(most, now)
			}
			select {
			case <-stop:
				result <- most
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(stop); return <-result }
}

func size(t *testing.T, dir string) int64 {
	t.Helper()
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return total
}

func connect(t *testing.T, b *harness.Broker) *wire.Conn {
	t.Helper()
	c, err := wire.Connect(b.AMQP, fmt.Sprint("spill-", time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func message(durable bool, priority uint8, text string) []byte {
	header := wire.Described(wire.SectionHeader, wire.List(wire.Bool(durable), wire.Ubyte(priority)))
	return append(header, wire.Described(wire.SectionData, wire.Binary([]byte(text)))...)
}

func send(t *testing.T, b *harness.Broker, address string, messages ...[]byte) {
	t.Helper()
	s, err := wire.NewSender(connect(t, b), 0, "out", address)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if err := s.Send(m); err != nil {
			t.Fatal(err)
		}
	}
}

func take(t *testing.T, b *harness.Broker, address string) []byte {
	t.Helper()
	r, err := wire.NewReceiver(connect(t, b), 0, "in", address, 1)
	if err != nil {
		t.Fatal(err)
	}
	d, err := r.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return d.Message
}

// TestBacklog: a backlog of many times limits.memory is taken and given in order; memory stays below the limit, a
// message of high priority comes next, and the disk is given back.
func TestBacklog(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	b := begin(t, data)
	most := peak(t, b)
	bench(t, b, "--address", "fits", "--count", "20000")
	if n := size(t, filepath.Join(data, "spill")); n != 0 {
		t.Errorf("%d bytes spilled of what fits into memory", n)
	}
	bench(t, b, "--address", "backlog", "--consumers", "0", "--count", strconv.Itoa(backlog))
	if n := size(t, filepath.Join(data, "spill")); n < backlog*256/2 {
		t.Errorf("the spill has %d bytes, want most of the backlog", n)
	}
	nine := message(false, 9, "nine")
	send(t, b, "backlog", nine)
	if err := wire.Intact(nine, take(t, b, "backlog")); err != nil {
		t.Errorf("next is not the message of high priority: %v", err)
	}
	report := bench(t, b, "--address", "backlog", "--producers", "0", "--count", strconv.Itoa(backlog))
	if report["received"] != float64(backlog) || report["out_of_order"] != 0. || report["duplicates"] != 0. {
		t.Errorf("drained: %v", report)
	}
	// The collector is asked to keep to the limit, and on a busy machine it may be late.
	if n := most(); n > memory<<20*9/8 {
		t.Errorf("%d bytes of anonymous memory, the limit is %d", n, memory<<20)
	} else {
		t.Logf("%d MiB of anonymous memory at most", n>>20)
	}
	end := time.Now().Add(30 * time.Second)
	for size(t, filepath.Join(data, "spill")) > 0 { // an empty one is closed after ten seconds
		if time.Now().After(end) {
			t.Fatalf("the spill has %d bytes long after it is empty", size(t, filepath.Join(data, "spill")))
		}
		time.Sleep(100 * time.Millisecond)
	}
	if n, err := b.Metric("leto_spill_lost_total"); n != 0 || err != nil {
		t.Errorf("%v messages lost, %v", n, err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, "spill")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder of the spill after a stop: %v, want none", err)
	}
}

// TestKill: after SIGKILL what was spilled is gone, with its folder; what is durable is there.
func TestKill(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	b := begin(t, data)
	first, last := message(true, 4, "first"), message(true, 4, "last")
	send(t, b, "kill", first)
	bench(t, b, "--address", "kill", "--consumers", "0", "--count", "200000")
	send(t, b, "kill", last)
	if n := size(t, filepath.Join(data, "spill")); n == 0 {
		t.Fatal("nothing is spilled")
	}
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	b = begin(t, data)
	if _, err := os.Stat(filepath.Join(data, "spill")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder of the spill after a kill: %v, want none", err)
	}
	for _, want := range [][]byte{first, last} {
		if err := wire.Intact(want, take(t, b, "kill")); err != nil {
			t.Error(err)
		}
	}
	if n, err := b.Metric("leto_queue_messages_sum{state=\"ready\"}"); n != 0 || err != nil {
		t.Errorf("%v messages left, %v, want none", n, err)
	}
}
