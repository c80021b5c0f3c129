package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// idleSegment is a segment that holds little, and how long nothing has changed about that.
type idleSegment struct {
	entries int64
	rounds  int
}

// idleRounds is for how many checkpoints a segment has to be idle: what is being consumed empties by itself.
const idleRounds = 3

// relocateOne empties the segment that holds least, if it holds little and nothing changes about that by itself: what
// is needed of it is written again.
func (s *Store) relocateOne(live map[uint64]index.Live) error {
	best, bestShare := sealed{}, s.o.Relocate
	for _, seg := range s.behind() {
		l := live[seg.Number]
		share := float64(l.Bytes) / float64(seg.Size)
		if l.Entries == 0 || share >= s.o.Relocate {
			delete(s.idle, seg.Number)
			continue
		}
		idle := s.idle[seg.Number]
		if idle.entries-l.Entries > idle.entries/16 || idle.entries == 0 {
			idle.rounds = 0
		}
		idle = idleSegment{l.Entries, idle.rounds + 1}
		s.idle[seg.Number] = idle
		if idle.rounds > idleRounds && share < bestShare {
			best, bestShare = seg, share
		}
	}
	if best.Number == 0 || s.full.Load() {
		return nil
	}
	s.idle[best.Number] = idleSegment{}
	r := relocating{store: s, segment: best.Number, last: best.last}
	err := r.run(journal.Position{Index: best.FirstIndex, Segment: best.Number, Offset: segmentStart})
	var corrupt *journal.CorruptError
	switch {
	case errors.Is(err, errNoRoom):
		return nil
	case errors.As(err, &corrupt), errors.Is(err, errUnread):
		s.alarm(fmt.Sprintf("store: segment can't be emptied: %v", err))
		s.idle[best.Number] = idleSegment{rounds: -1 << 30}
		return nil
	}
	return err
}

// relocating is the emptying of a segment.
type relocating struct {
	store   *Store
	segment uint64
	last    uint64 // index of its last record
	read    bool   // it has been read to its end
	w       windowReader
	bodies  []fact // of the window that is read
	named   []relocated
	ready   []relocated // are needed, and not written yet
	size    int
}

// relocated is an entry that a window of the segment names.
type relocated struct {
	queue    uint64
	priority uint8
	number   uint64
	entry    index.Entry
	body     []byte // a copy
}

// What is written again at once.
const (
	relocateBytes   = 512 << 10
	relocateEntries = 1024
)

var errSegmentEnds = errors.New("segment ends")

// errUnread says that the device doesn't give back what is to be written again. What it has is not written, so it is no
// reason to stop.
var errUnread = errors.New("unreadable")

func (r *relocating) run(from journal.Position) error {
	var told error // by us
	err := r.store.journal.Replay(from, func(rec journal.Record) error {
		r.read = r.read || rec.Index >= r.last
		if rec.Kind == journal.KindWindow {
			if told = r.window(rec); told != nil {
				return told
			}
		}
		if r.read && rec.Kind != journal.KindPart { // else the window that names it comes
			told = errSegmentEnds
		}
		return told
	})
	var corrupt *journal.CorruptError
	switch {
	case errors.Is(err, errSegmentEnds):
	case errors.As(err, &corrupt) && r.read: // no window names the parts at its end, and the segment behind it is gone
	case err != nil && told == nil && corrupt == nil:
		return fmt.Errorf("%w: %w", errUnread, err)
	case err != nil:
		return err
	}
	return r.flush()
}

// window looks for the entries of a window that are still there.
func (r *relocating) window(rec journal.Record) error {
	r.w.begin(rec.Payload)
	r.bodies, r.named = r.bodies[:0], r.named[:0]
	for r.w.next() {
		switch f := &r.w.fact; f.kind {
		case factBody:
			r.bodies = append(r.bodies, fact{bytes: f.bytes, at: f.at})
		case factEnqueue, factRelocate, factMove:
			r.named = append(r.named, relocated{queue: f.queue, priority: f.priority, number: f.number})
		case factRestated:
			return nil
		}
	}
	if r.w.err != nil {
		return r.w.err
	}
	slices.SortFunc(r.named, func(a, b relocated) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.priority, b.priority), cmp.Compare(a.number, b.number))
	})
	first := len(r.ready)
	for named := r.named; len(named) > 0; {
		n := 1
		for n < len(named) && named[n].queue == named[0].queue && named[n].priority == named[0].priority {
			n++
		}
		if err := r.level(named[:n], rec); err != nil {
			return err
		}
		named = named[n:]
	}
	// Those that share a body are written together.
	slices.SortStableFunc(r.ready[first:], func(a, b relocated) int {
		return cmp.Compare(a.entry.Place.Offset, b.entry.Place.Offset)
	})
	if r.size >= relocateBytes || len(r.ready) >= relocateEntries {
		return r.flush()
	}
	return nil
}

