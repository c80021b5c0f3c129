package amqp

import (
	"hash/maphash"

	"github.com/letomq/leto/codec"
)

// received is an unsettled incoming delivery.
type received struct {
	link     *Link
	terminal bool // our outcome is out, the sender's settlement is due
}

// partial is the delivery whose frames are arriving on a link.
type partial struct {
	active  bool
	ignored bool // a resumed delivery we know nothing of [2.6.13]
	settled bool
	id      uint32
	tag     uint64
	format  uint32
	size    uint64
	frames  int
	empty   int
}

var tagSeed = maphash.MakeSeed()

func (s *Session) onTransfer(p *codec.Transfer, payload []byte) {
	if !s.window.received() {
		s.fail(ConditionWindowViolation, "transfer beyond the incoming-window")
		return
	}
	if s.window.incoming <= s.conn.cfg.IncomingWindow/2 && !s.flowDue {
		s.flowDue = true
		s.wantFlush()
	}
	l := s.byRemoteHandle(p.Handle)
	switch {
	case l == nil:
		s.fail(ConditionUnattachedHandle, "transfer: handle %d isn't attached", p.Handle)
	case l.detachSent:
		// on its way before the peer saw our detach
	case l.role != codec.RoleReceiver:
		s.fail(ConditionNotAllowed, "transfer: the peer is the receiver of link %q", l.Name)
	default:
		l.receive(p, payload)
		if l.detachSent { // the shell has to know the transaction that lacks this delivery
			s.conn.events[len(s.conn.events)-1].State = &p.State
		}
	}
}

func (l *Link) receive(p *codec.Transfer, payload []byte) {
	d := &l.in
	first := !d.active
	if first {
		if !l.startDelivery(p) {
			return
		}
	} else if !l.continueDelivery(p) {
		return
	}
	if d.ignored {
		if !p.More || p.Aborted {
			*d = partial{}
		}
		return
	}
	if p.Aborted {
		l.session.incoming.remove(d.id)
		l.fragment(EventAborted, p, nil, first)
		*d = partial{}
		l.aborted++
		return
	}
	d.frames++
	if len(payload) == 0 && p.More {
		d.empty++
	}
	d.size += uint64(len(payload))
	switch {
	case d.frames > maxFramesPerDelivery || d.empty > maxEmptyPerDelivery:
		l.fail(ConditionTransferLimitExceeded, "delivery of more than %d frames, or %d without payload", maxFramesPerDelivery, maxEmptyPerDelivery)
		return
	case l.maxMessage > 0 && d.size > l.maxMessage:
		l.fail(ConditionMessageSizeExceeded, "message exceeds the maximum of %d bytes", l.maxMessage)
		return
	case !p.More && !l.checkSettled(d.settled):
		return
	}
	l.fragment(EventTransfer, p, payload, first)
	if !p.More {
		*d = partial{}
	}
}

func (l *Link) fragment(kind EventKind, p *codec.Transfer, payload []byte, first bool) {
	ev := l.emit(kind)
	ev.DeliveryID, ev.Settled, ev.MessageFormat = l.in.id, l.in.settled, l.in.format
	ev.Payload, ev.First, ev.Last = payload, first, !p.More
	ev.State = &p.State
	if first {
		ev.Tag = p.DeliveryTag
	}
}

// startDelivery checks a first transfer [2.7.5] and takes its credit. Whether the tag is that of
// another unsettled delivery isn't looked at, although it mustn't be [2.6.12]: deliveries are told
// apart by their ids, and ProtonJ2 numbers its tags in one byte.
func (l *Link) startDelivery(p *codec.Transfer) bool {
	d := &l.in
	switch {
	case !p.DeliveryID.Set:
		l.fail(ConditionInvalidField, "transfer: delivery-id is missing")
		return false
	case p.DeliveryTag == nil:
		l.fail(ConditionInvalidField, "transfer: delivery-tag is missing")
		return false
	case len(p.DeliveryTag) > maxTagSize:
		l.fail(ConditionInvalidField, "transfer: delivery-tag of %d bytes exceeds %d", len(p.DeliveryTag), maxTagSize)
		return false
	case ahead(l.limit, l.deliveryCount) <= 0:
		l.fail(ConditionTransferLimitExceeded, "delivery beyond the link's credit")
		return false
	case p.RcvSettleMode.Set && p.RcvSettleMode.Value == codec.ReceiveSecond && l.rcvSettleMode == codec.ReceiveFirst && !p.Settled.Value:
		l.fail(ConditionInvalidField, "transfer: rcv-settle-mode second on a link that settles first")
		return false
	}
	*d = partial{active: true, id: p.DeliveryID.Value, settled: p.Settled.Value, format: p.MessageFormat.Value, ignored: p.Resume}
	l.deliveryCount++
	if d.settled || d.ignored {
		return true
	}
	d.tag = maphash.Bytes(tagSeed, p.DeliveryTag)
	s := l.session
	switch {
	case s.incoming.len() >= maxUnsettledIncoming:
		s.fail(ConditionResourceLimitExceeded, "more than %d unsettled deliveries", maxUnsettledIncoming)
		return false
	case !s.incoming.put(d.id, received{link: l}):
		l.fail(ConditionInvalidField, "delivery-id %d is used again or goes back", d.id)
		return false
	}
	return true
}

// continueDelivery checks a further transfer of a delivery.
func (l *Link) continueDelivery(p *codec.Transfer) bool {
	d := &l.in
	switch {
	case p.DeliveryID.Set && p.DeliveryID.Value != d.id:
		l.fail(ConditionInvalidField, "transfer: delivery %d starts before delivery %d has ended", p.DeliveryID.Value, d.id)
		return false
	case p.MessageFormat.Set && p.MessageFormat.Value != d.format:
		l.fail(ConditionInvalidField, "transfer: message-format changes within delivery %d", d.id)
		return false
	case !d.settled && d.tag != 0 && p.DeliveryTag != nil && maphash.Bytes(tagSeed, p.DeliveryTag) != d.tag:
		l.fail(ConditionInvalidField, "transfer: delivery-tag changes within delivery %d", d.id)
		return false
	case p.Settled.Set && !p.Settled.Value && d.settled:
		l.fail(ConditionInvalidField, "transfer: delivery %d was settled and is no longer", d.id)
		return false
	}
	if p.Settled.Value && !d.settled {
		d.settled = true
		l.session.incoming.remove(d.id)
	}
	return true
}

// checkSettled compares a delivery with the link's settlement mode [2.8.2].
func (l *Link) checkSettled(settled bool) bool {
	switch {
	case l.sndSettleMode == codec.SettleSettled && !settled:
		l.fail(ConditionInvalidField, "unsettled delivery on a link whose sender settles")
		return false
	case l.sndSettleMode == codec.SettleUnsettled && settled:
		l.fail(ConditionInvalidField, "settled delivery on a link whose sender doesn't settle")
		return false
	}
	return true
}
