package store

import (
	"fmt"

	"github.com/letomq/leto/store/index"
)

// windowReader reads the facts of a window one by one.
type windowReader struct {
	r    reader
	size int
	fact fact
	err  error
}

// readWindow begins to read a window.
func readWindow(b []byte) *windowReader {
	w := &windowReader{}
	w.begin(b)
	return w
}

func (w *windowReader) begin(b []byte) {
	w.r, w.size, w.err = reader{b: b}, len(b), nil
	if version := w.r.uvarint(); w.r.failed || version != windowVersion {
		w.err = fmt.Errorf("window of version %d is unknown", version)
	}
}

// next reads a fact into w.fact. It returns false at the end, and when the window is malformed: then err is set.
func (w *windowReader) next() bool {
	r := &w.r
	if w.err != nil || len(r.b) == 0 {
		return false
	}
	f := &w.fact
	at := w.size - len(r.b)
	start := r.b
	f.kind, f.priority, f.due = factKind(r.byte()), 0, 0
	switch f.kind {
	case factEnqueue, factRelocate:
		f.queue, f.number, f.priority = r.uvarint(), r.uvarint(), r.byte()
		f.body, f.count, f.base = r.uvarint(), r.uint32(), r.uint32()
		f.annotations = r.skipAnnotations()
		w.dueBehind()
	case factBody:
		size := r.uvarint()
		if f.at, f.bytes = at, (&reader{b: start}).bytes(size); f.bytes == nil || int(size) < len(start)-len(r.b) {
			r.failed = true
			break
		}
		r.b = start[size:]
	case factRemove:
		f.queue, f.number, f.priority = r.uvarint(), r.uvarint(), r.byte()
	case factCount:
		f.queue, f.number, f.priority = r.uvarint(), r.uvarint(), r.byte()
		f.count, f.base = r.uint32(), r.uint32()
		f.annotations = r.skipAnnotations()
		w.dueBehind()
	case factMove:
		f.queue, f.number, f.from, f.fromNumber, f.priority = r.uvarint(), r.uvarint(), r.uvarint(), r.uvarint(), r.byte()
		f.body, f.count, f.base = r.uvarint(), r.uint32(), r.uint32()
		f.annotations = r.skipAnnotations()
		w.dueBehind()
	case factDefine:
		f.queue = r.uvarint()
		f.definition = r.definition(f.queue)
	case factDelete:
		f.queue = r.uvarint()
	case factCell:
		f.space, f.key, f.value = r.uvarint(), r.string(), r.string()
	case factDue:
		f.queue, f.number, f.priority, f.due = r.uvarint(), r.uvarint(), r.byte(), int64(r.uvarint())
	case factPurge:
		f.queue, f.priority = r.uvarint(), r.byte()
		f.ranges = r.spans(f.ranges[:0])
	case factCounters:
		f.lastNum, f.lastQ = r.uvarint(), r.uvarint()
	case factRestated:
		f.number = r.uvarint()
	case factDeleted:
		f.ranges = r.spans(f.ranges[:0])
	case factRemember:
		f.number, f.keep, f.key = r.uvarint(), r.uvarint(), r.string()
		copy(f.id[:], r.bytes(uint64(len(f.id))))
	case factForget:
		f.key = r.string()
	default:
		w.err = fmt.Errorf("%w: fact of kind %d at %d of a window", errMalformed, f.kind, at)
		return false
	}
	if r.failed || f.priority > 9 && (f.kind != factPurge || f.priority > index.Priorities) {
		w.err = fmt.Errorf("%w: fact of kind %d at %d of a window", errMalformed, f.kind, at)
		return false
	}
	return true
}

// dueBehind takes a due fact that stands right behind another one about the same entry together with that.
func (w *windowReader) dueBehind() {
	if len(w.r.b) == 0 || factKind(w.r.b[0]) != factDue {
		return
	}
	f, r := &w.fact, w.r
	r.byte()
	if r.uvarint() != f.queue || r.uvarint() != f.number || r.byte() != f.priority {
		return
	}
	if due := int64(r.uvarint()); !r.failed {
		f.due, w.r = due, r
	}
}

func (r *reader) spans(dst []index.Span) []index.Span {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.failed = true
		return dst
	}
	end := uint64(0)
	for range n {
		first := end + r.uvarint()
		last := first + r.uvarint()
		if first < end || last < first {
			r.failed = true
		}
		dst = append(dst, index.Span{First: first, Last: last})
		end = last
	}
	return dst
}
