package amqp_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/amqp/amqptest"
	"github.com/letomq/leto/codec"
)

// TestHostilePeer has peers of either end write frames in no sensible order,
// some of them spoilt, to machines whose shells answer late, refuse, fail and
// end things. Whatever happens, what the machines write is in order.
func TestHostilePeer(t *testing.T) {
	rounds := uint64(3000)
	if testing.Short() {
		rounds = 300
	}
	reached := map[string]int{}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 2))
		octets := make([]byte, 100+r.IntN(3000))
		for i := range octets {
			octets[i] = byte(r.Uint32())
		}
		p := newHostilePeer(t, octets)
		p.run()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		for what, n := range p.reached {
			reached[what] += n
		}
	}
	if reached["aborted"] == 0 {
		t.Error("no delivery was aborted")
	}
	for kind := amqp.EventOpened; kind <= amqp.EventOutcome; kind++ {
		if n := reached[fmt.Sprintf("event %d", kind)]; n < int(rounds)/100 {
			t.Errorf("event %d came %d times in %d rounds", kind, n, rounds)
		}
	}
	for _, what := range []string{"sent", "fragment", "drained", "alive", "client", "spoilt"} {
		if reached[what] < int(rounds)/100 {
			t.Errorf("%q was reached %d times in %d rounds", what, reached[what], rounds)
		}
	}
}

// FuzzPeer is TestHostilePeer with the choices of a fuzzer.
func FuzzPeer(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		octets := make([]byte, 50+r.IntN(500))
		for i := range octets {
			octets[i] = byte(r.Uint32())
		}
		f.Add(octets)
	}
	f.Fuzz(func(t *testing.T, octets []byte) { newHostilePeer(t, octets).run() })
}

// traced has every frame logged.
var traced = os.Getenv("LETO_TRACE") != ""

// hostilePeer is a peer, the shell of the machine it talks to, and what is known of both.
type hostilePeer struct {
	choices
	t       testing.TB
	cfg     amqp.Config
	conn    *amqp.Conn
	now     time.Time
	monitor *amqptest.Monitor
	ledger  *ledger
	reached map[string]int

	// the peer's
	held     []byte   // frames not handed to the machine yet
	channels int      // that the peer begins sessions on
	begins   []uint16 // channels the machine has begun and the peer hasn't answered
	attachs  []offer  // links the machine has attached and the peer hasn't answered
	nextID   map[uint16]uint32

	// the machine's
	unread []byte // handed over and not consumed
	framed []byte // of what was handed over, what is no whole frame yet
	fed    int    // octets handed over since the last output
	acts   int    // of the shell, since then
	spare  []byte
	lent   *amqp.Workspace // not with the machine

	// the shell's
	late     []func()
	links    []*amqp.Link
	sessions []*amqp.Session
	attached int
	granted  map[*amqp.Link]int64 // deliveries that may still begin
	frames   map[uint16]*intake   // by the machine's channel
	unknown  bool                 // the peer has written what doesn't decode

	failed  *amqp.Error            // why the machine has closed
	ending  map[uint16]*amqp.Error // why it has ended sessions
	failing int                    // links it has detached over a fault
}

// offer is a link the machine has attached.
type offer struct {
	channel uint16
	attach  codec.Attach
}

// intake counts the transfer frames of one session.
type intake struct{ room, came int }

func newHostilePeer(t testing.TB, octets []byte) *hostilePeer {
	p := &hostilePeer{
		choices: choices{octets}, t: t, now: time.Unix(1_700_000_000, 0), monitor: amqptest.NewMonitor(), ledger: newLedger(t),
		nextID: map[uint16]uint32{}, granted: map[*amqp.Link]int64{}, frames: map[uint16]*intake{},
		ending: map[uint16]*amqp.Error{}, reached: map[string]int{},
	}
	p.cfg = amqp.Defaults()
	p.cfg.ContainerID = "leto"
	p.cfg.Server = !p.oneIn(3)
	p.cfg.MaxFrameSize = []uint32{64 << 10, 512, 700}[p.upTo(3)]
	p.cfg.IncomingWindow = []uint32{2048, 1, 2, 3, 7, 50}[p.upTo(6)]
	p.cfg.OutputLimit = []int{256 << 10, 1, 600, 5000}[p.upTo(4)]
	p.cfg.MaxMessageSize = []uint64{100 << 20, 150}[p.upTo(2)]
	p.cfg.ChannelMax = []uint16{255, 2}[p.upTo(2)]
	p.cfg.HandleMax = []uint32{1023, 4}[p.upTo(2)]
	p.cfg.Lent = p.oneIn(2)
	if p.oneIn(4) {
		p.cfg.Mechanisms = []amqp.Mechanism{amqp.Anonymous()}
		p.cfg.Login = &amqp.Login{Mechanism: "ANONYMOUS"}
	}
	if p.cfg.Lent {
		p.lent = new(amqp.Workspace)
	}
	if !p.cfg.Server {
		p.cfg.Lent = false // a client has something to say at once
		p.lent = nil
		p.reached["client"]++
	}
	p.conn = amqp.New(p.cfg, p.now)
	return p
}

