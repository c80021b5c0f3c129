package codec

// DefaultPriority is the priority of a message without one [3.2.1].
const DefaultPriority uint8 = 4

// Header is what concerns a message's delivery [3.2.1].
type Header struct {
	Durable  Opt[bool]
	Priority Opt[uint8]
	// TTL is in milliseconds, from when the message arrived at the node.
	TTL           Opt[uint32]
	FirstAcquirer Opt[bool]
	// DeliveryCount is the number of earlier attempts that failed.
	DeliveryCount uint32
}

// Decode reads a whole header section. Nothing aliases it, nothing is
// allocated.
func (h *Header) Decode(section []byte) error {
	*h = Header{}
	value, err := openSection(section, CodeHeader)
	if err != nil {
		return err
	}
	var f fields
	rest := f.begin(value, "header", 5)
	h.Durable = f.optBool("durable")
	h.Priority = f.optUbyte("priority")
	h.TTL = f.optUint("ttl")
	h.FirstAcquirer = f.optBool("first-acquirer")
	h.DeliveryCount = f.uintOr("delivery-count", 0)
	return endSection(rest, CodeHeader, f.end())
}

// Append writes a whole header section with all its fields.
func (h *Header) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeHeader, 5)
	dst = appendOptBool(dst, h.Durable)
	dst = appendOptUbyte(dst, h.Priority)
	dst = appendOptUint(dst, h.TTL)
	dst = appendOptBool(dst, h.FirstAcquirer)
	dst = appendUint(dst, h.DeliveryCount)
	return endComposite(dst, at)
}
