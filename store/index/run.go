package index

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/letomq/leto/store/journal"
)

// A run is a row of entries of one queue and priority, in ascending order of number, under one key. runMax bounds it:
// one that changes is read as a whole.
const runMax = 512

const runForm = 1

// What an entry of a run has besides the usual.
const (
	entryCounted  = 1 << iota // count and base
	entryExpiring             // expiry
	entryExtra                // due and annotations
	entryParts                // the payload is in parts
	entrySegment              // its body is in another segment than the body before
)

var errMalformed = errors.New("index: value is malformed")

func zigzag(n int64) uint64   { return uint64(n<<1) ^ uint64(n>>63) }
func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// appendRun encodes entries, of which there is at least one.
func appendRun(dst []byte, entries []Entry) []byte {
	dst = append(dst, runForm)
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	number, segment, end := uint64(0), uint64(0), uint64(0)
	for i := range entries {
		e := &entries[i]
		flags := byte(0)
		if e.Count != 0 || e.Base != 0 {
			flags |= entryCounted
		}
		if e.Expiry != 0 {
			flags |= entryExpiring
		}
		if x := e.Extra; x != nil {
			if x.Due != 0 || len(x.Annotations) > 0 {
				flags |= entryExtra
			}
			if len(x.Parts) > 0 {
				flags |= entryParts
			}
		}
		if e.Place.Segment != segment {
			flags |= entrySegment
		}
		dst = append(dst, flags)
		dst = binary.AppendUvarint(dst, e.Number-number)
		if flags&entrySegment != 0 {
			dst = binary.AppendUvarint(dst, zigzag(int64(e.Place.Segment-segment)))
			segment, end = e.Place.Segment, 0
		}
		dst = binary.AppendUvarint(dst, zigzag(int64(uint64(e.Place.Offset)-end)))
		dst = binary.AppendUvarint(dst, uint64(e.Place.Length))
		dst = binary.BigEndian.AppendUint32(dst, e.Place.CRC)
		if flags&entryParts != 0 {
			dst = binary.AppendUvarint(dst, e.Payload)
		} else {
			dst = binary.AppendUvarint(dst, uint64(e.Place.Length)-e.Payload)
		}
		if flags&entryCounted != 0 {
			dst = binary.AppendUvarint(dst, uint64(e.Count))
			dst = binary.AppendUvarint(dst, uint64(e.Base))
		}
		if flags&entryExpiring != 0 {
			dst = binary.AppendUvarint(dst, uint64(e.Expiry))
		}
		if flags&entryExtra != 0 {
			dst = binary.AppendUvarint(dst, uint64(e.Extra.Due))
			dst = binary.AppendUvarint(dst, uint64(len(e.Extra.Annotations)))
			dst = append(dst, e.Extra.Annotations...)
		}
		if flags&entryParts != 0 {
			dst = binary.AppendUvarint(dst, uint64(len(e.Extra.Parts)))
			for _, p := range e.Extra.Parts {
				dst = binary.AppendUvarint(dst, p.Segment)
				dst = binary.AppendUvarint(dst, p.Bytes)
			}
		}
		number, end = e.Number, uint64(e.Place.Offset)+uint64(e.Place.Length)
	}
	return dst
}

// reader takes a value apart. Once something is missing, everything reads as 0 and failed is set.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.failed = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.failed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.failed = nil, true
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) uint32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// decodeRun appends the entries of a run to dst. What they refer to is their own.
func decodeRun(dst []Entry, value []byte) ([]Entry, error) {
	r := reader{b: value}
	if form := r.byte(); form != runForm {
		return dst, fmt.Errorf("%w: run of form %d", errMalformed, form)
	}
	n := r.uvarint()
	if n == 0 || n > uint64(len(value)) {
		return dst, fmt.Errorf("%w: run of %d entries", errMalformed, n)
	}
	number, segment, end := uint64(0), uint64(0), uint64(0)
	var extras []Extra // most runs have none, or many
	for left := n; left > 0; left-- {
		flags := r.byte()
		number += r.uvarint()
		e := Entry{Number: number}
		if flags&entrySegment != 0 {
			segment += uint64(unzigzag(r.uvarint()))
			end = 0
		}
		offset := end + uint64(unzigzag(r.uvarint()))
		length := r.uvarint()
		end = offset + length
		e.Place = journal.Place{Segment: segment, Offset: uint32(offset), Length: uint32(length), CRC: r.uint32()}
		e.Payload = r.uvarint()
		if flags&entryParts == 0 {
			e.Payload = length - e.Payload
		}
		if flags&entryCounted != 0 {
			e.Count, e.Base = uint32(r.uvarint()), uint32(r.uvarint())
		}
		if flags&entryExpiring != 0 {
			e.Expiry = int64(r.uvarint())
		}
		if flags&(entryExtra|entryParts) != 0 {
			if len(extras) == 0 {
				extras = make([]Extra, min(left, 1+2*(n-left)))
			}
			e.Extra, extras = &extras[0], extras[1:]
		}
		if flags&entryExtra != 0 {
			e.Extra.Due = int64(r.uvarint())
			e.Extra.Annotations = append([]byte(nil), r.bytes(r.uvarint())...)
		}
		if flags&entryParts != 0 {
			for range min(r.uvarint(), uint64(len(r.b))) {
				e.Extra.Parts = append(e.Extra.Parts, Part{Segment: r.uvarint(), Bytes: r.uvarint()})
			}
		}
		if r.failed {
			return dst, fmt.Errorf("%w: run ends early", errMalformed)
		}
		dst = append(dst, e)
	}
	if len(r.b) > 0 {
		return dst, fmt.Errorf("%w: %d bytes behind a run", errMalformed, len(r.b))
	}
	return dst, nil
}

// bitmap says which entries of a run are gone, by their place in it.
type bitmap []byte

func (m bitmap) has(i int) bool { return i/8 < len(m) && m[i/8]&(1<<(i%8)) != 0 }
func (m bitmap) set(i int)      { m[i/8] |= 1 << (i % 8) }
