package amqptest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// Cut says how the peer's octets reach the machine.
type Cut int

// The two extremes.
const (
	Whole   Cut = iota // each line that writes is one segment
	Octetly            // every octet is a segment of its own
)

// player runs one script against one machine.
type player struct {
	t    *testing.T
	cut  Cut
	conn *amqp.Conn
	cfg  amqp.Config
	line *Line
	now  time.Time
	next time.Time // what Tick returned

	held   []byte // written with >+
	unread []byte // given to the machine, not consumed

	frames  []Frame // written by the machine, not read by the script
	wrote   *Monitor
	peer    map[uint16]*counts // by the peer's channel
	manual  map[string]bool
	pending string // event that the script has to answer
	ended   bool   // the script has read eof
	events  []event
	shell   shell
}

// counts are the transfer-ids that the peer fills flows in with.
type counts struct{ sent, received uint32 }

// Run plays the script.
func Run(t *testing.T, s *Script, cut Cut) {
	t.Helper()
	p := &player{
		t: t, cut: cut, now: time.Unix(1_700_000_000, 0), cfg: scriptConfig(),
		manual: map[string]bool{}, peer: map[uint16]*counts{}, wrote: NewMonitor(),
	}
	for i := range s.Lines {
		p.line = &s.Lines[i]
		if err := p.play(p.line); err != nil {
			t.Fatalf("%s: %s\n    %v\n    rule: %s", p.line.At, p.line.Text, err, s.Rule)
		}
	}
	p.start()
	if err := p.leftOver(); err != nil {
		t.Fatalf("%s: behind the last line: %v\n    rule: %s", s.Name, err, s.Rule)
	}
}

// Octets returns what the peer of a script writes, all in one.
func Octets(s *Script) ([]byte, error) {
	p := &player{peer: map[uint16]*counts{}, wrote: NewMonitor()}
	for _, l := range s.Lines {
		if l.Sign == ">" {
			l.Sign = ">+"
		}
		if l.Sign == ">+" {
			if err := p.write(l); err != nil {
				return nil, err
			}
		}
	}
	return p.held, nil
}

func (p *player) leftOver() error {
	p.collect()
	for _, ev := range p.events {
		if !ev.routine() {
			return fmt.Errorf("unread event: %s", ev)
		}
	}
	if len(p.frames) > 0 {
		return fmt.Errorf("unread frame: %s", p.frames[0])
	}
	if p.conn.Done() && !p.ended {
		return fmt.Errorf("the machine is done")
	}
	return p.wrote.err
}

// start makes the machine once the config lines are read.
func (p *player) start() {
	if p.conn == nil {
		p.conn = amqp.New(p.cfg, p.now)
		p.next = p.conn.Tick(p.now)
	}
}

func (p *player) play(l *Line) error {
	switch l.Sign {
	case "config":
		return configure(&p.cfg, l)
	case "manual":
		for _, kind := range l.Words {
			p.manual[kind] = true
		}
		return nil
	}
	p.start()
	var err error
	switch l.Sign {
	case ">", ">+":
		err = p.write(*l)
	case "<":
		err = p.read(*l)
	case "=":
		err = p.expectEvent(*l)
	case "!":
		err = p.act(*l)
	case "?":
		err = p.ask(*l)
	case "@":
		err = p.pass(*l)
	default:
		err = fmt.Errorf("sign %q", l.Sign)
	}
	if err == nil {
		err = p.wrote.err
	}
	return err
}

// pass lets time pass.
func (p *player) pass(l Line) error {
	d, err := time.ParseDuration(l.Verb)
	if err != nil {
		return err
	}
	p.collect()
	p.now = p.now.Add(d)
	p.next = p.conn.Tick(p.now)
	p.pump()
	return nil
}

// write sends what the peer writes.
func (p *player) write(l Line) error {
	var err error
	switch l.Verb {
	case "header":
		h, ok := headers[l.Words[0]]
		if !ok {
			return fmt.Errorf("header %q", l.Words[0])
		}
		p.held = append(p.held, h[:]...)
	case "bytes":
		for _, w := range l.Words {
			b, err := octets(w)
			if err != nil {
				return err
			}
			p.held = append(p.held, b...)
		}
	case "frame":
		start := len(p.held)
		if p.held, err = appendRaw(p.held, l.Fields); err != nil {
			return err
		}
		if f, _, err := ReadFrame(p.held[start:]); err == nil {
			p.note(f.Channel, f.Body)
		}
	case "empty":
		if p.held, err = appendRaw(p.held, l.Fields); err != nil {
			return err
		}
	default:
		if err := p.writePerformative(l); err != nil {
			return err
		}
	}
	if l.Sign == ">+" {
		return nil
	}
	return p.deliver()
}

