package server

import (
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
