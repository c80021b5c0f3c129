package amqp

import (
	"slices"

	"github.com/letomq/leto/codec"
)

// Session is one end of a session [2.5]. It belongs to its Conn.
type Session struct {
	// Context is the shell's own.
	Context any

	conn    *Conn
	channel uint16 // ours
	remote  uint16 // the peer's
	mapped  bool   // begin received
	begun   bool   // begin sent

	endSent bool // what still comes is dropped, but for the peer's end
	gone    bool // the peer's end arrived

	window window

	links         []*Link // by the peer's handle
	ours          []*Link // by our handle
	detaching     int     // of them, those that only we have detached
	peerHandleMax uint32

	nextDeliveryID uint32
	outgoing       unsettled[sent]
	incoming       unsettled[received]
	settling       ranges // our states for incoming deliveries
	settled        ranges // our settlements of outgoing deliveries

	sending  []*Link // links with queued transfers, served in turn
	flowing  []*Link // links that owe a flow
	flowDue  bool    // a flow without a link is owed
	flushDue bool    // in conn.due
	pumpDue  bool    // in conn.pumping
}

// Conn returns the connection the session is on.
func (s *Session) Conn() *Conn { return s.conn }

// Channel returns the number of the channel we send on.
func (s *Session) Channel() uint16 { return s.channel }

// Outstanding returns how many deliveries we have sent that aren't settled.
func (s *Session) Outstanding() int { return s.outgoing.len() }

// Live reports whether neither end has ended the session.
func (s *Session) Live() bool { return s.mapped && s.begun && !s.endSent && !s.gone }

func (c *Conn) onBegin(channel uint16, p *codec.Begin) {
	if int(channel) < len(c.sessions) && c.sessions[channel] != nil {
		c.fail(ConditionFramingError, "begin on channel %d, where a session is", channel)
		return
	}
	if p.RemoteChannel.Set {
		c.onBeginReply(channel, p)
		return
	}
	local, ok := c.freeChannel()
	if !ok {
		c.fail(ConditionResourceLimitExceeded, "channel-max %d leaves no channel to answer on", c.Remote.ChannelMax)
		return
	}
	s := &Session{conn: c, channel: local, remote: channel, mapped: true}
	s.peerBegan(p)
	c.bind(s, channel)
	c.ours[local] = s
	s.sendBegin(codec.Some(channel))
	c.emit(EventBegun).Session = s
}

func (c *Conn) onBeginReply(channel uint16, p *codec.Begin) {
	local := p.RemoteChannel.Value
	if int(local) >= len(c.ours) || c.ours[local] == nil || c.ours[local].mapped {
		c.fail(ConditionFramingError, "begin answers channel %d, which was not begun", local)
		return
	}
	s := c.ours[local]
	s.mapped, s.remote = true, channel
	s.peerBegan(p)
	c.bind(s, channel)
	c.emit(EventBegun).Session = s
}

func (s *Session) peerBegan(p *codec.Begin) {
	s.peerHandleMax = p.HandleMax
	s.window.peerBegan(p, s.conn.cfg.IncomingWindow)
}

func (c *Conn) bind(s *Session, channel uint16) {
	for int(channel) >= len(c.sessions) {
		c.sessions = append(c.sessions, nil)
	}
	c.sessions[channel] = s
}

func (c *Conn) freeChannel() (uint16, bool) {
	for i, s := range c.ours {
		if s == nil {
			return uint16(i), true
		}
	}
	if len(c.ours) > int(c.Remote.ChannelMax) {
		return 0, false
	}
	c.ours = append(c.ours, nil)
	return uint16(len(c.ours) - 1), true
}

// Begin starts a session from this end; EventBegun follows when the peer has
// answered. Nil: the peer's channel-max leaves no channel, or the connection
// isn't open.
func (c *Conn) Begin() *Session {
	if !c.openSent || c.closeSent || c.closeReceived {
		return nil
	}
	local, ok := c.freeChannel()
	if !ok {
		return nil
	}
	s := &Session{conn: c, channel: local}
	s.window.incoming = c.cfg.IncomingWindow
	c.ours[local] = s
	s.sendBegin(codec.Opt[uint16]{})
	return s
}

func (s *Session) sendBegin(remote codec.Opt[uint16]) {
	s.begun = true
	s.conn.begun++
	s.window.incoming = s.conn.cfg.IncomingWindow
	s.conn.write(s.channel, &codec.Begin{
		RemoteChannel:  remote,
		NextOutgoingID: s.window.nextOutgoing,
		IncomingWindow: s.window.incoming,
		OutgoingWindow: announcedOutgoing,
		HandleMax:      s.conn.cfg.HandleMax,
	})
}

func (s *Session) onEnd(p *codec.End) {
	c := s.conn
	s.gone = true
	c.sessions[s.remote] = nil
	if s.endSent {
		s.free()
		return
	}
	s.dropLinks()
	ev := c.emit(EventEnded)
	ev.Session, ev.Err = s, fromWire(p.Error)
}

// End ends the session [2.5.8]; as an answer to the peer's end err is nil.
func (s *Session) End(err *Error) {
	if s.endSent || s.conn.closeSent || !s.begun {
		return
	}
	s.flush()
	s.endSent = true
	s.dropLinks()
	s.conn.write(s.channel, &codec.End{Error: err.wire()})
	if s.gone {
		s.free()
	}
}

func (s *Session) free() {
	if s.conn.ours[s.channel] == s {
		s.conn.ours[s.channel] = nil
		s.conn.begun--
	}
}

// fail ends the session over a fault of the peer.
func (s *Session) fail(condition codec.Symbol, format string, args ...any) {
	if s.endSent {
		return
	}
	err := Errorf(condition, format, args...)
	ev := s.conn.emit(EventSessionFailed)
	ev.Session, ev.Err = s, err
	s.End(err)
}

// dropLinks forgets the links and what is queued on them.
func (s *Session) dropLinks() {
	for _, l := range slices.Concat(s.links, s.ours) {
		if l != nil {
			l.drop()
		}
	}
	s.links, s.ours = nil, nil
	s.conn.detaching -= s.detaching
	s.detaching = 0
	s.sending, s.flowing, s.flowDue = nil, nil, false
}

func (c *Conn) dropSessions() {
	for _, s := range c.ours {
		if s != nil {
			s.dropLinks()
			s.endSent = true // nothing is written behind close
		}
	}
	c.sessions, c.ours, c.begun = nil, nil, 0
	c.due, c.pumping = nil, nil
}

// Sessions returns how many sessions are mapped or being mapped.
func (c *Conn) Sessions() int { return c.begun }
