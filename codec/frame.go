package codec

import (
	"encoding/binary"
	"strconv"
)

// Frame types [2.3.1].
const (
	FrameAMQP byte = 0
	FrameSASL byte = 1
)

// FrameHeaderSize is the size in octets of a frame header without extension.
const FrameHeaderSize = 8

// FrameHeader is the fixed part at the start of every frame [2.3.1].
type FrameHeader struct {
	// Size is the whole frame's in octets, header included.
	Size uint32
	// DataOffset is where the body starts, in words of four octets.
	DataOffset byte
	Type       byte
	// Channel means nothing in a SASL frame.
	Channel uint16
}

// BodyOffset is where the body starts, in octets from the frame's start.
func (h FrameHeader) BodyOffset() int { return int(h.DataOffset) * 4 }

// ReadFrameHeader reads the header of the frame that starts at b[0]. It needs
// eight octets (ErrTruncated). A size below eight, a body that starts inside
// the header or behind the frame's end is ErrFraming. It knows no largest
// frame and no types: both are the connection's to check, before it waits for
// the rest of the frame.
func ReadFrameHeader(b []byte) (FrameHeader, error) {
	if len(b) < FrameHeaderSize {
		return FrameHeader{}, &Error{Truncated, "frame header"}
	}
	h := FrameHeader{
		Size:       binary.BigEndian.Uint32(b),
		DataOffset: b[4],
		Type:       b[5],
		Channel:    binary.BigEndian.Uint16(b[6:]),
	}
	switch {
	case h.Size < FrameHeaderSize:
		return h, &Error{Framing, "frame of " + strconv.FormatUint(uint64(h.Size), 10) + " octets"}
	case h.DataOffset < 2, uint32(h.DataOffset)*4 > h.Size:
		return h, &Error{Framing, "data offset " + strconv.Itoa(int(h.DataOffset)) + " in a frame of " + strconv.FormatUint(uint64(h.Size), 10) + " octets"}
	}
	return h, nil
}

// BeginFrame appends a frame header whose size EndFrame fills in.
func BeginFrame(dst []byte, typ byte, channel uint16) []byte {
	return append(dst, 0, 0, 0, 0, 2, typ, byte(channel>>8), byte(channel))
}

// EndFrame fills in the size of the frame that BeginFrame began when dst had
// the length start; the frame ends with dst.
func EndFrame(dst []byte, start int) {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start))
}
