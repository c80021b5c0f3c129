package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// sasl sends one frame of the SASL layer.
func (p *peer) sasl(b body) { p.t.Helper(); p.write(rawFrame(codec.FrameSASL, 0, b.Append(nil))) }

// mechanisms begins the SASL layer.
func (p *peer) mechanisms() []codec.Symbol {
	p.t.Helper()
	p.write(codec.HeaderSASL[:])
	if h := p.header(); h != codec.HeaderSASL {
		p.t.Fatalf("header is % x", h[:])
	}
	m, _ := strict[codec.SASLMechanisms](p)
	return m.Mechanisms
}

// plain logs in with PLAIN and returns the outcome's code.
func (p *peer) plain(response string) uint8 {
	p.t.Helper()
	p.sasl(&codec.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte(response), HasResponse: true})
	o, _ := strict[codec.SASLOutcome](p)
	return o.Code
}

// login goes through SASL PLAIN and the AMQP header.
func (p *peer) login(user, password string) {
	p.t.Helper()
	p.mechanisms()
	if code := p.plain("\x00" + user + "\x00" + password); code != codec.SASLCodeOK {
		p.t.Fatalf("SASL outcome is %d", code)
	}
	p.write(codec.HeaderAMQP[:])
	if h := p.header(); h != codec.HeaderAMQP {
		p.t.Fatalf("header is % x", h[:])
	}
}

func secured(_ *Config, o *ListenerOptions, _ *engineOptions) {
	o.AllowAnonymous = false
	o.RequireSASL = true
	o.Verify = known(func(user, password string) bool { return user == "u" && password == "p" })
}

func TestPlain(t *testing.T) {
	r := start(t, secured)
	p := r.connect()
	p.login("u", "p")
	p.write(encode(0, &codec.Open{ContainerID: "c", MaxFrameSize: 65536, ChannelMax: 255}))
	strict[codec.Open](p)
	p.begin()
	p.sender(0, "q")
	p.put(0, data("x"))
}

func TestCase064_NothingAfterARefusedLogin(t *testing.T) {
	r := start(t, secured)
	for _, response := range []string{"\x00u\x00wrong", "", "u", "\x00\x00p", "\x00u\x00p\x00", "v\x00u\x00p", "\x00\xff\x00p"} {
		p := r.connect()
		p.mechanisms()
		init := rawFrame(codec.FrameSASL, 0, (&codec.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte(response), HasResponse: true}).Append(nil))
		o := codec.Open{ContainerID: "c", MaxFrameSize: 512}
		p.write(append(append(init, codec.HeaderAMQP[:]...), encode(0, &o)...))
		out, _ := strict[codec.SASLOutcome](p)
		if out.Code != codec.SASLCodeAuth {
			t.Errorf("%q: outcome is %d", response, out.Code)
		}
		p.eof()
		if len(p.aside) > 0 || len(p.buf) > 0 {
			t.Errorf("%q: answered with %v and % x", response, p.aside, p.buf)
		}
	}
	r.idle()
}

func TestCase067_AnonymousCanBeOff(t *testing.T) {
	r := start(t, secured)
	p := r.connect()
	if m := p.mechanisms(); len(m) != 1 || m[0] != "PLAIN" {
		t.Errorf("mechanisms are %v", m)
	}
	p.sasl(&codec.SASLInit{Mechanism: "ANONYMOUS"})
	if o, _ := strict[codec.SASLOutcome](p); o.Code == codec.SASLCodeOK {
		t.Error("ANONYMOUS went through")
	}
	p.eof()
	p = r.connect()
	p.write(codec.HeaderAMQP[:])
	if h := p.header(); h != codec.HeaderSASL {
		t.Errorf("header is % x", h[:])
	}
	p.eof()
}

func TestCase079_AnonymousAlone(t *testing.T) {
	r := start(t, func(_ *Config, o *ListenerOptions, _ *engineOptions) { o.RequireSASL = true })
	p := r.connect()
	if m := p.mechanisms(); len(m) != 1 || m[0] != "ANONYMOUS" {
		t.Errorf("mechanisms are %v", m)
	}
	p.sasl(&codec.SASLInit{Mechanism: "ANONYMOUS"})
	if o, _ := strict[codec.SASLOutcome](p); o.Code != codec.SASLCodeOK {
		t.Errorf("outcome is %d", o.Code)
	}
	p.open(codec.Open{ContainerID: "c", MaxFrameSize: 65536})
}

