package store

import (
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

// shelfLevel is what is pending of one queue and priority.
type shelfLevel struct {
	entries []pendingEntry         // in ascending order of number
	mixed   bool                   // they aren't in order of their windows
	purges  []pendingPurge         // of entries that the index may have; edits of them come later
	edits   []pendingEdit          // of entries that the index may have, in the order they hold
	sums    editSums               // what the edits come to, for who asks about many entries
	floor   uint64                 // the index has never had a higher number here
	waits   map[uint64]pendingWait // entries that have a due time by what is pending
}

type pendingEntry struct {
	index.Entry
	window  uint64
	gone    bool
	indexed bool // the index may have an entry of this number
}

// pendingWait is a due time.
type pendingWait struct {
	at     int64  // unix milliseconds
	window uint64 // of what goes into the index with it
}

type pendingEdit struct {
	index.Edit
	window uint64
}

type pendingCell struct {
	index.Cell
	window uint64
}

type pendingPurge struct {
	index.Span
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

func (l *shelfLevel) search(number uint64) (int, bool) {
	return slices.BinarySearchFunc(l.entries, number, func(e pendingEntry, n uint64) int {
		switch {
		case e.Number < n:
			return -1
		case e.Number > n:
			return 1
		}
		return 0
	})
}

func (l *shelfLevel) put(e pendingEntry) {
	e.indexed = e.Number <= l.floor
	l.wait(e.Number, e.Due(), e.window)
	if n := len(l.entries); n == 0 || l.entries[n-1].Number < e.Number {
		l.entries = append(l.entries, e)
		return
	}
	l.mixed = true
	i, found := l.search(e.Number)
	if found {
		e.indexed = true
		l.entries[i] = e
	} else {
		l.entries = slices.Insert(l.entries, i, e)
	}
}

func (l *shelfLevel) remove(number, window uint64) {
	i, found := l.search(number)
	indexed := number <= l.floor
	if found {
		e := &l.entries[i]
		if e.gone {
			return
		}
		e.gone = true
		e.Extra = nil
		indexed = e.indexed
	}
	l.wait(number, 0, window)
	if indexed {
		l.edits = append(l.edits, pendingEdit{index.Edit{Number: number, Kind: index.EditRemove}, window})
	}
}

func (l *shelfLevel) purge(span index.Span, window uint64) {
	i, _ := l.search(span.First)
	for ; i < len(l.entries) && l.entries[i].Number <= span.Last; i++ {
		l.entries[i].gone, l.entries[i].Extra = true, nil
	}
	if n := uint64(len(l.waits)); n > span.Last-span.First {
		for number := span.First; number <= span.Last; number++ {
			delete(l.waits, number)
		}
	} else {
		for number := range l.waits {
			if number >= span.First && number <= span.Last {
				delete(l.waits, number)
			}
		}
	}
	l.edits = slices.DeleteFunc(l.edits, func(e pendingEdit) bool { return e.Number >= span.First && e.Number <= span.Last })
	l.sums = editSums{}
	l.purges = append(l.purges, pendingPurge{span, window})
}

func (l *shelfLevel) count(f *fact, window uint64) {
	now := index.Entry{Count: f.count, Base: f.base}
	if len(f.annotations) > 0 || f.due != 0 {
		now.Extra = &index.Extra{Due: f.due, Annotations: slices.Clone(f.annotations)}
	}
	l.edit(f.number, index.EditCount, now, window)
}

// delay gives an entry a due time, or none.
func (l *shelfLevel) delay(f *fact, window uint64) {
	var now index.Entry
	if f.due != 0 {
		now.Extra = &index.Extra{Due: f.due}
	}
	l.edit(f.number, index.EditDue, now, window)
}

// edit changes an entry that is there.
func (l *shelfLevel) edit(number uint64, kind index.EditKind, now index.Entry, window uint64) {
	i, found := l.search(number)
	indexed, carried := number <= l.floor, window
	if found {
		e := &l.entries[i]
		if e.gone {
			return
		}
		if indexed = e.indexed; !indexed {
			carried = e.window
		}
		(&index.Edit{Kind: kind, Entry: &now}).On(&e.Entry)
	}
	if found || indexed {
		l.wait(number, now.Due(), carried)
	}
	if indexed {
		l.edits = append(l.edits, pendingEdit{index.Edit{Number: number, Kind: kind, Entry: &now}, window})
	}
}

// wait notes the due time that an entry has by what is pending, 0 for none, and which window brings it to the index.
func (l *shelfLevel) wait(number uint64, at int64, window uint64) {
	if at != 0 {
		if l.waits == nil {
			l.waits = map[uint64]pendingWait{}
		}
		l.waits[number] = pendingWait{at, window}
	} else if len(l.waits) > 0 {
		delete(l.waits, number)
	}
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
		if a.Queue != b.Queue {
			return compare(a.Queue, b.Queue)
		}
		return int(b.Priority) - int(a.Priority)
	})
	return b
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (l *shelfLevel) collect(queue uint64, priority uint8, window uint64) *index.LevelBatch {
	b := &index.LevelBatch{Queue: queue, Priority: priority}
	for i := range l.purges {
		if l.purges[i].window > window {
			break
		}
		b.Purges = append(b.Purges, l.purges[i].Span)
	}
	for i := range l.edits {
		if l.edits[i].window > window {
			break
		}
		b.Edits = append(b.Edits, l.edits[i].Edit)
	}
	stay := 0
	for i := range l.entries {
		if e := &l.entries[i]; e.window <= window && !e.gone {
			stay++
		} else if e.window > window && !l.mixed {
			break
		}
	}
	if stay > 0 {
		b.Adds = make([]index.Entry, 0, stay)
	}
	for i := range l.entries {
		e := &l.entries[i]
		if e.window > window {
			if l.mixed {
				continue
			}
			break
		}
		if e.gone {
			continue
		}
		if e.Number <= l.floor {
			put := e.Entry
			b.Edits = append(b.Edits, index.Edit{Number: e.Number, Kind: index.EditPut, Entry: &put})
		} else {
			b.Adds = append(b.Adds, e.Entry)
		}
		e.indexed = true
	}
	if len(b.Purges) == 0 && len(b.Edits) == 0 && len(b.Adds) == 0 {
		return nil
	}
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

func (l *shelfLevel) applied(window uint64) {
	n := 0
	for n < len(l.purges) && l.purges[n].window <= window {
		n++
	}
	l.purges = slices.Delete(l.purges, 0, n)
	n = 0
	for n < len(l.edits) && l.edits[n].window <= window {
		n++
	}
	if l.edits = slices.Delete(l.edits, 0, n); n > 0 {
		l.sums = editSums{}
	}
	for number, w := range l.waits {
		if w.window <= window {
			delete(l.waits, number)
		}
	}
	if !l.mixed {
		n = 0
		for n < len(l.entries) && l.entries[n].window <= window {
			if e := &l.entries[n]; e.indexed {
				l.floor = max(l.floor, e.Number)
			}
			n++
		}
		l.entries = slices.Delete(l.entries, 0, n)
		return
	}
	l.mixed = false
	kept := l.entries[:0]
	for i := range l.entries {
		e := l.entries[i]
		if e.window <= window {
			if e.indexed {
				l.floor = max(l.floor, e.Number)
			}
			continue
		}
		if n := len(kept); n > 0 && kept[n-1].window > e.window {
			l.mixed = true
		}
		kept = append(kept, e)
	}
	clear(l.entries[len(kept):])
	l.entries = kept
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
	i, _ := slices.BinarySearchFunc(p.windows, window, func(w pendingWindow, n uint64) int { return compare(w.index, n) })
	return p.windows[i].next
}
