package amqp

import "github.com/letomq/leto/codec"

// EventKind says what happened.
type EventKind uint8

const (
	// EventOpened: the peer's open arrived (Open). A server answers with
	// Conn.Accept or Conn.Refuse before it asks for the next event.
	EventOpened EventKind = iota + 1
	// EventClosed: the peer closed the connection (Err may be set). Answer with Conn.Close.
	EventClosed
	// EventFailed: we closed the connection over a fault of the peer, or because it fell silent (Err).
	EventFailed
	// EventBegun: the peer began Session; it is mapped and answered.
	EventBegun
	// EventEnded: the peer ended Session. Answer with Session.End; its links are gone.
	EventEnded
	// EventSessionFailed: we ended Session over a fault of the peer (Err); its links are gone.
	EventSessionFailed
	// EventAttached: the peer attached Link (Attach), or answered our attach.
	// A peer's attach is answered with Link.Accept or Link.Refuse before the next event.
	EventAttached
	// EventDetached: the peer detached Link (Closed, Err). Answer with Link.Detach.
	EventDetached
	// EventLinkFailed: we detached Link over a fault of the peer (Err). State is set when a transfer led to it.
	EventLinkFailed
	// EventFlow: the credit of a sending Link changed, or drain was asked for.
	EventFlow
	// EventTransfer: a fragment of an incoming delivery (DeliveryID, Payload, First, Last).
	EventTransfer
	// EventAborted: the sender gave up the delivery whose fragments came before.
	EventAborted
	// EventOutcome: the receiver's state for one of our deliveries (DeliveryID, Ref, RefN, State, Settled).
	// When Settled is false the state is terminal and Session.Settle is due once it holds.
	EventOutcome
)

// Event is one thing that happened, in wire order. It and the bytes it refers
// to are valid until the next call of Conn.Next.
type Event struct {
	Kind    EventKind
	Session *Session
	Link    *Link
	Err     *Error

	Open   *codec.Open
	Attach *codec.Attach
	Closed bool // detach: the peer closed the link rather than detach it [2.6.6]

	DeliveryID    uint32
	Tag           []byte // of a transfer that is First
	Payload       []byte
	First, Last   bool
	Settled       bool
	MessageFormat uint32
	State         *codec.DeliveryState

	// TxnID is the transaction under which a flow asks the sender of the link
	// to acquire from now on [4.4.3]; nil: it doesn't speak of that.
	TxnID []byte

	Ref  any
	RefN uint64
}

// emit adds an event of a link, to be filled in.
func (l *Link) emit(kind EventKind) *Event {
	ev := l.session.conn.emit(kind)
	ev.Session, ev.Link = l.session, l
	return ev
}
