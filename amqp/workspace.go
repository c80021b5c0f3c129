package amqp

import (
	"unsafe"

	"github.com/letomq/leto/codec"
)

// Workspace is the memory a machine works in and needs only while it does:
// output, events, and what frames are decoded into and made in, so that none
// costs an allocation. A shell with many idle connections lends few of them.
type Workspace struct {
	out    []byte
	events []Event

	transfer    codec.Transfer
	flow        codec.Flow
	disposition codec.Disposition
	attach      codec.Attach

	outTransfer    codec.Transfer
	outTag         [16]byte
	outFlow        codec.Flow
	outDisposition codec.Disposition
}

// What a workspace keeps when it is reclaimed: bytes, and events.
const (
	outputKept = 512 << 10
	eventsKept = 64
)

// Size returns about how many bytes a workspace that was reclaimed holds.
func (w *Workspace) Size() int { return cap(w.out) + cap(w.events)*int(unsafe.Sizeof(Event{})) }

// Lent reports whether the machine has a workspace. Without one no other method
// but Lend, Done and Opened may be called.
func (c *Conn) Lent() bool { return c.Workspace != nil }

// Lend gives the machine a workspace to work in.
func (c *Conn) Lend(w *Workspace) { c.Workspace = w }

// Reclaim takes the workspace back; nil when something is in it still.
func (c *Conn) Reclaim() *Workspace {
	if c.Workspace == nil || len(c.out) > 0 || c.taken < len(c.events) || c.sweep.session != nil {
		return nil
	}
	w := c.Workspace
	clear(w.events)
	*w = Workspace{out: w.out[:0], events: w.events[:0]}
	if cap(w.out) > outputKept {
		w.out = nil
	}
	if cap(w.events) > eventsKept {
		w.events = nil
	}
	c.taken = 0
	c.Workspace = nil
	return w
}
