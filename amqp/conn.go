package amqp

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/letomq/leto/codec"
)

type connState uint8

const (
	stateHeader  connState = iota // the peer's protocol header is due
	stateSASL                     // frames of the SASL layer
	stateOpening                  // AMQP headers exchanged, the peer's open is due
	stateOpened
	stateClosing // close sent, the peer's close is due
	stateClosed  // nothing more is read; what Output holds is the last
)

// Conn is one end of a connection: a machine that is given bytes and time and
// yields events and bytes. It isn't safe for concurrent use.
type Conn struct {
	// Remote is the peer's open, valid from EventOpened on.
	Remote codec.Open
	// FramesIn and FramesOut count the frames of the AMQP layer.
	FramesIn, FramesOut uint64
	// Identity is who SASL found the peer to be; empty for anonymous.
	Identity string

	cfg     Config
	state   connState
	started time.Time
	now     time.Time
	lastIn  time.Time
	lastOut time.Time
	unread  int       // length of what the last Next left of its bytes
	closeAt time.Time // when closing: the peer's close is waited for until then

	openSent      bool
	closeSent     bool
	closeReceived bool
	discarding    bool // either end has closed: everything but the peer's close is dropped
	peerFrameSize uint32
	peerIdle      time.Duration

	sasl saslState

	sessions []*Session // by the peer's channel number
	ours     []*Session // by our channel number
	begun    int

	detaching int // links of all sessions that only we have detached

	queued  int        // bytes of queued transfers not yet encoded
	due     []*Session // owe outcomes or flows
	pumping []*Session // have transfers queued and a window for them
	tags    uint64

	taken int
	sweep sweep

	*Workspace
}

// New makes the machine of a connection accepted, or to be opened, at now.
func New(cfg Config, now time.Time) *Conn {
	c := &Conn{cfg: cfg, started: now, now: now, lastIn: now, lastOut: now, peerFrameSize: minFrameSize}
	if !cfg.Lent {
		c.Workspace = new(Workspace)
	}
	if !cfg.Server {
		c.startClient()
	}
	return c
}

// Next works through b, which starts where the bytes consumed so far ended,
// until something happened. It returns how many bytes it consumed and the
// event; no event: more bytes are needed. b must stay as it is until Next has
// returned no event.
func (c *Conn) Next(now time.Time, b []byte) (int, *Event) {
	c.now = now
	if len(b) > c.unread { // not just what was there before
		c.lastIn = now
	}
	n, ev := c.work(b)
	c.unread = len(b) - n
	return n, ev
}

func (c *Conn) work(b []byte) (int, *Event) {
	n := 0
	for {
		if ev := c.nextEvent(); ev != nil {
			return n, ev
		}
		var used int
		switch c.state {
		case stateHeader:
			used = c.readHeader(b[n:])
		case stateClosed:
			return len(b), nil
		default:
			used = c.readFrame(b[n:])
		}
		if used == 0 {
			if ev := c.nextEvent(); ev != nil {
				return n, ev
			}
			return n, nil
		}
		n += used
	}
}

// Want returns how many bytes the frame at the front of b has in all, as far
// as b tells; a buffer of that size is enough. It never exceeds the frame size we accept.
func (c *Conn) Want(b []byte) int {
	if c.state == stateHeader || len(b) < 8 {
		return 8
	}
	return int(min(binary.BigEndian.Uint32(b), c.maxFrame()))
}

// Done reports that nothing more will be read or written once Output was written.
func (c *Conn) Done() bool { return c.state == stateClosed }

// Opened reports whether the peer's open has arrived and neither end has closed.
func (c *Conn) Opened() bool { return c.state == stateOpened }

func (c *Conn) nextEvent() *Event {
	if c.taken < len(c.events) {
		c.taken++
		return &c.events[c.taken-1]
	}
	if len(c.events) > 0 {
		clear(c.events)
		c.events, c.taken = c.events[:0], 0
	}
	return c.sweepNext()
}

