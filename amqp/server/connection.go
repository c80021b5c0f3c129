package server

import (
	"container/list"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/amqp/server/stream"
	"github.com/letomq/leto/engine"
)

// connection is one peer. Its reader and its writer share the machine and
// everything on its links; guard is what makes one of them the owner at a time.
type connection struct {
	server *Server
	socket net.Conn
	id     string
	tag    [8]byte // what no other connection has
	mail   mailbox

	// refused: over the connection limit, to be told so.
	refused bool
	// handshake and evicted are the server's handshakes'.
	handshake *list.Element
	evicted   bool

	guard               sync.Mutex
	machine             *amqp.Conn
	nextTick            time.Time
	dirty               []*outgoing // have settlements to hand to their queue
	refill              []*outgoing // may be given more deliveries
	annotationsRead     []byte      // of a modified outcome in the input at hand
	annotations         []engine.Annotation
	links               map[*attachment]struct{}
	transactions        map[transactionID]*transaction // that aren't discharged
	lastTransaction     uint64
	sessions            int
	eof                 bool // the peer has shut its side down: what we still have to say goes out
	lost                bool // the socket failed
	ended               bool // its links are closed for good
	cause               error
	framesIn, framesOut uint64 // already counted
	writing             int    // bytes given to the socket and not taken yet
	unanswered          int    // links noted with the server that the peer hasn't detached
	refusals            int    // sessions that were refused
	outputHeld          int64  // bytes noted with the server's outputs
	hasOpened           bool   // the peer has
	moved               int    // messages since the last account
	owed                int    // frames that no message has paid for
	framesPaid          uint64 // frames that account knows

	slow     bool      // the reader's: what it reads next belongs into the lane
	place    place     // the reader's, in the lane
	inputDue time.Time // the reader's: deadline of its reads

	// The server's inputs':
	inputHeld int64 // bytes of the reader's buffer beyond the least
	inputGone bool  // they aren't counted any more
	begun     *list.Element

	heard        atomic.Bool   // the peer has said something: the writer runs
	writingSince atomic.Int64  // unix nanoseconds; 0: no write is under way
	room         chan struct{} // capacity one: output was written, or letters were opened
	dead         chan struct{} // closed when the writer has written its last
	readDone     chan struct{} // closed when the reader has read its last
}

func newConnection(s *Server, socket net.Conn, m amqp.Config, serial uint64) *connection {
	return &connection{
		server:   s,
		socket:   stream.Over(socket),
		id:       strconv.FormatUint(serial, 10),
		tag:      m.TagPrefix,
		machine:  amqp.New(m, s.cfg.Now()),
		owed:     framesOwed + 1, // it has yet to move something
		mail:     mailbox{wake: make(chan struct{}, 1)},
		room:     make(chan struct{}, 1),
		dead:     make(chan struct{}),
		readDone: make(chan struct{}),
	}
}

// note adds to a log line whose connection it is; nil where nothing is logged.
func (c *connection) note(line *zerolog.Event) *zerolog.Event {
	return line.Str("conn", c.id).Stringer("peer", c.socket.RemoteAddr())
}

// report writes a line that the peer has brought about, unless there have been many like it; more adds to it.
func (c *connection) report(level zerolog.Level, message string, more func(*zerolog.Event)) {
	line := c.server.told.line(c.server.cfg.Now(), level, message)
	if line == nil {
		return
	}
	if more != nil {
		more(line)
	}
	c.note(line).Msg(message)
}