// level takes those of a level that the index has with a body from this window, and something of it in the segment.
func (r *relocating) level(named []relocated, rec journal.Record) error {
	x := r.store.index
	return x.Load(x.View(), named[0].queue, named[0].priority, named[0].number, func(e *index.Entry) bool {
		for len(named) > 0 && named[0].number < e.Number {
			named = named[1:]
		}
		if len(named) == 0 {
			return false
		}
		if named[0].number != e.Number || e.Place.Segment != rec.Segment {
			return true
		}
		offset := int64(e.Place.Offset) - rec.Offset
		if offset < 0 || offset+int64(e.Place.Length) > rec.Length || !r.touches(e) {
			return true
		}
		found := named[0]
		found.entry = *e
		found.body = slices.Clone(rec.Payload[offset : offset+int64(e.Place.Length)])
		r.size += len(found.body)
		r.ready = append(r.ready, found)
		return true
	})
}

func (r *relocating) touches(e *index.Entry) bool {
	if e.Place.Segment == r.segment {
		return true
	}
	return e.Extra != nil && slices.ContainsFunc(e.Extra.Parts, func(p index.Part) bool { return p.Segment == r.segment })
}

// flush writes what is ready as a window, and lets the index go on.
func (r *relocating) flush() error {
	if len(r.ready) == 0 {
		return nil
	}
	err := r.write()
	r.ready, r.size = r.ready[:0], 0
	s := r.store
	if err != nil {
		return err
	}
	return s.applyThrough(s.due())
}

func (r *relocating) write() error {
	s := r.store
	s.append.Lock()
	defer s.append.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	// Nothing can be committed now, and nobody else applies: what is there in the index and hasn't been removed since
	// is there.
	r.removed()
	w := &s.writer
	w.reset()
	parts, written := int64(0), int64(0)
	var last []byte
	var place journal.Place
	for i := range r.ready {
		e := &r.ready[i]
		if last == nil || e.entry.Place != place {
			h, err := readBody(e.body, nil)
			if err != nil {
				return fmt.Errorf("relocate: %w", err)
			}
			if len(h.parts) > 0 {
				n, err := r.copyParts(&h)
				parts += n
				if err != nil {
					return err
				}
				m := h.message.Fresh()
				m.Address = string(h.address)
				w.b = appendPartsBody(w.b, m, h.size, h.parts)
			} else {
				w.b = append(w.b, e.body...)
			}
			w.bodies++
			last, place = e.body, e.entry.Place
		}
		w.enqueue(factRelocate, e.queue, e.number, e.priority, w.bodies, e.entry.Count, e.entry.Base)
		if x := e.entry.Extra; x != nil {
			w.rawAnnotations(x.Annotations)
		} else {
			w.rawAnnotations(nil)
		}
		if at := e.entry.Due(); at != 0 {
			w.due(e.queue, e.number, e.priority, at)
		}
		written++
	}
	if w.empty() {
		return nil
	}
	_, err := s.appendWindow(w.b, parts, time.Now())
	if errors.Is(err, journal.ErrFull) {
		return errNoRoom
	}
	s.measure.relocated.Add(written)
	return err
}

// removed drops from what is ready what has been removed meanwhile, and brings counts up to date.
func (r *relocating) removed() {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	levels := map[entryKey]pendingFound{} // what changes of a level may be long, and nobody can commit meanwhile
	kept := r.ready[:0]
	for _, e := range r.ready {
		k := entryKey{queue: e.queue, priority: e.priority}
		c, known := levels[k]
		if !known {
			c, _ = s.pending.peek(e.queue, e.priority, 0, 0)
			levels[k] = c
		}
		if c.removes(e.number) {
			continue
		}
		if edit, changed := c.edits[e.number]; changed {
			edit.On(&e.entry)
		}
		kept = append(kept, e)
	}
	clear(r.ready[len(kept):])
	r.ready = kept
}

// copyParts writes the parts of a body again, and puts the new places into it.
func (r *relocating) copyParts(h *bodyHead) (bytes int64, err error) {
	s := r.store
	var b []byte
	group := int64(0)
	for i := range h.parts {
		p := &h.parts[i]
		b = slices.Grow(b[:0], int(p.Length))[:p.Length]
		if err := s.journal.ReadAt(p.Segment, int64(p.Offset), b); err != nil {
			return bytes, fmt.Errorf("%w: %w", errUnread, err)
		}
		if journal.Checksum(b) != p.CRC {
			return bytes, &journal.CorruptError{Segment: p.Segment, Offset: int64(p.Offset), Reason: "wrong checksum of a part"}
		}
		rec, err := s.journal.Append(journal.KindPart, b)
		if err == nil {
			bytes += int64(len(b))
			if group += int64(len(b)); group >= partsGroup {
				group = 0
				err = s.journal.Flush()
			}
		}
		if err != nil {
			if errors.Is(err, journal.ErrFull) {
				return bytes, errNoRoom
			}
			return bytes, err
		}
		p.Segment, p.Offset = rec.Segment, uint32(rec.Offset)
	}
	return bytes, nil
}
