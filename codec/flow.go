package codec

// Flow updates the flow state of a session and, with a handle, of a link
// [2.7.4].
type Flow struct {
	// NextIncomingID is absent only when the peer's begin was not seen yet.
	NextIncomingID Opt[uint32]
	IncomingWindow uint32
	NextOutgoingID uint32
	OutgoingWindow uint32
	Handle         Opt[uint32]
	DeliveryCount  Opt[uint32]
	LinkCredit     Opt[uint32]
	Available      Opt[uint32]
	Drain          bool
	Echo           bool
	Properties     Map
}

// Decode reads the list behind the descriptor; nothing aliases b. Without
// properties it allocates nothing.
func (p *Flow) Decode(b []byte) (rest []byte, err error) {
	*p = Flow{}
	var f fields
	rest = f.begin(b, "flow", 11)
	p.NextIncomingID = f.optUint("next-incoming-id")
	p.IncomingWindow = f.needUint("incoming-window")
	p.NextOutgoingID = f.needUint("next-outgoing-id")
	p.OutgoingWindow = f.needUint("outgoing-window")
	p.Handle = f.optUint("handle")
	p.DeliveryCount = f.optUint("delivery-count")
	p.LinkCredit = f.optUint("link-credit")
	p.Available = f.optUint("available")
	p.Drain = f.bool("drain")
	p.Echo = f.bool("echo")
	p.Properties = f.fieldMap("properties")
	return rest, f.end()
}

// Append writes the performative with its descriptor and all its fields.
func (p *Flow) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeFlow, 11)
	dst = appendOptUint(dst, p.NextIncomingID)
	dst = appendUint(dst, p.IncomingWindow)
	dst = appendUint(dst, p.NextOutgoingID)
	dst = appendUint(dst, p.OutgoingWindow)
	dst = appendOptUint(dst, p.Handle)
	dst = appendOptUint(dst, p.DeliveryCount)
	dst = appendOptUint(dst, p.LinkCredit)
	dst = appendOptUint(dst, p.Available)
	dst = appendBool(dst, p.Drain)
	dst = appendBool(dst, p.Echo)
	dst = appendFields(dst, p.Properties)
	return endComposite(dst, at)
}
