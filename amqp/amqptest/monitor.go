package amqptest

import (
	"fmt"
	"strings"

	"github.com/letomq/leto/codec"
)

// Monitor checks what holds for all frames a machine writes.
type Monitor struct {
	err        error
	maxFrame   int // the peer's
	channelMax uint16
	handleMax  uint32
	opened     bool
	closed     bool
	channels   map[uint16]*channel // the machine's, while begun
}

type channel struct {
	remote   uint16
	attached map[uint32]bool // the machine's handles
}

// NewMonitor returns the monitor of a connection nothing was written on.
func NewMonitor() *Monitor {
	return &Monitor{maxFrame: codec.MinMaxFrameSize, channelMax: codec.DefaultChannelMax, handleMax: 1<<32 - 1, channels: map[uint16]*channel{}}
}

// Err returns the first thing that was wrong.
func (w *Monitor) Err() error { return w.err }

// Peer tells the limits that the peer has written.
func (w *Monitor) Peer(body Performative) {
	switch b := body.(type) {
	case *codec.Open:
		w.maxFrame, w.channelMax = int(min(b.MaxFrameSize, 1<<30)), b.ChannelMax
	case *codec.Begin:
		w.handleMax = b.HandleMax
	}
}

func (w *Monitor) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// Check looks at the next frame.
func (w *Monitor) Check(f Frame) {
	if w.closed {
		w.fail("written behind close: %s", f)
	}
	if f.Size > max(w.maxFrame, codec.MinMaxFrameSize) {
		w.fail("frame of %d octets, the peer takes %d: %s", f.Size, w.maxFrame, f)
	}
	if f.Name == "header" || strings.HasPrefix(f.Name, "sasl-") {
		return
	}
	if !w.opened && f.Name != "open" {
		w.fail("written before open: %s", f)
	}
	if f.Channel > w.channelMax {
		w.fail("channel-max of the peer is %d: %s", w.channelMax, f)
	}
	switch b := f.Body.(type) {
	case nil:
	case *codec.Open:
		if w.opened || f.Channel != 0 {
			w.fail("second open, or not on channel 0: %s", f)
		}
		w.opened = true
	case *codec.Close:
		w.closed = true
	case *codec.Begin:
		if w.channels[f.Channel] != nil {
			w.fail("channel is in use: %s", f)
		}
		w.channels[f.Channel] = &channel{remote: b.RemoteChannel.Or(f.Channel), attached: map[uint32]bool{}}
	default:
		if c := w.channels[f.Channel]; c != nil {
			w.checkOnSession(c, f)
		} else {
			w.fail("no session on the channel: %s", f)
		}
	}
}

func (w *Monitor) checkOnSession(c *channel, f Frame) {
	handle := func(h uint32) {
		if !c.attached[h] {
			w.fail("the handle isn't attached: %s", f)
		}
	}
	switch b := f.Body.(type) {
	case *codec.End:
		delete(w.channels, f.Channel)
	case *codec.Attach:
		if b.Handle > w.handleMax {
			w.fail("handle-max of the peer is %d: %s", w.handleMax, f)
		}
		if (b.Role == codec.RoleSender) != b.InitialDeliveryCount.Set {
			w.fail("initial-delivery-count is the sender's: %s", f)
		}
		if c.attached[b.Handle] {
			w.fail("the handle is in use: %s", f)
		}
		c.attached[b.Handle] = true
	case *codec.Transfer:
		handle(b.Handle)
	case *codec.Flow:
		if b.Handle.Set {
			handle(b.Handle.Value)
		}
		if b.Echo {
			w.fail("we never ask for an echo: %s", f)
		}
	case *codec.Detach:
		handle(b.Handle)
		delete(c.attached, b.Handle)
	}
}
