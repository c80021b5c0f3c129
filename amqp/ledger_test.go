package amqp_test

import (
	"github.com/letomq/leto/amqp/amqptest"
	"github.com/letomq/leto/codec"
)

// ledger follows the frames one end writes and takes, by the letter of the
// specification, and knows what that end may write. The peer may break rules;
// the end is held to them all the same.
type ledger struct {
	t        failer
	maxFrame int // the peer's
	drained  func(name string)
	sessions map[uint16]*account   // by the end's channel
	theirs   map[uint16]*account   // by the peer's channel
	asked    map[uint16][]*account // begun by the peer, unanswered
}

// failer is a testing.TB or a *rapid.T.
type failer interface {
	Fatalf(format string, args ...any)
}

// account is one session. Windows are amounts, as credits are: they aren't
// compared as serial numbers.
type account struct {
	channel      uint16 // the end's
	mapped       bool   // both have begun
	next         uint32 // transfer-id of the end's next frame
	window, high int64  // frames it may write: by the last flow, and the most since it last wrote
	nextDelivery uint32
	handleMax    uint32             // the peer's
	peerNext     uint32             // transfer-id of the peer's next frame
	room         int64              // frames the peer may write
	links        map[uint32]*credit // by the end's handle
	remote       map[uint32]*credit // by the peer's handle
	asked        []*credit          // attached by the peer, unanswered
	offered      []*credit          // attached by the end, unanswered
}

// credit is one link.
type credit struct {
	name       string
	sender     bool   // the end sends
	settles    uint8  // snd-settle-mode, as the peer has said
	count      uint32 // the sender's delivery-count
	left, high int64  // deliveries the sender may start, as window and high
	wild       bool   // the receiver has said what serial numbers can't order: it is held to nothing from then on
	within     bool   // in the midst of a delivery
	draining   bool   // the peer has asked for a drain that isn't answered
}

func newLedger(t failer) *ledger {
	return &ledger{t: t, maxFrame: codec.MinMaxFrameSize, sessions: map[uint16]*account{}, theirs: map[uint16]*account{}, asked: map[uint16][]*account{}}
}

func newAccount() *account {
	return &account{links: map[uint32]*credit{}, remote: map[uint32]*credit{}}
}

// wrote follows what the end has written.
func (l *ledger) wrote(f amqptest.Frame) {
	if f.Size > l.maxFrame {
		l.t.Fatalf("frame of %d octets, the peer takes %d: %s", f.Size, l.maxFrame, f)
	}
	a := l.sessions[f.Channel]
	switch p := f.Body.(type) {
	case *codec.Begin:
		l.begun(p, f)
		return
	case *codec.Attach, *codec.Transfer, *codec.Flow, *codec.Disposition, *codec.Detach, *codec.End:
		if a == nil {
			l.t.Fatalf("no session: %s", f)
		}
	}
	switch p := f.Body.(type) {
	case *codec.Attach:
		l.attached(a, p, f)
	case *codec.Transfer:
		l.transfer(a, p, f)
	case *codec.Flow:
		if p.NextOutgoingID != a.next {
			l.t.Fatalf("next-outgoing-id is %d: %s", a.next, f)
		}
		a.room = int64(p.IncomingWindow) - int64(a.peerNext-p.NextIncomingID.Or(a.peerNext))
		switch c := a.links[p.Handle.Value]; {
		case !p.Handle.Set || c == nil:
		case c.sender:
			l.senderFlowed(c, p, f)
		default:
			c.left = int64(p.LinkCredit.Value) - int64(c.count-p.DeliveryCount.Or(c.count))
		}
	case *codec.Detach:
		delete(a.links, p.Handle)
	case *codec.End:
		delete(l.sessions, f.Channel)
	}
}

func (l *ledger) begun(p *codec.Begin, f amqptest.Frame) {
	if l.sessions[f.Channel] != nil {
		l.t.Fatalf("channel is in use: %s", f)
	}
	a := newAccount()
	if p.RemoteChannel.Set {
		asked := l.asked[p.RemoteChannel.Value]
		if len(asked) == 0 {
			l.t.Fatalf("it answers no begin: %s", f)
		}
		a, l.asked[p.RemoteChannel.Value] = asked[0], asked[1:]
		a.mapped = true
	}
	a.channel, a.next, a.room = f.Channel, p.NextOutgoingID, int64(p.IncomingWindow)
	l.sessions[f.Channel] = a
}

func (l *ledger) attached(a *account, p *codec.Attach, f amqptest.Frame) {
	sender := p.Role == codec.RoleSender
	if sender && p.InitialDeliveryCount != codec.Some[uint32](0) {
		l.t.Fatalf("initial-delivery-count: %s", f)
	}
	if a.links[p.Handle] != nil || p.Handle > a.handleMax {
		l.t.Fatalf("handle is in use, or above %d: %s", a.handleMax, f)
	}
	c := pick(&a.asked, p.Name, sender)
	if c == nil {
		c = &credit{name: p.Name, sender: sender}
		a.offered = append(a.offered, c)
	}
	a.links[p.Handle] = c
}

