package amqp

import (
	"time"

	"github.com/letomq/leto/codec"
)

// establishmentFailed in an open's properties says that a close follows [2.7.1].
const establishmentFailed codec.Symbol = "amqp:connection-establishment-failed"

func (c *Conn) onOpen(channel uint16, p *codec.Open) {
	if c.state != stateOpening {
		c.fail(ConditionIllegalState, "second open")
		return
	}
	if channel != 0 {
		c.fail(ConditionFramingError, "open on channel %d", channel)
		return
	}
	c.Remote = *p
	c.state = stateOpened
	idle := time.Duration(p.IdleTimeOut) * time.Millisecond
	switch {
	case p.MaxFrameSize < minFrameSize:
		c.peerFrameSize = minFrameSize
		c.fail(ConditionFramingError, "max-frame-size %d is below %d", p.MaxFrameSize, minFrameSize)
		return
	case idle > 0 && idle < c.cfg.MinPeerIdleTimeout:
		c.peerFrameSize = p.MaxFrameSize
		c.fail(ConditionNotAllowed, "idle-time-out of %d ms is below %d ms", p.IdleTimeOut, c.cfg.MinPeerIdleTimeout.Milliseconds())
		return
	}
	c.peerFrameSize = min(p.MaxFrameSize, c.cfg.MaxFrameSize)
	c.peerIdle = idle
	c.emit(EventOpened).Open = &c.Remote
}

// Accept answers the peer's open. more is added to the configured properties.
func (c *Conn) Accept(more codec.Map) { c.sendOpen(more) }

// Refuse answers the peer's open with one that says a close follows, and the close.
func (c *Conn) Refuse(err *Error) {
	c.sendOpen(codec.Map{{Key: establishmentFailed, Value: true}})
	c.Close(err)
}

func (c *Conn) sendOpen(more codec.Map) {
	if c.openSent {
		return
	}
	c.openSent = true
	properties := c.cfg.Properties
	if len(more) > 0 {
		properties = append(properties[:len(properties):len(properties)], more...)
	}
	open := codec.Open{
		ContainerID:  c.cfg.ContainerID,
		Hostname:     c.cfg.Hostname,
		MaxFrameSize: c.cfg.MaxFrameSize,
		ChannelMax:   c.cfg.ChannelMax,
		// Half of the real threshold, so that a heartbeat on the way isn't too late [2.4.5].
		IdleTimeOut:         uint32((c.cfg.IdleTimeout / 2).Milliseconds()),
		OfferedCapabilities: c.cfg.OfferedCapabilities,
		Properties:          properties,
	}
	start := len(c.out)
	c.write(0, &open)
	if len(c.out)-start > int(c.peerFrameSize) {
		// The peer takes no frame of that size: what it can do without stays out.
		c.out = c.out[:start]
		c.FramesOut--
		open.OfferedCapabilities, open.Properties = nil, more
		c.write(0, &open)
	}
}

func (c *Conn) onClose(p *codec.Close) {
	if c.closeSent {
		c.state = stateClosed
		return
	}
	for _, s := range c.ours {
		if s != nil {
			s.dropLinks() // the session stays: outcomes may be given until our close
		}
	}
	c.pumping = nil
	c.state = stateClosing
	c.discarding = true
	c.closeAt = c.now.Add(c.cfg.CloseTimeout)
	c.closeReceived = true
	c.emit(EventClosed).Err = fromWire(p.Error)
}

// Close ends the connection [2.4.6]; as an answer to the peer's close err is
// nil. Outcomes and credit already decided are written before it.
func (c *Conn) Close(err *Error) {
	if c.closeSent || c.state == stateClosed {
		return
	}
	if !c.openSent {
		if c.state != stateOpened && c.state != stateOpening && c.state != stateClosing {
			c.state = stateClosed
			return
		}
		c.sendOpen(codec.Map{{Key: establishmentFailed, Value: true}})
	}
	c.flushSessions()
	c.closeSent = true
	c.dropSessions()
	c.write(0, &codec.Close{Error: err.wire()})
	if c.closeReceived {
		c.state = stateClosed
		return
	}
	c.state = stateClosing
	c.closeAt = c.now.Add(c.cfg.CloseTimeout)
	c.discarding = true
}

// fail closes the connection over a fault of the peer.
func (c *Conn) fail(condition codec.Symbol, format string, args ...any) {
	err := Errorf(condition, format, args...)
	if c.state == stateClosed {
		return
	}
	if c.state == stateHeader || c.state == stateSASL {
		c.die(err)
		return
	}
	if c.closeSent { // a fault after our close: the peer's close won't come in order
		c.state = stateClosed
		return
	}
	c.emit(EventFailed).Err = err
	c.discarding = true
	c.Close(err)
}

// lose closes the connection when the place where the next frame starts is
// lost: the peer's close can't be waited for.
func (c *Conn) lose(format string, args ...any) {
	c.fail(ConditionFramingError, format, args...)
	c.state = stateClosed
}
