package codec

const (
	// MaxDepth is how many lists, maps, arrays and descriptions may stand
	// inside one another in a value that is read deeply.
	MaxDepth = 32

	// MaxElements is how many elements one list, map (keys and values
	// together) or array may hold when it is decoded, and the most that an
	// array of elements without octets may declare anywhere.
	MaxElements = 65536

	// MaxZeroWidth is how many array elements that take no octets (null, true,
	// uint0, …) one decoded value may hold in all. Ten octets can declare four
	// billion of them, and every such array of a few octets would otherwise
	// buy its sender a megabyte.
	MaxZeroWidth = 4096

	// MaxDeliveryTag is the longest delivery-tag the specification allows, in
	// octets [2.8.7]. Decoding doesn't enforce it: the fault belongs to a link,
	// and only the link's owner can answer it there.
	MaxDeliveryTag = 32
)