// emit adds an event of a kind, to be filled in.
func (c *Conn) emit(kind EventKind) *Event {
	c.events = append(c.events, Event{Kind: kind})
	return &c.events[len(c.events)-1]
}

func (c *Conn) maxFrame() uint32 {
	if c.state < stateOpened {
		return min(c.cfg.HandshakeFrameSize, c.cfg.MaxFrameSize)
	}
	return c.cfg.MaxFrameSize
}

// readFrame handles the frame at the front of b and returns its size; 0: it isn't whole yet.
func (c *Conn) readFrame(b []byte) int {
	if len(b) < 8 {
		return 0
	}
	h, err := codec.ReadFrameHeader(b)
	if err != nil {
		c.lose("%v", err)
		return len(b)
	}
	if h.Size > c.maxFrame() {
		c.lose("frame of %d bytes exceeds the maximum of %d", h.Size, c.maxFrame())
		return len(b)
	}
	if uint64(len(b)) < uint64(h.Size) {
		return 0
	}
	size := int(h.Size)
	body := b[int(h.DataOffset)*4 : size]
	if c.state == stateSASL {
		if h.Type != codec.FrameSASL {
			c.fail(ConditionFramingError, "frame of type %d in the SASL layer", h.Type)
			return len(b)
		}
		c.readSASL(body)
		return size
	}
	if h.Type != codec.FrameAMQP {
		c.fail(ConditionFramingError, "frame of type %d in the AMQP layer", h.Type)
		return size
	}
	c.FramesIn++
	c.readAMQP(h.Channel, body)
	if c.state == stateClosed {
		return len(b)
	}
	return size
}

func (c *Conn) readAMQP(channel uint16, body []byte) {
	if channel > c.cfg.ChannelMax && !c.discarding {
		c.fail(ConditionFramingError, "channel %d exceeds the maximum of %d", channel, c.cfg.ChannelMax)
		return
	}
	if len(body) == 0 {
		if c.state == stateOpening {
			c.fail(ConditionFramingError, "empty frame before open")
		}
		return
	}
	code, fields, err := codec.ReadDescriptor(body)
	if c.discarding && (err != nil || code != codec.CodeClose) {
		return // [2.4.6] CLOSE SENT and DISCARDING
	}
	if err != nil {
		c.failDecode("performative", err)
		return
	}
	if c.state == stateOpening && code != codec.CodeOpen && code != codec.CodeClose {
		c.fail(ConditionIllegalState, "performative 0x%02x before open", uint64(code))
		return
	}
	var rest []byte
	switch code {
	case codec.CodeTransfer:
		rest, err = c.transfer.Decode(fields)
		if err != nil {
			break
		}
		if s := c.live(channel); s != nil {
			s.onTransfer(&c.transfer, rest)
		}
		return
	case codec.CodeDisposition:
		if rest, err = c.disposition.Decode(fields); err == nil && len(rest) == 0 {
			if s := c.live(channel); s != nil {
				s.onDisposition(&c.disposition)
			}
		}
	case codec.CodeFlow:
		if rest, err = c.flow.Decode(fields); err == nil && len(rest) == 0 {
			if s := c.live(channel); s != nil {
				s.onFlow(&c.flow)
			}
		}
	case codec.CodeAttach:
		c.attach = codec.Attach{}
		if rest, err = c.attach.Decode(fields); err == nil && len(rest) == 0 {
			if s := c.live(channel); s != nil {
				s.onAttach(&c.attach)
			}
		}
	case codec.CodeDetach:
		var p codec.Detach
		if rest, err = p.Decode(fields); err == nil && len(rest) == 0 {
			if s := c.live(channel); s != nil {
				s.onDetach(&p)
			}
		}
	case codec.CodeBegin:
		var p codec.Begin
		if rest, err = p.Decode(fields); err == nil && len(rest) == 0 {
			c.onBegin(channel, &p)
		}
	case codec.CodeEnd:
		var p codec.End
		if rest, err = p.Decode(fields); err == nil && len(rest) == 0 {
			if s := c.mapped(channel); s != nil {
				s.onEnd(&p)
			}
		}
	case codec.CodeOpen:
		var p codec.Open
		if rest, err = p.Decode(fields); err == nil && len(rest) == 0 {
			c.onOpen(channel, &p)
		}
	case codec.CodeClose:
		var p codec.Close
		if rest, err = p.Decode(fields); err == nil && len(rest) == 0 {
			c.onClose(&p)
		}
	default:
		c.fail(ConditionNotImplemented, "performative 0x%02x", uint64(code))
		return
	}
	if c.discarding {
		return
	}
	if err != nil {
		c.failDecode(performativeName(code), err)
	} else if len(rest) > 0 {
		c.fail(ConditionFramingError, "%d bytes behind %s", len(rest), performativeName(code))
	}
}

