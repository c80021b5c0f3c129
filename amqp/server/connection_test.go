package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// gate is a store whose commits wait until it is opened.
type gate struct {
	forgetful
	engaged atomic.Bool // else it is as open
	once    sync.Once
	open    chan struct{}
	waiting chan struct{} // a commit has arrived
}

func newGate() *gate {
	g := &gate{open: make(chan struct{}), waiting: make(chan struct{}, 1)}
	g.engaged.Store(true)
	return g
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

func (g *gate) Commit(records []engine.Record) error {
	if !g.engaged.Load() {
		return nil
	}
	select {
	case g.waiting <- struct{}{}:
	default:
	}
	<-g.open
	return nil
}

// pending waits until some connection has worked through n frames, the last of
// which asked for a commit.
func (g *gate) pending(r *rig, n uint64) {
	r.t.Helper()
	<-g.waiting
	r.heard(n)
}

// journal is where a rig's log goes.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

// lines returns what was logged at a level or above it.
func (j *journal) lines(levels ...string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for line := range strings.Lines(j.b.String()) {
		for _, level := range levels {
			if strings.Contains(line, `"level":"`+level+`"`) {
				found = append(found, line)
			}
		}
	}
	return found
}

func TestCase050_SameContainerTwice(t *testing.T) {
	r := start(t, nil)
	a := r.connect()
	o := a.open(codec.Open{ContainerID: "jms", MaxFrameSize: 65536, ChannelMax: 10, DesiredCapabilities: []codec.Symbol{"sole-connection-for-container"}})
	for _, c := range o.OfferedCapabilities {
		if c == "sole-connection-for-container" {
			t.Fatal("sole-connection-for-container is offered, but not kept")
		}
	}
	a.begin()
	b := r.opened("jms")
	a.sender(0, "q")
	b.sender(0, "q2")
	a.barrier()
}

func TestCase052_RefusalLooksLikeOne(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.MaxConnections = 1 })
	r.opened("first")
	p := r.connect()
	o := p.open(codec.Open{ContainerID: "second", MaxFrameSize: 512, ChannelMax: 10})
	if v, _ := o.Properties.Get("amqp:connection-establishment-failed"); v != true {
		t.Errorf("open's properties are %v", o.Properties)
	}
	if o.MaxFrameSize < 512 || o.ContainerID != "leto" {
		t.Errorf("open is %+v", o)
	}
	if e := p.closed(limitExceeded); !strings.Contains(e.Description, "1") {
		t.Errorf("description is %q", e.Description)
	}
}

func TestCase053_ShutdownFlushesWhatWasDecided(t *testing.T) {
	store := newGate()
	r := startOn(t, store, nil)
	idle := r.opened("idle")
	p := r.opened("busy")
	p.sender(0, "q")
	p.send(p.transfer(0, false), data("x")) // durable: its commit hangs
	store.pending(r, 4)
	silent := r.connect() // says nothing
	half := r.connect()
	half.write(codec.HeaderAMQP[:4])
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		down <- r.server.Shutdown(ctx)
	}()
	idle.closed(amqp.ConditionConnectionForced)
	silent.eof()
	half.eof()
	store.release()
	d, _ := strict[codec.Disposition](p.without(codec.CodeFlow))
	if d.State.Kind != codec.StateAccepted || !d.Settled {
		t.Errorf("disposition is %+v", d)
	}
	p.closed(amqp.ConditionConnectionForced)
	if err := <-down; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Error("the listener is still there")
	}
	r.idle()
}