// readLoop feeds the machine until the socket or the connection ends. The
// writer is started with the first bytes: a peer that says nothing costs little.
func (c *connection) readLoop() {
	defer close(c.readDone)
	buf := make([]byte, readBufferMin)
	_ = c.socket.SetReadDeadline(time.Now().Add(c.server.cfg.HandshakeTimeout)) // sockets know no other clock
	w, err := c.socket.Read(buf)
	if w == 0 {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.server.count.handshakeTimeouts.Add(1)
		}
		c.socket.Close()
		c.server.forget(c)
		c.note(c.server.cfg.Log.Debug()).Err(err).Msg("connection ended before it said anything")
		return
	}
	_ = c.socket.SetReadDeadline(time.Time{})
	c.heard.Store(true)
	c.server.wg.Go(c.writeLoop)
	n, r, small := w, 0, 0
	begun := false // the frame at the front needs the buffer
	defer func() {
		c.server.inputs.free.put(buf)
		c.server.inputs.release(c)
	}()
	for {
		if n > 0 {
			c.server.count.bytesIn.Add(uint64(n))
			used, want, done := c.feed(buf[r:w])
			if done {
				return
			}
			r += used
			if used > 0 && begun {
				begun = false
				c.server.inputs.ended(c)
			}
			full, needed := w == len(buf), want > len(buf)
			switch {
			case full && len(buf) < max(readBufferMax, want) && (needed || c.server.inputs.ample()):
				// Larger frames than the buffer, or more in the socket than it holds. What
				// a frame only says of its size takes no memory: half of it has come.
				bigger := c.server.inputs.free.get(min(2*len(buf), max(readBufferMax, want)))
				c.server.inputs.resize(c, len(bigger)-len(buf), needed)
				begun = begun || needed
				w = copy(bigger, buf[r:w])
				c.server.inputs.free.put(buf)
				buf, r, small = bigger, 0, 0
			case r > 0:
				w = copy(buf, buf[r:w])
				r = 0
				if w == 0 && n < len(buf)/8 && len(buf) > readBufferMin {
					if small++; small > 64 || !c.server.inputs.ample() {
						c.server.inputs.resize(c, -len(buf)/2, false)
						buf, small = make([]byte, len(buf)/2), 0
					}
				}
			}
		}
		if err != nil {
			c.readFailed(err)
			return
		}
		if len(buf) > readBufferMin {
			c.expectInput()
		}
		n, err = c.socket.Read(buf[w:])
		w += n
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.becalmed() {
			if fits := max(2*w, readBufferMin); fits < len(buf) {
				c.server.inputs.resize(c, fits-len(buf), false)
				smaller := make([]byte, fits)
				copy(smaller, buf[:w])
				buf, small = smaller, 0
			}
			err = nil
		}
	}
}

// expectInput has a read end after a while, so that a large buffer isn't held by a connection that became quiet.
func (c *connection) expectInput() {
	now := time.Now() // sockets know no other clock
	if c.inputDue.Sub(now) > quietTimeout/2 {
		return
	}
	select {
	case <-c.dead: // the deadline is finish's
	default:
		c.inputDue = now.Add(quietTimeout)
		_ = c.socket.SetReadDeadline(c.inputDue)
	}
}

// becalmed takes the deadline of expectInput back when it was that which ended a read.
func (c *connection) becalmed() bool {
	select {
	case <-c.dead:
		return false
	default:
	}
	c.inputDue = time.Time{}
	_ = c.socket.SetReadDeadline(time.Time{})
	select {
	case <-c.dead: // finish set its own in between
		_ = c.socket.SetReadDeadline(time.Now().Add(lingerTimeout))
	default:
	}
	return true
}

// feed hands b to the machine and acts on what happens. It returns how much
// was used, how long the frame at the front of the rest is, and whether nothing
// more is to be read. It waits while the peer leaves our answers unread.
func (c *connection) feed(b []byte) (used, want int, done bool) {
	now := c.server.cfg.Now()
	c.take()
	for seen := min(len(b), c.quantum()); ; {
		n, ev := c.machine.Next(now, b[used:seen])
		used += n
		switch {
		case ev != nil:
			c.handle(now, ev)
			continue
		case seen < len(b) && !c.machine.Done():
			if !c.pass() {
				c.guard.Unlock()
				return used, 0, true
			}
			seen = min(len(b), seen+c.quantum())
			continue
		}
		break
	}
	c.settleDirty()
	c.chargeDetached()
	done = c.machine.Done()
	if done {
		c.endLinks(engine.ClosingLost)
	} else if c.nextTick.IsZero() {
		c.schedule(now)
	}
	want = c.machine.Want(b[used:])
	c.chargeOutput()
	poke := done || c.machine.HasOutput()
	c.yield()
	if !done && (c.machine.Encoded() > c.pause() || c.mail.full()) {
		done = !c.awaitRoom()
	}
	c.guard.Unlock()
	if poke {
		c.mail.poke()
	}
	return used, want, done
}

