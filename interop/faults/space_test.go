//go:build linux

package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// spaceEnv is set for the process that has its mounts for itself: the folder where the file system goes.
const spaceEnv = "LETO_FAULTS_SPACE"

// TestSpaceRunsOut, cases 158 and 160, fills a file system: with messages, and then to the last byte with something else. Publishes are
// refused, settlements go on, a start is refused before it could harm, and the broker takes messages again by itself when there is space.
func TestSpaceRunsOut(t *testing.T) {
	folder := os.Getenv(spaceEnv)
	if folder == "" {
		mountedApart(t)
		return
	}
	if err := syscall.Mount("none", folder, "tmpfs", 0, "size=512m"); err != nil {
		t.Skipf("no file system can be mounted: %v", err)
	}
	const large = 60_000
	n := newNode(t, filepath.Join(folder, "data"), "--set", "limits.disk-free=192MiB")
	sent := n.sendUntilRefused(large)
	t.Logf("%d messages are accepted", sent)
	if sent < 1000 {
		t.Errorf("%d messages of %d bytes are accepted, there is room for more", sent, large)
	}
	n.take(sent / 2)
	ballast := filepath.Join(folder, "ballast")
	fill(t, ballast)
	n.refused()
	n.take(sent - sent/2)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	n.resumes(large)
	if log := n.Log(); !strings.Contains(log, "messages are taken") {
		t.Errorf("the log doesn't say that messages are taken again:\n%s", log)
	}
	fill(t, ballast)
	n.kill()
	fill(t, ballast) // what its end has set free
	if log := n.refuses(); !strings.Contains(log, "make space and start again") {
		t.Errorf("the broker doesn't say why it can't start:\n%s", log)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	n.start()
	n.look(0, 1, large)
	n.resumes(large)
	n.stop()
	if out, code := n.check(); code != 0 {
		t.Errorf("check exits with %d and says:\n%s", code, out)
	}
}

// mountedApart runs the test in a process that may mount and whose mounts end with it: of root, or in a user namespace.
func mountedApart(t *testing.T) {
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), spaceEnv+"="+t.TempDir(), "LETO_BINARY="+binary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.Process == nil:
		t.Skipf("no namespace can be made: %v", err)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	}
	t.Logf("%s", out)
}

// refused wants a message to be refused for want of space.
func (n *node) refused() {
	n.t.Helper()
	c := n.connect()
	defer c.Close()
	s, err := wire.NewSender(c, 0, "out", address)
	if err != nil {
		n.t.Fatal(err)
	}
	f, err := s.Deliver(message(0, 100))
	if err != nil {
		n.t.Fatal(err)
	}
	if code, _ := f.Outcome(); code == wire.CodeAccepted || !strings.Contains(string(f.Field(4)), "amqp:resource-limit-exceeded") {
		n.t.Errorf("outcome %#x, %q, want it refused", code, f.Field(4))
	}
}

// resumes waits until message 0 is accepted.
func (n *node) resumes(size int) {
	n.t.Helper()
	c := n.connect()
	defer c.Close()
	s, err := wire.NewSender(c, 0, "out", address)
	if err != nil {
		n.t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if s.Send(message(0, size)) == nil {
			return
		}
	}
	n.t.Fatalf("no message is taken 20 s after there is space\n%s", n.Log())
}

// sendUntilRefused returns how many messages are accepted.
func (n *node) sendUntilRefused(size int) int {
	n.t.Helper()
	c := n.connect()
	defer c.Close()
	s, err := wire.NewSender(c, 0, "out", address)
	if err != nil {
		n.t.Fatal(err)
	}
	for i := 0; ; i++ {
		if err := s.Send(message(i, size)); err != nil {
			return i
		}
	}
}

// fill writes a file until there is no byte left.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for b := make([]byte, 1<<20); len(b) > 0; {
		if _, err := f.Write(b); err != nil {
			b = b[:len(b)/2]
		}
	}
}
