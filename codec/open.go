package codec

// Defaults of open [2.7.1].
const (
	DefaultMaxFrameSize uint32 = 4294967295
	DefaultChannelMax   uint16 = 65535

	// MinMaxFrameSize is the smallest max-frame-size a peer may announce, and
	// the largest frame that may be sent before its open was read [2.8.19].
	MinMaxFrameSize = 512
)

// Open negotiates a connection's parameters [2.7.1].
type Open struct {
	ContainerID string
	Hostname    string // "" is null
	// MaxFrameSize is in octets; the sender of this open accepts no larger.
	MaxFrameSize uint32
	// ChannelMax is the highest channel number, not a count.
	ChannelMax uint16
	// IdleTimeOut is in milliseconds; 0 is none and written as null.
	IdleTimeOut         uint32
	OutgoingLocales     []Symbol
	IncomingLocales     []Symbol
	OfferedCapabilities []Symbol
	DesiredCapabilities []Symbol
	Properties          Map
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (p *Open) Decode(b []byte) (rest []byte, err error) {
	*p = Open{}
	var f fields
	rest = f.begin(b, "open", 10)
	p.ContainerID = f.needString("container-id")
	p.Hostname = f.string("hostname")
	p.MaxFrameSize = f.uintOr("max-frame-size", DefaultMaxFrameSize)
	p.ChannelMax = f.optUshort("channel-max").Or(DefaultChannelMax)
	p.IdleTimeOut = f.uintOr("idle-time-out", 0)
	p.OutgoingLocales = f.symbols("outgoing-locales")
	p.IncomingLocales = f.symbols("incoming-locales")
	p.OfferedCapabilities = f.symbols("offered-capabilities")
	p.DesiredCapabilities = f.symbols("desired-capabilities")
	p.Properties = f.fieldMap("properties")
	return rest, f.end()
}

// Append writes the performative with its descriptor and all its fields.
func (p *Open) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeOpen, 10)
	dst = appendString(dst, p.ContainerID)
	dst = appendNonEmptyString(dst, p.Hostname)
	dst = appendUint(dst, p.MaxFrameSize)
	dst = appendUshort(dst, p.ChannelMax)
	if p.IdleTimeOut == 0 {
		dst = append(dst, formatNull)
	} else {
		dst = appendUint(dst, p.IdleTimeOut)
	}
	dst = appendSymbols(dst, p.OutgoingLocales)
	dst = appendSymbols(dst, p.IncomingLocales)
	dst = appendSymbols(dst, p.OfferedCapabilities)
	dst = appendSymbols(dst, p.DesiredCapabilities)
	dst = appendFields(dst, p.Properties)
	return endComposite(dst, at)
}
