package codec

import "bytes"

// Codes of a SASL outcome [5.3.3.6].
const (
	SASLCodeOK      uint8 = 0 // authenticated
	SASLCodeAuth    uint8 = 1 // refused: credentials
	SASLCodeSys     uint8 = 2 // refused: the system failed
	SASLCodeSysPerm uint8 = 3 // refused: the system failed and will again
	SASLCodeSysTemp uint8 = 4 // refused: the system failed for the moment
)

// SASLMechanisms is the server's list, in order of preference [5.3.3.1].
type SASLMechanisms struct {
	Mechanisms []Symbol // never empty on the wire
}

// Decode reads the list behind the descriptor; nothing aliases b. No
// mechanism at all is ErrMissingField.
func (p *SASLMechanisms) Decode(b []byte) (rest []byte, err error) {
	*p = SASLMechanisms{}
	var f fields
	rest = f.begin(b, "sasl-mechanisms", 1)
	p.Mechanisms = f.symbols("sasl-server-mechanisms")
	if p.Mechanisms == nil {
		f.missing("sasl-server-mechanisms")
	}
	return rest, f.end()
}

// Append writes the performative with its descriptor and its field.
func (p *SASLMechanisms) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeSASLMechanisms, 1)
	dst = appendSymbols(dst, p.Mechanisms)
	return endComposite(dst, at)
}

// SASLInit is the client's choice of a mechanism [5.3.3.2].
type SASLInit struct {
	Mechanism       Symbol
	InitialResponse []byte
	// HasResponse tells an empty response from none.
	HasResponse bool
	Hostname    string // "" is null
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (p *SASLInit) Decode(b []byte) (rest []byte, err error) {
	*p = SASLInit{}
	var f fields
	rest = f.begin(b, "sasl-init", 3)
	p.Mechanism = f.needSymbol("mechanism")
	p.InitialResponse = bytes.Clone(f.binary("initial-response"))
	p.HasResponse = p.InitialResponse != nil
	p.Hostname = f.string("hostname")
	return rest, f.end()
}

// Append writes the performative with its descriptor and all its fields.
func (p *SASLInit) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeSASLInit, 3)
	dst = appendSymbol(dst, p.Mechanism)
	if p.HasResponse {
		dst = appendBinary(dst, p.InitialResponse)
	} else {
		dst = append(dst, formatNull)
	}
	dst = appendNonEmptyString(dst, p.Hostname)
	return endComposite(dst, at)
}

// SASLChallenge is one step of the server [5.3.3.3].
type SASLChallenge struct {
	Challenge []byte
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (p *SASLChallenge) Decode(b []byte) (rest []byte, err error) {
	*p = SASLChallenge{}
	var f fields
	rest = f.begin(b, "sasl-challenge", 1)
	p.Challenge = bytes.Clone(f.needBinary("challenge"))
	return rest, f.end()
}

// Append writes the performative with its descriptor and its field.
func (p *SASLChallenge) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeSASLChallenge, 1)
	dst = appendBinary(dst, p.Challenge)
	return endComposite(dst, at)
}

// SASLResponse is one step of the client [5.3.3.4].
type SASLResponse struct {
	Response []byte
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (p *SASLResponse) Decode(b []byte) (rest []byte, err error) {
	*p = SASLResponse{}
	var f fields
	rest = f.begin(b, "sasl-response", 1)
	p.Response = bytes.Clone(f.needBinary("response"))
	return rest, f.end()
}

// Append writes the performative with its descriptor and its field.
func (p *SASLResponse) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeSASLResponse, 1)
	dst = appendBinary(dst, p.Response)
	return endComposite(dst, at)
}

// SASLOutcome ends the exchange [5.3.3.5].
type SASLOutcome struct {
	Code           uint8
	AdditionalData []byte // nil is null
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (p *SASLOutcome) Decode(b []byte) (rest []byte, err error) {
	*p = SASLOutcome{}
	var f fields
	rest = f.begin(b, "sasl-outcome", 2)
	code := f.optUbyte("code")
	if !code.Set {
		f.missing("code")
	}
	p.Code = code.Value
	p.AdditionalData = bytes.Clone(f.binary("additional-data"))
	return rest, f.end()
}

// Append writes the performative with its descriptor and all its fields.
func (p *SASLOutcome) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeSASLOutcome, 2)
	dst = appendUbyte(dst, p.Code)
	dst = appendOptBinary(dst, p.AdditionalData)
	return endComposite(dst, at)
}
