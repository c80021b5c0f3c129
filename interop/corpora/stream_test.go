package corpora

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/interop/wire"
)

const (
	abreast = 16                     // connections at a time
	batch   = 64                     // connections between two good messages
	linger  = 300 * time.Millisecond // how long a connection is read
	slack   = 32 << 20               // bytes of anonymous memory that may stay behind
)

// TestStreams plays every recorded peer.
func TestStreams(t *testing.T) {
	all := inputs(t, "fuzz-connection-driver")
	if len(all) < 500 {
		t.Fatalf("%d inputs in the archive", len(all))
	}
	witness := newWitness(t)
	witness.exchange(t, "before")
	base, err := broker.Gauges()
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for at := 0; at < len(all); at += batch {
		held += play(t, all[at:min(at+batch, len(all))])
		witness.exchange(t, fmt.Sprint("after ", at))
	}
	t.Logf("%d peers, %d of which the broker still listened to %v after their end", len(all), held, linger)
	broker.Settled(t, base, slack, 20*time.Second)
	witness.leave(t)
}

// play plays some peers at the same time, and returns how many of them the broker
// hadn't let go when their time was up.
func play(t *testing.T, peers []input) int {
	t.Helper()
	var mu sync.Mutex
	held := 0
	var all sync.WaitGroup
	slots := make(chan struct{}, abreast)
	for _, peer := range peers {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			ended, err := write(peer.data)
			if err != nil {
				t.Errorf("%s: %v", peer.name, err)
			}
			if !ended {
				mu.Lock()
				defer mu.Unlock()
				held++
			}
		})
	}
	all.Wait()
	return held
}

// write writes all of a peer's bytes, half-closes, and reads until the broker ends
// the connection or the time is up. The broker may reset it whenever it wants.
func write(data []byte) (ended bool, err error) {
	conn, err := net.DialTimeout("tcp", broker.AMQP, 10*time.Second)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(linger)); err != nil {
		return false, err
	}
	if _, err := conn.Write(data); err == nil {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	_, err = io.Copy(io.Discard, conn)
	return !errors.Is(err, os.ErrDeadlineExceeded), nil
}

// witness is a well-behaved client that has to be served whatever others do.
type witness struct {
	out, in  *wire.Conn
	sender   *wire.Sender
	receiver *wire.Receiver
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{}
	var err error
	if w.out, err = wire.Connect(broker.AMQP, "witness-out"); err != nil {
		t.Fatal(err)
	}
	if w.in, err = wire.Connect(broker.AMQP, "witness-in"); err != nil {
		t.Fatal(err)
	}
	if w.sender, err = wire.NewSender(w.out, 0, "out", "witness"); err != nil {
		t.Fatal(err)
	}
	if w.receiver, err = wire.NewReceiver(w.in, 0, "in", "witness", 1000); err != nil {
		t.Fatal(err)
	}
	return w
}

// exchange sends one message through the broker.
func (w *witness) exchange(t *testing.T, label string) {
	t.Helper()
	message := wire.Described(wire.SectionValue, wire.String("witness "+label))
	if err := w.sender.Send(message); err != nil {
		t.Fatalf("witness %s: %v", label, err)
	}
	got, err := w.receiver.Accept()
	if err != nil {
		t.Fatalf("witness %s: %v", label, err)
	}
	if err := wire.Intact(message, got.Message); err != nil {
		t.Fatalf("witness %s: %v", label, err)
	}
}

func (w *witness) leave(t *testing.T) {
	t.Helper()
	if err := errors.Join(w.out.Hangup(), w.in.Hangup()); err != nil {
		t.Errorf("witness: %v", err)
	}
}