// live returns the session of a channel; nil: there is none, and the connection
// is closed for it, or we have ended it and what still comes is dropped.
func (c *Conn) live(channel uint16) *Session {
	if s := c.mapped(channel); s != nil && !s.endSent {
		return s
	}
	return nil
}

// mapped returns the session of a channel; nil: there is none, and the
// connection is closed for it.
func (c *Conn) mapped(channel uint16) *Session {
	if int(channel) < len(c.sessions) && c.sessions[channel] != nil {
		return c.sessions[channel]
	}
	c.fail(ConditionFramingError, "frame on channel %d, where no session is", channel)
	return nil
}

func (c *Conn) failDecode(what string, err error) {
	condition := ConditionDecodeError
	if errors.Is(err, codec.ErrUnknownDescriptor) {
		condition = ConditionNotImplemented
	}
	c.fail(condition, "%s: %v", what, err)
}

func performativeName(code codec.Code) string {
	switch code {
	case codec.CodeOpen:
		return "open"
	case codec.CodeBegin:
		return "begin"
	case codec.CodeAttach:
		return "attach"
	case codec.CodeFlow:
		return "flow"
	case codec.CodeTransfer:
		return "transfer"
	case codec.CodeDisposition:
		return "disposition"
	case codec.CodeDetach:
		return "detach"
	case codec.CodeEnd:
		return "end"
	case codec.CodeClose:
		return "close"
	default:
		return "performative"
	}
}

// write appends one frame to the output.
func (c *Conn) write(channel uint16, p interface{ Append([]byte) []byte }) {
	start := len(c.out)
	c.out = codec.BeginFrame(c.out, codec.FrameAMQP, channel)
	c.out = p.Append(c.out)
	codec.EndFrame(c.out, start)
	c.FramesOut++
}

// Encoded returns the bytes that the next Output returns at least.
func (c *Conn) Encoded() int { return len(c.out) }

// Detaching returns how many links of all sessions only we have detached.
func (c *Conn) Detaching() int { return c.detaching }

// LimitOutput sets Config.OutputLimit from now on.
func (c *Conn) LimitOutput(bytes int) { c.cfg.OutputLimit = bytes }

// Queued returns the bytes of deliveries given to Send that aren't fully encoded.
func (c *Conn) Queued() int { return c.queued }

// Output returns the bytes to write next, up to about OutputLimit, and goes
// on in spare, whose contents are given up. Nil: nothing is to be written.
func (c *Conn) Output(now time.Time, spare []byte) []byte {
	c.now = now
	if c.openSent && !c.closeSent {
		c.flushSessions()
	}
	if len(c.out) == 0 {
		return nil
	}
	c.lastOut = now
	out := c.out
	c.out = spare[:0]
	return out
}

// HasOutput reports whether Output would return bytes.
func (c *Conn) HasOutput() bool {
	return len(c.out) > 0 || (len(c.due)+len(c.pumping) > 0 && c.openSent && !c.closeSent)
}
