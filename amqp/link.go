package amqp

import "github.com/letomq/leto/codec"

// Link is one end of a link [2.6]. It belongs to its Session.
type Link struct {
	// Context is the shell's own.
	Context any
	// Name identifies the link together with the two containers and the direction.
	Name string

	session *Session
	role    codec.Role // ours
	handle  uint32     // ours
	remote  uint32     // the peer's

	attached       bool // the peer's attach arrived
	attachSent     bool
	detachSent     bool
	detachReceived bool
	dropped        bool // the session or connection is gone

	sndSettleMode uint8
	rcvSettleMode uint8

	// deliveryCount is the sender's count of deliveries started, a serial number.
	deliveryCount uint32
	initialCount  uint32

	// sending
	credit         int64 // 0 ≤ credit < 2^32
	drain          bool
	drainedBehind  bool // the shell has answered the drain; the flow waits for queued transfers
	available      uint32
	queue          fifo
	outStarted     bool   // queue's head has frames on the wire
	outID          uint32 // its delivery-id
	outSent        int    // bytes of queue's head on the wire
	outAborted     bool   // it is to be aborted when the window allows
	sendingDue     bool   // in session.sending
	peerMaxMessage uint64

	// receiving
	limit         uint32 // deliveryCount may rise to this
	announced     uint32 // deliveryCount + link-credit of our last flow
	maxMessage    uint64
	in            partial
	peerAvailable uint32
	aborted       uint32 // deliveries aborted since the sender last told its count

	flowOwed bool // in session.flowing
}

// Session returns the session the link is on.
func (l *Link) Session() *Session { return l.session }

// Sender reports whether this end sends.
func (l *Link) Sender() bool { return l.role == codec.RoleSender }

// SndSettleMode and RcvSettleMode return the settlement modes in force [2.8.2, 2.8.3].
func (l *Link) SndSettleMode() uint8 { return l.sndSettleMode }

// RcvSettleMode returns when the receiver settles [2.8.3].
func (l *Link) RcvSettleMode() uint8 { return l.rcvSettleMode }

// PeerMaxMessage returns the largest message the peer accepts, in bytes; 0: no limit.
func (l *Link) PeerMaxMessage() uint64 { return l.peerMaxMessage }

// PeerAvailable returns how many deliveries the sending peer last said it had waiting.
func (l *Link) PeerAvailable() uint32 { return l.peerAvailable }

// Live reports whether both ends are attached and neither has detached.
func (l *Link) Live() bool { return l.live() && l.attached }

func (l *Link) live() bool {
	return l.attachSent && !l.detachSent && !l.detachReceived && !l.dropped
}

func (s *Session) byRemoteHandle(handle uint32) *Link {
	if uint64(handle) >= uint64(len(s.links)) {
		return nil
	}
	return s.links[handle]
}

func (s *Session) freeHandle() (uint32, bool) {
	for i, l := range s.ours {
		if l == nil {
			return uint32(i), true
		}
	}
	if uint64(len(s.ours)) > uint64(s.peerHandleMax) {
		return 0, false
	}
	s.ours = append(s.ours, nil)
	return uint32(len(s.ours) - 1), true
}

func (s *Session) bindHandle(l *Link, handle uint32) {
	for uint64(handle) >= uint64(len(s.links)) {
		s.links = append(s.links, nil)
	}
	s.links[handle] = l
	l.remote = handle
}