func (p *player) writePerformative(l Line) error {
	kind, ok := performatives[l.Verb]
	if !ok {
		return fmt.Errorf("frame %q", l.Verb)
	}
	var channel uint16
	if _, err := fmt.Sscan(l.take("channel", "0"), &channel); err != nil {
		return err
	}
	payload, err := octets(l.take("payload", ""))
	if err != nil {
		return err
	}
	body := kind.make()
	p.preset(body, channel, &l)
	for _, f := range l.Fields {
		if err := setField(body, f.Name, f.Text); err != nil {
			return err
		}
	}
	typ := codec.FrameAMQP
	if strings.HasPrefix(l.Verb, "sasl-") {
		typ = codec.FrameSASL
	}
	if b, ok := body.(*codec.SASLInit); ok {
		b.HasResponse = b.InitialResponse != nil
	}
	p.note(channel, body)
	p.held = AppendFrame(p.held, typ, channel, body, payload)
	return nil
}

// note keeps what the peer has said of its limits and its transfers.
func (p *player) note(channel uint16, body Performative) {
	p.wrote.Peer(body)
	switch b := body.(type) {
	case *codec.Begin:
		p.peer[channel] = &counts{sent: b.NextOutgoingID}
	case *codec.Transfer:
		p.counts(channel).sent++
	}
}

// preset gives fields the values that scripts don't care for.
func (p *player) preset(body Performative, channel uint16, l *Line) {
	switch b := body.(type) {
	case *codec.Open:
		*b = codec.Open{ContainerID: "peer", MaxFrameSize: codec.DefaultMaxFrameSize, ChannelMax: codec.DefaultChannelMax}
	case *codec.Begin:
		*b = codec.Begin{IncomingWindow: 2048, OutgoingWindow: 2048, HandleMax: 1<<32 - 1}
	case *codec.Attach:
		*b = codec.Attach{SndSettleMode: codec.SettleMixed, Source: new(codec.Source), Target: new(codec.Target)}
		b.Source.Address, b.Target.Address = codec.Some("q"), codec.Some("q")
		if role, _ := l.field("role"); role == "sender" {
			b.InitialDeliveryCount = codec.Some[uint32](0)
		}
	case *codec.Flow:
		n := p.counts(channel)
		*b = codec.Flow{NextIncomingID: codec.Some(n.received), IncomingWindow: 2048, NextOutgoingID: n.sent, OutgoingWindow: 2048}
	}
}

func (p *player) counts(channel uint16) *counts {
	if p.peer[channel] == nil {
		p.peer[channel] = new(counts)
	}
	return p.peer[channel]
}

// deliver hands the held octets to the machine.
func (p *player) deliver() error {
	b := p.held
	p.held = nil
	if p.cut == Whole {
		p.give(b)
		return nil
	}
	// Of long ones an octet now and then: they are copied each time.
	for step := 1 + len(b)/4096; len(b) > 0; b = b[step:] {
		step = min(step, len(b))
		p.give(b[:step])
	}
	return nil
}

func (p *player) give(b []byte) {
	// New memory each time, and the old made useless: a machine that keeps
	// hold of what it was lent reads nonsense.
	fresh := append(append([]byte(nil), p.unread...), b...)
	for i := range p.unread {
		p.unread[i] = 0xee
	}
	p.unread = fresh
	p.pump()
}

// pump works through what the machine was given, until the script has to answer.
func (p *player) pump() {
	for p.pending == "" {
		n, ev := p.conn.Next(p.now, p.unread)
		p.unread = p.unread[n:]
		if ev == nil {
			break
		}
		seen := record(ev)
		p.events = append(p.events, seen)
		if p.manual[seen.kind] {
			p.pending = seen.kind
			p.shell.event(p, ev, false)
			return
		}
		p.shell.event(p, ev, true)
	}
}

// collect decodes what the machine has to write by now.
func (p *player) collect() {
	for {
		out := p.conn.Output(p.now, nil)
		if len(out) == 0 {
			return
		}
		for len(out) > 0 {
			f, rest, err := ReadFrame(out)
			if err != nil {
				p.wrote.fail("wrote what doesn't decode: %v: %x", err, out[:min(len(out), 64)])
				return
			}
			p.wrote.Check(f)
			if f.Name == "transfer" {
				if c := p.wrote.channels[f.Channel]; c != nil {
					p.counts(c.remote).received++
				}
			}
			p.frames, out = append(p.frames, f), rest
		}
	}
}

// read compares the next frame.
func (p *player) read(l Line) error {
	p.collect()
	switch l.Verb {
	case "*":
		p.frames = nil
		return nil
	case "nothing", "eof":
		if len(p.frames) > 0 {
			return fmt.Errorf("instead came: %s", p.frames[0])
		}
		if l.Verb == "eof" && !p.conn.Done() {
			return fmt.Errorf("the machine isn't done")
		}
		p.ended = l.Verb == "eof"
		return nil
	}
	if len(p.frames) == 0 {
		return fmt.Errorf("nothing was written%s", p.eventNote())
	}
	f := p.frames[0]
	p.frames = p.frames[1:]
	if f.Name != l.Verb || f.Name == "header" && f.Header != l.Words[0] {
		return fmt.Errorf("instead came: %s", f)
	}
	if err := f.match(l.Fields); err != nil {
		return fmt.Errorf("%w\n    in: %s", err, f)
	}
	if condition, ok := l.field("error"); ok {
		p.excuse(condition)
	}
	return nil
}
