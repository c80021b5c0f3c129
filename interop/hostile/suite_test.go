// Package hostile attacks the leto binary from outside: floods, peers that don't
// read, declared sizes, hoarding, odd orders. Every attack has a broker of its own and a
// bound: on the broker's anonymous memory, on what a good client beside it notices, and
// on what may be left when the attacker is gone.
package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// start runs a broker for one attack.
func start(t *testing.T, set ...string) *harness.Broker {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a broker")
	}
	var args []string
	for _, s := range set {
		args = append(args, "--set", s)
	}
	args = append(args, "--log-level", "warn")
	return harness.Start(t, args...)
}

// frame is an AMQP frame of a performative on a channel.
func frame(channel uint16, code uint64, payload []byte, fields ...[]byte) []byte {
	return wire.NewFrame(0, channel, wire.Described(code, wire.List(fields...)), payload)
}

// begin begins a session that lets window transfers in.
func begin(channel uint16, window uint32) []byte {
	return frame(channel, wire.CodeBegin, nil, wire.Null(), wire.Uint(0), wire.Uint(window), wire.Uint(1<<31-1))
}

func end(channel uint16) []byte { return frame(channel, wire.CodeEnd, nil) }

// receiver attaches a receiver; settle is the sender's settlement mode.
func receiver(channel uint16, handle uint32, name, address string, settle uint8) []byte {
	return frame(channel, wire.CodeAttach, nil, wire.String(name), wire.Uint(handle), wire.Bool(true),
		wire.Ubyte(settle), wire.Ubyte(0), wire.Described(0x28, wire.List(wire.String(address))), wire.Described(0x29, wire.List(wire.Null())))
}

func sender(channel uint16, handle uint32, name, address string) []byte {
	return frame(channel, wire.CodeAttach, nil, wire.String(name), wire.Uint(handle), wire.Bool(false),
		wire.Ubyte(2), wire.Ubyte(0), wire.Described(0x28, wire.List(wire.Null())), wire.Described(0x29, wire.List(wire.String(address))),
		wire.Null(), wire.Null(), wire.Uint(0))
}

// credit grants credit to a link that has delivered nothing; the session takes window transfers.
func credit(channel uint16, handle, window, n uint32, drain bool) []byte {
	return frame(channel, wire.CodeFlow, nil, wire.Uint(0), wire.Uint(window), wire.Uint(0), wire.Uint(1<<31-1),
		wire.Uint(handle), wire.Uint(0), wire.Uint(n), wire.Null(), wire.Bool(drain))
}

func detach(channel uint16, handle uint32) []byte {
	return frame(channel, wire.CodeDetach, nil, wire.Uint(handle), wire.Bool(true))
}

// body is a message of about n bytes that carries id.
func body(id uint32, n int) []byte {
	b := make([]byte, max(n, 4))
	binary.BigEndian.PutUint32(b, id)
	return wire.Described(wire.SectionData, wire.Binary(b))
}

// volatile is body with a header that says not durable.
func volatile(id uint32, n int) []byte {
	return slices.Concat(wire.Described(wire.SectionHeader, wire.List(wire.Bool(false))), body(id, n))
}

