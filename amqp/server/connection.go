package server

import (
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/engine"
)

// connection is one peer. Its reader and its writer share the machine and
// everything on its links; guard is what makes one of them the owner at a time.
type connection struct {
	server *Server
	socket net.Conn
	log    zerolog.Logger
	id     string
	mail   mailbox

	// refused: over the connection limit, to be told so.
	refused bool

	guard               sync.Mutex
	machine             *amqp.Conn
	nextTick            time.Time
	dirty               []*outgoing // have settlements to hand to their queue
	refill              []*outgoing // may be given more deliveries
	links               map[*attachment]struct{}
	sessions            int
	lost                bool // the socket failed: what is unsettled counts as lost
	ended               bool // its links are closed for good
	cause               error
	framesIn, framesOut uint64 // already counted

	writingSince atomic.Int64  // unix nanoseconds; 0: no write is under way
	room         chan struct{} // capacity one: output was written
	dead         chan struct{} // closed when the writer has written its last
	readDone     chan struct{} // closed when the reader has read its last
}

func newConnection(s *Server, socket net.Conn, o ListenerOptions, serial uint64) *connection {
	c := &connection{
		server:   s,
		socket:   socket,
		id:       strconv.FormatUint(serial, 10),
		links:    make(map[*attachment]struct{}),
		machine:  amqp.New(s.machineConfig(o), s.cfg.Now()),
		room:     make(chan struct{}, 1),
		dead:     make(chan struct{}),
		readDone: make(chan struct{}),
	}
	c.mail.wake = make(chan struct{}, 1)
	c.log = s.cfg.Log.With().Str("conn", c.id).Str("peer", socket.RemoteAddr().String()).Logger()
	if tcp, ok := socket.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(true) // the default, and what batched writes need
	}
	return c
}

// readLoop feeds the machine until the socket or the connection ends.
func (c *connection) readLoop() {
	defer close(c.readDone)
	buf := make([]byte, readBufferMin)
	r, w, small := 0, 0, 0
	for {
		n, err := c.socket.Read(buf[w:])
		w += n
		if n > 0 {
			c.server.count.bytesIn.Add(uint64(n))
			used, done := c.feed(buf[r:w])
			r += used
			if done {
				c.mail.poke()
				return
			}
		}
		if err != nil {
			c.readFailed(err)
			return
		}
		full := w == len(buf)
		if r == w {
			r, w = 0, 0
		}
		switch want := c.want(buf[r:w]); {
		case want > len(buf) || full && len(buf) < readBufferMax:
			// Larger frames than the buffer, or more in the socket than it holds.
			size := min(max(2*len(buf), want), max(readBufferMax, want))
			bigger := make([]byte, size)
			w = copy(bigger, buf[r:w])
			buf, r, small = bigger, 0, 0
		case r > 0:
			w = copy(buf, buf[r:w])
			r = 0
		case w == 0 && n < len(buf)/8 && len(buf) > readBufferMin:
			if small++; small > 64 {
				buf, small = make([]byte, len(buf)/2), 0
			}
		}
		if !c.waitForRoom() {
			return
		}
	}
}

func (c *connection) want(b []byte) int {
	c.guard.Lock()
	defer c.guard.Unlock()
	return c.machine.Want(b)
}

// feed hands b to the machine and acts on what happens. It returns how much
// was used, and whether nothing more is to be read.
func (c *connection) feed(b []byte) (int, bool) {
	now := c.server.cfg.Now()
	c.guard.Lock()
	used := 0
	for {
		n, ev := c.machine.Next(now, b[used:])
		used += n
		if ev == nil {
			break
		}
		c.handle(now, ev)
	}
	c.settleDirty()
	if c.nextTick.IsZero() && !c.machine.Done() {
		c.nextTick = c.machine.Tick(now)
	}
	poke := c.machine.HasOutput() || c.machine.Done()
	done := c.machine.Done()
	if done {
		c.endLinks(engine.ClosingLost)
	}
	c.guard.Unlock()
	if poke {
		c.mail.poke()
	}
	return used, done
}