// take takes the guard for input to be worked through, in the lane if that is where it belongs.
func (c *connection) take() {
	if c.slow {
		c.place = c.server.lane.enter()
	}
	c.enter()
}

// yield leaves the lane, and notes whether the next input belongs there. Behind it the reader may wait.
func (c *connection) yield() {
	if c.slow {
		c.server.lane.leave(c.place)
	}
	c.account()
	c.slow = c.owes()
}

// pass goes from one quantum of input to the next: others get their turn, and a peer that leaves our answers unread is
// waited for; false: for ever.
func (c *connection) pass() bool {
	wasSlow := c.slow
	c.yield()
	if c.machine.Encoded() > c.pause() && !c.awaitRoom() {
		c.slow = false // has no place to leave
		return false
	}
	if wasSlow || c.slow {
		c.settleDirty() // what it says must not wait
		c.guard.Unlock()
		c.take()
	}
	return true
}

// awaitRoom waits, without the guard, while the peer leaves our answers unread; false: for ever. Settlements are
// handed over before, since what they say must not wait.
func (c *connection) awaitRoom() bool {
	c.settleDirty()
	c.chargeOutput()
	for c.machine.Lent() && c.machine.Encoded() > c.pause() || c.mail.full() {
		c.guard.Unlock()
		c.mail.poke()
		alive := true
		select {
		case <-c.room:
		case <-c.dead:
			alive = false
		}
		c.enter()
		if !alive {
			return false
		}
	}
	return true
}

// readFailed: the peer is gone, or has shut its side down.
func (c *connection) readFailed(err error) {
	c.enter()
	c.eof = true
	c.lost = c.lost || !errors.Is(err, io.EOF)
	if c.cause == nil && c.lost && !errors.Is(err, net.ErrClosed) {
		c.cause = err
	}
	c.endLinks(engine.ClosingLost)
	c.guard.Unlock()
	c.mail.poke()
}

// writeLoop hands over letters and writes what the machine has to say.
func (c *connection) writeLoop() {
	defer c.server.forget(c)
	timer := time.NewTimer(c.server.cfg.HandshakeTimeout)
	defer timer.Stop()
	var mail letters
	var armed time.Time
	slow := false // what it has to say belongs into the lane
	for {
		var p place
		if slow {
			p = c.server.lane.enter()
		}
		now := c.server.cfg.Now()
		c.enter()
		out := c.turn(now, &mail)
		done, lost, next := c.machine.Done() || c.eof, c.lost, c.nextTick
		owes := c.owes()
		c.guard.Unlock()
		if slow {
			c.server.lane.leave(p)
		}
		slow = owes
		if len(out) > 0 && !lost {
			err := c.write(now, out)
			c.giveBack(out)
			if err != nil {
				c.readFailed(err)
			}
			c.signalRoom()
			continue
		}
		if done || lost {
			c.finish(lost)
			return
		}
		if !next.IsZero() && !next.Equal(armed) {
			timer.Reset(next.Sub(now))
			armed = next
		}
		select {
		case <-c.mail.wake:
		case <-timer.C:
			armed = time.Time{}
			mail = letters{} // an idle connection holds no buffers
			c.tick()
		}
	}
}

// signalRoom has a reader that waits for the peer to read look again.
func (c *connection) signalRoom() {
	select {
	case c.room <- struct{}{}:
	default:
	}
}

func (c *connection) tick() {
	c.enter()
	defer c.guard.Unlock()
	c.schedule(c.server.cfg.Now())
	if c.machine.Done() && !c.hasOpened {
		c.server.count.handshakeTimeouts.Add(1)
	}
	c.pollEvents()
}

// schedule does what is due, and notes when tick has to be called next.
func (c *connection) schedule(now time.Time) {
	c.nextTick = c.machine.Tick(now)
	if next := c.expireTransactions(now); !next.IsZero() && (c.nextTick.IsZero() || next.Before(c.nextTick)) {
		c.nextTick = next
	}
}

