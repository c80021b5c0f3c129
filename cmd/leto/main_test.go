package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the command under test, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "leto-cmd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "leto")
	build := exec.Command("go", "build", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// patience is far above what anything here takes; a test that reaches it has failed.
const patience = 20 * time.Second

// result is what a finished command left.
type result struct {
	code        int
	out, errOut string
}

// leto runs a command to its end.
func leto(t *testing.T, args ...string) result { return letoWith(t, "", args...) }

func letoWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	cmd.Dir = t.TempDir()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("leto %s: %v, %v\n%s", strings.Join(args, " "), err, ctx.Err(), errOut.String())
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// want fails unless the command ended with code and said text on standard error.
func (r result) want(t *testing.T, code int, text string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.errOut, text) {
		t.Errorf("exit code %d and %q, want %d and %q", r.code, r.errOut, code, text)
	}
}

// process is a `leto serve` under test.
type process struct {
	cmd        *exec.Cmd
	amqp, http string // HOST:PORT
	waited     sync.Once
	err        error

	killed bool

	mu      sync.Mutex
	log     strings.Builder
	listens chan [2]string // scheme and HOST:PORT
	end     chan struct{}  // standard error is at its end
}

var address = regexp.MustCompile(`(amqp|http)://([^\s"]+)`)

// broker starts `leto serve` on free ports and stops it with the test.
func broker(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, args...)...)
	p := start(t, cmd)
	for deadline := time.After(patience); p.amqp == "" || p.http == ""; {
		select {
		case at := <-p.listens:
			if at[0] == "amqp" {
				p.amqp = at[1]
			} else {
				p.http = at[1]
			}
		case <-p.end:
			t.Fatalf("leto serve ended:\n%s", p.text())
		case <-deadline:
			t.Fatalf("leto serve named no addresses:\n%s", p.text())
		}
	}
	p.ready(t)
	return p
}

// ready waits until the broker says that it takes clients, which it does once it listens.
func (p *process) ready(t *testing.T) {
	t.Helper()
	client := http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		answer, err := client.Get("http://" + p.http + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("leto serve isn't ready, %v:\n%s", err, p.text())
		}
	}
}

// start starts a broker, and stops it with the test.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.Dir = t.TempDir()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, listens: make(chan [2]string, 2), end: make(chan struct{})}
	t.Cleanup(func() { p.stop(t) })
	go func() {
		defer close(p.end)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if m := address.FindStringSubmatch(lines.Text()); m != nil && strings.Contains(lines.Text(), "listening") {
				p.listens <- [2]string{m[1], m[2]}
			}
		}
	}()
	return p
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *process) url() string { return "--url=amqp://" + p.amqp }

// wait returns how the process ended.
func (p *process) wait() error {
	p.waited.Do(func() {
		killer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
		defer killer.Stop()
		<-p.end // Wait closes the pipe: everything must be read before
		p.err = p.cmd.Wait()
	})
	return p.err
}

// stop ends the process with SIGTERM; anything but exit code 0 fails the test.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.wait(); err != nil && !p.killed {
		t.Errorf("after SIGTERM: %v\n%s", err, p.text())
	}
}

// kill ends the process with SIGKILL.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.killed = true
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.wait() // killed
}
