package amqp_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/amqp/amqptest"
	"github.com/letomq/leto/codec"
)

// TestSASLPeer has peers of either end go through the SASL layer in any order,
// with some of the frames spoilt.
func TestSASLPeer(t *testing.T) {
	rounds := uint64(20_000)
	if testing.Short() {
		rounds = 3000
	}
	reached := map[string]int{}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 4))
		octets := make([]byte, 10+r.IntN(100))
		for i := range octets {
			octets[i] = byte(r.Uint32())
		}
		p := newSASLPeer(t, octets)
		p.run()
		for what, n := range p.reached {
			reached[what] += n
		}
	}
	for _, what := range []string{"server opened by name", "server opened without", "client opened", "challenged", "refused", "failed"} {
		if reached[what] < int(rounds)/200 {
			t.Errorf("%s in %d of %d rounds", what, reached[what], rounds)
		}
	}
}

// FuzzSASL is TestSASLPeer with the choices of a fuzzer.
func FuzzSASL(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		octets := make([]byte, 10+r.IntN(60))
		for i := range octets {
			octets[i] = byte(r.Uint32())
		}
		f.Add(octets)
	}
	f.Fuzz(func(t *testing.T, octets []byte) { newSASLPeer(t, octets).run() })
}

// saslPeer writes what belongs into the SASL layer, and around it, to a machine.
type saslPeer struct {
	choices
	t       *testing.T
	cfg     amqp.Config
	conn    *amqp.Conn
	now     time.Time
	unread  []byte
	reached map[string]int

	// what the mechanisms of a server have seen and said
	exchanges  int
	challenges int
	passed     bool
	refused    bool
	identity   string

	stage  int      // steps taken in good order
	wrote  []string // names of the frames the machine has written
	opened bool
	failed *amqp.Error
}

func newSASLPeer(t *testing.T, octets []byte) *saslPeer {
	p := &saslPeer{choices: choices{octets}, t: t, now: time.Unix(1_700_000_000, 0), reached: map[string]int{}}
	p.cfg = amqp.Defaults()
	p.cfg.ContainerID = "leto"
	p.cfg.Server = !p.oneIn(3)
	if p.cfg.Server {
		p.cfg.RequireSASL = !p.oneIn(3)
		for _, m := range []amqp.Mechanism{amqp.Plain(func(user, password string) amqp.Verdict {
			switch {
			case user == "u" && password == "p":
				return amqp.Known
			case user == "busy":
				return amqp.TryLater
			}
			return amqp.Refused
		}), amqp.Anonymous(), asking{}} {
			if !p.oneIn(5) {
				p.cfg.Mechanisms = append(p.cfg.Mechanisms, watched{m, p})
			}
		}
	} else {
		p.cfg.Login = &amqp.Login{Mechanism: "PLAIN", Response: []byte("\x00u\x00secret")}
	}
	p.conn = amqp.New(p.cfg, p.now)
	return p
}

// asking asks up to three times and accepts the answer "yes", refuses "no".
type asking struct{}

type askingRun struct{ n int }

func (asking) Name() codec.Symbol   { return "ASKING" }
func (asking) Start() amqp.Exchange { return new(askingRun) }

func (r *askingRun) Step(response []byte) amqp.Step {
	r.n++
	switch {
	case string(response) == "yes":
		return amqp.Step{Done: true, OK: true, Identity: "asked", Final: []byte("final")}
	case string(response) == "no" || r.n > 3:
		return amqp.Step{Done: true}
	}
	return amqp.Step{Challenge: []byte{byte(r.n)}}
}

// watched tells the peer's test what a mechanism decides.
type watched struct {
	amqp.Mechanism
	p *saslPeer
}

type watchedRun struct {
	amqp.Exchange
	p *saslPeer
}

func (w watched) Start() amqp.Exchange {
	if w.p.exchanges++; w.p.exchanges > 1 {
		w.p.t.Fatal("a second exchange")
	}
	return watchedRun{w.Mechanism.Start(), w.p}
}

