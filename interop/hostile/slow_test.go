package hostile

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/letomq/leto/interop/wire"
)

// TestSlowBytes: peers that say what they have to say a byte at a time, and stop short of each stage.
func TestSlowBytes(t *testing.T) {
	sasl := append(bytes.Clone(wire.HeaderSASL), wire.Init()...)
	for _, s := range []struct {
		name         string
		before, slow []byte
	}{
		{"header", nil, wire.HeaderAMQP},
		{"SASL", wire.HeaderSASL, wire.Init()},
		{"header behind SASL", sasl, wire.HeaderAMQP},
		{"open", wire.HeaderAMQP, frame(0, wire.CodeOpen, nil, wire.String(string(make([]byte, 900))))},
		{"begin", bytes.Join(opened(), nil), frame(0, wire.CodeBegin, nil, wire.Null(), wire.Uint(0), wire.Uint(1), wire.Uint(1), wire.Null(), wire.Null(), wire.Null(), wire.Map(wire.Symbol("a"), wire.Binary(make([]byte, 900))))},
		{"attach", bytes.Join(begun(), nil), receiver(0, 0, string(bytes.Repeat([]byte{'n'}, 900)), "slow", 0)},
		{"transfer", bytes.Join(append(begun(), sender(0, 0, "l", "slow")), nil), wire.Transfer(0, 0, false, volatile(1, 60_000))},
	} {
		against(t, "slow bytes", "a byte at a time in "+s.name, attack{strict: s.name == "begin" || s.name == "header behind SASL" || s.name == "open", run: func(a *attacker) {
			var all []net.Conn
			for range 200 {
				if c := a.dial(); c != nil && a.say(c, s.before) {
					drop(c)
					all = append(all, c)
				}
			}
			for i := 0; i < len(s.slow)-1 && a.pause(10*time.Millisecond); i++ {
				for _, c := range all {
					a.say(c, s.slow[i:i+1])
				}
			}
			a.hold()
		}})
	}
	against(t, "slow bytes", "a byte at a time in an HTTP request", attack{run: func(a *attacker) {
		var all []net.Conn
		for range 200 {
			if c := a.dialTo(a.b.HTTP); c != nil {
				all = append(all, c)
			}
		}
		for _, b := range []byte("GET /metrics HTTP/1.1\r\nX: " + string(bytes.Repeat([]byte{'x'}, 4000))) {
			for _, c := range all {
				_, _ = c.Write([]byte{b})
			}
			if !a.pause(10 * time.Millisecond) {
				return
			}
		}
		a.hold()
	}})
}

// TestHalfOpen, case 74: as many connections as there may be that say nothing, or never get to open. Others get in all the same.
func TestHalfOpen(t *testing.T) {
	for _, s := range []struct {
		name string
		said []byte
	}{
		{"that say nothing", nil},
		{"that stop in the header", wire.HeaderAMQP[:5]},
		{"that stop in SASL", wire.HeaderSASL},
		{"that stop before open", wire.HeaderAMQP},
	} {
		against(t, "half-open", "10,000 connections "+s.name, attack{strict: len(s.said) == 5 || len(s.said) == 8 && s.said[4] != 0, builds: true, run: func(a *attacker) {
			n := files(10_000)
			a.each(8, func(k int) {
				for i := k; i < n && a.going(); i += 8 {
					c := a.dial()
					if c == nil {
						return
					}
					a.say(c, s.said)
				}
			})
			a.built()
			if c, err := wire.Connect(a.b.AMQP, "late"); err != nil {
				a.t.Error("a client beside them doesn't get in:", err)
			} else {
				_ = c.Hangup()
			}
			a.hold()
		}})
	}
}

// narrow makes a socket take little that isn't read.
func narrow(c net.Conn) { _ = c.(*net.TCPConn).SetReadBuffer(2 << 10) }