func TestCase053_NothingStartsWhileShuttingDown(t *testing.T) {
	// Between the notice and the close of a connection that waits for a
	// commit, what the peer still asks for must not leave anything behind.
	store := newGate()
	r := startOn(t, store, nil)
	p := r.opened("busy")
	p.sender(0, "q")
	p.send(p.transfer(0, false), data("x"))
	store.pending(r, 4)
	witness := r.opened("witness")
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		down <- r.server.Shutdown(ctx)
	}()
	witness.closed(amqp.ConditionConnectionForced)
	eventually(t, "links released", func() bool { return r.server.Stats().Links == 0 })
	_, e := p.refused(receiverAttach("late", 1, "q"))
	p.condition(e, amqp.ConditionConnectionForced)
	p.channel = 1
	p.begin()
	p.send(&codec.End{})
	await[codec.End](p)
	p.begin()
	p.channel = 0
	store.release()
	if d, _ := await[codec.Disposition](p); d.State.Kind != codec.StateAccepted {
		t.Errorf("disposition is %+v", d)
	}
	p.closed(amqp.ConditionConnectionForced)
	if err := <-down; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	r.idle()
	for _, q := range r.broker.Queues() {
		if q.Consumers != 0 {
			t.Errorf("queue %s has %d consumers", q.Name, q.Consumers)
		}
	}
}

func TestShutdownGivesUpWithItsContext(t *testing.T) {
	store := newGate()
	r := startOn(t, store, nil)
	p := r.opened("busy")
	p.sender(0, "q")
	p.send(p.transfer(0, false), data("x"))
	store.pending(r, 4)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.server.Shutdown(ctx); err != context.Canceled {
		t.Errorf("shutdown: %v", err)
	}
	p.eof()
	store.release()
}

func TestCase055_CloseWhileThePeerDoesNotRead(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.WriteTimeout = time.Millisecond })
	r.load("q", 100, 200<<10)
	p := r.connect()
	_ = p.socket.(*net.TCPConn).SetReadBuffer(4 << 10)
	p.open(codec.Open{ContainerID: "lazy", MaxFrameSize: 65536, ChannelMax: 1})
	p.begin()
	p.receiver(0, "q", 10_000)
	r.stuck()
	_, _ = p.socket.Write(encode(0, &codec.Close{})) // and doesn't read the answer
	r.idle()
	r.depth("q", 100, 0)
	if s := r.server.Stats(); s.WriteTimeout != 1 {
		t.Errorf("stats are %+v", s)
	}
}

// stuck waits until the only connection's writer can't go on, or has been cut off.
func (r *rig) stuck() {
	r.t.Helper()
	var last int64
	same := 0
	eventually(r.t, "writer stuck", func() bool {
		since, found := int64(0), false
		r.server.each(func(c *connection) { since, found = c.writingSince.Load(), true })
		if since == 0 || since != last {
			last, same = since, 0
			return !found
		}
		same++
		return same > 50
	})
}

func TestPeerThatOnlyAsksIsCutOff(t *testing.T) {
	// Answers that nobody reads must not pile up, and the reader that waits
	// for room must not outlive the connection.
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.WriteTimeout = time.Millisecond })
	p := r.pipe() // no buffer on the way takes any of it
	p.open(codec.Open{ContainerID: "lazy", MaxFrameSize: 65536, ChannelMax: 1})
	p.begin()
	a := receiverAttach("refused", 0, "$nothing")
	pair := append(encode(0, &a), encode(0, &codec.Detach{Closed: true})...)
	pair = bytes.Repeat(pair, 100)
	for {
		_ = p.socket.SetWriteDeadline(time.Now().Add(patience))
		if _, err := p.socket.Write(pair); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the peer may go on for ever")
			}
			break
		}
	}
	r.idle()
}

func TestPeerThatReadsLateGetsAllItsAnswers(t *testing.T) {
	r := start(t, nil)
	p := r.pipe()
	p.open(codec.Open{ContainerID: "late", MaxFrameSize: 65536, ChannelMax: 1})
	p.begin()
	a := receiverAttach("refused", 0, "$nothing")
	pair := append(encode(0, &a), encode(0, &codec.Detach{Closed: true})...)
	written := make(chan int)
	go func() {
		n := 0
		for ; n < 50_000; n++ {
			_ = p.socket.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			if _, err := p.socket.Write(pair); err != nil {
				break // the broker has stopped reading
			}
		}
		written <- n
	}()
	n := <-written
	if n == 50_000 {
		t.Fatal("the broker has read everything while nobody read its answers")
	}
	for range n {
		if _, err := p.read(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.read(); err != nil {
			t.Fatal(err)
		}
	}
	p.socket.Close()
	r.idle()
}

func TestCase056_GarbageLeavesNothingBehind(t *testing.T) {
	r := start(t, nil)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for n := range 100 {
				p := r.connect()
				switch (i + n) % 4 {
				case 0:
					p.write([]byte("GET / HTTP/1.1\r\n\r\n"))
				case 1:
					p.write(append(codec.HeaderAMQP[:], 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0))
				case 2:
					p.write(append(codec.HeaderAMQP[:], rawFrame(0, 0, []byte{0, 0x53, 0x10, 0xc0, 9})...))
				case 3:
					o := codec.Open{ContainerID: "g", MaxFrameSize: 512}
					p.write(append(append(codec.HeaderAMQP[:], encode(0, &o)...), rawFrame(0, 0, []byte{0, 0x53, 0x12, 0x45})...))
				}
				p.socket.Close()
			}
		})
	}
	group.Wait()
	eventually(t, "all accepted", func() bool { return r.server.Stats().ConnectionsTotal == 400 })
	r.idle()
}

