package journal

import (
	"fmt"
	"hash/crc32"
)

// reader reads the records of one segment in order. It allocates nothing on the word of a length that it reads: a
// payload gets memory when its checksum has been found right.
type reader struct {
	file  File
	seed  uint32
	limit int64 // size of the segment

	offset int64  // of the next record
	index  uint64 // that it must have
	epoch  uint64 // that it must have at least
	group  int64  // where the group begins that the record read last belongs to; what lies before was flushed

	window []byte // what is in memory: bytes from start on, inside room
	start  int64
	room   []byte
	body   []byte // of records larger than room
}

// ending says why there is no further record.
type ending uint8

const (
	goesOn    ending = iota
	sealed           // end of segment, or no room for another record
	blank            // no record
	bad              // something that is none
	misplaced        // a whole one that doesn't belong there: no crash does that
)

const readSize = 256 << 10

// open sets the reader on a segment. The buffers are kept.
func (r *reader) open(file File, seed uint32, limit, offset int64, index, epoch uint64) {
	if size := min(readSize, limit); int64(len(r.room)) < size {
		r.room = make([]byte, size)
	}
	r.file, r.seed, r.limit, r.offset, r.index, r.epoch = file, seed, limit, offset, index, epoch
	r.window, r.start, r.group = nil, 0, offset
}

// bytes returns n ≤ len(room) bytes of the segment, valid until the next call.
func (r *reader) bytes(offset, n int64) ([]byte, error) {
	if offset < r.start || offset+n > r.start+int64(len(r.window)) {
		r.start, r.window = offset, r.room[:min(int64(len(r.room)), r.limit-offset)]
		if err := readFull(r.file, r.window, offset); err != nil {
			r.window = nil
			return nil, err
		}
	}
	return r.window[offset-r.start:][:n], nil
}

// next reads the next record, with its payload or without. When there is none, it says why not, in words for people
// if it is bad; offset and index are then those of the record that was expected.
func (r *reader) next(payload bool) (rec Record, why ending, reason string, err error) {
	if r.limit-r.offset < recordMinimum {
		return rec, sealed, "", nil
	}
	b, err := r.bytes(r.offset, recordHeader)
	if err != nil {
		return rec, bad, "", err
	}
	f := readFields(b)
	switch at := r.offset + recordHeader; {
	case f.length == 0:
		return rec, blank, "no record", nil
	case f.length > r.limit-at:
		return rec, bad, fmt.Sprintf("length %d reaches beyond the segment", f.length), nil
	default:
		rec = Record{Kind: f.kind, Index: f.index, Epoch: f.epoch, Offset: at, Length: f.length}
	}
	sum, err := r.sum(b)
	switch {
	case err != nil:
		return rec, bad, "", err
	case sum != f.sum:
		return rec, bad, "checksum", nil
	case f.index != r.index:
		return rec, misplaced, fmt.Sprintf("index %d where %d comes next", f.index, r.index), nil
	case f.epoch < r.epoch:
		return rec, misplaced, fmt.Sprintf("epoch %d after %d", f.epoch, r.epoch), nil
	case f.version != recordVersion || f.zero != 0 || f.kind < KindWindow || f.kind > kindEnd:
		return rec, bad, "", fmt.Errorf("%w: record %d: kind %d, version %d", ErrVersion, f.index, f.kind, f.version)
	}
	if f.unflushed == 0 {
		r.group = r.offset
	}
	if f.kind == kindEnd {
		return rec, sealed, "", nil
	}
	if payload {
		if rec.Payload, err = r.payload(rec.Offset, rec.Length); err != nil {
			return rec, bad, "", err
		}
	}
	r.offset, r.index, r.epoch = align(rec.Offset+rec.Length), f.index+1, f.epoch
	return rec, goesOn, "", nil
}

// sum returns the checksum of the record whose header is given.
func (r *reader) sum(head []byte) (uint32, error) {
	f := readFields(head)
	sum := crc32.Update(r.seed, castagnoli, head[8:])
	for at, left := r.offset+recordHeader, f.length; left > 0; {
		n := min(left, int64(len(r.room)))
		if buffered := r.start + int64(len(r.window)) - at; buffered > 0 {
			n = min(n, buffered)
		}
		b, err := r.bytes(at, n)
		if err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, b)
		at, left = at+n, left-n
	}
	return sum, nil
}

func (r *reader) payload(offset, length int64) ([]byte, error) {
	if length <= int64(len(r.room)) {
		return r.bytes(offset, length)
	}
	if int64(len(r.body)) < length {
		r.body = make([]byte, length)
	}
	return r.body[:length], readFull(r.file, r.body[:length], offset)
}