// known is a Verify for whom a function knows.
func known(ok func(user, password string) bool) func(user, password string) amqp.Verdict {
	return func(user, password string) amqp.Verdict {
		if ok(user, password) {
			return amqp.Known
		}
		return amqp.Refused
	}
}

// A mechanism is offered when it can lead somewhere; where none can, and for one that isn't offered, the peer is told and let go.
func TestCase070_OnlyWhatCanBeUsed(t *testing.T) {
	users := known(func(string, string) bool { return false })
	for name, c := range map[string]struct {
		anonymous bool
		verify    func(user, password string) amqp.Verdict
		offered   string
		other     codec.Symbol
	}{
		"nobody is known": {true, nil, "[ANONYMOUS]", "PLAIN"},
		"users only":      {false, users, "[PLAIN]", "ANONYMOUS"},
		"both":            {true, users, "[PLAIN ANONYMOUS]", "EXTERNAL"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(_ *Config, o *ListenerOptions, _ *engineOptions) {
				o.AllowAnonymous, o.RequireSASL, o.Verify = c.anonymous, true, c.verify
			})
			p := r.connect()
			if got := fmt.Sprint(p.mechanisms()); got != c.offered {
				t.Errorf("offered are %s, want %s", got, c.offered)
			}
			p.sasl(&codec.SASLInit{Mechanism: c.other, InitialResponse: []byte("\x00u\x00p"), HasResponse: true})
			if o, _ := strict[codec.SASLOutcome](p); o.Code != codec.SASLCodeAuth {
				t.Errorf("outcome is %d", o.Code)
			}
			p.eof()
		})
	}
	r := start(t, func(_ *Config, o *ListenerOptions, _ *engineOptions) { o.AllowAnonymous = false })
	for _, header := range []codec.ProtocolHeader{codec.HeaderSASL, codec.HeaderAMQP} {
		p := r.connect()
		p.write(header[:])
		p.header()
		p.eof()
		if len(p.aside) > 0 {
			t.Errorf("a listener that lets nobody in says %s", p.aside[0])
		}
	}
}

// Clients take the first mechanism that they know, and some parse nothing but an array [5.3.3.1], or no more than 16. Case 284.
func TestCase071_BestFirstInAnArray(t *testing.T) {
	for _, anonymous := range []bool{false, true} {
		r := start(t, func(_ *Config, o *ListenerOptions, _ *engineOptions) {
			o.AllowAnonymous, o.RequireSASL, o.Verify = anonymous, true, known(func(string, string) bool { return false })
		})
		p := r.connect()
		p.write(codec.HeaderSASL[:])
		p.header()
		f := p.frame()
		v, _, err := codec.ReadValue(f.body)
		if err != nil {
			t.Fatal(err)
		}
		list, ok := v.(codec.Described).Value.(codec.List)
		if !ok || len(list) != 1 {
			t.Fatalf("mechanisms are %s", f)
		}
		array, ok := list[0].(codec.Array)
		if !ok || len(array.Elements) == 0 || len(array.Elements) > 16 || array.Elements[0] != codec.Symbol("PLAIN") {
			t.Errorf("mechanisms are %#v, want an array that PLAIN is the first of", list[0])
		}
	}
}

// Tokens take the place of passwords: 7 KiB go through, and what no token needs is refused before it has come.
func TestCase073_LongResponses(t *testing.T) {
	token := strings.Repeat("t", 7<<10)
	r := start(t, func(_ *Config, o *ListenerOptions, _ *engineOptions) {
		o.AllowAnonymous, o.RequireSASL = false, true
		o.Verify = known(func(user, password string) bool { return user == "u" && password == token })
	})
	p := r.connect()
	p.login("u", token)
	p.socket.Close()
	p = r.connect()
	p.mechanisms()
	long := rawFrame(codec.FrameSASL, 0, (&codec.SASLInit{Mechanism: "PLAIN", InitialResponse: make([]byte, 32<<10), HasResponse: true}).Append(nil))
	p.write(long[:64])
	p.eof()
	r.idle()
}
