// Package restart stops, or kills, the leto binary and looks at what is there afterwards.
package restart

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("restart: skipped with -short, it starts brokers")
		return
	}
	code := m.Run()
	harness.Tidy()
	os.Exit(code)
}

// node is a broker whose data folder stays.
type node struct {
	t    *testing.T
	data string
	args []string
	*harness.Broker
}

func begin(t *testing.T, args ...string) *node {
	t.Helper()
	n := &node{t: t, data: filepath.Join(t.TempDir(), "data"), args: args}
	n.start()
	return n
}

func (n *node) start() {
	n.t.Helper()
	b, err := harness.Begin(n.data, n.args...)
	if err == nil {
		err = b.Ready()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.Broker = b
	n.t.Cleanup(func() { _ = b.Stop() })
}

// again ends the broker, by SIGKILL or in good order, and starts it in the same folder.
func (n *node) again(kill bool) {
	n.t.Helper()
	end := n.Stop
	if kill {
		end = n.Kill
	}
	if err := end(); err != nil {
		n.t.Fatal(err)
	}
	n.start()
}

func (n *node) connect() *wire.Conn {
	n.t.Helper()
	c, err := wire.Connect(n.AMQP, fmt.Sprint("restart-", time.Now().UnixNano()))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	return c
}

func (n *node) send(address string, messages ...[]byte) {
	n.t.Helper()
	c := n.connect()
	defer c.Close()
	s, err := wire.NewSender(c, 0, "out", address)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, m := range messages {
		if err := s.Send(m); err != nil {
			n.t.Fatal(err)
		}
	}
}

// take receives and accepts n messages.
func (n *node) take(address string, count int) [][]byte {
	n.t.Helper()
	c := n.connect()
	defer func() {
		if err := c.Hangup(); err != nil {
			n.t.Error(err)
		}
	}()
	r, err := wire.NewReceiver(c, 0, "in", address, uint32(count))
	if err != nil {
		n.t.Fatal(err)
	}
	var all [][]byte
	for range count {
		d, err := r.Accept()
		if err != nil {
			n.t.Fatal(err)
		}
		all = append(all, d.Message)
	}
	return all
}

func header(fields ...[]byte) []byte { return wire.Described(wire.SectionHeader, wire.List(fields...)) }

func data(text string) []byte { return wire.Described(wire.SectionData, wire.Binary([]byte(text))) }

// TestCase238_EveryShape: messages of every shape are there after a restart, byte for byte and in order.
func TestCase238_EveryShape(t *testing.T) {
	t.Parallel()
	value := func(v []byte) []byte { return wire.Described(wire.SectionValue, v) }
	shapes := [][]byte{
		data(""), data("one"), bytes.Join([][]byte{data("one"), data(""), data("two")}, nil),
		value(wire.Null()), value(wire.Ulong(1 << 60)), value(wire.Timestamp(-1)), value(wire.Map(wire.Symbol("k"), wire.List(wire.Null()))),
		wire.Described(wire.SectionSequence, wire.List(wire.String("a"), wire.Uint(7))),
		header(wire.Bool(true), wire.Ubyte(4), wire.Uint(3_600_000)),
		bytes.Join([][]byte{
			header(wire.Bool(true)),
			wire.Described(wire.SectionMessageAnnotations, wire.Map(wire.Symbol("x-opt-b"), wire.Ubyte(1), wire.Symbol("x-opt-a"), wire.String("z"))),
			wire.Described(wire.SectionProperties, wire.List(wire.Ulong(9), wire.Binary([]byte("user")), wire.String("to"))),
			wire.Described(wire.SectionApplicationProperties, wire.Map(wire.String("z"), wire.Timestamp(5), wire.String("a"), wire.Bool(false))),
			data("body"),
			wire.Described(wire.SectionFooter, wire.Map(wire.Symbol("x-opt-f"), wire.Ulong(1))),
		}, nil),
		data(string(bytes.Repeat([]byte("0123456789abcdef"), 40<<10))), // 640 KiB: its body is kept in parts
	}
	n := begin(t)
	for _, kill := range []bool{false, true} {
		n.send("shapes", shapes...)
		n.again(kill)
		for i, got := range n.take("shapes", len(shapes)) {
			if err := wire.Intact(shapes[i], got); err != nil {
				t.Errorf("killed %v: shape %d: %v", kill, i, err)
			}
		}
	}
}

// TestCase185_DurableAsReceived: header.durable comes back as it was, absent or true; what isn't durable is gone.
func TestCase185_DurableAsReceived(t *testing.T) {
	t.Parallel()
	n := begin(t)
	n.send("durable", append(header(wire.Bool(false)), data("lost")...), data("absent"), append(header(wire.Bool(true)), data("said")...))
	n.again(true)
	for i, want := range []struct {
		body    string
		durable []byte
	}{{"absent", nil}, {"said", wire.Bool(true)}} {
		m, err := wire.Split(n.take("durable", 1)[0])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(m.Bare, data(want.body)) {
			t.Errorf("message %d is % x", i, m.Bare)
		}
		_, list, err := wire.Code(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := wire.Items(list)
		if err != nil || len(fields) == 0 {
			t.Fatalf("header % x: %v", m.Header, err)
		}
		got := fields[0]
		if bytes.Equal(got, wire.Null()) {
			got = nil
		}
		if (got == nil) != (want.durable == nil) || got != nil && !bytes.Equal(got, want.durable) && !bytes.Equal(got, []byte{0x41}) {
			t.Errorf("%s: durable is % x, want % x", want.body, got, want.durable)
		}
	}
}

// TestCase175_NothingRemains: large messages that are half sent, rejected or consumed leave no memory, descriptor or segment.
func TestCase175_NothingRemains(t *testing.T) {
	t.Parallel()
	n := begin(t)
	n.send("large", data("warm"))
	n.take("large", 1)
	base, err := n.Gauges()
	if err != nil {
		t.Fatal(err)
	}
	part := make([]byte, 1<<20)
	for range 60 {
		c := n.connect()
		s, err := wire.NewSender(c, 0, "out", "large")
		if err != nil {
			t.Fatal(err)
		}
		_ = s
		for at := 0; at < len(part); at += 32 << 10 {
			frame := wire.Continue(0, true, part[at:at+32<<10])
			if at == 0 {
				frame = wire.Transfer(0, 0, true, part[:32<<10])
			}
			if err := c.Send(frame); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
	}
	whole := data(string(part))
	for range 40 {
		n.send("large", whole)
		n.take("large", 1)
	}
	n.Settled(t, base, 64<<20, 20*time.Second)
	n.again(false)
	segments, err := filepath.Glob(filepath.Join(n.data, "journal", "0*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, name := range segments {
		if i, err := os.Stat(name); err == nil {
			size += i.Size()
		}
	}
	if size > 256<<20 {
		t.Errorf("%d segments of %d bytes are left of nothing", len(segments), size)
	}
}

// TestCase191_ExpiresAfterRestart: a time to live goes on over a restart.
func TestCase191_ExpiresAfterRestart(t *testing.T) {
	t.Parallel()
	n := begin(t)
	n.send("brief", append(header(wire.Bool(true), wire.Null(), wire.Uint(1500)), data("brief")...))
	n.again(true)
	m, err := wire.Split(n.take("ExpiryQueue", 1)[0])
	if err != nil || !bytes.Equal(m.Bare, data("brief")) {
		t.Errorf("expired message is % x, %v", m.Bare, err)
	}
}
