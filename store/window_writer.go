package store

import (
	"encoding/binary"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// windowWriter encodes the facts of a window. Its buffer is used again.
type windowWriter struct {
	b        []byte
	bodies   uint64
	messages int            // records that bring a message
	last     *queue.Message // the body written last
}

// keepWindow is how large a buffer may be that is kept for the next window.
const keepWindow = 16 << 20

func (w *windowWriter) reset() {
	if cap(w.b) > keepWindow {
		w.b = nil
	}
	w.b = append(w.b[:0], windowVersion)
	w.bodies, w.messages, w.last = 0, 0, nil
}

func (w *windowWriter) empty() bool { return len(w.b) <= 1 }

func (w *windowWriter) uvarint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *windowWriter) begin(kind factKind, first uint64) {
	w.b = append(w.b, byte(kind))
	w.uvarint(first)
}

// body writes a message, unless it was the last to be written, and returns one more than its number.
func (w *windowWriter) body(m *queue.Message, parts []journal.Place) uint64 {
	if m != w.last {
		w.b = appendBody(w.b, m, parts)
		w.bodies++
		w.last = m
	}
	return w.bodies
}

const (
	defineMulticast = 1 << iota
	defineAuto
	definePaused
)

func (w *windowWriter) define(d *engine.Definition) {
	w.begin(factDefine, uint64(d.ID))
	w.b = appendDefinition(w.b, d)
}

func appendDefinition(dst []byte, d *engine.Definition) []byte {
	flags := uint64(0)
	if d.Routing == engine.Multicast {
		flags |= defineMulticast
	}
	if d.Auto {
		flags |= defineAuto
	}
	if d.Paused {
		flags |= definePaused
	}
	dst = binary.AppendUvarint(dst, flags)
	dst = appendString(dst, d.Address)
	dst = appendString(dst, d.Name)
	dst = appendString(dst, d.Container)
	return appendString(dst, d.Link)
}

func (r *reader) definition(id uint64) engine.Definition {
	d := engine.Definition{ID: engine.QueueID(id), Routing: engine.Anycast}
	flags := r.uvarint()
	if flags&defineMulticast != 0 {
		d.Routing = engine.Multicast
	}
	d.Auto, d.Paused = flags&defineAuto != 0, flags&definePaused != 0
	d.Address, d.Name = string(r.string()), string(r.string())
	d.Container, d.Link = string(r.string()), string(r.string())
	return d
}

func (w *windowWriter) delete(queue uint64) { w.begin(factDelete, queue) }

// enqueue writes an entry whose body has been written.
func (w *windowWriter) enqueue(kind factKind, queue, number uint64, priority uint8, body uint64, count, base uint32) {
	w.begin(kind, queue)
	w.uvarint(number)
	w.b = append(w.b, priority)
	w.uvarint(body)
	w.uvarint(uint64(count))
	w.uvarint(uint64(base))
}

func (w *windowWriter) remove(queue, number uint64, priority uint8) {
	w.begin(factRemove, queue)
	w.uvarint(number)
	w.b = append(w.b, priority)
}

func (w *windowWriter) count(queue, number uint64, priority uint8, count, base uint32) {
	w.begin(factCount, queue)
	w.uvarint(number)
	w.b = append(w.b, priority)
	w.uvarint(uint64(count))
	w.uvarint(uint64(base))
}

func (w *windowWriter) move(queue, number, from, fromNumber uint64, priority uint8, body uint64, count, base uint32) {
	w.begin(factMove, queue)
	w.uvarint(number)
	w.uvarint(from)
	w.uvarint(fromNumber)
	w.b = append(w.b, priority)
	w.uvarint(body)
	w.uvarint(uint64(count))
	w.uvarint(uint64(base))
}

// due writes when an entry is due, right behind what else is said of it. What it has otherwise is no due time.
func (w *windowWriter) due(queue, number uint64, priority uint8, at int64) {
	w.begin(factDue, queue)
	w.uvarint(number)
	w.b = append(w.b, priority)
	w.uvarint(uint64(at))
}

func (w *windowWriter) annotations(all []queue.Annotation) {
	if len(all) == 0 {
		w.b = append(w.b, 0)
		return
	}
	w.b = appendAnnotations(w.b, all)
}

// rawAnnotations writes what skipAnnotations returned.
func (w *windowWriter) rawAnnotations(b []byte) {
	if len(b) == 0 {
		w.b = append(w.b, 0)
		return
	}
	w.b = append(w.b, b...)
}

func (w *windowWriter) cell(space uint64, key, value []byte) {
	w.begin(factCell, space)
	w.b = appendString(w.b, key)
	w.b = appendString(w.b, value)
}

func (w *windowWriter) counters(lastNumber, lastQueue uint64) {
	w.begin(factCounters, lastNumber)
	w.uvarint(lastQueue)
}

// restated says that the facts that follow were true behind a window, and are known to whoever has read up to there.
func (w *windowWriter) restated(window uint64) { w.begin(factRestated, window) }

// purge says which numbers a queue and priority doesn't have; index.Priorities is all priorities.
func (w *windowWriter) purge(queue uint64, priority uint8, ranges ...index.Span) {
	w.begin(factPurge, queue)
	w.b = append(w.b, priority)
	w.spans(ranges)
}

// deleted says which queues there aren't.
func (w *windowWriter) deleted(ranges []index.Span) {
	w.b = append(w.b, byte(factDeleted))
	w.spans(ranges)
}

// remember says that an address has taken a message with an id.
func (w *windowWriter) remember(address string, number, keep uint64, id [16]byte) {
	w.begin(factRemember, number)
	w.uvarint(keep)
	w.b = appendString(w.b, address)
	w.b = append(w.b, id[:]...)
}

// forget says that no id of an address is remembered, of any for the empty one.
func (w *windowWriter) forget(address string) {
	w.b = append(w.b, byte(factForget))
	w.b = appendString(w.b, address)
}

func (w *windowWriter) spans(ranges []index.Span) {
	w.uvarint(uint64(len(ranges)))
	end := uint64(0)
	for _, s := range ranges {
		w.uvarint(s.First - end)
		w.uvarint(s.Last - s.First)
		end = s.Last
	}
}
