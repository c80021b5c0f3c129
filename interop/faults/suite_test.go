// Package faults breaks what the leto binary stores on: bits that flip, files that are missing, a device without
// space. What was accepted is delivered, or its loss is said; nothing wrong is delivered; service resumes when the
// cause is gone.
package faults

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("faults: skipped with -short, it starts brokers")
		return
	}
	code := m.Run()
	harness.Tidy()
	os.Exit(code)
}

const address = "faults.q"

// node is a data folder and the broker that runs on it.
type node struct {
	t    *testing.T
	data string
	args []string
	*harness.Broker
}

func newNode(t *testing.T, data string, args ...string) *node {
	t.Helper()
	n := &node{t: t, data: data, args: args}
	n.start()
	t.Cleanup(func() {
		if n.Broker != nil {
			_ = n.Broker.Stop()
		}
	})
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
}

func (n *node) stop() {
	n.t.Helper()
	if err := n.Stop(); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) kill() {
	n.t.Helper()
	if err := n.Kill(); err != nil {
		n.t.Fatal(err)
	}
}

// refuses starts the broker, which must end by itself with exit code 1, and returns what it says.
func (n *node) refuses() string {
	n.t.Helper()
	b, err := harness.Begin(n.data, n.args...)
	if err != nil {
		n.t.Fatal(err)
	}
	select {
	case <-b.Ended():
	case <-time.After(20 * time.Second):
		n.t.Errorf("still running 20 s after its start\n%s", b.Log())
	}
	if err := b.Stop(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		n.t.Errorf("the broker ended with %v, want exit code 1", err)
	}
	return b.Log()
}

func (n *node) connect() *wire.Conn {
	n.t.Helper()
	c, err := wire.Connect(n.AMQP, fmt.Sprint("faults-", time.Now().UnixNano()))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	return c
}

// body is that of message i, of some size, and found in no other.
func body(i, size int) []byte {
	text := fmt.Sprintf("<message %08d>", i)
	return []byte(strings.Repeat(text, 1+size/len(text)))
}

func message(i, size int) []byte { return wire.Described(wire.SectionData, wire.Binary(body(i, size))) }

func (n *node) send(from, to, size int) {
	n.t.Helper()
	c := n.connect()
	defer c.Close()
	s, err := wire.NewSender(c, 0, "out", address)
	for i := from; i < to && err == nil; i++ {
		err = s.Send(message(i, size))
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// look receives as many as there are without settling any, and wants them to be messages from..to, but for those that
// are missing.
func (n *node) look(from, to, size int, missing ...int) {
	n.t.Helper()
	c := n.connect()
	r, err := wire.NewReceiver(c, 0, "in", address, uint32(to-from))
	if err != nil {
		n.t.Fatal(err)
	}
	absent := map[int]bool{}
	for _, i := range missing {
		absent[i] = true
	}
	for i := from; i < to; i++ {
		if absent[i] {
			continue
		}
		d, err := r.Receive()
		if err != nil {
			n.t.Fatalf("message %d: %v\n%s", i, err, n.Log())
		}
		if err := wire.Intact(message(i, size), d.Message); err != nil {
			n.t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := c.Hangup(); err != nil {
		n.t.Fatal(err)
	}
}

// check runs `leto store check` and returns what it prints and its exit code.
func (n *node) check() (string, int) { return n.leto("store", "check", "--data", n.data) }

// leto runs a command and returns what it says, and its exit code.
func (n *node) leto(arguments ...string) (string, int) {
	n.t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		n.t.Fatal(err)
	}
	out, err := exec.Command(binary, arguments...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return string(out), exit.ExitCode()
	case err != nil:
		n.t.Fatal(err)
	}
	return string(out), 0
}

// remove takes files away; there must be some.
func (n *node) remove(pattern string) {
	n.t.Helper()
	names, err := filepath.Glob(filepath.Join(n.data, pattern))
	if err != nil || len(names) == 0 {
		n.t.Fatalf("%s: no such files: %v", pattern, err)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			n.t.Fatal(err)
		}
	}
}

// take receives and accepts n messages.
func (n *node) take(count int) {
	n.t.Helper()
	c := n.connect()
	r, err := wire.NewReceiver(c, 0, "in", address, uint32(count))
	for i := 0; i < count && err == nil; i++ {
		_, err = r.Accept()
	}
	if err == nil {
		err = c.Hangup()
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// checkpointed waits until all that is there is behind a checkpoint.
func (n *node) checkpointed() {
	n.t.Helper()
	made := func() (pending, checkpoints float64) {
		pending, err := n.Metric("leto_store_pending_bytes")
		if err == nil {
			checkpoints, err = n.Metric("leto_store_checkpoints_total")
		}
		if err != nil {
			n.t.Fatal(err)
		}
		return pending, checkpoints
	}
	deadline := time.Now().Add(20 * time.Second)
	for before := -1.0; time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		switch pending, checkpoints := made(); {
		case pending > 0:
			before = -1
		case before < 0:
			before = checkpoints
			if checkpoints > 1 { // that of the start is one
				return
			}
		case checkpoints > before:
			return
		}
	}
	n.t.Fatal("no checkpoint within 20 s")
}
