package peers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/letomq/leto/interop/wire"
)

const (
	startLimit = 60 * time.Second
	stopLimit  = 15 * time.Second
)

// broker is a peer that runs.
type broker struct {
	*peer
	port    int
	started time.Duration // from the start of its process to the first session it opens
	dir     string
	log     *os.File
	cmd     *exec.Cmd
	ended   chan struct{}
}

// start runs a peer on an empty folder and waits until it answers. Where there
// are two cores or more it has the first to itself.
func start(p *peer, home string) (*broker, error) {
	dir, err := os.MkdirTemp("", "leto-peer-")
	if err != nil {
		return nil, err
	}
	b := &broker{peer: p, dir: dir, ended: make(chan struct{})}
	if err := b.begin(home); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.label(), err), b.stop())
	}
	return b, nil
}

func (b *broker) begin(home string) error {
	var err error
	if b.port, err = freePorts(3); err != nil {
		return err
	}
	if err := b.lay(home, b.dir, b.port); err != nil {
		return err
	}
	if b.log, err = os.Create(filepath.Join(b.dir, "output")); err != nil {
		return err
	}
	b.cmd = pinned(b.command(home, b.dir, b.port), 0)
	b.cmd.Dir, b.cmd.Stdout, b.cmd.Stderr = b.dir, b.log, b.log
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	launched := make(chan error)
	go func() {
		// The kernel ties Pdeathsig to the thread that started the child.
		runtime.LockOSThread()
		err := b.cmd.Start()
		launched <- err
		if err == nil {
			_ = b.cmd.Wait()
			close(b.ended)
		}
	}()
	if err := <-launched; err != nil {
		b.cmd = nil
		return err
	}
	for time.Since(began) < startLimit {
		if answers(b.port) {
			b.started = time.Since(began)
			return nil
		}
		select {
		case <-b.ended:
			return fmt.Errorf("ended at once: %s", b.lastWords())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return fmt.Errorf("no answer within %v: %s", startLimit, b.lastWords())
}

// lastWords is the end of what the broker printed, as one line.
func (b *broker) lastWords() string {
	text, _ := os.ReadFile(b.log.Name())
	return strings.Join(strings.Fields(string(text[max(0, len(text)-500):])), " ")
}

// stop ends the broker and removes what it wrote.
func (b *broker) stop() error {
	if b.cmd != nil {
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-b.ended:
		case <-time.After(stopLimit):
		}
		// What it started itself goes with its group, of which it was the first.
		_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
		<-b.ended
	}
	if b.log != nil {
		b.log.Close()
	}
	return os.RemoveAll(b.dir)
}

// answers reports whether a broker opens a session: one may listen long before it serves.
func answers(port int) bool {
	c, err := wire.Dial(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	defer c.Close()
	for _, stage := range []struct {
		send []byte
		want func() error
	}{
		{wire.HeaderSASL, func() error { return c.Header(wire.HeaderSASL) }},
		{nil, func() error { _, err := c.Next(); return err }}, // mechanisms
		{wire.Init(), func() error { _, err := c.Next(); return err }},
		{wire.HeaderAMQP, func() error { return c.Header(wire.HeaderAMQP) }},
		{wire.Open("bench-peers", 1<<16), func() error { _, err := c.Await(wire.CodeOpen); return err }},
		{wire.Begin(), func() error { _, err := c.Await(wire.CodeBegin); return err }},
	} {
		if c.Send(stage.send) != nil || stage.want() != nil {
			return false
		}
	}
	return true
}

// freePorts returns the first of n neighbouring ports that nobody listens on.
func freePorts(n int) (int, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		first := l.Addr().(*net.TCPAddr).Port
		l.Close()
		free := true
		for port := first + 1; port < first+n; port++ {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return first, nil
		}
	}
	return 0, errors.New("ports: no neighbouring ones are free")
}

// pinned has a command run on one core, where there is more than one.
func pinned(cmd *exec.Cmd, core int) *exec.Cmd {
	if taskset, err := exec.LookPath("taskset"); err == nil && runtime.NumCPU() > 1 {
		cmd.Args = append([]string{"taskset", "-c", strconv.Itoa(core), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = taskset
	}
	return cmd
}