// enter takes the guard and sees to it that the machine has room to work in.
func (c *connection) enter() {
	c.guard.Lock()
	if !c.machine.Lent() {
		c.machine.Lend(c.server.workspaces.get())
	}
}

// turn lets the machine take what is in the mailbox and returns what is to be
// written. With nothing to write the machine's workspace goes back.
func (c *connection) turn(now time.Time, mail *letters) []byte {
	if c.mail.swap(mail) {
		c.open(now, mail)
		c.pollEvents()
		c.signalRoom()
	}
	spare := c.server.buffers.get()
	c.machine.LimitOutput(c.ahead())
	out := c.machine.Output(now, spare)
	c.writing = len(out)
	c.chargeOutput()
	c.topUp()
	c.countFrames()
	if len(out) == 0 {
		c.giveBack(spare)
		if w := c.machine.Reclaim(); w != nil {
			c.server.workspaces.put(w)
		}
	}
	return out
}

// pollEvents acts on events that came from something other than input.
func (c *connection) pollEvents() {
	now := c.server.cfg.Now()
	for {
		_, ev := c.machine.Next(now, nil)
		if ev == nil {
			break
		}
		c.handle(now, ev)
	}
	c.settleDirty()
	if c.machine.Done() {
		c.endLinks(engine.ClosingLost)
	}
}

func (c *connection) giveBack(out []byte) {
	if cap(out) <= bufferKept {
		c.server.buffers.put(out[:0])
	}
}

// write writes out in pieces: a peer that reads slowly, but reads, isn't cut off.
func (c *connection) write(now time.Time, out []byte) error {
	defer c.writingSince.Store(0)
	for len(out) > 0 {
		c.writingSince.Store(now.UnixNano())
		n, err := c.socket.Write(out[:min(len(out), writePiece)])
		c.server.count.bytesOut.Add(uint64(n))
		if err != nil {
			return err
		}
		if out = out[n:]; len(out) > 0 {
			now = c.server.cfg.Now()
		}
	}
	return nil
}

// finish closes the socket: behind our last byte the write side first, and
// what still comes is read away, since closing with unread input resets the
// connection and destroys what the peer hasn't read. That takes a second with a
// peer that doesn't close, and so is done for some only where many end at once.
func (c *connection) finish(lost bool) {
	close(c.dead)
	lingering := &c.server.lingering
	if lingering.Add(1) <= lingeringMost && !lost {
		if half, ok := c.socket.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_ = c.socket.SetReadDeadline(time.Now().Add(lingerTimeout))
			<-c.readDone
			_, _ = io.CopyN(io.Discard, c.socket, inputPause)
		}
	}
	lingering.Add(-1)
	c.socket.Close()
	<-c.readDone
	c.enter()
	c.endLinks(engine.ClosingLost)
	c.server.outputs.bytes.Add(-c.outputHeld)
	c.outputHeld = 0
	c.server.count.linkBytes.Add(-int64(c.unanswered) * detachedCost)
	c.unanswered = 0
	cause := c.cause
	c.guard.Unlock()
	c.server.broker.Disconnected(c.id)
	if cause != nil {
		c.report(zerolog.InfoLevel, "connection ended", func(line *zerolog.Event) { line.Str("error", brief(cause.Error())) })
	} else {
		c.note(c.server.cfg.Log.Debug()).Msg("connection ended")
	}
}

// settleDirty hands the settlements collected from one read to their queues.
func (c *connection) settleDirty() {
	dirty := c.dirty
	c.dirty = nil // a session that ends over it comes here again
	for _, o := range dirty {
		o.inDirty = false
		o.flush()
	}
	clear(dirty)
	if c.dirty == nil {
		c.dirty = dirty[:0]
	}
	c.annotationsRead, c.annotations = nil, nil // they alias the input
}

func (c *connection) countFrames() {
	n := &c.server.count
	n.framesIn.Add(c.machine.FramesIn - c.framesIn)
	n.framesOut.Add(c.machine.FramesOut - c.framesOut)
	c.framesIn, c.framesOut = c.machine.FramesIn, c.machine.FramesOut
}
