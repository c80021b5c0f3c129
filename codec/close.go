package codec

// Close closes a connection [2.7.9].
type Close struct {
	Error *ErrorInfo // nil is null
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (p *Close) Decode(b []byte) (rest []byte, err error) {
	*p = Close{}
	var f fields
	rest = f.begin(b, "close", 1)
	p.Error = f.errorInfo("error")
	return rest, f.end()
}

// Append writes the performative with its descriptor and all its fields.
func (p *Close) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeClose, 1)
	dst = appendErrorInfo(dst, p.Error)
	return endComposite(dst, at)
}
