package codec

// Disposition tells the state of a range of deliveries [2.7.6].
type Disposition struct {
	Role  Role // of whoever sends it; receiver speaks of deliveries it got
	First uint32
	// Last is absent for a range of one; First to Last is a serial range.
	Last      Opt[uint32]
	Settled   bool
	State     DeliveryState
	Batchable bool
}

// Decode reads the list behind the descriptor. The byte fields of State alias
// b. It allocates nothing unless State carries an error.
func (p *Disposition) Decode(b []byte) (rest []byte, err error) {
	*p = Disposition{}
	var f fields
	rest = f.begin(b, "disposition", 6)
	p.Role = Role(f.needBool("role"))
	p.First = f.needUint("first")
	p.Last = f.optUint("last")
	p.Settled = f.bool("settled")
	f.state("state", &p.State)
	p.Batchable = f.bool("batchable")
	return rest, f.end()
}

// Append writes the performative with its descriptor and all its fields.
func (p *Disposition) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeDisposition, 6)
	dst = appendBool(dst, bool(p.Role))
	dst = appendUint(dst, p.First)
	dst = appendOptUint(dst, p.Last)
	dst = appendBool(dst, p.Settled)
	dst = p.State.Append(dst)
	dst = appendBool(dst, p.Batchable)
	return endComposite(dst, at)
}
