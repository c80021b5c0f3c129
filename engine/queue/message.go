package queue

import (
	"math"
	"sync/atomic"
)

// Message is one message as the queues see it. It is immutable once published and shared by every queue it was
// routed to; nobody may change it or the bytes of Payload afterwards.
type Message struct {
	Payload []byte // message-annotations to footer as they were received; opaque here
	Format  uint32 // message-format of the transfer

	Durable bool // it must survive a restart, by its header or by the address's default-durable

	HeaderDurable  bool // the sender set header.durable; DurableValue is what it said
	HeaderPriority bool // the sender set header.priority
	HeaderTTL      bool // the sender set header.ttl
	DurableValue   bool

	Priority uint8  // 0..9; what is above counts as 9. 4 when the sender set none
	TTL      uint32 // milliseconds, 0 = none
	Expiry   int64  // unix milliseconds, 0 = never; see ExpiryAt
	Due      int64  // unix milliseconds, before that it is given to nobody; 0 = at once
	Arrived  int64  // unix milliseconds; what is left of TTL is counted from here
	Address  string // the address it was sent to

	refs int32 // queues that hold it; only by Hold and Drop
}

// DefaultPriority is what a message has whose header doesn't say [3.2.1].
const DefaultPriority = 4

// Size returns the bytes that the message's payload takes.
func (m *Message) Size() int { return len(m.Payload) }

// Hold notes that n more queues hold the message.
func (m *Message) Hold(n int) { atomic.AddInt32(&m.refs, int32(n)) }

// Drop notes that a queue let go of the message, and reports whether it was the last one.
func (m *Message) Drop() bool { return atomic.AddInt32(&m.refs, -1) == 0 }

// Moved returns a copy for another address, which shares the payload and never expires: what has died once must not
// go on dying there.
func (m *Message) Moved(address string) *Message {
	moved := m.Fresh()
	moved.Address = address
	moved.Expiry, moved.TTL, moved.HeaderTTL, moved.Due = 0, 0, false, 0
	return moved
}

// Fresh returns a copy that no queue holds, which shares the payload. Others may hold and drop m meanwhile.
func (m *Message) Fresh() *Message {
	return &Message{
		Payload: m.Payload, Format: m.Format, Durable: m.Durable,
		HeaderDurable: m.HeaderDurable, HeaderPriority: m.HeaderPriority, HeaderTTL: m.HeaderTTL, DurableValue: m.DurableValue,
		Priority: m.Priority, TTL: m.TTL, Expiry: m.Expiry, Due: m.Due, Arrived: m.Arrived, Address: m.Address,
	}
}

// level returns the priority as one of ten.
func (m *Message) level() uint8 { return min(m.Priority, 9) }

// ExpiryAt returns when a message expires that arrived at the given unix millisecond: the earlier of arrived+ttl and
// absolute-expiry-time, 0 for never. A ttl of 0 and an absolute time of 0 or before the epoch mean "not set", which is
// what clients that write them mean [3.2.1] [3.2.4].
func ExpiryAt(arrived int64, ttl uint32, absolute int64) int64 {
	var at int64
	if ttl > 0 {
		at = math.MaxInt64
		if arrived <= math.MaxInt64-int64(ttl) {
			at = arrived + int64(ttl)
		}
	}
	if absolute > 0 && (at == 0 || absolute < at) {
		at = absolute
	}
	return at
}
