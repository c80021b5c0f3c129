package codec

// End ends a session [2.7.8].
type End struct {
	Error *ErrorInfo // nil is null
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (p *End) Decode(b []byte) (rest []byte, err error) {
	*p = End{}
	var f fields
	rest = f.begin(b, "end", 1)
	p.Error = f.errorInfo("error")
	return rest, f.end()
}

// Append writes the performative with its descriptor and all its fields.
func (p *End) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeEnd, 1)
	dst = appendErrorInfo(dst, p.Error)
	return endComposite(dst, at)
}