func (w watchedRun) Step(response []byte) amqp.Step {
	if w.p.passed || w.p.refused {
		w.p.t.Fatal("an exchange goes on behind its end")
	}
	s := w.Exchange.Step(response)
	switch {
	case !s.Done:
		w.p.challenges++
		w.p.reached["challenged"]++
	case s.OK:
		w.p.passed, w.p.identity = true, s.Identity
	default:
		w.p.refused = true
	}
	return s
}

func (p *saslPeer) run() {
	p.output()
	for p.left() && !p.conn.Done() {
		p.step()
	}
	p.output()
	switch {
	case p.opened && p.cfg.Server && p.passed:
		p.reached["server opened by name"]++
	case p.opened && p.cfg.Server:
		p.reached["server opened without"]++
	case p.opened:
		p.reached["client opened"]++
	}
	p.now = p.now.Add(time.Hour)
	p.conn.Tick(p.now)
	p.events()
	p.output()
	p.conn.Tick(p.now.Add(time.Hour)) // the time for the peer's close
	if !p.conn.Done() {
		p.t.Fatalf("not done after hours, having written %q", p.wrote)
	}
	p.check()
}

func (p *saslPeer) step() {
	var b []byte
	switch n := p.upTo(16); {
	case n < 12:
		b = p.due()
	case n == 12:
		b = p.header([]codec.ProtocolHeader{codec.HeaderSASL, codec.HeaderAMQP, codec.HeaderTLS}[p.upTo(3)])
	case n == 13:
		b = p.frame(p.upTo(7))
	case n == 14:
		p.now = p.now.Add(time.Duration(p.upTo(60)) * 100 * time.Millisecond)
		p.conn.Tick(p.now)
		p.events()
		p.output()
		return
	default:
		b = slices.Clone(p.take(1 + p.upTo(30)))
	}
	if p.oneIn(20) {
		b = p.spoil(b)
	}
	for cut := p.upTo(8); len(b) > 0; {
		n := len(b)
		if cut > 4 {
			n = min(cut, n)
		}
		p.unread = append(slices.Clone(p.unread), b[:n]...)
		b = b[n:]
		p.events()
		if !p.oneIn(4) {
			p.output()
		}
	}
}

func (p *saslPeer) header(h codec.ProtocolHeader) []byte { return slices.Clone(h[:]) }

// due is what comes next in good order.
func (p *saslPeer) due() []byte {
	p.stage++
	last := ""
	if len(p.wrote) > 0 {
		last = p.wrote[len(p.wrote)-1]
	}
	switch {
	case p.cfg.Server && last == "" && !p.oneIn(6), !p.cfg.Server && p.stage == 1:
		return p.header(codec.HeaderSASL)
	case p.cfg.Server && last == "sasl-mechanisms":
		return p.frame(0)
	case p.cfg.Server && last == "sasl-challenge":
		return p.frame(1)
	case p.cfg.Server && (last == "" || last == "sasl-outcome"), !p.cfg.Server && p.stage == 4:
		return p.header(codec.HeaderAMQP)
	case !p.cfg.Server && p.stage == 2:
		return p.frame(2)
	case !p.cfg.Server && p.stage == 3:
		return p.frame(3)
	}
	return amqptest.AppendFrame(nil, codec.FrameAMQP, 0, &codec.Open{ContainerID: "peer", MaxFrameSize: 512}, nil)
}

func (p *saslPeer) frame(kind int) []byte {
	var body amqptest.Performative
	switch kind {
	case 0:
		init := codec.SASLInit{
			Mechanism:       []codec.Symbol{"PLAIN", "ASKING", "ASKING", "ANONYMOUS", "NONE", ""}[p.upTo(6)],
			InitialResponse: p.response(),
		}
		init.HasResponse = init.InitialResponse != nil
		body = &init
	case 1:
		body = &codec.SASLResponse{Response: p.response()}
	case 2:
		body = &codec.SASLMechanisms{Mechanisms: []codec.Symbol{"ANONYMOUS", "PLAIN"}[1-p.upTo(4)/3:][:1]}
	case 3:
		body = &codec.SASLOutcome{Code: uint8(p.upTo(10) / 8), AdditionalData: p.take(p.upTo(8))}
	case 4:
		body = &codec.SASLChallenge{Challenge: p.response()}
	default:
		return []byte{0, 0, 0, 8, 2, codec.FrameSASL, 0, 0}
	}
	b := amqptest.AppendFrame(nil, codec.FrameSASL, uint16(p.upTo(2)), body, nil)
	if p.oneIn(30) {
		b[5] = codec.FrameAMQP
	}
	return b
}