// pick takes the first link of that name and direction out of all.
func pick(all *[]*credit, name string, sender bool) *credit {
	for i, c := range *all {
		if c.name == name && c.sender == sender {
			*all = append((*all)[:i:i], (*all)[i+1:]...)
			return c
		}
	}
	return nil
}

func (l *ledger) transfer(a *account, p *codec.Transfer, f amqptest.Frame) {
	c := a.links[p.Handle]
	if c == nil || !c.sender {
		l.t.Fatalf("the end doesn't send on the handle: %s", f)
	}
	if max(a.window, a.high) <= 0 {
		l.t.Fatalf("window is closed: %s", f)
	}
	a.next++
	a.window--
	a.high--
	if !c.within {
		if max(c.left, c.high) <= 0 && !c.wild {
			l.t.Fatalf("no credit: %s", f)
		}
		if !p.DeliveryID.Set || p.DeliveryID.Value != a.nextDelivery || p.DeliveryTag == nil {
			l.t.Fatalf("delivery %d is due: %s", a.nextDelivery, f)
		}
		a.nextDelivery++
		c.count++
		c.left--
		c.high--
	}
	c.within = p.More && !p.Aborted
}

// senderFlowed: a sender may use up its credit, not more, and not take deliveries back.
func (l *ledger) senderFlowed(c *credit, p *codec.Flow, f amqptest.Frame) {
	used := int64(p.DeliveryCount.Value - c.count)
	if !p.DeliveryCount.Set || used > max(c.left, c.high, 0) && !c.wild {
		l.t.Fatalf("delivery-count is %d with credit for %d: %s", c.count, max(c.left, c.high), f)
	}
	c.count = p.DeliveryCount.Value
	c.left -= used
	c.high -= used
	if p.LinkCredit.Value == 0 {
		c.draining = false
	}
}

// flushed: everything the end has written was seen. From now on the last flows hold.
func (l *ledger) flushed() {
	for _, a := range l.sessions {
		a.high = 0
		for _, c := range a.links {
			c.high = 0
		}
	}
}

// took follows what the end has read.
func (l *ledger) took(f amqptest.Frame) {
	a := l.theirs[f.Channel]
	switch p := f.Body.(type) {
	case *codec.Open:
		l.maxFrame = max(int(min(p.MaxFrameSize, 1<<30)), codec.MinMaxFrameSize)
		return
	case *codec.Begin:
		if a == nil {
			l.tookBegin(f.Channel, p)
		}
		return
	}
	if a == nil {
		return
	}
	switch p := f.Body.(type) {
	case *codec.Attach:
		if a.remote[p.Handle] == nil {
			sender := p.Role == codec.RoleReceiver
			c := pick(&a.offered, p.Name, sender)
			if c == nil {
				c = &credit{name: p.Name, sender: sender}
				a.asked = append(a.asked, c)
			}
			if !sender {
				c.count = p.InitialDeliveryCount.Value
			}
			c.settles = p.SndSettleMode
			a.remote[p.Handle] = c
		}
	case *codec.Transfer:
		a.peerNext++
		a.room--
		if c := a.remote[p.Handle]; c != nil && !c.sender {
			if !c.within {
				c.count++
				c.left--
			}
			c.within = p.More && !p.Aborted
		}
	case *codec.Flow:
		l.tookFlow(a, p)
	case *codec.Detach:
		if c := a.remote[p.Handle]; c != nil {
			c.draining = false
		}
		delete(a.remote, p.Handle)
	case *codec.End:
		delete(l.theirs, f.Channel)
	}
}

func (l *ledger) tookBegin(channel uint16, p *codec.Begin) {
	a := newAccount()
	if p.RemoteChannel.Set {
		if a = l.sessions[p.RemoteChannel.Value]; a == nil || a.mapped {
			return
		}
		a.mapped = true
	} else {
		l.asked[channel] = append(l.asked[channel], a)
	}
	a.window, a.peerNext, a.handleMax = int64(p.IncomingWindow), p.NextOutgoingID, p.HandleMax
	l.theirs[channel] = a
}

func (l *ledger) tookFlow(a *account, p *codec.Flow) {
	a.high = max(a.high, a.window)
	a.window = int64(p.IncomingWindow) - int64(a.next-p.NextIncomingID.Or(0))
	a.peerNext = p.NextOutgoingID
	c := a.remote[p.Handle.Value]
	switch {
	case !p.Handle.Set || c == nil:
	case c.sender:
		if p.LinkCredit.Set {
			c.high = max(c.high, c.left)
			c.left = int64(p.LinkCredit.Value)
			behind := int32(c.count - p.DeliveryCount.Or(0))
			if behind >= 0 {
				c.left -= int64(behind)
			} else {
				// A receiver that has counted what wasn't sent is taken as up to date, with
				// what the end has used up for a drain and not told yet.
				c.left += max(c.high, 0)
			}
			// What is used up for a drain and not told yet moves the end by so much that it and the ledger may see such a
			// receiver on different sides.
			c.wild = c.wild || p.LinkCredit.Value >= 1<<30 || behind >= 1<<30 || behind <= -1<<30
		}
		c.draining = p.Drain
	default:
		c.count = p.DeliveryCount.Or(c.count)
		if p.Drain && p.LinkCredit.Value == 0 && l.drained != nil {
			l.drained(c.name)
		}
	}
}
