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

	folder string // holds the data folder, removed by Stop
	cmd    *exec.Cmd
	log    *logbook
	ended  chan struct{} // closed when the process has ended
	result error         // of the process, valid after ended
}

// Launch starts `leto serve` on free loopback ports with an empty data folder, and
// returns once it answers /readyz. Further arguments are appended. The caller stops it.
func Launch(args ...string) (*Broker, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "leto-interop-")
	if err != nil {
		return nil, err
	}
	b := &Broker{folder: folder, log: newLogbook(), ended: make(chan struct{})}
	b.cmd = exec.Command(binary, append([]string{
		"serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", filepath.Join(folder, "data"),
	}, args...)...)
	b.cmd.Dir = folder
	b.cmd.Stdout, b.cmd.Stderr = b.log, b.log
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	started := make(chan error)
	go func() {
		// The kernel ties Pdeathsig to the thread that started the child.
		runtime.LockOSThread()
		err := b.cmd.Start()
		started <- err
		if err == nil {
			b.result = b.cmd.Wait()
			close(b.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("broker: %w", err), os.RemoveAll(folder))
	}
	if err := b.ready(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, b.Log()), b.Stop())
	}
	return b, nil
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
	if b.folder == "" {
		return nil
	}
	defer func() { os.RemoveAll(b.folder); b.folder = "" }()
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

// Signal sends a signal to the broker's process, if it is still there.
func (b *Broker) Signal(s syscall.Signal) { _ = b.cmd.Process.Signal(s) }

// ready waits until the addresses have been printed and /readyz answers 200.
func (b *Broker) ready() error {
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
		if _, err = b.get("/readyz"); err == nil {
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