func (p *saslPeer) response() []byte {
	switch p.upTo(7) {
	case 0, 1:
		return []byte("\x00u\x00p")
	case 2:
		return []byte("\x00u\x00wrong")
	case 3:
		return []byte("yes")
	case 4:
		return []byte("no")
	case 5:
		return nil
	}
	return append([]byte{}, p.take(p.upTo(40))...)
}

func (p *saslPeer) events() {
	b := p.unread
	for {
		n, ev := p.conn.Next(p.now, b)
		b = b[n:]
		if ev == nil {
			break
		}
		switch ev.Kind {
		case amqp.EventOpened:
			p.opened = true
			p.conn.Accept(nil)
		case amqp.EventClosed:
			p.conn.Close(nil)
		case amqp.EventFailed:
			if ev.Err == nil || ev.Err.Condition == "" {
				p.t.Fatal("it failed and says nothing")
			}
			p.failed = ev.Err
			p.reached["failed"]++
		}
	}
	p.unread = b
}

func (p *saslPeer) output() {
	for out := p.conn.Output(p.now, nil); len(out) > 0; {
		f, rest, err := amqptest.ReadFrame(out)
		if err != nil {
			p.t.Fatalf("wrote %x: %v", out, err)
		}
		out = rest
		name := f.Name
		if f.Header != "" {
			name = f.Header
		}
		if init, ok := f.Body.(*codec.SASLInit); ok && (init.Mechanism != "PLAIN" || !bytes.Equal(init.InitialResponse, p.cfg.Login.Response)) {
			p.t.Fatalf("init is %s", f)
		}
		if outcome, ok := f.Body.(*codec.SASLOutcome); ok {
			if (outcome.Code == codec.SASLCodeOK) != p.passed {
				p.t.Fatalf("mechanism has let the peer in: %v; %s", p.passed, f)
			}
			if outcome.Code != codec.SASLCodeOK {
				p.reached["refused"]++
			}
		}
		if len(p.wrote) == 0 || p.wrote[len(p.wrote)-1] != name || name != "empty" {
			p.wrote = append(p.wrote, name)
		}
	}
}

// check compares what the machine has written with what it may.
func (p *saslPeer) check() {
	count := func(name string) (n int) {
		for _, w := range p.wrote {
			if w == name {
				n++
			}
		}
		return n
	}
	for _, once := range []string{"sasl", "sasl-mechanisms", "sasl-init", "sasl-outcome", "open", "close"} {
		if count(once) > 1 {
			p.t.Fatalf("%s was written twice: %q", once, p.wrote)
		}
	}
	at := func(name string) int { return slices.Index(p.wrote, name) }
	switch {
	case p.cfg.Server && count("sasl-challenge") != p.challenges:
		p.t.Fatalf("%d challenges, wrote %q", p.challenges, p.wrote)
	case p.cfg.Server && p.opened && p.cfg.RequireSASL && !p.passed:
		p.t.Fatalf("opened without SASL: %q", p.wrote)
	case p.cfg.Server && p.exchanges > 0 && p.opened && !p.passed:
		p.t.Fatalf("opened although the peer was refused: %q", p.wrote)
	case p.conn.Identity != p.identity:
		p.t.Fatalf("identity is %q, not %q", p.conn.Identity, p.identity)
	case p.cfg.Server && at("sasl-outcome") >= 0 && !p.passed && p.wrote[len(p.wrote)-1] != "sasl-outcome":
		p.t.Fatalf("written behind a refusal: %q", p.wrote)
	case !p.cfg.Server && p.opened && (at("sasl-init") < 0 || at("sasl-init") > at("amqp")):
		p.t.Fatalf("opened without login: %q", p.wrote)
	case !p.cfg.Server && at("sasl") != 0:
		p.t.Fatalf("the SASL header isn't first: %q", p.wrote)
	}
}
