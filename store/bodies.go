package store

import (
	"fmt"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// bodies reads the bodies of entries, neighbours with one call.
type bodies struct {
	store   *Store
	ahead   []index.Entry // those that follow
	buffer  []byte
	segment uint64 // of the buffer
	offset  uint32
	alone   bool   // read one by one: something that lies close can't be read
	address string // of the message before: most have the same
}

// What is read at once: bodies that lie no further apart than a gap.
const (
	readAhead = 128 << 10
	readGap   = 4 << 10
)

// reset says which entries will be read, in that order.
func (b *bodies) reset(entries []index.Entry) { b.ahead = entries }

// read returns an entry with its message.
func (b *bodies) read(e *index.Entry) (engine.Stored, error) {
	b.ahead = b.ahead[1:]
	body, err := b.body(e.Place)
	if err != nil {
		return engine.Stored{}, err
	}
	h, err := readBody(body, nil)
	if err != nil {
		return engine.Stored{}, &BodyError{Segment: e.Place.Segment, Offset: e.Place.Offset, Reason: err.Error()}
	}
	payload := append(make([]byte, 0, h.size), h.payload...)
	for _, p := range h.parts {
		at := len(payload)
		payload = payload[:at+int(p.Length)]
		if err := b.store.journal.ReadAt(p.Segment, int64(p.Offset), payload[at:]); err != nil {
			return engine.Stored{}, fmt.Errorf("store: read body: %w", err)
		}
		if journal.Checksum(payload[at:]) != p.CRC {
			return engine.Stored{}, &BodyError{Segment: p.Segment, Offset: p.Offset, Reason: "wrong checksum of a part"}
		}
	}
	if string(h.address) != b.address {
		b.address = string(h.address)
	}
	m := new(queue.Message)
	*m = h.message
	m.Address, m.Payload = b.address, payload
	stored := engine.Stored{Number: e.Number, Count: e.Count, Base: e.Base, Due: e.Due(), Message: m}
	if e.Extra != nil && len(e.Extra.Annotations) > 0 {
		if stored.Annotations, err = readAnnotations(e.Extra.Annotations); err != nil {
			return stored, fmt.Errorf("store: entry %d: %w", e.Number, err)
		}
	}
	return stored, nil
}

// body returns the bytes at a place, valid until the next call.
func (b *bodies) body(p journal.Place) ([]byte, error) {
	if p.Segment != b.segment || p.Offset < b.offset || int(p.Offset-b.offset)+int(p.Length) > len(b.buffer) {
		end := p.Offset + p.Length
		for i := 0; i < len(b.ahead) && !b.alone; i++ {
			q := b.ahead[i].Place
			if q.Segment != p.Segment || q.Offset < p.Offset || q.Offset > end+readGap || q.Offset+q.Length-p.Offset > readAhead {
				break
			}
			end = max(end, q.Offset+q.Length)
		}
		b.segment, b.offset = p.Segment, p.Offset
		if n := int(end - p.Offset); n <= cap(b.buffer) {
			b.buffer = b.buffer[:n]
		} else {
			b.buffer = make([]byte, n)
		}
		err := b.store.journal.ReadAt(p.Segment, int64(p.Offset), b.buffer)
		if err != nil && !b.alone {
			b.alone, b.buffer = true, b.buffer[:p.Length]
			err = b.store.journal.ReadAt(p.Segment, int64(p.Offset), b.buffer)
		}
		if err != nil {
			b.buffer = b.buffer[:0]
			return nil, fmt.Errorf("store: read body: %w", err)
		}
		b.store.measure.reads.Add(1)
	}
	at := p.Offset - b.offset
	body := b.buffer[at : at+p.Length]
	if journal.Checksum(body) != p.CRC {
		return nil, &BodyError{Segment: p.Segment, Offset: p.Offset, Reason: "wrong checksum"}
	}
	return body, nil
}
