package codec

// AMQP's primitive types that Go has no type of its own for [1.6].
type (
	// Symbol is a name out of some constrained set, in ASCII.
	Symbol string
	// Char is one Unicode character as UTF-32; its bits are carried unchecked.
	Char rune
	// Timestamp is milliseconds since 1970-01-01 00:00 UTC. Every int64 is
	// legal; whoever computes with one has to saturate.
	Timestamp int64
	// UUID is a universally unique identifier in network order.
	UUID [16]byte
	// Decimal32 is an IEEE 754 decimal32 as it stands on the wire.
	Decimal32 [4]byte
	// Decimal64 is an IEEE 754 decimal64 as it stands on the wire.
	Decimal64 [8]byte
	// Decimal128 is an IEEE 754 decimal128 as it stands on the wire.
	Decimal128 [16]byte
	// Raw is one value that is encoded already; AppendValue writes it as it is.
	Raw []byte
)