// TestManyThatEndAtOnce: of connections that are ended for a fault, and whose peers don't close, few wait for that.
func TestManyThatEndAtOnce(t *testing.T) {
	r := start(t, nil)
	fault := append(codec.HeaderAMQP[:], 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0)
	ends := func() time.Duration {
		p := r.connect()
		defer p.socket.Close()
		p.write(fault)
		begun := time.Now()
		eventually(t, "the connection ended", func() bool { return r.server.Stats().Connections == 0 })
		return time.Since(begun)
	}
	if took := ends(); took < lingerTimeout/2 {
		t.Errorf("a peer had %v to read why it was ended", took)
	}
	r.server.lingering.Add(lingeringMost) // as many as there may be
	soonest := ends()
	for range 2 { // a machine may be busy elsewhere
		soonest = min(soonest, ends())
	}
	if soonest > lingerTimeout*3/4 {
		t.Errorf("one more than may be waited for was waited for, for %v", soonest)
	}
	r.server.lingering.Add(-lingeringMost)
	if left := r.server.lingering.Load(); left != 0 {
		t.Errorf("%d connections linger, all have ended", left)
	}
}

func TestCase058_ContainerID(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.Name, c.Version = "node-a", "1.2.3" })
	for range 2 {
		o := r.connect().open(codec.Open{ContainerID: "c", MaxFrameSize: 512})
		if o.ContainerID != "node-a" {
			t.Errorf("container-id is %q", o.ContainerID)
		}
		if v, _ := o.Properties.Get("product"); v != "leto" {
			t.Errorf("properties are %v", o.Properties)
		}
		if v, _ := o.Properties.Get("version"); v != "1.2.3" {
			t.Errorf("properties are %v", o.Properties)
		}
	}
}

func TestCase059_ConnectionLimitCountsLiveOnes(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.MaxConnections = 10 })
	var live []*peer
	for i := range 10 {
		live = append(live, r.opened(fmt.Sprint(i)))
	}
	p := r.connect()
	p.open(codec.Open{ContainerID: "11", MaxFrameSize: 512})
	p.closed(limitExceeded)
	if s := r.server.Stats(); s.ConnectionsRefused != 1 {
		t.Errorf("refused: %d", s.ConnectionsRefused)
	}
	// One that waits to be refused takes nobody's place.
	r.connect()
	eventually(t, "11 connections", func() bool { return r.server.Stats().Connections == 11 })
	live[0].close()
	eventually(t, "10 connections", func() bool { return r.server.Stats().Connections == 10 })
	r.opened("next")
	p = r.connect()
	p.open(codec.Open{ContainerID: "12", MaxFrameSize: 512})
	p.closed(limitExceeded)
}

func TestConnectionLimitFarExceeded(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.MaxConnections = 1 })
	r.opened("c")
	for range refusalsAtOnce {
		r.connect()
	}
	eventually(t, "all connected", func() bool { return r.server.Stats().Connections == 1+refusalsAtOnce })
	p := r.connect()
	p.eof()
	if s := r.server.Stats(); s.ConnectionsRefused != 1 || s.Connections != 1+refusalsAtOnce {
		t.Errorf("stats are %+v", s)
	}
}

