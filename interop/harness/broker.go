package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 15 * time.Second
	stopTimeout  = 15 * time.Second
)

// Broker is one running leto process. Its methods may be called from many tests at once.
type Broker struct {
	AMQP string // host:port of the AMQP listener
	HTTP string // host:port of health and metrics

	folder  string // holds the data folder and is removed by Stop; "" when the folder is the caller's
	data    string
	args    []string
	stopped bool
	log     *logbook
	*process
}

// process is one life of a broker.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	result error         // of the process, valid after ended
}

// Launch starts `leto serve` on free loopback ports with an empty data folder, and
// returns once it answers /readyz. Further arguments are appended. The caller stops it.
func Launch(args ...string) (*Broker, error) {
	folder, err := os.MkdirTemp("", "leto-interop-")
	if err != nil {
		return nil, err
	}
	b, err := Begin(filepath.Join(folder, "data"), args...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	b.folder = folder
	if err := b.Ready(); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

// Begin starts `leto serve` on free loopback ports with a data folder that stays when
// the broker is gone, and returns while it is still starting: Ready waits. Further
// arguments are appended. The caller stops or kills it.
func Begin(data string, args ...string) (*Broker, error) {
	b := &Broker{data: data, args: args, log: newLogbook()}
	if err := b.begin("127.0.0.1:0", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	return b, nil
}

// Again kills the broker with SIGKILL and starts it anew on the same data folder and the
// same ports; it returns when /readyz answers. Nobody may use the broker meanwhile.
func (b *Broker) Again() error {
	if err := b.Kill(); err != nil {
		return err
	}
	b.stopped = false
	if err := b.begin(b.AMQP, b.HTTP); err != nil {
		return err
	}
	return b.Ready()
}

func (b *Broker) begin(amqp, http string) error {
	binary, err := Binary()
	if err != nil {
		return err
	}
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.Command(binary, append([]string{"serve", "--listen", amqp, "--http", http, "--data", b.data}, b.args...)...)
	p.cmd.Dir = filepath.Dir(b.data)
	p.cmd.Stdout, p.cmd.Stderr = b.log, b.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	started := make(chan error)
	go func() {
		// The kernel ties Pdeathsig to the thread that started the child.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.result = p.cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	b.process = p
	return nil
}

// Start is Launch for one test: the broker is stopped, and has to end cleanly, when
// the test is over.
func Start(t testing.TB, args ...string) *Broker {
	t.Helper()
	b, err := Launch(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// URL is what clients dial.
func (b *Broker) URL() string { return "amqp://" + b.AMQP }

// PID is the process id of the broker.
func (b *Broker) PID() int { return b.cmd.Process.Pid }

// Log is everything the broker has printed so far.
func (b *Broker) Log() string { return b.log.String() }

// Ended is closed when the process has ended.
func (b *Broker) Ended() <-chan struct{} { return b.ended }

// Stop sends SIGTERM, waits for the process and removes its folder. It is an error
// when the broker needs to be killed, exits with anything but 0, or has printed a
// panic or a data race. A second Stop does nothing.
func (b *Broker) Stop() error {
	if b.stopped {
		return nil
	}
	defer func() { os.RemoveAll(b.folder); b.stopped = true }()
	b.Signal(syscall.SIGTERM)
	var killed error
	select {
	case <-b.ended:
	case <-time.After(stopTimeout):
		killed = fmt.Errorf("broker: still running %v after SIGTERM", stopTimeout)
		b.Signal(syscall.SIGKILL)
		<-b.ended
	}
	if err := errors.Join(killed, b.result, b.log.fault()); err != nil {
		return fmt.Errorf("broker: %w\n%s", err, b.Log())
	}
	return nil
}

// Kill ends the broker with SIGKILL and waits for the process. What it has written
// stays. It is an error when it had ended by itself, or has printed a panic or a data race.
func (b *Broker) Kill() error {
	b.Signal(syscall.SIGKILL)
	<-b.ended
	b.stopped = true
	var exit *exec.ExitError
	var early error
	if !errors.As(b.result, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		early = fmt.Errorf("ended before it was killed: %v", b.result)
	}
	if err := errors.Join(early, b.log.fault()); err != nil {
		return fmt.Errorf("broker: %w\n%s", err, b.Log())
	}
	return nil
}

// Signal sends a signal to the broker's process, if it is still there.
func (b *Broker) Signal(s syscall.Signal) { _ = b.cmd.Process.Signal(s) }

// Ready waits until the broker has printed its addresses, which are then known, and
// answers /readyz with 200.
func (b *Broker) Ready() error {
	if err := b.awaitReady(); err != nil {
		return fmt.Errorf("%w\n%s", err, b.Log())
	}
	return nil
}

func (b *Broker) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var err error
	if b.AMQP, err = b.log.address(ctx, "amqp", b.ended); err != nil {
		return err
	}
	if b.HTTP, err = b.log.address(ctx, "http", b.ended); err != nil {
		return err
	}
	for {
		if _, err = b.Get("/readyz"); err == nil {
			return nil
		}
		select {
		case <-b.ended:
			return errors.New("broker: ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("broker: not ready: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// web leaves no idle connection behind: one would count among the broker's descriptors.
var web = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
