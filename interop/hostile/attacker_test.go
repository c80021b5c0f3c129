package hostile

import (
	"bytes"
	"fmt"
	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pacedBytes and pacedConnections are what an attacker sends and opens in a second in the period
// whose times are judged strictly. 4 MB/s are 100,000 small frames. Without a pace what is measured
// is mostly that two processes which never rest share two processors with the broker.
const (
	pacedBytes       = 4 << 20
	pacedConnections = 2000
)

// attacker is what attacks are written with. Its connections are cut when the attack is over; what
// goes wrong with them is no error: being cut off is what attackers expect.
type attacker struct {
	t      *testing.T
	b      *harness.Broker
	stop   chan struct{}
	paced  bool
	budget pacer
	opened pacer

	grown func() // tells, once, that the attack has built up what it holds

	mu    sync.Mutex
	conns []net.Conn
}

func newAttacker(t *testing.T, b *harness.Broker, paced bool) *attacker {
	return &attacker{t: t, b: b, stop: make(chan struct{}), grown: func() {}, paced: paced}
}

// built says that the attack holds all that it means to hold.
func (a *attacker) built() { a.grown() }

// pacer holds a rate, whoever asks.
type pacer struct {
	mu  sync.Mutex
	due time.Time
}

// take waits until n of rate per second are to be had; false when stop comes first.
func (p *pacer) take(n, rate int, stop <-chan struct{}) bool {
	p.mu.Lock()
	now := time.Now()
	if p.due.Before(now.Add(-20 * time.Millisecond)) {
		p.due = now.Add(-20 * time.Millisecond)
	}
	p.due = p.due.Add(time.Duration(n) * time.Second / time.Duration(rate))
	wait := p.due.Sub(now)
	p.mu.Unlock()
	if wait <= 0 {
		return !over(stop)
	}
	select {
	case <-time.After(wait):
		return true
	case <-stop:
		return false
	}
}

func over(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// going reports whether the attack goes on.
func (a *attacker) going() bool { return !over(a.stop) }

// hold waits for the end of the attack.
func (a *attacker) hold() { <-a.stop }

// pause waits, and reports whether the attack goes on.
func (a *attacker) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-a.stop:
		return false
	}
}

// dial connects; nil when the broker takes no more, or the attack is over.
func (a *attacker) dial() net.Conn {
	if a.paced && !a.opened.take(1, pacedConnections, a.stop) {
		return nil
	}
	return a.dialTo(a.b.AMQP)
}

func (a *attacker) dialTo(address string) net.Conn {
	c, err := net.DialTimeout("tcp", address, 2*time.Second)
	if err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns = append(a.conns, c)
	return c
}

// drop closes a connection that the attack needs no more.
func (a *attacker) drop(c net.Conn) {
	_ = c.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, o := range a.conns {
		if o == c {
			a.conns[i] = a.conns[len(a.conns)-1]
			a.conns = a.conns[:len(a.conns)-1]
			return
		}
	}
}

// open connects and says open and what follows; nobody reads the answers yet.
func (a *attacker) open(parts ...[]byte) net.Conn {
	c := a.dial()
	if c == nil {
		return nil
	}
	said := append([][]byte{wire.HeaderAMQP, wire.Open(fmt.Sprint("attacker-", serial.Add(1)), 1<<16)}, parts...)
	if !a.say(c, said...) {
		return nil
	}
	return c
}

// reading is open with somebody who reads the answers and forgets them.
func (a *attacker) reading(parts ...[]byte) net.Conn {
	c := a.open(parts...)
	if c != nil {
		drop(c)
	}
	return c
}

// say writes, at the attack's pace; false when the peer has gone, or takes nothing until the attack is over.
func (a *attacker) say(c net.Conn, parts ...[]byte) bool {
	for b := bytes.Join(parts, nil); len(b) > 0; {
		piece := b
		if a.paced {
			piece = b[:min(len(b), 16<<10)]
			if !a.budget.take(len(piece), pacedBytes, a.stop) {
				return false
			}
		}
		_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		n, err := c.Write(piece)
		b = b[n:]
		if err != nil {
			if e, timed := err.(net.Error); !timed || !e.Timeout() || !a.going() {
				return false
			}
		}
	}
	return true
}

// each runs f n times at once.
func (a *attacker) each(n int, f func(k int)) {
	var wg sync.WaitGroup
	for k := range n {
		wg.Go(func() { f(k) })
	}
	wg.Wait()
}

func (a *attacker) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conns {
		_ = c.Close()
	}
	a.conns = nil
}

// files is how many descriptors an attack may use: as many as wanted, or what the system lets us and the broker have.
func files(wanted int) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return min(wanted, 500)
	}
	return min(wanted, int(limit.Max)-500)
}