func (s *Session) onAttach(p *codec.Attach) {
	if s.conn.detaching > maxDetaching {
		s.conn.fail(ConditionResourceLimitExceeded, "more than %d detaches aren't answered", maxDetaching)
		return
	}
	if p.Handle > s.conn.cfg.HandleMax {
		s.conn.fail(ConditionFramingError, "handle %d exceeds the maximum of %d", p.Handle, s.conn.cfg.HandleMax)
		return
	}
	if s.byRemoteHandle(p.Handle) != nil {
		s.conn.fail(ConditionHandleInUse, "handle %d is in use", p.Handle) // [2.7.3]
		return
	}
	if l := s.awaiting(p); l != nil {
		s.onAttachReply(l, p)
		return
	}
	handle, ok := s.freeHandle()
	if !ok {
		s.fail(ConditionResourceLimitExceeded, "handle-max %d leaves no handle to answer on", s.peerHandleMax)
		return
	}
	l := &Link{
		Name: p.Name, session: s, role: !p.Role, handle: handle, attached: true,
		maxMessage: s.conn.cfg.MaxMessageSize,
	}
	s.ours[handle] = l
	s.bindHandle(l, p.Handle)
	l.peerAttached(p)
	if len(p.Name) > maxLinkName {
		l.Refuse(Errorf(ConditionInvalidField, "attach: name of %d bytes exceeds %d", len(p.Name), maxLinkName))
		return
	}
	if p.Role == codec.RoleSender && !p.InitialDeliveryCount.Set {
		l.Refuse(Errorf(ConditionInvalidField, "attach: initial-delivery-count is missing"))
		return
	}
	l.emit(EventAttached).Attach = p
}

func (l *Link) peerAttached(p *codec.Attach) {
	l.sndSettleMode, l.rcvSettleMode = p.SndSettleMode, p.RcvSettleMode
	l.peerMaxMessage = p.MaxMessageSize
	if l.role == codec.RoleReceiver {
		l.initialCount = p.InitialDeliveryCount.Value
		l.deliveryCount = l.initialCount
		// What was granted before the sender's count was known counts from it.
		l.limit += l.initialCount
		l.announced += l.initialCount
	}
}

// awaiting returns the link whose attach, sent by us, p answers.
func (s *Session) awaiting(p *codec.Attach) *Link {
	for _, l := range s.ours {
		if l != nil && l.attachSent && !l.attached && l.Name == p.Name && l.role != p.Role {
			return l
		}
	}
	return nil
}

func (s *Session) onAttachReply(l *Link, p *codec.Attach) {
	l.attached = true
	s.bindHandle(l, p.Handle)
	l.peerAttached(p)
	l.emit(EventAttached).Attach = p
}

// Terms are what an end says of a link when it attaches [2.7.3].
type Terms struct {
	Source              *codec.Source
	Target              *codec.Target
	Coordinator         *codec.Coordinator // in the target's place [4.5.1]
	SndSettleMode       uint8
	RcvSettleMode       uint8
	MaxMessageSize      uint64
	OfferedCapabilities []codec.Symbol
	DesiredCapabilities []codec.Symbol
	Properties          codec.Map
}

// Attach starts a link from this end; EventAttached follows when the peer has
// answered. Nil: the session isn't live, the peer has closed the connection,
// its handle-max leaves no handle, or its max-frame-size is too small
// (EventSessionFailed follows).
func (s *Session) Attach(name string, role codec.Role, t Terms) *Link {
	if !s.Live() || s.conn.closeReceived {
		return nil
	}
	handle, ok := s.freeHandle()
	if !ok {
		return nil
	}
	l := &Link{Name: name, session: s, role: role, handle: handle, maxMessage: t.MaxMessageSize}
	s.ours[handle] = l
	l.sendAttach(t)
	if l.dropped {
		return nil
	}
	return l
}

// Accept answers the peer's attach. MaxMessageSize 0 says the configured maximum.
func (l *Link) Accept(t Terms) {
	if l.attachSent || l.dropped {
		return
	}
	if t.MaxMessageSize == 0 {
		t.MaxMessageSize = l.session.conn.cfg.MaxMessageSize
	}
	l.maxMessage = t.MaxMessageSize
	l.sndSettleMode, l.rcvSettleMode = t.SndSettleMode, t.RcvSettleMode
	l.sendAttach(t)
}

