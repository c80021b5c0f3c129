package codec

// Detach detaches a link from its session [2.7.7].
type Detach struct {
	Handle uint32
	// Closed ends the link itself and not only its attachment.
	Closed bool
	Error  *ErrorInfo // nil is null
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (p *Detach) Decode(b []byte) (rest []byte, err error) {
	*p = Detach{}
	var f fields
	rest = f.begin(b, "detach", 3)
	p.Handle = f.needUint("handle")
	p.Closed = f.bool("closed")
	p.Error = f.errorInfo("error")
	return rest, f.end()
}

// Append writes the performative with its descriptor and all its fields.
func (p *Detach) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeDetach, 3)
	dst = appendUint(dst, p.Handle)
	dst = appendBool(dst, p.Closed)
	dst = appendErrorInfo(dst, p.Error)
	return endComposite(dst, at)
}
