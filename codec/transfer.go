package codec

// Transfer carries a message, or a part of one; the payload follows it in the
// frame [2.7.5].
type Transfer struct {
	Handle     uint32
	DeliveryID Opt[uint32]
	// DeliveryTag is nil when absent. It aliases what was decoded, and its
	// length is for the link to check against MaxDeliveryTag.
	DeliveryTag   []byte
	MessageFormat Opt[uint32]
	Settled       Opt[bool]
	More          bool
	RcvSettleMode Opt[uint8]
	State         DeliveryState
	Resume        bool
	Aborted       bool
	Batchable     bool
}

// Decode reads the list behind the descriptor and returns the payload.
// DeliveryTag and the byte fields of State alias b. It allocates nothing
// unless State carries an error.
func (p *Transfer) Decode(b []byte) (rest []byte, err error) {
	*p = Transfer{}
	var f fields
	rest = f.begin(b, "transfer", 11)
	p.Handle = f.needUint("handle")
	p.DeliveryID = f.optUint("delivery-id")
	p.DeliveryTag = f.binary("delivery-tag")
	p.MessageFormat = f.optUint("message-format")
	p.Settled = f.optBool("settled")
	p.More = f.bool("more")
	p.RcvSettleMode = f.optUbyte("rcv-settle-mode")
	f.state("state", &p.State)
	p.Resume = f.bool("resume")
	p.Aborted = f.bool("aborted")
	p.Batchable = f.bool("batchable")
	return rest, f.end()
}

// Append writes the performative with its descriptor and all its fields.
func (p *Transfer) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeTransfer, 11)
	dst = appendUint(dst, p.Handle)
	dst = appendOptUint(dst, p.DeliveryID)
	dst = appendOptBinary(dst, p.DeliveryTag)
	dst = appendOptUint(dst, p.MessageFormat)
	dst = appendOptBool(dst, p.Settled)
	dst = appendBool(dst, p.More)
	dst = appendOptUbyte(dst, p.RcvSettleMode)
	dst = p.State.Append(dst)
	dst = appendBool(dst, p.Resume)
	dst = appendBool(dst, p.Aborted)
	dst = appendBool(dst, p.Batchable)
	return endComposite(dst, at)
}
