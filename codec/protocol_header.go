package codec

// ProtocolHeader is what each end writes before the first frame of a layer:
// "AMQP", the layer's id, and the version as major, minor, revision [2.2].
type ProtocolHeader [8]byte

// Headers of the three layers, all of version 1.0.0.
var (
	HeaderAMQP = ProtocolHeader{'A', 'M', 'Q', 'P', 0, 1, 0, 0}
	HeaderTLS  = ProtocolHeader{'A', 'M', 'Q', 'P', 2, 1, 0, 0}
	HeaderSASL = ProtocolHeader{'A', 'M', 'Q', 'P', 3, 1, 0, 0}
)
