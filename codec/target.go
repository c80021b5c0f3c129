package codec

// Target says where a link's messages go [3.5.4].
type Target struct {
	// Address is absent for a dynamic target and for the anonymous terminus.
	// Other types than string are ErrWrongType.
	Address      Opt[string]
	Durable      uint32
	ExpiryPolicy Symbol // "" is written as null, which means session-end
	// Timeout is in seconds.
	Timeout               uint32
	Dynamic               bool
	DynamicNodeProperties Map
	Capabilities          []Symbol
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (t *Target) Decode(b []byte) (rest []byte, err error) {
	*t = Target{}
	var f fields
	rest = f.begin(b, "target", 7)
	t.Address = f.optString("address")
	t.Durable = f.uintOr("durable", TerminusNone)
	t.ExpiryPolicy = f.symbolOr("expiry-policy", ExpirySessionEnd)
	t.Timeout = f.uintOr("timeout", 0)
	t.Dynamic = f.bool("dynamic")
	t.DynamicNodeProperties = f.fieldMap("dynamic-node-properties")
	t.Capabilities = f.symbols("capabilities")
	return rest, f.end()
}

// Append writes the target with its descriptor and all its fields.
func (t *Target) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeTarget, 7)
	dst = appendOptString(dst, t.Address)
	dst = appendUint(dst, t.Durable)
	dst = appendNonEmptySymbol(dst, t.ExpiryPolicy)
	dst = appendUint(dst, t.Timeout)
	dst = appendBool(dst, t.Dynamic)
	dst = appendFields(dst, t.DynamicNodeProperties)
	dst = appendSymbols(dst, t.Capabilities)
	return endComposite(dst, at)
}