func TestCase061_OneLinePerDisconnectedPeer(t *testing.T) {
	log := &journal{}
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.Log = zerolog.New(log) })
	stages := []func(p *peer){
		func(p *peer) {},
		func(p *peer) { p.write(codec.HeaderAMQP[:3]) },
		func(p *peer) { p.write(codec.HeaderAMQP[:]); p.header() },
		func(p *peer) { p.open(codec.Open{ContainerID: "c", MaxFrameSize: 512}) },
		func(p *peer) { p.open(codec.Open{ContainerID: "c", MaxFrameSize: 512}); p.begin() },
		func(p *peer) {
			p.open(codec.Open{ContainerID: "c", MaxFrameSize: 512})
			p.begin()
			p.receiver(0, "q", 10)
		},
	}
	for i, stage := range stages {
		for _, reset := range []bool{false, true} {
			before := len(log.lines("info", "warn", "error"))
			p := r.connect()
			stage(p)
			if reset {
				_ = p.socket.(*net.TCPConn).SetLinger(0)
			}
			p.socket.Close()
			r.idle()
			if got := len(log.lines("info", "warn", "error")) - before; got > 1 {
				t.Errorf("stage %d, reset %v: %d lines", i, reset, got)
			}
		}
	}
	if errs := log.lines("error", "fatal", "panic"); len(errs) > 0 {
		t.Errorf("a lost peer is no error: %s", errs)
	}
	for _, line := range log.lines("debug", "info") {
		if strings.Contains(line, "goroutine") {
			t.Errorf("stack trace: %s", line)
		}
	}
}

func TestCase062_NoGhostConsumers(t *testing.T) {
	r := start(t, nil)
	o := codec.Open{ContainerID: "ghost", MaxFrameSize: 512}
	a := receiverAttach("g", 0, "q")
	frames := append(codec.HeaderAMQP[:], encode(0, &o)...)
	frames = append(frames, encode(0, &codec.Begin{IncomingWindow: 10, OutgoingWindow: 10, HandleMax: 10})...)
	frames = append(frames, encode(0, &a)...)
	frames = append(frames, encode(0, &codec.Flow{NextIncomingID: codec.Some(uint32(0)), IncomingWindow: 10, OutgoingWindow: 10, Handle: codec.Some(uint32(0)), DeliveryCount: codec.Some(uint32(0)), LinkCredit: codec.Some(uint32(10))})...)
	for i := range 300 {
		p := r.connect()
		p.write(frames)
		if i%2 == 0 {
			_ = p.socket.(*net.TCPConn).SetLinger(0)
		}
		p.socket.Close()
	}
	eventually(t, "all accepted", func() bool { return r.server.Stats().ConnectionsTotal == 300 })
	r.idle()
	p := r.opened("c")
	p.sender(0, "q")
	for i := range 20 {
		p.put(0, data(fmt.Sprint(i)))
	}
	p.receiver(1, "q", 20)
	for i := range 20 {
		if d := p.receive(); d.body(t) != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, d.body(t))
		}
	}
	r.depth("q", 0, 20)
}

func TestSilentPeerAfterAFaultIsCutOff(t *testing.T) {
	// The wait for the peer's close has its own, short time-out.
	r := start(t, nil)
	p := r.opened("c")
	p.write(rawFrame(0, 9, []byte{0, 0x53, 0x17, 0x45}))
	c, _ := await[codec.Close](p)
	p.condition(c.Error, amqp.ConditionFramingError)
	r.server.each(func(c *connection) {
		c.guard.Lock()
		defer c.guard.Unlock()
		if left := time.Until(c.nextTick); left <= 0 || left > amqp.Defaults().CloseTimeout {
			t.Errorf("the peer's close is waited for %v", left)
		}
	})
}

func TestPeerClosesWithAnError(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	p.send(p.transfer(0, false), data("x"))
	p.write(encode(0, &codec.Close{Error: &codec.ErrorInfo{Condition: "app:bye"}}))
	c, _ := await[codec.Close](p)
	p.condition(c.Error, "")
	p.eof()
	r.depth("q", 1, 0)
	r.idle()
}
