package journal

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// group is what Append collects for one Flush, and where it will be written.
type group struct {
	buffer  []byte
	chunks  []chunk
	taken   []prepared // segments that the group begins
	records uint32     // in the group, all kinds

	tail
	flushed tail    // when everything was flushed
	reading *handle // of the last segment that was flushed: keeps it among the open files
}

// tail is where the next record goes.
type tail struct {
	segment segment
	file    File // nil before Begin
	seed    uint32
	offset  int64  // in the segment
	index   uint64 // of the next record
}

// chunk is the part of the group that goes into one segment.
type chunk struct {
	segment  segment
	file     File
	fresh    bool  // begins the segment
	offset   int64 // in the segment
	from, to int   // in the buffer
}

// keepBuffer is how much of a buffer stays for the next group.
const keepBuffer = 8 << 20

// Begin starts a new segment in an epoch, which must not be lower than any before, and flushes it. It is called once,
// before anything is appended; after ErrFull it may be called again.
func (j *Journal) Begin(epoch uint64) error {
	if err := j.usable(); err != nil {
		return err
	}
	if epoch < j.epoch {
		return fmt.Errorf("%w: %d after %d", ErrEpoch, epoch, j.epoch)
	}
	g := &j.group
	g.index = j.end.Index
	g.flushed.index = g.index
	if err := j.nextSegment(epoch); err != nil {
		return err
	}
	if epoch > j.epoch || g.index == 1 {
		var payload [10]byte
		binary.BigEndian.PutUint16(payload[:], formatVersion)
		binary.BigEndian.PutUint64(payload[2:], epoch)
		g.put(KindEpoch, payload[:])
	}
	return j.flush()
}

// Append adds a record of KindWindow or KindPart to the group that the next Flush writes. The payload, which isn't
// empty, is copied from its pieces. The returned Record says where the payload will be; it can be read from there
// when the Flush has returned. After an error the whole group is dropped, and begins anew with the next Append. The
// group is kept in memory: its size is the caller's to bound.
func (j *Journal) Append(kind Kind, payload ...[]byte) (Record, error) {
	rec, err := j.append(kind, payload)
	if err != nil {
		j.group.drop(j)
	}
	return rec, err
}

func (j *Journal) append(kind Kind, payload [][]byte) (Record, error) {
	g := &j.group
	if err := j.usable(); err != nil {
		return Record{}, err
	}
	if g.file == nil {
		return Record{}, ErrNotBegun
	}
	if kind != KindWindow && kind != KindPart {
		return Record{}, fmt.Errorf("journal: kind %d can't be appended", kind)
	}
	length := int64(0)
	for _, p := range payload {
		length += int64(len(p))
	}
	switch {
	case length == 0:
		return Record{}, fmt.Errorf("journal: record without payload")
	case length > j.MaxPayload():
		return Record{}, fmt.Errorf("%w: %d bytes", ErrTooLarge, length)
	}
	if recordHeader+length > g.segment.size-g.offset {
		if err := j.nextSegment(g.segment.epoch); err != nil {
			return Record{}, err
		}
	}
	return g.put(kind, payload...), nil
}

// put adds a record, for which there is room.
func (g *group) put(kind Kind, payload ...[]byte) Record {
	length := 0
	for _, p := range payload {
		length += len(p)
	}
	padded := int(align(int64(recordHeader + length)))
	if len(g.chunks) == 0 {
		g.chunks = append(g.chunks, chunk{segment: g.segment, file: g.file, offset: g.offset})
	}
	start := len(g.buffer)
	g.buffer = slices.Grow(g.buffer, padded)[:start+recordHeader]
	for _, p := range payload {
		g.buffer = append(g.buffer, p...)
	}
	putRecord(g.buffer[start:], g.seed, kind, g.index, g.segment.epoch, g.records)
	g.buffer = append(g.buffer, zeros[:start+padded-len(g.buffer)]...)
	rec := Record{Kind: kind, Index: g.index, Epoch: g.segment.epoch, Segment: g.segment.number,
		Offset: g.offset + recordHeader, Length: int64(length)}
	g.offset += int64(padded)
	g.chunks[len(g.chunks)-1].to = len(g.buffer)
	if kind != kindEnd { // an end has the index of what follows it
		g.index++
		g.records++
	}
	return rec
}

// end marks the end of the segment that is written, if there is room for it.
func (g *group) end() {
	if g.file != nil && g.segment.size-g.offset >= recordMinimum {
		var number [8]byte
		binary.BigEndian.PutUint64(number[:], g.segment.number)
		g.put(kindEnd, number[:])
	}
}

// pad adds zeros up to the next page: what a recycled segment holds behind the last record is overwritten, and the
// kernel needn't read the page.
func (g *group) pad() {
	if len(g.chunks) == 0 {
		return
	}
	c := &g.chunks[len(g.chunks)-1]
	if odd := g.offset % headerSize; odd != 0 && c.to > c.from {
		g.buffer = append(g.buffer, zeros[:headerSize-odd]...)
		c.to = len(g.buffer)
	}
}

// nextSegment lets the group go on in a new segment.
func (j *Journal) nextSegment(epoch uint64) error {
	g := &j.group
	p, err := j.preparer.take()
	if isFull(err) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return err
	}
	g.end()
	g.pad()
	g.taken = append(g.taken, p)
	g.segment = segment{number: p.number, first: g.index, epoch: epoch, size: j.options.SegmentSize}
	g.file = p.file
	g.seed, g.offset = seedOf(j.options.StoreID, p.number), headerSize
	g.chunks = append(g.chunks, chunk{segment: g.segment, file: g.file, fresh: true, offset: headerSize,
		from: len(g.buffer), to: len(g.buffer)})
	return nil
}

// drop forgets the group.
func (g *group) drop(j *Journal) {
	if len(g.taken) > 0 {
		j.preparer.giveBack(g.taken)
	}
	g.tail = g.flushed
	g.clear()
}

func (g *group) clear() {
	if cap(g.buffer) > keepBuffer {
		g.buffer = nil
	}
	clear(g.chunks)
	g.buffer, g.chunks, g.taken, g.records = g.buffer[:0], g.chunks[:0], nil, 0
}