// TestSlowReaders: peers that have a lot said to them and read none of it, or next to none.
func TestSlowReaders(t *testing.T) {
	backlog := func(a *attacker) { fill(a.t, a.b, "unread", 300, 30_000) }
	n := some(300, 200) // of which each may have 1 MiB of answers unread: more than there is for all
	flow := frame(0, wire.CodeFlow, nil, wire.Uint(0), wire.Uint(1<<31-1), wire.Uint(0), wire.Uint(1<<31-1), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Bool(true))
	attach := bytes.Join([][]byte{sender(0, 0, "l", "unread"), detach(0, 0)}, nil)
	for _, s := range []struct {
		name    string
		n       int
		prepare func(a *attacker)
		before  []byte
		flood   []byte
		sip     int // bytes read now and then
	}{
		{"messages that nobody reads", n, backlog, bytes.Join([][]byte{begin(0, 1<<31-1), receiver(0, 0, "in", "unread", 0), credit(0, 0, 1<<31-1, 1<<30, false)}, nil), nil, 0},
		{"browsed messages that nobody reads", n, backlog, bytes.Join([][]byte{begin(0, 1<<31-1), browser(0, 0, "in", "unread"), credit(0, 0, 1<<31-1, 1<<30, false)}, nil), nil, 0},
		{"browsed messages, a few bytes at a time", n, backlog, bytes.Join([][]byte{begin(0, 1<<31-1), browser(0, 0, "in", "unread"), credit(0, 0, 1<<31-1, 1<<30, false)}, nil), nil, 16},
		{"echoes that nobody reads", n, nil, begin(0, 1000), bytes.Repeat(flow, 4000), 0},
		{"attaches that nobody reads", n, nil, begin(0, 1000), bytes.Repeat(attach, 2000), 0},
		{"refusals that nobody reads", n, nil, begin(0, 1000), bytes.Repeat(bytes.Join([][]byte{receiver(0, 0, "l", "\x01", 0), detach(0, 0)}, nil), 2000), 0},
	} {
		against(t, "slow readers", s.name, attack{builds: true, prepare: s.prepare, run: func(a *attacker) {
			all := make([]net.Conn, s.n)
			a.each(8, func(k int) {
				for i := k; i < s.n && a.going(); i += 8 {
					c := a.dial()
					if c == nil {
						return
					}
					narrow(c)
					a.say(c, opened()...)
					a.say(c, s.before)
					_, _ = c.Write(nil)
					for b := s.flood; len(b) > 0 && a.going(); {
						_ = c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
						n, err := c.Write(b[:min(len(b), 64<<10)])
						if b = b[n:]; err != nil {
							break
						}
					}
					all[i] = c
				}
			})
			a.built()
			sip := make([]byte, max(s.sip, 1))
			for a.pause(50 * time.Millisecond) {
				for _, c := range all {
					if s.sip > 0 && c != nil {
						_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
						_, _ = c.Read(sip)
					}
				}
			}
		}})
	}
}

// browser attaches a receiver that looks only.
func browser(channel uint16, handle uint32, name, address string) []byte {
	return frame(channel, wire.CodeAttach, nil, wire.String(name), wire.Uint(handle), wire.Bool(true), wire.Ubyte(0), wire.Ubyte(0),
		wire.Described(0x28, wire.List(wire.String(address), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Symbol("copy"))),
		wire.Described(0x29, wire.List(wire.Null())))
}

// TestHTTP: many connections that keep the HTTP side busy, or ask for much and don't read it. Probes are answered all the same.
func TestHTTP(t *testing.T) {
	many := func(a *attacker) {
		c := connect(a.t, a.b)
		for i := range uint32(1000) {
			send(a.t, c, sender(0, i, fmt.Sprint("l", i), fmt.Sprintf("http.%0200d", i)))
		}
		if err := c.Hangup(); err != nil {
			a.t.Fatal(err)
		}
	}
	for _, s := range []struct {
		name, said string
		prepare    func(a *attacker)
	}{
		{"connections that say nothing", "", nil},
		{"requests without an end", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n", nil},
		{"bodies without an end", "POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\nx", nil},
		{"lists that nobody reads", "GET /api/v1/queues HTTP/1.1\r\nHost: localhost\r\n\r\n", many},
		{"metrics that nobody reads", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", nil},
	} {
		against(t, "HTTP", s.name, attack{builds: true, prepare: s.prepare, run: func(a *attacker) {
			for range some(400, 150) { // 128 may be connected
				if !a.going() {
					return
				}
				c := a.dialTo(a.b.HTTP)
				if c == nil {
					continue
				}
				narrow(c)
				for range 50 {
					_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
					if _, err := c.Write([]byte(s.said)); err != nil {
						break
					}
				}
			}
			a.built()
			began := time.Now()
			if _, err := a.b.Get("/readyz"); err != nil {
				a.t.Error("probe beside them:", err)
			}
			if took := time.Since(began); took > 2*time.Second {
				a.t.Errorf("probe beside them: answered after %v", took)
			}
			a.hold()
		}})
	}
}