func (l *Link) sendAttach(t Terms) {
	l.attachSent = true
	p := codec.Attach{
		Name:                l.Name,
		Handle:              l.handle,
		Role:                l.role,
		SndSettleMode:       t.SndSettleMode,
		RcvSettleMode:       t.RcvSettleMode,
		Source:              t.Source,
		Target:              t.Target,
		Coordinator:         t.Coordinator,
		MaxMessageSize:      t.MaxMessageSize,
		OfferedCapabilities: t.OfferedCapabilities,
		DesiredCapabilities: t.DesiredCapabilities,
		Properties:          t.Properties,
	}
	if l.role == codec.RoleSender {
		p.InitialDeliveryCount = codec.Some(l.deliveryCount)
	}
	s, c := l.session, l.session.conn
	start := len(c.out)
	c.write(s.channel, &p)
	if size := len(c.out) - start; size > int(c.peerFrameSize) {
		c.out = c.out[:start]
		c.FramesOut--
		s.fail(ConditionFrameSizeTooSmall, "attach of %d bytes exceeds the peer's max-frame-size of %d", size, c.peerFrameSize)
	}
}

// Refuse answers the peer's attach with one whose terminus on our side is
// null, and a closing detach right behind it [2.6.3]. It must be called before
// the next event: it mirrors the attach that is being answered.
func (l *Link) Refuse(err *Error) {
	if l.attachSent || l.dropped {
		return
	}
	asked := &l.session.conn.attach
	t := Terms{SndSettleMode: asked.SndSettleMode, RcvSettleMode: asked.RcvSettleMode}
	if asked.Properties != nil {
		t.Properties = codec.Map{}
	}
	if l.role == codec.RoleSender {
		t.Target = asked.Target
	} else {
		t.Source = asked.Source
	}
	l.sendAttach(t)
	l.Detach(true, err)
	l.Name = "" // it isn't kept until the peer's detach
}

func (s *Session) onDetach(p *codec.Detach) {
	l := s.byRemoteHandle(p.Handle)
	if l == nil {
		s.fail(ConditionUnattachedHandle, "detach: handle %d isn't attached", p.Handle)
		return
	}
	s.links[p.Handle] = nil // the peer may use the handle again
	l.detachReceived = true
	if l.detachSent {
		s.detaching--
		s.conn.detaching--
		l.free()
		return
	}
	l.forget()
	ev := l.emit(EventDetached)
	ev.Closed, ev.Err = p.Closed, fromWire(p.Error)
}

// Detach ends the link [2.6.4–2.6.6]: for good when closed. Outcomes already
// decided are written before it. As an answer to the peer's detach closed is
// what the peer said and err is nil.
func (l *Link) Detach(closed bool, err *Error) {
	if l.detachSent || l.dropped || !l.attachSent {
		return
	}
	l.finishPartial()
	s := l.session
	s.flush()
	l.detachSent = true
	l.forget()
	s.forgetDeliveries(l)
	s.conn.write(s.channel, &codec.Detach{Handle: l.handle, Closed: closed, Error: err.wire()})
	if l.detachReceived {
		l.free()
		return
	}
	s.detaching++
	s.conn.detaching++
}

// fail detaches the link over a fault of the peer.
func (l *Link) fail(condition codec.Symbol, format string, args ...any) {
	l.Fail(Errorf(condition, format, args...))
}

// Fail detaches the link with err and reports it as EventLinkFailed.
func (l *Link) Fail(err *Error) {
	if !l.live() {
		return
	}
	l.emit(EventLinkFailed).Err = err
	l.Detach(true, err)
}

// free gives our handle back once both ends have detached.
func (l *Link) free() {
	s := l.session
	if int(l.handle) < len(s.ours) && s.ours[l.handle] == l {
		s.ours[l.handle] = nil
	}
}

// forget gives up what is in progress on the link.
func (l *Link) forget() {
	l.session.conn.queued -= l.queue.bytes
	l.queue = fifo{}
	l.outStarted, l.outSent, l.outAborted = false, 0, false
	l.drain, l.drainedBehind = false, false
	l.in = partial{}
}

func (l *Link) drop() {
	if !l.dropped {
		l.dropped = true
		l.forget()
	}
}
