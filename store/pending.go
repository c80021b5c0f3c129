package store

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// pending is what the journal holds and the index doesn't yet. What comes and goes meanwhile never reaches the index.
// It takes windows as the journal has them, the same way when they are committed and when they are replayed.
type pending struct {
	index    *index.Index
	queues   map[uint64]struct{} // those that are defined
	shelves  map[uint64]*shelf
	windows  []pendingWindow
	bytes    int64 // of the windows
	counters index.Counters
	cells    []pendingCell
	ids      map[string]*pendingIDs
	noIDs    uint64   // the window that says that no address has ids but what is in ids, 0: none
	timed    bool     // some entry expires
	rebuild  *rebuild // set while the index is made anew

	bodies []bodyPlace // of the window that is being entered
	reader windowReader
}

// pendingCost is about what one fact about an entry takes in memory, in bytes.
const pendingCost = 96

// pendingWindow is a window that isn't applied.
type pendingWindow struct {
	index uint64           // of its record
	next  journal.Position // behind it
	bytes int64            // in the journal, or in memory if that is more
	since time.Time
}

// bodyPlace is a body of the window that is being entered.
type bodyPlace struct {
	place  journal.Place
	size   uint64
	expiry int64
	parts  []index.Part
}

// shelf is what is pending of one queue.
type shelf struct {
	defined    uint64 // the window that defines it, 0: none
	definition []byte
	deleted    uint64 // the window that deletes it, 0: none
	levels     [index.Priorities]*shelfLevel
	passed     index.Delayed // what the index lists up to there to be due isn't so any more
}

type pendingCell struct {
	index.Cell
	window uint64
}

func newPending(x *index.Index) *pending {
	p := &pending{index: x, queues: map[uint64]struct{}{}, shelves: map[uint64]*shelf{}, ids: map[string]*pendingIDs{}, counters: x.Counters()}
	return p
}

func (p *pending) shelf(queue uint64) *shelf {
	s := p.shelves[queue]
	if s == nil {
		s = &shelf{}
		p.shelves[queue] = s
	}
	return s
}

// level returns that of a queue that is defined, or nil.
func (p *pending) level(queue uint64, priority uint8) *shelfLevel {
	s := p.shelves[queue]
	if s == nil || s.levels[priority] == nil {
		if _, defined := p.queues[queue]; !defined {
			return nil
		}
		s = p.shelf(queue)
		l := &shelfLevel{}
		if sum, known := p.index.Summary(queue); known {
			for i := range sum.Levels {
				if sum.Levels[i].Priority == priority {
					l.floor = sum.Levels[i].Last
				}
			}
		}
		s.levels[priority] = l
	}
	return s.levels[priority]
}

// enter takes a window that the journal has on the device.
func (p *pending) enter(payload []byte, r journal.Record, bytes int64, since time.Time) error {
	w := &p.reader
	w.begin(payload)
	p.bodies = p.bodies[:0]
	entries := int64(0)
facts:
	for w.next() {
		f := &w.fact
		switch f.kind {
		case factEnqueue, factRelocate, factMove, factRemove, factCount, factDue, factRemember:
			entries++
		}
		switch f.kind {
		case factBody:
			if err := p.enterBody(f, r); err != nil {
				w.err = err
			}
		case factEnqueue, factRelocate, factMove:
			p.counters.LastNumber = max(p.counters.LastNumber, f.number)
			if f.kind == factMove {
				if l := p.level(f.from, f.priority); l != nil {
					l.remove(f.fromNumber, r.Index)
				}
			}
			if f.body == 0 || f.body > uint64(len(p.bodies)) {
				w.err = fmt.Errorf("%w: entry %d without body", errMalformed, f.number)
				break
			}
			if l := p.level(f.queue, f.priority); l != nil {
				p.enterEntry(l, f, r.Index)
			}
		case factRemove:
			if l := p.level(f.queue, f.priority); l != nil {
				l.remove(f.number, r.Index)
			}
		case factCount:
			if l := p.level(f.queue, f.priority); l != nil {
				l.count(f, r.Index)
			}
		case factDue:
			if l := p.level(f.queue, f.priority); l != nil {
				l.delay(f, r.Index)
			}
		case factDefine:
			p.define(f, r.Index)
		case factDelete:
			p.delete(f.queue, r.Index)
		case factCounters:
			p.counters.LastNumber = max(p.counters.LastNumber, f.lastNum)
			p.counters.LastQueue = max(p.counters.LastQueue, f.lastQ)
		case factRestated:
			if p.rebuild == nil {
				break facts
			}
		case factPurge:
			p.purge(f, r.Index)
		case factCell:
			p.cells = append(p.cells, pendingCell{
				index.Cell{Space: f.space, Key: slices.Clone(f.key), Value: slices.Clone(f.value)}, r.Index,
			})
		case factRemember:
			p.counters.LastNumber = max(p.counters.LastNumber, f.number)
			if err := p.remember(f, r.Index); err != nil {
				w.err = err
			}
		case factForget:
			p.forget(string(f.key), r.Index)
		case factDeleted:
		default:
			w.err = fmt.Errorf("fact of kind %d isn't known to this version", f.kind)
		}
	}
	if w.err != nil {
		return fmt.Errorf("window %d: %w", r.Index, w.err)
	}
	bytes = max(bytes, entries*pendingCost) // a removal is much smaller in the journal than here
	p.windows = append(p.windows, pendingWindow{r.Index, r.Next(), bytes, since})
	p.bytes += bytes
	return nil
}

