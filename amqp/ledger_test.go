package amqp_test

import (
	"pgregory.net/rapid"

	"github.com/letomq/leto/amqp/amqptest"
	"github.com/letomq/leto/codec"
)

// ledger follows the frames one end writes and takes, by the letter of the
// specification, and knows what that end may write.
type ledger struct {
	t        *rapid.T
	maxFrame int // the peer's
	drained  func(name string)
	sessions map[uint16]*account
	theirs   map[uint16]*account // by the peer's channel
}

type account struct {
	next, limit  uint32 // transfer-id of the next frame; the window ends before limit
	nextDelivery uint32
	links        map[uint32]*credit // by our handle
	named        map[string]*credit
	remote       map[uint32]*credit // by the peer's handle
}

type credit struct {
	count, limit uint32 // delivery-count, and what it may rise to
	sender       bool
	within       bool // in the midst of a delivery
	name         string
}

func newLedger(t *rapid.T) *ledger {
	return &ledger{t: t, maxFrame: 512, sessions: map[uint16]*account{}, theirs: map[uint16]*account{}}
}

func (l *ledger) wrote(f amqptest.Frame) {
	if f.Size > l.maxFrame {
		l.t.Fatalf("frame of %d octets, the peer takes %d: %s", f.Size, l.maxFrame, f)
	}
	a := l.sessions[f.Channel]
	switch p := f.Body.(type) {
	case *codec.Begin:
		if a != nil && p.RemoteChannel.Set {
			l.t.Fatalf("channel is in use: %s", f)
		}
		if a = l.theirs[p.RemoteChannel.Or(0)]; !p.RemoteChannel.Set || a == nil {
			a = newAccount()
		}
		l.sessions[f.Channel] = a
		a.next = p.NextOutgoingID
	case *codec.Attach:
		c := a.named[p.Name]
		if c == nil {
			c = &credit{name: p.Name}
			a.named[p.Name] = c
		}
		c.sender = p.Role == codec.RoleSender
		if c.sender && p.InitialDeliveryCount != codec.Some[uint32](0) {
			l.t.Fatalf("initial-delivery-count: %s", f)
		}
		if old := a.links[p.Handle]; old != nil {
			l.t.Fatalf("handle is in use: %s", f)
		}
		a.links[p.Handle] = c
	case *codec.Transfer:
		l.transfer(a, p, f)
	case *codec.Flow:
		if a == nil {
			l.t.Fatalf("no session: %s", f)
		}
		if c := a.links[p.Handle.Value]; p.Handle.Set && c.sender {
			c.count = p.DeliveryCount.Value // drained
			c.limit = c.count + p.LinkCredit.Value
		}
	case *codec.Detach:
		delete(a.links, p.Handle)
	case *codec.End:
		delete(l.sessions, f.Channel)
	}
}

func newAccount() *account {
	return &account{links: map[uint32]*credit{}, named: map[string]*credit{}, remote: map[uint32]*credit{}}
}

func (l *ledger) transfer(a *account, p *codec.Transfer, f amqptest.Frame) {
	if a == nil || a.links[p.Handle] == nil {
		l.t.Fatalf("link isn't attached: %s", f)
	}
	if int32(a.limit-a.next) <= 0 {
		l.t.Fatalf("window is closed at %d: %s", a.limit, f)
	}
	a.next++
	c := a.links[p.Handle]
	if !c.within {
		if int32(c.limit-c.count) <= 0 {
			l.t.Fatalf("no credit beyond %d: %s", c.limit, f)
		}
		if !p.DeliveryID.Set || p.DeliveryID.Value != a.nextDelivery || p.DeliveryTag == nil {
			l.t.Fatalf("delivery %d is due: %s", a.nextDelivery, f)
		}
		a.nextDelivery++
		c.count++
	}
	c.within = p.More && !p.Aborted
}

// took follows what the end has read.
func (l *ledger) took(f amqptest.Frame) {
	a := l.theirs[f.Channel]
	switch p := f.Body.(type) {
	case *codec.Open:
		l.maxFrame = int(p.MaxFrameSize)
	case *codec.Begin:
		if p.RemoteChannel.Set {
			a = l.sessions[p.RemoteChannel.Value]
		} else {
			a = newAccount()
		}
		l.theirs[f.Channel] = a
		a.limit = a.next + p.IncomingWindow
	case *codec.Attach:
		c := a.named[p.Name]
		if c == nil {
			c = &credit{name: p.Name}
			a.named[p.Name] = c
		}
		c.sender = p.Role == codec.RoleReceiver // credit may come before our answer
		a.remote[p.Handle] = c
	case *codec.Flow:
		a.limit = p.NextIncomingID.Or(0) + p.IncomingWindow
		if c := a.remote[p.Handle.Value]; p.Handle.Set && c != nil && c.sender && p.LinkCredit.Set {
			c.limit = p.DeliveryCount.Or(0) + p.LinkCredit.Value
			if int32(c.limit-c.count) < 0 {
				c.limit = c.count
			}
		}
		if c := a.remote[p.Handle.Value]; p.Handle.Set && c != nil && !c.sender && p.Drain && p.LinkCredit.Value == 0 {
			l.drained(c.name)
		}
	case *codec.Detach:
		delete(a.remote, p.Handle)
	case *codec.End:
		delete(l.theirs, f.Channel)
	}
}
