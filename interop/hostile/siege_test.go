package hostile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/letomq/leto/interop/harness"
)

// besiegeEnv makes this program run one attack, named by -test.run, against the broker whose
// addresses it holds: AMQP and HTTP, and whether it keeps to a pace.
const besiegeEnv = "LETO_HOSTILE_BESIEGE"

// siege is an attack that goes on in a process of its own.
type siege struct {
	t     *testing.T
	cmd   *exec.Cmd
	wait  func() error
	in    io.WriteCloser
	built chan struct{} // closed when the attack has built up what it holds
	ended chan struct{} // closed when it has said its last
	said  bytes.Buffer  // what it said beside that; to be read behind ended
}

// What a besieger says.
const (
	saysBegun = "siege: begun"
	saysBuilt = "siege: built"
)

// besiege begins the attack of the running test.
func besiege(t *testing.T, b *harness.Broker, paced bool) *siege {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var name []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		name = append(name, "^"+regexp.QuoteMeta(part)+"$")
	}
	s := &siege{t: t, cmd: exec.Command(program, "-test.run", strings.Join(name, "/")), built: make(chan struct{}), ended: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %v", besiegeEnv, b.AMQP, b.HTTP, paced))
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.wait, err = spawn(s.cmd); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	go s.listen(out, begun)
	select {
	case <-begun:
	case <-s.ended:
		t.Fatalf("siege: ended before it began\n%s", &s.said)
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		t.Fatal("siege: not begun after 10 s")
	}
	return s
}

func (s *siege) listen(out io.Reader, begun chan struct{}) {
	defer close(s.ended)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch lines.Text() {
		case saysBegun:
			close(begun)
		case saysBuilt:
			close(s.built)
		default:
			s.said.Write(append(lines.Bytes(), '\n'))
		}
	}
}

// lift ends the attack; its connections are cut.
func (s *siege) lift() {
	s.t.Helper()
	_ = s.in.Close()
	late := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() })
	<-s.ended
	err := s.wait()
	if !late.Stop() {
		s.t.Error("siege: not over 10 s after its end")
	} else if err != nil {
		s.t.Errorf("siege: %v\n%s", err, &s.said)
	}
}

// spawn starts a process that ends with this one. wait waits for it, once what it says has been read.
func spawn(cmd *exec.Cmd) (wait func() error, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, reap, result := make(chan error), make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the kernel ties Pdeathsig to the thread: it lives until the process has ended
		err := cmd.Start()
		started <- err
		if err == nil {
			<-reap
			result <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return func() error { close(reap); return <-result }, nil
}

// besieging reports whether this is a besieger's process, in which case the attack has been run.
func besieging(t *testing.T, k attack) bool {
	var amqp, http string
	var paced bool
	if n, _ := fmt.Sscan(os.Getenv(besiegeEnv), &amqp, &http, &paced); n != 3 {
		return false
	}
	a := newAttacker(t, &harness.Broker{AMQP: amqp, HTTP: http}, paced)
	a.grown = sync.OnceFunc(func() { fmt.Println(saysBuilt) })
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(a.stop)
	}()
	fmt.Println(saysBegun)
	k.run(a)
	a.hold()
	a.cut()
	return true
}

// yieldPriority has this process run where nobody else wants to. Attackers have machines of their own: what theirs takes
// of ours must not be held against the broker. What the broker and the kernel do for them stays. Strictly that is the
// policy SCHED_IDLE; on a machine where others work, too, it has to get on, and is a little behind them. It is set for
// each of the threads, from which further ones inherit it.
func yieldPriority() {
	const schedIdle = 5
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		if priority := int32(0); strict {
			_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(id), schedIdle, uintptr(unsafe.Pointer(&priority)))
		} else {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, 5)
		}
	}
}
