package amqp

import (
	"bytes"

	"github.com/letomq/leto/codec"
)

// readHeader handles a protocol header [2.2, 5.3.1] and returns its size; 0: it isn't whole yet.
func (c *Conn) readHeader(b []byte) int {
	if len(b) < 8 {
		return 0
	}
	got := codec.ProtocolHeader(b[:8])
	if c.cfg.Server {
		c.answerHeader(got)
	} else {
		c.checkHeader(got)
	}
	if c.state == stateClosed {
		return len(b)
	}
	return 8
}

func (c *Conn) answerHeader(got codec.ProtocolHeader) {
	loggedIn := c.sasl.done
	switch {
	case got == codec.HeaderAMQP && (loggedIn || !c.cfg.RequireSASL):
		c.out = append(c.out, codec.HeaderAMQP[:]...)
		c.state = stateOpening
	case got == codec.HeaderSASL && !loggedIn && len(c.cfg.Mechanisms) > 0:
		c.out = append(c.out, codec.HeaderSASL[:]...)
		c.state = stateSASL
		c.offerMechanisms()
	default:
		// What we would take instead; the socket is closed behind it [2.2].
		answer := codec.HeaderAMQP
		if c.cfg.RequireSASL && !loggedIn {
			answer = codec.HeaderSASL
		}
		c.out = append(c.out, answer[:]...)
		c.die(Errorf(ConditionFramingError, "protocol header % x isn't supported", got[:]))
	}
}

func (c *Conn) checkHeader(got codec.ProtocolHeader) {
	want := codec.HeaderAMQP
	if c.cfg.Login != nil && !c.sasl.done {
		want = codec.HeaderSASL
	}
	if !bytes.Equal(got[:], want[:]) {
		c.die(Errorf(ConditionFramingError, "peer answered with protocol header % x", got[:]))
		return
	}
	if want == codec.HeaderSASL {
		c.state = stateSASL
		return
	}
	c.state = stateOpening
}

func (c *Conn) startClient() {
	if c.cfg.Login != nil {
		c.out = append(c.out, codec.HeaderSASL[:]...)
		return
	}
	c.out = append(c.out, codec.HeaderAMQP[:]...)
	c.sendOpen(nil)
}

// die ends the connection where no close can be written.
func (c *Conn) die(err *Error) {
	c.state = stateClosed
	c.dropSessions()
	c.emit(EventFailed).Err = err
}