func (p *pending) enterBody(f *fact, r journal.Record) error {
	h, err := readBody(f.bytes, nil)
	if err != nil {
		return err
	}
	b := bodyPlace{
		place: journal.Place{
			Segment: r.Segment, Offset: uint32(r.Offset) + uint32(f.at), Length: uint32(len(f.bytes)),
			CRC: journal.Checksum(f.bytes),
		},
		size: h.size, expiry: h.message.Expiry,
	}
	for _, part := range h.parts {
		if n := len(b.parts); n > 0 && b.parts[n-1].Segment == part.Segment {
			b.parts[n-1].Bytes += uint64(part.Length)
		} else {
			b.parts = append(b.parts, index.Part{Segment: part.Segment, Bytes: uint64(part.Length)})
		}
	}
	p.bodies = append(p.bodies, b)
	return nil
}

func (p *pending) enterEntry(l *shelfLevel, f *fact, window uint64) {
	b := &p.bodies[f.body-1]
	e := pendingEntry{window: window, Entry: index.Entry{
		Number: f.number, Place: b.place, Payload: b.size, Expiry: b.expiry, Count: f.count, Base: f.base,
	}}
	p.timed = p.timed || b.expiry > 0
	if len(b.parts) > 0 || len(f.annotations) > 0 || f.due != 0 {
		e.Extra = &index.Extra{Due: f.due, Annotations: slices.Clone(f.annotations), Parts: b.parts}
	}
	if f.kind == factRelocate && p.rebuild == nil {
		put := e.Entry
		l.edits = append(l.edits, pendingEdit{index.Edit{Number: f.number, Kind: index.EditPut, Entry: &put}, window})
		return
	}
	l.put(e)
}

func (p *pending) purge(f *fact, window uint64) {
	first, last := f.priority, f.priority
	if f.priority == index.Priorities { // all
		first, last = 0, index.Priorities-1
	}
	for priority := first; priority <= last; priority++ {
		if l := p.level(f.queue, priority); l != nil {
			for _, span := range f.ranges {
				l.purge(span, window)
			}
		}
	}
}

func (p *pending) define(f *fact, window uint64) {
	p.counters.LastQueue = max(p.counters.LastQueue, f.queue)
	if p.rebuild != nil && !p.rebuild.exists(f.queue) {
		return
	}
	p.queues[f.queue] = struct{}{}
	s := p.shelf(f.queue)
	s.defined, s.definition = window, appendDefinition([]byte{definitionForm}, &f.definition)
}

const definitionForm = 1

func decodeDefinition(queue uint64, value []byte) (engine.Definition, error) {
	r := reader{b: value}
	form := r.byte()
	d := r.definition(queue)
	if form != definitionForm || r.failed || len(r.b) > 0 {
		return d, fmt.Errorf("%w: definition of queue %d", errMalformed, queue)
	}
	return d, nil
}

func (p *pending) delete(queue, window uint64) {
	if _, defined := p.queues[queue]; !defined {
		return
	}
	delete(p.queues, queue)
	*p.shelf(queue) = shelf{deleted: window}
}

// collect returns what the windows up to one leave, and notes that the index is about to have it.
func (p *pending) collect(window uint64) *index.Batch {
	b := &index.Batch{Counters: p.counters}
	for i := range p.cells {
		if p.cells[i].window > window {
			break
		}
		b.Cells = append(b.Cells, p.cells[i].Cell)
	}
	p.collectIDs(b, window)
	for queue, s := range p.shelves {
		switch {
		case s.deleted != 0:
			if s.deleted <= window {
				b.Deletes = append(b.Deletes, queue)
			}
			continue
		case s.defined != 0 && s.defined <= window:
			b.Defines = append(b.Defines, index.Definition{Queue: queue, Value: s.definition})
		}
		for priority, l := range s.levels {
			if l == nil {
				continue
			}
			if c := l.collect(queue, uint8(priority), window); c != nil {
				b.Levels = append(b.Levels, c)
			}
		}
	}
	slices.SortFunc(b.Levels, func(a, b *index.LevelBatch) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), int(b.Priority)-int(a.Priority))
	})
	return b
}

// applied forgets the windows up to one, which the index has.
func (p *pending) applied(window uint64) {
	for queue, s := range p.shelves {
		if s.deleted != 0 {
			if s.deleted <= window {
				delete(p.shelves, queue)
			}
			continue
		}
		if s.defined <= window {
			s.defined, s.definition = 0, nil
		}
		empty := s.defined == 0
		s.passed = index.Delayed{}
		for priority, l := range s.levels {
			if l == nil {
				continue
			}
			if l.applied(window); len(l.entries)+len(l.edits)+len(l.purges) == 0 {
				s.levels[priority] = nil
			} else {
				empty = false
			}
		}
		if empty {
			delete(p.shelves, queue)
		}
	}
	n := 0
	for n < len(p.cells) && p.cells[n].window <= window {
		n++
	}
	p.cells = slices.Delete(p.cells, 0, n)
	p.appliedIDs(window)
	n = 0
	for n < len(p.windows) && p.windows[n].index <= window {
		p.bytes -= p.windows[n].bytes
		n++
	}
	if p.windows = slices.Delete(p.windows, 0, n); len(p.windows) == 0 {
		p.timed = false
	}
}

// through returns the last window that is older than a time, or has to be applied for what is left to be no more than
// keep bytes; 0: none.
func (p *pending) through(older time.Time, keep int64) (window uint64) {
	left := p.bytes
	for i := range p.windows {
		w := &p.windows[i]
		if !w.since.Before(older) && left <= keep {
			break
		}
		left -= w.bytes
		window = w.index
	}
	return window
}

// position returns the one behind a window that is pending.
func (p *pending) position(window uint64) journal.Position {
	i, _ := slices.BinarySearchFunc(p.windows, window, func(w pendingWindow, n uint64) int { return cmp.Compare(w.index, n) })
	return p.windows[i].next
}
