// Package exchange has every client write messages that every client then reads.
package exchange

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/letomq/leto/interop/foreign"
	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

var broker *harness.Broker

func TestMain(m *testing.M) { os.Exit(harness.Run(m, &broker)) }

// runs counts those of TestExchange: with -count each has queues of its own, and nothing from one before.
var runs atomic.Uint32

// TestExchange: each client writes the specimens to a topic on which each has a queue of its
// own. What arrives is what was sent, byte for byte where the reader shows bytes, else in
// type and value; and what was sent means what the specimen does.
func TestExchange(t *testing.T) {
	run := runs.Add(1)
	if testing.Short() {
		t.Skip("starts a broker")
	}
	seen := foreign.Seen{}
	for _, writer := range foreign.Clients {
		t.Run(writer.Name, func(t *testing.T) {
			writer.Need(t)
			topic := fmt.Sprint("topic://exchange-", run, "-", writer.Name)
			for _, reader := range foreign.Clients {
				open(t, queue(topic, reader))
			}
			written, skipped, err := writer.Write(t.Context(), broker, topic)
			if err != nil {
				t.Fatal(err)
			}
			t.Run("writes", func(t *testing.T) { writes(t, writer, written, skipped) })
			for _, reader := range foreign.Clients {
				t.Run(reader.Name, func(t *testing.T) {
					reader.Need(t)
					count, bytes := reads(t, reader, queue(topic, reader), written)
					cell := fmt.Sprintf("%d of %d", count, len(written))
					if bytes {
						cell += ", bytes"
					}
					seen[writer.Name+" "+reader.Name] = cell
				})
			}
		})
	}
	if err := seen.Keep("exchange"); err != nil {
		t.Error(err)
	}
}

var update = flag.Bool("update", false, "write the matrix of the last run into interop/README.md")

// TestMatrix writes the matrix of the last run, when it is told to.
func TestMatrix(t *testing.T) {
	if !*update {
		t.Skip("without -update")
	}
	scenarios, err := foreign.Scenarios(foreign.Clients[1:]) // go-amqp's are Go tests
	if err != nil {
		t.Fatal(err)
	}
	seen, err := foreign.Recall("exchange")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin: make matrix -->\n", "<!-- end: make matrix -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the matrix", path)
	}
	matrix := "\n" + scenarios + "\nMessages read as they were written, of those the writer can write; `bytes` where the reader shows them:\n\n" +
		foreign.Exchanged(seen) + "\nWhat a client itself can't write or read as it is, and doesn't count above:\n\n" + foreign.Peculiar() + "\n"
	if err := os.WriteFile(path, []byte(before+begin+matrix+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func queue(topic string, reader foreign.Client) string { return fmt.Sprint(topic, "::", reader.Name) }

// open makes a queue that stays.
func open(t *testing.T, address string) {
	t.Helper()
	c, err := wire.Connect(broker.AMQP, "exchange")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := wire.NewReceiver(c, 0, "in", address, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Hangup(); err != nil {
		t.Fatal(err)
	}
}

func writes(t *testing.T, writer foreign.Client, written []foreign.Written, skipped map[string]string) {
	for name, why := range skipped {
		if _, known := writer.CannotWrite[name]; !known {
			t.Errorf("%s: not sent: %s", name, why)
		}
	}
	specimens := map[string][]byte{}
	for _, s := range foreign.Specimens() {
		specimens[s.Name] = s.Encoded
	}
	for _, w := range written {
		want, is := specimens[w.Name]
		_, known := writer.CannotWrite[w.Name]
		if !is || known && foreign.Same(want, w.Encoded, false) != nil {
			continue // a message of the client's own, or a peculiarity of it
		}
		if err := foreign.Same(want, w.Encoded, false); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		} else if known {
			t.Errorf("%s: sent as it should be, though listed otherwise", w.Name)
		}
	}
}

// reads returns how many messages were read as they were written, and whether bytes were compared.
func reads(t *testing.T, reader foreign.Client, address string, written []foreign.Written) (count int, bytes bool) {
	written = withhold(t, reader, address, written)
	read, err := reader.Read(t.Context(), broker, address, len(written))
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range written {
		_, misread := reader.CannotRead[w.Name]
		if err := read[i].Check(w.Encoded, misread); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		} else if !misread || len(read[i].Raw) > 0 {
			count++
		}
		bytes = bytes || len(read[i].Raw) > 0
	}
	return count, bytes
}

// withhold takes the messages from a queue at which the reader would give up its connection.
func withhold(t *testing.T, reader foreign.Client, address string, written []foreign.Written) []foreign.Written {
	t.Helper()
	if len(reader.Chokes) == 0 {
		return written
	}
	c, err := wire.Connect(broker.AMQP, "exchange")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := wire.NewReceiver(c, 0, "in", address, uint32(len(written)))
	if err != nil {
		t.Fatal(err)
	}
	var left []foreign.Written
	for _, w := range written {
		d, err := r.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.Intact(w.Encoded, d.Message); err != nil {
			t.Fatalf("%s: %v", w.Name, err)
		}
		if _, chokes := reader.Chokes[w.Name]; !chokes {
			left = append(left, w)
		} else if err := c.Send(wire.Settle(d.ID, d.ID, wire.CodeAccepted)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Hangup(); err != nil {
		t.Fatal(err)
	}
	return left
}
