package amqp

// Serial-number arithmetic for transfer-ids, delivery-ids and delivery-counts
// [2.8.10, RFC 1982]: only differences of two such numbers have an order.
// Credits and windows are amounts, not serial numbers, and never take part.

// ahead returns how far a lies ahead of b; negative when it lies behind.
func ahead(a, b uint32) int32 { return int32(a - b) }

// before reports whether a comes before b.
func before(a, b uint32) bool { return int32(a-b) < 0 }
