package amqp

import (
	"bytes"
	"unicode/utf8"

	"github.com/letomq/leto/codec"
)

// Anonymous lets anybody in without an identity. What the peer sends as trace
// is not looked at [RFC 4505].
func Anonymous() Mechanism { return anonymous{} }

type anonymous struct{}

func (anonymous) Name() codec.Symbol { return "ANONYMOUS" }
func (anonymous) Start() Exchange    { return anonymous{} }
func (anonymous) Step([]byte) Step   { return Step{Done: true, OK: true} }

// Plain asks verify about a user and a password [RFC 4616]. verify runs on the
// connection's owner and should take as long for an unknown user as for a wrong password.
func Plain(verify func(user, password string) Verdict) Mechanism { return plain{verify} }

// Verdict is what is known of a user and a password.
type Verdict uint8

const (
	Refused  Verdict = iota // unknown, or wrong
	Known                   // right
	TryLater                // not looked at: too many want to know
)

type plain struct {
	verify func(user, password string) Verdict
}

func (plain) Name() codec.Symbol { return "PLAIN" }
func (p plain) Start() Exchange  { return p }

// Step reads authzid NUL authcid NUL password. An authorization identity other
// than the user itself is refused.
func (p plain) Step(response []byte) Step {
	if response == nil || !utf8.Valid(response) {
		return Step{Done: true}
	}
	parts := bytes.SplitN(response, []byte{0}, 4)
	if len(parts) != 3 || len(parts[1]) == 0 {
		return Step{Done: true}
	}
	if len(parts[0]) > 0 && !bytes.Equal(parts[0], parts[1]) {
		return Step{Done: true}
	}
	user := string(parts[1])
	switch p.verify(user, string(parts[2])) {
	case Known:
		return Step{Done: true, OK: true, Identity: user}
	case TryLater:
		return Step{Done: true, Later: true}
	}
	return Step{Done: true}
}
