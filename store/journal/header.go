package journal

import (
	"encoding/binary"
	"fmt"
)

const (
	headerSize    = 4096 // of a segment; the first record is behind it
	headerUsed    = 64
	formatVersion = 1
	magic         = "LETOJRNL"
)

// header is what stands at the beginning of a segment.
type header struct {
	number  uint64
	store   [16]byte
	epoch   uint64
	first   uint64 // index of the first record
	segment int64  // size of the segment
}

// put writes the header to b, which is zero and at least headerUsed long.
func (h *header) put(b []byte) {
	copy(b, magic)
	binary.BigEndian.PutUint16(b[8:], formatVersion)
	binary.BigEndian.PutUint64(b[12:], h.number)
	copy(b[20:], h.store[:])
	binary.BigEndian.PutUint64(b[36:], h.epoch)
	binary.BigEndian.PutUint64(b[44:], h.first)
	binary.BigEndian.PutUint64(b[52:], uint64(h.segment))
	binary.BigEndian.PutUint32(b[60:], Checksum(b[:60]))
}

// readHeader reads a header; whole is false when there is none or a torn one. A version that is not known is
// ErrVersion.
func readHeader(b []byte) (h header, whole bool, err error) {
	if len(b) < headerUsed || string(b[:8]) != magic || binary.BigEndian.Uint32(b[60:]) != Checksum(b[:60]) {
		return h, false, nil
	}
	if v, flags := binary.BigEndian.Uint16(b[8:]), binary.BigEndian.Uint16(b[10:]); v != formatVersion || flags != 0 {
		return h, false, fmt.Errorf("%w: %d, flags %#x", ErrVersion, v, flags)
	}
	h.number = binary.BigEndian.Uint64(b[12:])
	copy(h.store[:], b[20:])
	h.epoch = binary.BigEndian.Uint64(b[36:])
	h.first = binary.BigEndian.Uint64(b[44:])
	h.segment = int64(binary.BigEndian.Uint64(b[52:]))
	return h, true, nil
}
