package amqp

import (
	"github.com/letomq/leto/codec"
)

// Mechanism is a SASL mechanism that a server offers [5.3].
type Mechanism interface {
	Name() codec.Symbol
	// Start begins an exchange.
	Start() Exchange
}

// Exchange is one run of a mechanism.
type Exchange interface {
	// Step takes the peer's response; the first is the initial one, nil when
	// absent. It returns a challenge to go on, or done with the outcome.
	Step(response []byte) Step
}

// Step is the server's next move in an exchange.
type Step struct {
	Challenge []byte
	Done      bool
	OK        bool
	Later     bool // not OK now; the same response may be later
	Identity  string
	// Final is additional data of a successful outcome.
	Final []byte
}

// Login is how a client proves who it is in one response.
type Login struct {
	Mechanism codec.Symbol
	Response  []byte
}

// SASL outcome codes [5.3.3.6].
const (
	saslOK      = 0
	saslAuth    = 1
	saslSysTemp = 4
)

type saslState struct {
	done     bool
	exchange Exchange // a server's, once init has come
	initSent bool     // a client's
}

func (c *Conn) offerMechanisms() {
	names := make([]codec.Symbol, len(c.cfg.Mechanisms))
	for i, m := range c.cfg.Mechanisms {
		names[i] = m.Name()
	}
	c.writeSASL(&codec.SASLMechanisms{Mechanisms: names})
}

func (c *Conn) writeSASL(p interface{ Append([]byte) []byte }) {
	start := len(c.out)
	c.out = codec.BeginFrame(c.out, codec.FrameSASL, 0)
	c.out = p.Append(c.out)
	codec.EndFrame(c.out, start)
}

func (c *Conn) readSASL(body []byte) {
	if len(body) == 0 {
		c.die(Errorf(ConditionFramingError, "empty frame in the SASL layer"))
		return
	}
	code, fields, err := codec.ReadDescriptor(body)
	if err != nil {
		c.die(Errorf(ConditionDecodeError, "SASL frame: %v", err))
		return
	}
	if c.cfg.Server {
		err = c.serverSASL(code, fields)
	} else {
		err = c.clientSASL(code, fields)
	}
	if err != nil && c.state != stateClosed {
		c.die(Errorf(ConditionDecodeError, "SASL frame: %v", err))
	}
}

func (c *Conn) serverSASL(code codec.Code, fields []byte) error {
	switch {
	case code == codec.CodeSASLInit && c.sasl.exchange == nil:
		var p codec.SASLInit
		if _, err := p.Decode(fields); err != nil {
			return err
		}
		for _, m := range c.cfg.Mechanisms {
			if m.Name() == p.Mechanism {
				c.sasl.exchange = m.Start()
				var response []byte
				if p.HasResponse {
					response = p.InitialResponse
				}
				c.saslStep(response)
				return nil
			}
		}
		c.refuseSASL("mechanism %q isn't offered", string(p.Mechanism))
	case code == codec.CodeSASLResponse && c.sasl.exchange != nil:
		var p codec.SASLResponse
		if _, err := p.Decode(fields); err != nil {
			return err
		}
		c.saslStep(p.Response)
	default:
		c.refuseSASL("SASL frame 0x%02x out of order", uint64(code))
	}
	return nil
}

func (c *Conn) saslStep(response []byte) {
	step := c.sasl.exchange.Step(response)
	switch {
	case !step.Done:
		c.writeSASL(&codec.SASLChallenge{Challenge: step.Challenge})
	case step.Later:
		c.writeSASL(&codec.SASLOutcome{Code: saslSysTemp})
		c.die(Errorf(ConditionResourceLimitExceeded, "too many logins at once"))
	case !step.OK:
		c.refuseSASL("authentication failed")
	default:
		c.Identity = step.Identity
		c.writeSASL(&codec.SASLOutcome{Code: saslOK, AdditionalData: step.Final})
		c.sasl.done = true
		c.sasl.exchange = nil
		c.state = stateHeader
	}
}

func (c *Conn) refuseSASL(format string, args ...any) {
	c.writeSASL(&codec.SASLOutcome{Code: saslAuth})
	c.die(Errorf(ConditionUnauthorizedAccess, format, args...))
}

// clientSASL goes through mechanisms, init and outcome, in this order: a login isn't told twice, and no outcome counts
// that comes before it.
func (c *Conn) clientSASL(code codec.Code, fields []byte) error {
	switch {
	case code == codec.CodeSASLMechanisms && !c.sasl.initSent:
		var p codec.SASLMechanisms
		if _, err := p.Decode(fields); err != nil {
			return err
		}
		for _, m := range p.Mechanisms {
			if m == c.cfg.Login.Mechanism {
				c.sasl.initSent = true
				c.writeSASL(&codec.SASLInit{Mechanism: m, InitialResponse: c.cfg.Login.Response, HasResponse: c.cfg.Login.Response != nil, Hostname: c.cfg.Hostname})
				return nil
			}
		}
		c.die(Errorf(ConditionUnauthorizedAccess, "peer doesn't offer mechanism %s", c.cfg.Login.Mechanism))
	case code == codec.CodeSASLOutcome && c.sasl.initSent:
		var p codec.SASLOutcome
		if _, err := p.Decode(fields); err != nil {
			return err
		}
		if p.Code != saslOK {
			c.die(Errorf(ConditionUnauthorizedAccess, "peer refused the login with code %d", p.Code))
			return nil
		}
		c.sasl.done = true
		c.out = append(c.out, codec.HeaderAMQP[:]...)
		c.sendOpen(nil)
		c.state = stateHeader
	case code == codec.CodeSASLMechanisms || code == codec.CodeSASLOutcome:
		c.die(Errorf(ConditionIllegalState, "SASL frame 0x%02x out of order", uint64(code)))
	default:
		c.die(Errorf(ConditionNotImplemented, "SASL frame 0x%02x from the server", uint64(code)))
	}
	return nil
}
