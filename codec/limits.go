package codec

const (
	// MaxDepth is how many lists, maps, arrays and descriptions may stand
	// inside one another in a value that is read deeply.
	MaxDepth = 32

	// MaxElements is how many elements one list, map (keys and values
	// together) or array may hold when it is read deeply. Elements that take
	// no octets on the wire (null, true, uint0, …) are counted over the whole
	// value instead, since ten octets can declare four billion of them.
	MaxElements = 65536

	// MaxDeliveryTag is the longest delivery-tag the specification allows, in
	// octets [2.8.7]. Decoding doesn't enforce it: the fault belongs to a link,
	// and only the link's owner can answer it there.
	MaxDeliveryTag = 32
)
