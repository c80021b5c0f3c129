package store

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store/journal"
)

const bodyForm = 1

// Flags of a body.
const (
	bodyDurable = 1 << iota
	bodyHeaderDurable
	bodyDurableValue
	bodyHeaderPriority
	bodyHeaderTTL
)

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// appendBody encodes a message as a body fact: its payload in it, or elsewhere in the journal if there are parts.
func appendBody(dst []byte, m *queue.Message, parts []journal.Place) []byte {
	return appendPartsBody(dst, m, uint64(len(m.Payload)), parts)
}

// appendPartsBody is appendBody for a message whose payload, of that size, needn't be there when there are parts.
func appendPartsBody(dst []byte, m *queue.Message, payload uint64, parts []journal.Place) []byte {
	size := 3 + uvarintLen(uint64(m.Format)) + uvarintLen(uint64(m.TTL)) + uvarintLen(uint64(m.Expiry)) +
		uvarintLen(uint64(m.Arrived)) + uvarintLen(uint64(len(m.Address))) + len(m.Address) +
		uvarintLen(uint64(len(parts))) + uvarintLen(payload)
	for i := range parts {
		p := &parts[i]
		size += uvarintLen(p.Segment) + uvarintLen(uint64(p.Offset)) + uvarintLen(uint64(p.Length)) + 4
	}
	if len(parts) == 0 {
		size += len(m.Payload)
	}
	size += 1 // the kind
	size += uvarintLen(uint64(size + uvarintLen(uint64(size))))

	var flags byte
	for i, set := range [...]bool{m.Durable, m.HeaderDurable, m.DurableValue, m.HeaderPriority, m.HeaderTTL} {
		if set {
			flags |= 1 << i
		}
	}
	dst = append(dst, byte(factBody))
	dst = binary.AppendUvarint(dst, uint64(size))
	dst = append(dst, bodyForm)
	dst = binary.AppendUvarint(dst, uint64(m.Format))
	dst = append(dst, flags, m.Priority)
	dst = binary.AppendUvarint(dst, uint64(m.TTL))
	dst = binary.AppendUvarint(dst, uint64(m.Expiry))
	dst = binary.AppendUvarint(dst, uint64(m.Arrived))
	dst = appendString(dst, m.Address)
	dst = binary.AppendUvarint(dst, uint64(len(parts)))
	for i := range parts {
		p := &parts[i]
		dst = binary.AppendUvarint(dst, p.Segment)
		dst = binary.AppendUvarint(dst, uint64(p.Offset))
		dst = binary.AppendUvarint(dst, uint64(p.Length))
		dst = binary.BigEndian.AppendUint32(dst, p.CRC)
	}
	dst = binary.AppendUvarint(dst, payload)
	if len(parts) == 0 {
		dst = append(dst, m.Payload...)
	}
	return dst
}

// bodyHead is what stands in a body besides its payload.
type bodyHead struct {
	message queue.Message // Address and Payload aren't set
	address []byte
	payload []byte // in the body's bytes; nil if there are parts
	size    uint64 // of the payload
	parts   []journal.Place
}

// maxParts bounds the parts of one body: 64 GiB of the usual size.
const maxParts = 1 << 18

// readBody decodes a body fact. With parts, they are appended to those given.
func readBody(b []byte, parts []journal.Place) (h bodyHead, err error) {
	r := reader{b: b}
	if factKind(r.byte()) != factBody || r.uvarint() != uint64(len(b)) {
		return h, fmt.Errorf("%w: not a body of %d bytes", errMalformed, len(b))
	}
	if form := r.byte(); form != bodyForm {
		return h, fmt.Errorf("%w: body of form %d", errMalformed, form)
	}
	m := &h.message
	m.Format = r.uint32()
	flags := r.byte()
	m.Durable = flags&bodyDurable != 0
	m.HeaderDurable = flags&bodyHeaderDurable != 0
	m.DurableValue = flags&bodyDurableValue != 0
	m.HeaderPriority = flags&bodyHeaderPriority != 0
	m.HeaderTTL = flags&bodyHeaderTTL != 0
	m.Priority = r.byte()
	m.TTL = r.uint32()
	m.Expiry = int64(r.uvarint())
	m.Arrived = int64(r.uvarint())
	h.address = r.string()
	n := r.uvarint()
	if n > maxParts {
		return h, fmt.Errorf("%w: body of %d parts", errMalformed, n)
	}
	total := uint64(0)
	for range n {
		if r.failed {
			break
		}
		parts = append(parts, journal.Place{Segment: r.uvarint(), Offset: r.uint32(), Length: r.uint32(), CRC: r.fixed32()})
		total += uint64(parts[len(parts)-1].Length)
	}
	h.size = r.uvarint()
	if n == 0 {
		h.payload = r.bytes(h.size)
	} else {
		h.parts = parts
		if total != h.size {
			r.failed = true
		}
	}
	if r.failed || len(r.b) > 0 {
		return h, fmt.Errorf("%w: body of %d bytes", errMalformed, len(b))
	}
	return h, nil
}