func (p *hostilePeer) run() {
	p.handshake()
	for p.left() && !p.conn.Done() {
		p.step()
	}
	p.finish()
}

// handshake goes as far as open, by one way or the other.
func (p *hostilePeer) handshake() {
	p.output()
	if p.cfg.Login != nil {
		p.held = append(p.held, codec.HeaderSASL[:]...)
		if p.cfg.Server {
			p.frame(codec.FrameSASL, 0, &codec.SASLInit{Mechanism: "ANONYMOUS"}, nil)
		} else {
			p.frame(codec.FrameSASL, 0, &codec.SASLMechanisms{Mechanisms: []codec.Symbol{"PLAIN", "ANONYMOUS"}}, nil)
			p.frame(codec.FrameSASL, 0, &codec.SASLOutcome{}, nil)
		}
	}
	p.held = append(p.held, codec.HeaderAMQP[:]...)
	open := codec.Open{
		ContainerID: "peer", MaxFrameSize: []uint32{600, 512, 1100, 1<<32 - 1}[p.upTo(4)],
		ChannelMax: []uint16{65535, 3, 0}[p.upTo(3)], IdleTimeOut: []uint32{0, 2000, 1000}[p.upTo(3)],
	}
	p.channels = 1 + int(min(open.ChannelMax, p.cfg.ChannelMax, 3))
	p.write(0, &open, nil)
	if p.cfg.Server {
		p.write(0, &codec.Begin{IncomingWindow: uint32(20 - p.upTo(20)), HandleMax: 1<<32 - 1}, nil)
	} else {
		p.begin()
	}
}

// write has a frame handed to the machine, now or together with the next ones.
func (p *hostilePeer) write(channel uint16, body amqptest.Performative, payload []byte) {
	p.frame(codec.FrameAMQP, channel, body, payload)
	if p.oneIn(6) {
		return
	}
	p.hand()
}

func (p *hostilePeer) frame(typ byte, channel uint16, body amqptest.Performative, payload []byte) {
	b := amqptest.AppendFrame(nil, typ, channel, body, payload)
	if p.odd() {
		p.reached["spoilt"]++
		b = p.spoil(b)
	}
	p.held = append(p.held, b...)
}

// hand gives the machine what is held, in pieces.
func (p *hostilePeer) hand() {
	b := p.held
	p.held = nil
	for len(b) > 0 {
		n := len(b)
		if p.oneIn(8) {
			n = 1 + p.upTo(n)
		}
		p.give(b[:n])
		b = b[n:]
		if !p.oneIn(6) {
			p.output()
		}
	}
}

// give hands over octets in memory that is made useless behind the machine's back.
func (p *hostilePeer) give(b []byte) {
	p.lend()
	p.framed = append(p.framed, b...)
	for len(p.framed) > 0 {
		f, rest, whole, err := nextFrame(p.framed)
		if !whole {
			break
		}
		p.framed = rest
		if err != nil {
			p.unknown = true
			p.framed = nil
			break
		}
		if f.Name == "open" {
			p.monitor.Peer(f.Body)
		}
		if traced {
			p.t.Logf("> %s", f)
		}
		p.ledger.took(f)
	}
	fresh := append(append([]byte(nil), p.unread...), b...)
	for i := range p.unread {
		p.unread[i] = 0xee
	}
	p.unread = fresh
	p.fed += len(b)
	p.events(p.unread)
	if p.unknown && p.conn.Opened() {
		p.t.Fatalf("open behind what doesn't decode")
	}
	if limit := 4096 + 64*p.fed + 1024*p.acts; p.conn.Encoded() > limit {
		p.t.Fatalf("%d octets encoded for %d and %d acts of the shell", p.conn.Encoded(), p.fed, p.acts)
	}
}

// nextFrame cuts b as a reader of the stream would.
func nextFrame(b []byte) (f amqptest.Frame, rest []byte, whole bool, err error) {
	if len(b) < 8 {
		return f, b, false, nil
	}
	h := codec.ProtocolHeader(b[:8])
	if h != codec.HeaderAMQP && h != codec.HeaderSASL {
		header, err := codec.ReadFrameHeader(b)
		switch {
		case err != nil:
			return f, nil, true, err
		case int64(header.Size) > int64(len(b)):
			return f, b, false, nil
		}
	}
	f, rest, err = amqptest.ReadFrame(b)
	return f, rest, true, err
}

func (p *hostilePeer) lend() {
	if !p.conn.Lent() {
		p.conn.Lend(p.lent)
		p.lent = nil
	}
}

func (p *hostilePeer) events(b []byte) {
	p.lend()
	for {
		n, ev := p.conn.Next(p.now, b)
		b = b[n:]
		if ev == nil {
			break
		}
		p.reached[fmt.Sprintf("event %d", ev.Kind)]++
		p.acts++
		p.act(ev)
	}
	p.unread = p.unread[len(p.unread)-len(b):]
}

