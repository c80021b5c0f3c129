// Package raw plays an AMQP client byte by byte against the leto binary, where a real
// client library can't be made to do what some network or some peer does.
package raw

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// broker is shared by all tests; each uses addresses of its own.
var broker *harness.Broker

func TestMain(m *testing.M) { os.Exit(harness.Run(m, &broker)) }

var serial atomic.Int64

// address returns an address that no other test uses.
func address(t *testing.T) string { return fmt.Sprintf("%s-%d", t.Name(), serial.Add(1)) }

// message is a message with all seven sections around a body of size bytes. Its id
// has the same length for every number.
func message(id uint64, size int) []byte {
	return bytes.Join([][]byte{
		wire.Described(wire.SectionHeader, wire.List(wire.Bool(true), wire.Ubyte(6), wire.Uint(3_600_000))),
		wire.Described(wire.SectionDeliveryAnnotations, wire.Map(wire.Symbol("x-opt-hop"), wire.String("only this far"))),
		wire.Described(wire.SectionMessageAnnotations, wire.Map(wire.Symbol("x-opt-b"), wire.Ulong(id), wire.Symbol("x-opt-a"), wire.List(wire.Null(), wire.Bool(false)))),
		wire.Described(wire.SectionProperties, wire.List(wire.Ulong(id), wire.Binary([]byte("user")), wire.String("to"), wire.String("subject"))),
		wire.Described(wire.SectionApplicationProperties, wire.Map(wire.String("z"), wire.Timestamp(time.Now().UnixMilli()), wire.String("a"), wire.Ubyte(1))),
		wire.Described(wire.SectionData, wire.Binary(bytes.Repeat([]byte{byte(id)}, size))),
		wire.Described(wire.SectionFooter, wire.Map(wire.Symbol("x-opt-sum"), wire.Ulong(id))),
	}, nil)
}

// consumer is a receiver on a connection of its own.
func consumer(t *testing.T, address string, credit uint32) *wire.Receiver {
	t.Helper()
	conn := connect(t)
	receiver, err := wire.NewReceiver(conn, 0, "in", address, credit)
	if err != nil {
		t.Fatal(err)
	}
	return receiver
}

// connect opens a connection that is hung up when the test ends.
func connect(t *testing.T) *wire.Conn {
	t.Helper()
	conn, err := wire.Connect(broker.AMQP, fmt.Sprint("raw-", serial.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Hangup(); err != nil {
			t.Error(err)
		}
	})
	return conn
}
