package codec

// DefaultHandleMax is begin's default for handle-max [2.7.2].
const DefaultHandleMax uint32 = 4294967295

// Begin starts a session on a channel [2.7.2].
type Begin struct {
	// RemoteChannel is set only in the answer to a begin of the peer.
	RemoteChannel  Opt[uint16]
	NextOutgoingID uint32
	// IncomingWindow and OutgoingWindow count transfer frames.
	IncomingWindow uint32
	OutgoingWindow uint32
	// HandleMax is the highest handle, not a count.
	HandleMax           uint32
	OfferedCapabilities []Symbol
	DesiredCapabilities []Symbol
	Properties          Map
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (p *Begin) Decode(b []byte) (rest []byte, err error) {
	*p = Begin{}
	var f fields
	rest = f.begin(b, "begin", 8)
	p.RemoteChannel = f.optUshort("remote-channel")
	p.NextOutgoingID = f.needUint("next-outgoing-id")
	p.IncomingWindow = f.needUint("incoming-window")
	p.OutgoingWindow = f.needUint("outgoing-window")
	p.HandleMax = f.uintOr("handle-max", DefaultHandleMax)
	p.OfferedCapabilities = f.symbols("offered-capabilities")
	p.DesiredCapabilities = f.symbols("desired-capabilities")
	p.Properties = f.fieldMap("properties")
	return rest, f.end()
}

// Append writes the performative with its descriptor and all its fields.
func (p *Begin) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeBegin, 8)
	if p.RemoteChannel.Set {
		dst = appendUshort(dst, p.RemoteChannel.Value)
	} else {
		dst = append(dst, formatNull)
	}
	dst = appendUint(dst, p.NextOutgoingID)
	dst = appendUint(dst, p.IncomingWindow)
	dst = appendUint(dst, p.OutgoingWindow)
	dst = appendUint(dst, p.HandleMax)
	dst = appendSymbols(dst, p.OfferedCapabilities)
	dst = appendSymbols(dst, p.DesiredCapabilities)
	dst = appendFields(dst, p.Properties)
	return endComposite(dst, at)
}