// output checks what the machine has to write.
func (p *hostilePeer) output() {
	p.lend()
	out := p.conn.Output(p.now, p.spare)
	wrote := map[uint16]int{}
	for b := out; len(b) > 0; {
		f, rest, err := amqptest.ReadFrame(b)
		if err != nil {
			p.t.Fatalf("wrote %x: %v", b, err)
		}
		b = rest
		if traced {
			p.t.Logf("< %s", f)
		}
		p.monitor.Check(f)
		p.ledger.wrote(f)
		p.wrote(f, wrote)
	}
	p.ledger.flushed()
	if err := p.monitor.Err(); err != nil {
		p.t.Fatal(err)
	}
	for channel, n := range p.frames {
		if n.came > n.room+wrote[channel]*int(p.cfg.IncomingWindow) {
			p.t.Fatalf("%d transfers on channel %d taken with a window of %d, and %d flows", n.came, channel, n.room, wrote[channel])
		}
		if n.room -= n.came; wrote[channel] > 0 {
			n.room = int(p.cfg.IncomingWindow)
		}
		n.came = 0
	}
	if p.failing > 0 {
		p.t.Fatalf("%d detaches with an error are missing", p.failing)
	}
	if p.conn.Done() || p.failed != nil {
		p.ending = map[uint16]*amqp.Error{}
	}
	for channel, err := range p.ending {
		p.t.Fatalf("no end on channel %d says %v", channel, err)
	}
	p.spare = out[:0]
	p.fed, p.acts = 0, 0
	if p.cfg.Lent && p.lent == nil && p.oneIn(3) {
		p.lent = p.conn.Reclaim()
	}
}

// wrote follows a frame of the machine as the peer sees it. flows counts what widens windows, by channel.
func (p *hostilePeer) wrote(f amqptest.Frame, flows map[uint16]int) {
	switch b := f.Body.(type) {
	case *codec.Begin:
		if !b.RemoteChannel.Set {
			p.begins = append(p.begins, f.Channel)
		}
		p.frames[f.Channel] = &intake{room: int(p.cfg.IncomingWindow)}
	case *codec.Flow:
		flows[f.Channel]++
	case *codec.Attach:
		a := p.ledger.sessions[f.Channel]
		for _, c := range a.offered {
			if c == a.links[b.Handle] {
				p.attachs = append(p.attachs, offer{f.Channel, *b})
			}
		}
	case *codec.Transfer:
		p.reached["sent"]++
		if b.More {
			p.reached["fragment"]++
		}
		if b.Aborted {
			p.reached["aborted"]++
		}
	case *codec.Detach:
		if b.Error != nil && p.failing > 0 {
			p.failing--
		}
	case *codec.End:
		if why := p.ending[f.Channel]; why != nil && (b.Error == nil || b.Error.Condition != why.Condition) {
			p.t.Fatalf("ended over %v: %s", why, f)
		}
		delete(p.ending, f.Channel)
		delete(p.frames, f.Channel)
	case *codec.Close:
		if p.failed != nil && (b.Error == nil || b.Error.Condition != p.failed.Condition) {
			p.t.Fatalf("closed over %v: %s", p.failed, f)
		}
	}
}

// finish lets everything be answered, and checks that nothing is left.
func (p *hostilePeer) finish() {
	p.octets = nil
	p.hand()
	p.events(p.unread)
	p.output()
	for len(p.late) > 0 {
		p.answer()
	}
	p.output()
	if p.conn.Opened() && len(p.framed) == 0 {
		p.reached["alive"]++
		p.checkDrains()
	}
	if p.conn.Sessions() > int(p.conn.Remote.ChannelMax)+1 {
		p.t.Fatalf("%d sessions", p.conn.Sessions())
	}
	p.lend()
	p.conn.Close(nil)
	p.output()
	p.lend()
	p.conn.Tick(p.now.Add(time.Hour))
	if !p.conn.Done() {
		p.t.Fatal("not done an hour after close")
	}
	if n := p.conn.Queued(); n != 0 {
		p.t.Fatalf("%d octets are queued at the end", n)
	}
}

// checkDrains opens all windows: every drain the peer has asked for is answered now.
func (p *hostilePeer) checkDrains() {
	p.lend()
	for channel := range uint16(4) {
		if a := p.ledger.theirs[channel]; a != nil && a.mapped {
			p.write(channel, &codec.Flow{NextIncomingID: codec.Some(a.next), IncomingWindow: 1 << 20, NextOutgoingID: a.peerNext}, nil)
		}
	}
	for _, l := range p.links {
		l.Drained()
	}
	for range 1000 {
		if !p.conn.HasOutput() {
			break
		}
		p.output()
	}
	if p.conn.HasOutput() {
		p.t.Fatal("there is always more to write")
	}
	for channel := range uint16(4) {
		a := p.ledger.theirs[channel]
		if a == nil || p.ledger.sessions[a.channel] != a {
			continue
		}
		for h, c := range a.remote {
			if c.draining && attachedAs(a, c) {
				p.t.Fatalf("drain of handle %d isn't answered: %d deliveries of credit", h, c.left)
			}
		}
	}
	p.reached["drained"]++
}

// attachedAs reports whether the end has the link attached, too.
func attachedAs(a *account, c *credit) bool {
	for _, l := range a.links {
		if l == c {
			return true
		}
	}
	return false
}
