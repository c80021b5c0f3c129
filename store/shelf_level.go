package store

import (
	"cmp"
	"slices"

	"github.com/letomq/leto/store/index"
)

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

type pendingPurge struct {
	index.Span
	window uint64
}

func (l *shelfLevel) search(number uint64) (int, bool) {
	return slices.BinarySearchFunc(l.entries, number, func(e pendingEntry, n uint64) int { return cmp.Compare(e.Number, n) })
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