// readFailed: the peer is gone, or has shut its side down.
func (c *connection) readFailed(err error) {
	c.guard.Lock()
	c.lost = true
	if c.cause == nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.cause = err
	}
	c.endLinks(engine.ClosingLost)
	c.guard.Unlock()
	c.mail.poke()
}

// waitForRoom holds the reader back while the peer leaves our answers unread.
func (c *connection) waitForRoom() bool {
	for {
		c.guard.Lock()
		over := c.machine.Encoded() > inputPause
		c.guard.Unlock()
		if !over {
			return true
		}
		select {
		case <-c.room:
		case <-c.dead:
			c.readFailed(net.ErrClosed)
			return false
		}
	}
}

// writeLoop hands over letters and writes what the machine has to say.
func (c *connection) writeLoop() {
	defer c.server.forget(c)
	defer close(c.dead)
	timer := time.NewTimer(c.server.cfg.HandshakeTimeout)
	defer timer.Stop()
	var mail letters
	var spare []byte
	var armed time.Time
	for {
		now := c.server.cfg.Now()
		c.guard.Lock()
		out, done := c.turn(now, &mail, spare)
		lost, next := c.lost, c.nextTick
		c.guard.Unlock()
		if len(out) > 0 && !lost {
			written := c.write(now, out)
			spare = keep(out)
			if !written {
				c.readFailed(net.ErrClosed)
				lost = true
			}
			select {
			case c.room <- struct{}{}:
			default:
			}
			if !lost {
				continue
			}
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
			spare, mail = nil, letters{} // an idle connection holds no buffers
			c.tick()
		}
	}
}

func (c *connection) tick() {
	c.guard.Lock()
	defer c.guard.Unlock()
	c.nextTick = c.machine.Tick(c.server.cfg.Now())
	c.pollEvents()
}

// turn lets the machine take what is in the mailbox and returns what is to be written.
func (c *connection) turn(now time.Time, mail *letters, spare []byte) ([]byte, bool) {
	if c.mail.swap(mail) {
		c.open(now, mail)
		c.pollEvents()
	}
	out := c.machine.Output(now, spare)
	c.topUp()
	c.countFrames()
	return out, c.machine.Done()
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

func (c *connection) write(now time.Time, out []byte) bool {
	c.writingSince.Store(now.UnixNano())
	_, err := c.socket.Write(out)
	c.writingSince.Store(0)
	c.server.count.bytesOut.Add(uint64(len(out)))
	return err == nil
}

// finish closes the socket: behind our last byte the write side first, and
// what still comes is read away, since closing with unread input resets the
// connection and destroys what the peer hasn't read.
func (c *connection) finish(lost bool) {
	if !lost {
		if half, ok := c.socket.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_ = c.socket.SetReadDeadline(time.Now().Add(lingerTimeout))
			<-c.readDone
			_, _ = io.CopyN(io.Discard, c.socket, inputPause)
		}
	}
	c.socket.Close()
	<-c.readDone
	c.guard.Lock()
	c.endLinks(engine.ClosingLost)
	cause := c.cause
	c.guard.Unlock()
	c.server.broker.Disconnected(c.id)
	if cause != nil {
		c.log.Info().Err(cause).Msg("connection ended")
	} else {
		c.log.Debug().Msg("connection ended")
	}
}

// keep returns an output buffer for the next turn, unless a burst made it large.
func keep(out []byte) []byte {
	if cap(out) > 8*readBufferMax {
		return nil
	}
	return out[:0]
}

// settleDirty hands the settlements collected from one read to their queues.
func (c *connection) settleDirty() {
	for _, o := range c.dirty {
		o.inDirty = false
		o.flush()
	}
	clear(c.dirty)
	c.dirty = c.dirty[:0]
}

func (c *connection) countFrames() {
	n := &c.server.count
	n.framesIn.Add(c.machine.FramesIn - c.framesIn)
	n.framesOut.Add(c.machine.FramesOut - c.framesOut)
	c.framesIn, c.framesOut = c.machine.FramesIn, c.machine.FramesOut
}
