package amqptest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// Password is what the user "guest" of scripts has.
const Password = "secret"

// scriptConfig is a server's, without idle time-out.
func scriptConfig() amqp.Config {
	c := amqp.Defaults()
	c.Server = true
	c.ContainerID = "leto"
	c.IdleTimeout = 0
	return c
}

// configure applies a config line.
func configure(c *amqp.Config, l *Line) error {
	for _, w := range l.Words {
		switch w {
		case "client":
			c.Server = false
		case "require-sasl":
			c.RequireSASL = true
		default:
			return fmt.Errorf("no setting %q", w)
		}
	}
	for _, f := range l.Fields {
		if err := setting(c, f.Name, f.Text); err != nil {
			return err
		}
	}
	return nil
}

func setting(c *amqp.Config, name, text string) error {
	durations := map[string]*time.Duration{
		"idle-timeout": &c.IdleTimeout, "handshake-timeout": &c.HandshakeTimeout,
		"close-timeout": &c.CloseTimeout, "min-peer-idle-timeout": &c.MinPeerIdleTimeout,
	}
	if d := durations[name]; d != nil {
		v, err := time.ParseDuration(text)
		*d = v
		return err
	}
	switch name {
	case "mechanisms":
		for _, m := range strings.Split(text, ",") {
			switch m {
			case "ANONYMOUS":
				c.Mechanisms = append(c.Mechanisms, amqp.Anonymous())
			case "PLAIN":
				c.Mechanisms = append(c.Mechanisms, amqp.Plain(func(user, password string) amqp.Verdict {
					if user == "guest" && password == Password {
						return amqp.Known
					}
					return amqp.Refused
				}))
			case "STEPS":
				c.Mechanisms = append(c.Mechanisms, steps{})
			default:
				return fmt.Errorf("mechanism %q", m)
			}
		}
		return nil
	case "login": // mechanism,response
		mechanism, response, _ := strings.Cut(text, ",")
		c.Login = &amqp.Login{Mechanism: codec.Symbol(mechanism)}
		var err error
		if response != "" {
			c.Login.Response, err = octets(response)
		}
		return err
	case "container-id":
		c.ContainerID = unquote(text)
		return nil
	case "property":
		key, value, _ := strings.Cut(text, ":")
		c.Properties = append(c.Properties, codec.Pair{Key: codec.Symbol(key), Value: unquote(value)})
		return nil
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return err
	}
	switch name {
	case "max-frame-size":
		c.MaxFrameSize = uint32(n)
	case "handshake-frame-size":
		c.HandshakeFrameSize = uint32(n)
	case "channel-max":
		c.ChannelMax = uint16(n)
	case "handle-max":
		c.HandleMax = uint32(n)
	case "incoming-window":
		c.IncomingWindow = uint32(n)
	case "max-message-size":
		c.MaxMessageSize = n
	case "output-limit":
		c.OutputLimit = int(n)
	default:
		return fmt.Errorf("no setting %q", name)
	}
	return nil
}

// steps is a mechanism of two challenges: each asks for a number, and the
// third response must be "three".
type steps struct{}

type stepsRun struct{ n int }

func (steps) Name() codec.Symbol   { return "STEPS" }
func (steps) Start() amqp.Exchange { return new(stepsRun) }

func (r *stepsRun) Step(response []byte) amqp.Step {
	r.n++
	if r.n < 3 {
		return amqp.Step{Challenge: []byte{byte('0' + r.n)}}
	}
	return amqp.Step{Done: true, OK: string(response) == "three", Identity: "stepper", Final: []byte("final")}
}
