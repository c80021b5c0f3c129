package codec

// Source says where a link's messages come from [3.5.3].
type Source struct {
	// Address is absent for a dynamic source. Other types than string are
	// ErrWrongType.
	Address      Opt[string]
	Durable      uint32
	ExpiryPolicy Symbol // "" is written as null, which means session-end
	// Timeout is in seconds.
	Timeout               uint32
	Dynamic               bool
	DynamicNodeProperties Map
	DistributionMode      Symbol // "" is null
	Filter                Map
	// DefaultOutcome is StateNone when null.
	DefaultOutcome Outcome
	Outcomes       []Symbol
	Capabilities   []Symbol
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (s *Source) Decode(b []byte) (rest []byte, err error) {
	*s = Source{}
	var f fields
	rest = f.begin(b, "source", 11)
	s.Address = f.optString("address")
	s.Durable = f.uintOr("durable", TerminusNone)
	s.ExpiryPolicy = f.symbolOr("expiry-policy", ExpirySessionEnd)
	s.Timeout = f.uintOr("timeout", 0)
	s.Dynamic = f.bool("dynamic")
	s.DynamicNodeProperties = f.fieldMap("dynamic-node-properties")
	s.DistributionMode = f.symbolOr("distribution-mode", "")
	s.Filter = f.fieldMap("filter")
	f.outcome("default-outcome", &s.DefaultOutcome)
	s.DefaultOutcome.own()
	s.Outcomes = f.symbols("outcomes")
	s.Capabilities = f.symbols("capabilities")
	return rest, f.end()
}

// Append writes the source with its descriptor and all its fields.
func (s *Source) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeSource, 11)
	dst = appendOptString(dst, s.Address)
	dst = appendUint(dst, s.Durable)
	dst = appendNonEmptySymbol(dst, s.ExpiryPolicy)
	dst = appendUint(dst, s.Timeout)
	dst = appendBool(dst, s.Dynamic)
	dst = appendFields(dst, s.DynamicNodeProperties)
	dst = appendNonEmptySymbol(dst, s.DistributionMode)
	dst = appendFields(dst, s.Filter)
	dst = s.DefaultOutcome.Append(dst)
	dst = appendSymbols(dst, s.Outcomes)
	dst = appendSymbols(dst, s.Capabilities)
	return endComposite(dst, at)
}
