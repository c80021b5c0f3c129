//go:build linux

package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/letomq/leto/interop/wire"
)

// TestDeviceFails has writes to the device fail with EIO, or with EROFS when the file system above has met that first: the
// device is a file on a file system that is filled up. What
// is durable is refused from then on, and no settlement confirmed; what isn't goes on; the broker says why it isn't
// ready, ends when it is told to, and has all that was accepted when the device is well again.
func TestDeviceFails(t *testing.T) {
	folder := os.Getenv(spaceEnv)
	if folder == "" {
		if os.Geteuid() != 0 {
			t.Skip("needs root: it mounts a file as a device")
		}
		mountedApart(t)
		return
	}
	below, top := filepath.Join(folder, "below"), filepath.Join(folder, "top")
	for _, dir := range []string{below, top} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mount("none", below, "tmpfs", 0, "size=512m"); err != nil {
		t.Skipf("no file system can be mounted: %v", err)
	}
	disk := filepath.Join(below, "disk")
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Skipf("no file can be mounted as a device: %s: %v: %s", name, err, out)
		}
	}
	run("truncate", "--size=2G", disk)
	run("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1", disk)
	run("mount", "-t", "ext4", "-o", "loop", disk, top)

	const large = 60_000
	n := newNode(t, filepath.Join(top, "data"), "--set", "limits.disk-free=192MiB")
	n.send(0, 30, large)
	n.take(10)
	holder := n.connect()
	r, err := wire.NewReceiver(holder, 0, "in", address, 1)
	if err != nil {
		t.Fatal(err)
	}
	held, err := r.Receive()
	if err != nil {
		t.Fatal(err)
	}

	ballast := filepath.Join(below, "ballast")
	fill(t, ballast)
	accepted := n.sendUntilFailed(30, large)
	t.Logf("%d messages are accepted", accepted)
	unconfirmed(t, holder, held.ID)
	n.passesTransient()
	if text, err := n.Get("/readyz"); err == nil || !strings.Contains(text, "store: failed: journal: failed: ") {
		t.Errorf("/readyz says %q, %v", text, err)
	}
	err = n.Stop() // in time
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || strings.Contains(err.Error(), "panic") ||
		strings.Contains(err.Error(), "still running") {
		t.Errorf("told to stop, the broker ends with %v, want exit code 1", err)
	}
	if log := n.Log(); strings.Count(log, "nothing durable is taken any more") != 1 || !strings.Contains(log, "\nleto: store: failed: ") {
		t.Errorf("the log doesn't say once that the store has failed, and at the end:\n%s", log)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Unmount(top, 0); err != nil {
		t.Fatal(err)
	}
	run("mount", "-t", "ext4", "-o", "loop", disk, top)
	n.start()
	n.look(10, accepted, large)
	n.send(accepted, accepted+1, large)
	n.stop()
	if out, code := n.check(); code != 0 {
		t.Errorf("check exits with %d and says:\n%s", code, out)
	}
}

// sendUntilFailed sends messages from a number on until one is rejected since the store has failed, and returns its number.
func (n *node) sendUntilFailed(from, size int) int {
	n.t.Helper()
	c := n.connect()
	defer c.Close()
	s, err := wire.NewSender(c, 0, "out", address)
	if err != nil {
		n.t.Fatal(err)
	}
	for i := from; ; i++ {
		f, err := s.Deliver(message(i, size), size/2)
		if err != nil {
			n.t.Fatal(err)
		}
		switch code, _ := f.Outcome(); {
		case code == wire.CodeAccepted:
		case code == wire.CodeRejected && strings.Contains(string(f.Field(4)), "amqp:internal-error") &&
			strings.Contains(string(f.Field(4)), "store has failed"):
			return i
		default:
			n.t.Fatalf("message %d: frame %#x, %q", i, f.Code, f.Field(4))
		}
	}
}

// unconfirmed asks to have a delivery settled, closes the connection, and wants no confirmation.
func unconfirmed(t *testing.T, c *wire.Conn, id uint32) {
	t.Helper()
	ask := wire.Described(wire.CodeDisposition, wire.List(wire.Bool(true), wire.Uint(id), wire.Uint(id), wire.Bool(false),
		wire.Described(wire.CodeAccepted, wire.List())))
	if err := c.Send(wire.NewFrame(0, 0, ask, nil), wire.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := c.Await(wire.CodeDisposition, wire.CodeClose)
	if err != nil || f.Code == wire.CodeDisposition {
		t.Errorf("after a settlement that can't be stored: frame %#x, %v, want the close", f.Code, err)
	}
}

// passesTransient has a message go through that need not be stored.
func (n *node) passesTransient() {
	n.t.Helper()
	c, d := n.connect(), n.connect()
	defer c.Close()
	defer d.Close()
	s, err := wire.NewSender(c, 0, "out", address)
	if err != nil {
		n.t.Fatal(err)
	}
	text := wire.Described(wire.SectionData, wire.Binary([]byte("transient")))
	header := wire.Described(wire.SectionHeader, wire.List(wire.Bool(false), wire.Ubyte(9))) // ahead of the others
	if err := s.Send(append(header, text...)); err != nil {
		n.t.Fatal(err)
	}
	r, err := wire.NewReceiver(d, 0, "in", address, 1)
	if err != nil {
		n.t.Fatal(err)
	}
	got, err := r.Accept()
	if err != nil || !strings.HasSuffix(string(got.Message), "transient") {
		n.t.Errorf("%d bytes arrive, %v, want the transient message", len(got.Message), err)
	}
	if err := d.Hangup(); err != nil {
		n.t.Error(err)
	}
}