// id is number for a test.
func id(t testing.TB, message []byte) uint32 {
	t.Helper()
	n, err := number(message)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// number reads the number of a message made by body.
func number(message []byte) (uint32, error) {
	m, err := wire.Split(message)
	if err != nil {
		return 0, err
	}
	_, value, err := wire.Code(m.Bare)
	if err != nil {
		return 0, err
	}
	text, _ := wire.Text(value)
	return binary.BigEndian.Uint32([]byte(text)), nil
}

var serial atomic.Int64

// connect opens a connection with one session that is cut when the test ends.
func connect(t testing.TB, b *harness.Broker) *wire.Conn {
	t.Helper()
	c, err := wire.Connect(b.AMQP, fmt.Sprint("hostile-", serial.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// raw opens a connection, with open but no session, whose answers nobody reads.
func raw(t testing.TB, b *harness.Broker) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", b.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	send(t, c, wire.HeaderAMQP, wire.Open(fmt.Sprint("raw-", serial.Add(1)), 1<<16))
	return c
}

func send(t testing.TB, w io.Writer, parts ...[]byte) {
	t.Helper()
	if _, err := w.Write(bytes.Join(parts, nil)); err != nil {
		t.Fatal(err)
	}
}

// drop reads what the broker says and forgets it.
func drop(c net.Conn) { go io.Copy(io.Discard, c) }

// flood writes until the broker takes no more for a while, n times, or the connection is cut.
func flood(c net.Conn, b []byte, n int, patience time.Duration) (written int) {
	for range n {
		_ = c.SetWriteDeadline(time.Now().Add(patience))
		w, err := c.Write(b)
		written += w
		if err != nil {
			return written
		}
	}
	return written
}

// fill sends n messages of size bytes.
func fill(t testing.TB, b *harness.Broker, address string, n, size int) {
	t.Helper()
	c := connect(t, b)
	s, err := wire.NewSender(c, 0, "fill", address)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := s.Send(body(uint32(i), size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Hangup(); err != nil {
		t.Fatal(err)
	}
}

// memory watches the broker's anonymous memory until stop and reports the most there was.
func memory(t testing.TB, b *harness.Broker) (most func() int64) {
	t.Helper()
	var peak atomic.Int64
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if now, err := b.Anonymous(); err == nil && now > peak.Load() {
				peak.Store(now)
			}
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() int64 {
		close(done)
		<-ended
		return peak.Load()
	}
}

// within fails the test when the most memory there was exceeds limit.
func within(t testing.TB, most func() int64, limit int64) {
	t.Helper()
	if os.Getenv("LETO_RACE") == "1" {
		limit *= 10
	}
	peak := most()
	t.Logf("anonymous memory: %.1f MiB at most", float64(peak)/(1<<20))
	if peak > limit {
		t.Errorf("anonymous memory: %.1f MiB, at most %.1f MiB allowed", float64(peak)/(1<<20), float64(limit)/(1<<20))
	}
}

// alive sends and receives one message.
func alive(t testing.TB, b *harness.Broker) {
	t.Helper()
	c := connect(t, b)
	to := fmt.Sprint("alive-", serial.Add(1))
	s, err := wire.NewSender(c, 0, "out", to)
	if err != nil {
		t.Fatal("alive:", err)
	}
	if err := s.Send(body(1, 10)); err != nil {
		t.Fatal("alive:", err)
	}
	if err := c.Hangup(); err != nil {
		t.Fatal("alive:", err)
	}
	c = connect(t, b)
	r, err := wire.NewReceiver(c, 0, "in", to, 1)
	if err != nil {
		t.Fatal("alive:", err)
	}
	if _, err := r.Accept(); err != nil {
		t.Fatal("alive:", err)
	}
	if err := c.Hangup(); err != nil {
		t.Fatal("alive:", err)
	}
}

// silent opens a connection and says nothing.
func silent(t testing.TB, b *harness.Broker) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", b.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// settles fails the test when anonymous memory isn't below limit in time.
func settles(t testing.TB, b *harness.Broker, limit int64, in time.Duration) {
	t.Helper()
	if os.Getenv("LETO_RACE") == "1" {
		limit *= 10
	}
	var now int64
	for deadline := time.Now().Add(in); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var err error
		if now, err = b.Anonymous(); err != nil {
			t.Fatal(err)
		}
		if now <= limit {
			t.Logf("anonymous memory: down to %.1f MiB", float64(now)/mib)
			return
		}
	}
	t.Errorf("anonymous memory: %.1f MiB, at most %.1f MiB allowed", float64(now)/mib, float64(limit)/mib)
}
