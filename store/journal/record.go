package journal

import (
	"encoding/binary"
	"hash/crc32"
)

// Kind says what a record's payload is.
type Kind uint8

const (
	KindWindow Kind = 1 // facts of one commit
	KindPart   Kind = 2 // bytes of a large body that a window names
	KindEpoch  Kind = 3 // an epoch begins: format version u16, epoch u64. Written by Begin
	kindEnd    Kind = 4 // the segment ends here: number of the segment u64. Seen by nobody but the journal
)

// Record is one record of the journal.
type Record struct {
	Kind    Kind
	Index   uint64 // 1, 2, 3 … over all segments and epochs
	Epoch   uint64
	Segment uint64
	Offset  int64  // of the payload in the segment
	Length  int64  // of the payload, bytes
	Payload []byte // Replay: valid during the call. Append leaves it nil
}

// Position is a place between two records: that of the record that comes next. The zero Position is the journal's
// beginning.
type Position struct {
	Index   uint64 // of the record that comes next
	Segment uint64
	Offset  int64 // where its header is, or the segment's end if it is in the next one
}

// Next returns the position behind the record.
func (r Record) Next() Position {
	return Position{Index: r.Index + 1, Segment: r.Segment, Offset: align(r.Offset + r.Length)}
}

// Place says where bytes lie in the journal and what their checksum is.
type Place struct {
	Segment uint64
	Offset  uint32 // in the segment
	Length  uint32 // bytes
	CRC     uint32 // Checksum of the bytes
}

const (
	recordAlign   = 8
	recordHeader  = 32
	recordMinimum = recordHeader + recordAlign // where less is left, a segment ends
	recordVersion = 1                          // of the payload's form
)

func align(n int64) int64 { return (n + recordAlign - 1) &^ (recordAlign - 1) }

// putRecord writes a record's header to the beginning of b, which holds header and payload. unflushed is how many
// records before it are not known to be flushed.
func putRecord(b []byte, seed uint32, kind Kind, index, epoch uint64, unflushed uint32) {
	binary.BigEndian.PutUint32(b, uint32(len(b)-recordHeader))
	binary.BigEndian.PutUint64(b[8:], index)
	binary.BigEndian.PutUint64(b[16:], epoch)
	b[24], b[25], b[26], b[27] = byte(kind), recordVersion, 0, 0
	binary.BigEndian.PutUint32(b[28:], unflushed)
	binary.BigEndian.PutUint32(b[4:], crc32.Update(seed, castagnoli, b[8:]))
}

// fields are a record header's.
type fields struct {
	length    int64
	sum       uint32
	index     uint64
	epoch     uint64
	kind      Kind
	version   uint8
	zero      uint16
	unflushed uint32
}

func readFields(b []byte) fields {
	_ = b[recordHeader-1]
	return fields{
		length:    int64(binary.BigEndian.Uint32(b)),
		sum:       binary.BigEndian.Uint32(b[4:]),
		index:     binary.BigEndian.Uint64(b[8:]),
		epoch:     binary.BigEndian.Uint64(b[16:]),
		kind:      Kind(b[24]),
		version:   b[25],
		zero:      binary.BigEndian.Uint16(b[26:]),
		unflushed: binary.BigEndian.Uint32(b[28:]),
	}
}

// flushed returns up to which index everything was known to be flushed when the record was written.
func (f *fields) flushed() uint64 {
	if f.index <= uint64(f.unflushed) {
		return 0
	}
	return f.index - 1 - uint64(f.unflushed)
}
