package hostile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// goodEnv makes this program a good client: it names the broker's address.
const goodEnv = "LETO_HOSTILE_GOOD"

// goodPause is between two rounds of a good client: some 800 rounds a second.
const goodPause = time.Millisecond

// good is a client that sends and receives one message at a time and keeps the times. It
// is a process of its own, so that what the attackers take of ours isn't in them.
type good struct {
	t    testing.TB
	wait func() error
	in   io.WriteCloser
	out  *bufio.Reader
	once sync.Once
}

// times are those of one period.
type times struct {
	P50, P99, Max time.Duration
	Rounds        int
	Error         string
}

func newGood(t testing.TB, b *harness.Broker) *good {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), goodEnv+"="+b.AMQP)
	cmd.Stderr = os.Stderr
	g := &good{t: t}
	if g.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.out = bufio.NewReader(out)
	if g.wait, err = spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.leave)
	g.mark() // it is connected
	return g
}

// mark ends a period, begins the next one, and returns the times of the one that ended.
func (g *good) mark() (m times) {
	g.t.Helper()
	if _, err := io.WriteString(g.in, "\n"); err != nil {
		g.t.Fatal("good client:", err)
	}
	line, err := g.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	if err != nil {
		g.t.Fatal("good client:", err)
	}
	if m.Error != "" {
		g.t.Fatal("good client:", m.Error)
	}
	return m
}

// leave has it close its connections in order.
func (g *good) leave() {
	g.once.Do(func() {
		_ = g.in.Close()
		if err := g.wait(); err != nil {
			g.t.Error("good client:", err)
		}
	})
}

// beGood is the good client's process: for each line it reads it writes the times since the line before.
func beGood(address string) error {
	debug.SetGCPercent(-1) // it lives for seconds
	debug.SetMemoryLimit(256 << 20)
	out, err := wire.Connect(address, "good-out")
	if err != nil {
		return err
	}
	in, err := wire.Connect(address, "good-in")
	if err != nil {
		return err
	}
	s, err := wire.NewSender(out, 0, "out", "good")
	if err != nil {
		return err
	}
	r, err := wire.NewReceiver(in, 0, "in", "good", 1<<20)
	if err != nil {
		return err
	}
	marks := make(chan struct{})
	go func() {
		defer close(marks)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			marks <- struct{}{}
		}
	}()
	answer := json.NewEncoder(os.Stdout)
	took := make([]time.Duration, 0, 1<<16)
	for i := uint32(0); ; i++ {
		if i >= 50 { // behind the warming up
			select {
			case _, more := <-marks:
				if !more {
					return closeBoth(out, in)
				}
				if err := answer.Encode(summary(took)); err != nil {
					return err
				}
				took = took[:0]
			default:
			}
		}
		begin := time.Now()
		if err := round(s, r, i); err != nil {
			<-marks
			return answer.Encode(times{Error: err.Error()})
		}
		took = append(took, time.Since(begin))
		time.Sleep(goodPause)
	}
}

func round(s *wire.Sender, r *wire.Receiver, i uint32) error {
	if err := s.Send(volatile(i, 100)); err != nil {
		return fmt.Errorf("round %d: send: %w", i, err)
	}
	d, err := r.Accept()
	if err != nil {
		return fmt.Errorf("round %d: receive: %w", i, err)
	}
	if got, err := number(d.Message); err != nil || got != i {
		return fmt.Errorf("round %d: message %d arrived, %v", i, got, err)
	}
	return nil
}

func closeBoth(out, in *wire.Conn) error {
	if err := out.Hangup(); err != nil {
		return err
	}
	return in.Hangup()
}

func summary(took []time.Duration) times {
	if len(took) == 0 {
		return times{}
	}
	slices.Sort(took)
	return times{P50: took[len(took)/2], P99: took[len(took)*99/100], Max: took[len(took)-1], Rounds: len(took)}
}
