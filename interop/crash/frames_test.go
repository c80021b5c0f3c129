package crash

import "github.com/letomq/leto/interop/wire"

// window is a session window that never runs out.
const window = 1<<31 - 1

func frame(code uint64, fields ...[]byte) []byte {
	return wire.NewFrame(0, 0, wire.Described(code, wire.List(fields...)), nil)
}

// terms say how a consumer attaches.
type terms struct {
	name    string
	address string // "": the durable subscription of that name
	durable bool   // make it a durable subscription
	browse  bool
	second  bool // receiver-settle-mode
}

// attach attaches a receiver with handle 0.
func (o terms) attach() []byte {
	source, durable, expiry, copies := wire.Null(), wire.Null(), wire.Null(), wire.Null()
	if o.durable {
		durable, expiry = wire.Uint(2), wire.Symbol("never")
	}
	if o.browse {
		copies = wire.Symbol("copy")
	}
	if o.address != "" {
		source = wire.Described(0x28, wire.List(wire.String(o.address), durable, expiry, wire.Null(), wire.Bool(false), wire.Null(), copies))
	}
	settle := wire.Ubyte(0)
	if o.second {
		settle = wire.Ubyte(1)
	}
	return frame(wire.CodeAttach, wire.String(o.name), wire.Uint(0), wire.Bool(true), wire.Ubyte(0), settle,
		source, wire.Described(0x29, wire.List(wire.Null())))
}

// flow grants credit to a link with handle 0 that has had count deliveries.
func flow(count, credit uint32, drain bool) []byte {
	return flowOf(0, 0, count, credit, drain)
}

// flowOf is flow for a link with any handle, in a session that has sent some transfers.
func flowOf(sent, handle, count, credit uint32, drain bool) []byte {
	return frame(wire.CodeFlow, wire.Uint(0), wire.Uint(window), wire.Uint(sent), wire.Uint(window),
		wire.Uint(handle), wire.Uint(count), wire.Uint(credit), wire.Null(), wire.Bool(drain))
}

// disposition asks for the outcome of deliveries first to last.
func disposition(first, last uint32, settled bool, outcome []byte) []byte {
	return frame(wire.CodeDisposition, wire.Bool(true), wire.Uint(first), wire.Uint(last), wire.Bool(settled), outcome)
}

// outcome is what a verb is on the wire; there says that a failed one may come to the same link again.
func outcome(v verb, there bool) []byte {
	switch v {
	case reject:
		return wire.Described(wire.CodeRejected, wire.List(wire.Described(wire.CodeError, wire.List(wire.Symbol("crash:no"), wire.String("rejected in a test")))))
	case release:
		return wire.Described(wire.CodeReleased, wire.List())
	case fail:
		return wire.Described(wire.CodeModified, wire.List(wire.Bool(true), wire.Bool(!there)))
	}
	return wire.Described(wire.CodeAccepted, wire.List())
}
