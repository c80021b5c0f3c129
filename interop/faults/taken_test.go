//go:build linux

package faults

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// takenEnv says how many rounds TestSpaceIsTaken has of each kind.
const takenEnv = "LETO_FAULTS_ROUNDS"

// TestSpaceIsTaken has somebody else take all of the device while the broker stores at full speed: by writing,
// as fast as the machine can and slower, and at one blow. Badger writes through memory maps, for which a full device is the end
// of the process: the index must have come to rest by then. That can't be done for what is gone at one blow; the rounds of that kind are
// counted. In all of them the broker has everything it had accepted.
func TestSpaceIsTaken(t *testing.T) {
	folder := os.Getenv(spaceEnv)
	if folder == "" {
		mountedApart(t)
		return
	}
	rounds := 1
	if text := os.Getenv(takenEnv); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", takenEnv, err)
		}
	}
	if err := syscall.Mount("none", folder, "tmpfs", 0, "size=768m"); err != nil {
		t.Skipf("no file system can be mounted: %v", err)
	}
	ballast := filepath.Join(folder, "ballast")
	for _, way := range []struct {
		name string
		take func(t *testing.T, name string)
		dies bool
	}{
		{"as fast as can be", fill, false},
		{"400 MB/s", fillSlowly, false},
		{"at one blow", allocate, true},
	} {
		died := 0
		for range rounds {
			n := newNode(t, filepath.Join(folder, "data"), "--set", "limits.disk-free=192MiB")
			stop, numbered := n.load(), n.sendOn()
			time.Sleep(300*time.Millisecond + rand.N(1200*time.Millisecond))
			way.take(t, ballast)
			time.Sleep(500 * time.Millisecond)
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			select {
			case <-n.Ended():
				died++
				if log := n.Log(); !way.dies || !strings.Contains(log, "SIGBUS") {
					t.Errorf("%s: the broker has ended\n%s", way.name, log[max(0, len(log)-3000):])
				}
				n.start()
			default:
			}
			stop()
			accepted := numbered()
			if accepted == 0 {
				t.Errorf("%s: none of the numbered messages was accepted", way.name)
			}
			n.look(0, accepted, takenSize)
			n.resumes(takenSize)
			n.stop()
			if out, code := n.check(); code != 0 {
				t.Errorf("%s: check exits with %d and says:\n%s", way.name, code, out)
			}
			if err := os.RemoveAll(n.data); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: the process ended in %d of %d rounds", way.name, died, rounds)
	}
}

// takenSize is that of the messages that are looked for afterwards.
const takenSize = 1000

// sendOn sends numbered messages one by one, until one isn't accepted or the returned function is called, which returns how
// many have been.
func (n *node) sendOn() (accepted func() int) {
	n.t.Helper()
	c := n.connect()
	s, err := wire.NewSender(c, 0, "out", address)
	if err != nil {
		n.t.Fatal(err)
	}
	count, enough := make(chan int, 1), make(chan struct{})
	go func() {
		defer c.Close()
		for i := 0; ; i++ {
			select {
			case <-enough:
				count <- i
				return
			default:
			}
			if s.Send(message(i, takenSize)) != nil {
				count <- i
				return
			}
		}
	}()
	return func() int {
		n.t.Helper()
		close(enough)
		select {
		case all := <-count:
			return all
		case <-time.After(20 * time.Second):
			n.t.Fatal("a message is neither taken nor refused within 20 s")
			return 0
		}
	}
}

// load keeps the broker storing and settling until the returned function is called.
func (n *node) load() (stop func()) {
	n.t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		n.t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(binary, "bench", "--url", "amqp://"+n.AMQP, "--durable", "--size", "100", "--queues", "8", "--producers", "8",
		"--consumers", "4", "--inflight", "200", "--duration", "1h")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// fillSlowly fills the device at 400 MB/s.
func fillSlowly(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for b := make([]byte, 4<<20); ; <-tick.C {
		if _, err := f.Write(b); err != nil {
			break
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	fill(t, name)
}

// allocate takes what is free at one blow, and what is left then.
func allocate(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(name), &s); err != nil {
		t.Fatal(err)
	}
	for size := int64(s.Bavail) * s.Bsize; size >= 4096; {
		stat, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Fallocate(int(f.Fd()), 0, stat.Size(), size) != nil {
			size /= 2
		}
	}
}
