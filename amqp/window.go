package amqp

import "github.com/letomq/leto/codec"

// window is the flow control of one session, counted in transfer frames [2.5.6].
// Ids are serial numbers, windows plain amounts.
type window struct {
	nextIncoming uint32 // transfer-id due from the peer
	incoming     uint32 // frames the peer may still send
	nextOutgoing uint32 // transfer-id of our next frame
	outgoing     uint32 // frames we may still send
	first        uint32 // our nextOutgoing at begin
}

func (w *window) peerBegan(p *codec.Begin, incoming uint32) {
	w.nextIncoming = p.NextOutgoingID
	w.incoming = incoming
	w.outgoing = p.IncomingWindow
}

// peerFlowed applies a flow; the description of a violation when it is impossible.
func (w *window) peerFlowed(p *codec.Flow) string {
	base := p.NextIncomingID.Or(w.first)
	if ahead(base, w.nextOutgoing) > 0 {
		return "next-incoming-id is ahead of what was sent"
	}
	if before(p.NextOutgoingID, w.nextIncoming) {
		return "next-outgoing-id is behind what was received"
	}
	w.nextIncoming = p.NextOutgoingID
	inFlight := uint64(w.nextOutgoing - base)
	w.outgoing = uint32(max(int64(p.IncomingWindow)-int64(inFlight), 0))
	return ""
}

// received counts a transfer frame in; false when the peer had no window left.
func (w *window) received() bool {
	if w.incoming == 0 {
		return false
	}
	w.incoming--
	w.nextIncoming++
	return true
}

// sent counts a transfer frame out.
func (w *window) sent() {
	w.outgoing--
	w.nextOutgoing++
}
