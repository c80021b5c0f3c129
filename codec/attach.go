package codec

// Attach attaches a link to a session [2.7.3].
type Attach struct {
	Name   string
	Handle uint32
	Role   Role // of whoever sends this attach
	// SndSettleMode and RcvSettleMode are not checked for their range.
	SndSettleMode uint8
	RcvSettleMode uint8
	Source        *Source // nil is null
	// Target and Coordinator share the target's place; at most one is set, and
	// Coordinator wins when written.
	Target      *Target
	Coordinator *Coordinator
	// Unsettled is the encoded map of delivery-tag to delivery state, nil when
	// null. It aliases what was decoded.
	Unsettled           []byte
	IncompleteUnsettled bool
	// InitialDeliveryCount must be set by a sender, which is for the link to
	// check.
	InitialDeliveryCount Opt[uint32]
	// MaxMessageSize is in octets; 0 is no limit and written as null.
	MaxMessageSize      uint64
	OfferedCapabilities []Symbol
	DesiredCapabilities []Symbol
	Properties          Map
}

// Decode reads the list behind the descriptor; Unsettled alone aliases b.
func (p *Attach) Decode(b []byte) (rest []byte, err error) {
	*p = Attach{}
	var f fields
	rest = f.begin(b, "attach", 14)
	p.Name = f.needString("name")
	p.Handle = f.needUint("handle")
	p.Role = Role(f.needBool("role"))
	p.SndSettleMode = f.optUbyte("snd-settle-mode").Or(SettleMixed)
	p.RcvSettleMode = f.optUbyte("rcv-settle-mode").Or(ReceiveFirst)
	p.readSource(&f)
	p.readTarget(&f)
	p.Unsettled = f.rawMap("unsettled")
	p.IncompleteUnsettled = f.bool("incomplete-unsettled")
	p.InitialDeliveryCount = f.optUint("initial-delivery-count")
	p.MaxMessageSize = f.optUlong("max-message-size").Or(0)
	p.OfferedCapabilities = f.symbols("offered-capabilities")
	p.DesiredCapabilities = f.symbols("desired-capabilities")
	p.Properties = f.fieldMap("properties")
	return rest, f.end()
}

func (p *Attach) readSource(f *fields) {
	code, content, ok := f.described("source")
	if !ok {
		return
	}
	if code != CodeSource {
		f.failWith("source", &Error{UnknownDescriptor, "terminus"})
		return
	}
	source := new(Source)
	rest, err := source.Decode(content)
	if err != nil {
		f.failWith("source", err)
		return
	}
	p.Source = source
	f.skipTo(rest)
}

func (p *Attach) readTarget(f *fields) {
	code, content, ok := f.described("target")
	if !ok {
		return
	}
	var rest []byte
	var err error
	switch code {
	case CodeTarget:
		p.Target = new(Target)
		rest, err = p.Target.Decode(content)
	case CodeCoordinator:
		p.Coordinator = new(Coordinator)
		rest, err = p.Coordinator.Decode(content)
	default:
		err = &Error{UnknownDescriptor, "terminus"}
	}
	if err != nil {
		f.failWith("target", err)
		return
	}
	f.skipTo(rest)
}

// Append writes the performative with its descriptor and all its fields.
func (p *Attach) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeAttach, 14)
	dst = appendString(dst, p.Name)
	dst = appendUint(dst, p.Handle)
	dst = appendBool(dst, bool(p.Role))
	dst = appendUbyte(dst, p.SndSettleMode)
	dst = appendUbyte(dst, p.RcvSettleMode)
	if p.Source != nil {
		dst = p.Source.Append(dst)
	} else {
		dst = append(dst, formatNull)
	}
	switch {
	case p.Coordinator != nil:
		dst = p.Coordinator.Append(dst)
	case p.Target != nil:
		dst = p.Target.Append(dst)
	default:
		dst = append(dst, formatNull)
	}
	dst = appendRaw(dst, p.Unsettled)
	dst = appendBool(dst, p.IncompleteUnsettled)
	dst = appendOptUint(dst, p.InitialDeliveryCount)
	if p.MaxMessageSize == 0 {
		dst = append(dst, formatNull)
	} else {
		dst = appendUlong(dst, p.MaxMessageSize)
	}
	dst = appendSymbols(dst, p.OfferedCapabilities)
	dst = appendSymbols(dst, p.DesiredCapabilities)
	dst = appendFields(dst, p.Properties)
	return endComposite(dst, at)
}
