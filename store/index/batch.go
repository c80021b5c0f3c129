package index

import (
	"cmp"
	"slices"
)

// Batch is what whole windows leave behind, ready to be applied.
type Batch struct {
	Defines  []Definition
	Deletes  []uint64 // queues that are gone, with all that they have
	Levels   []*LevelBatch
	Cells    []Cell
	IDs      []*IDBatch // one for each address
	NoIDs    bool       // no address has ids but those of IDs
	Counters Counters   // what is lower than the index has it counts as that
}

// Cell is a value under a key; an empty value removes it.
type Cell struct {
	Space      uint64
	Key, Value []byte
}

// LevelBatch is what changes in one queue and priority. Purges come first, then Edits, then Adds.
type LevelBatch struct {
	Queue    uint64
	Priority uint8
	Purges   []Span  // entries that are gone
	Edits    []Edit  // in the order they hold
	Adds     []Entry // in ascending order of number, all above what the level has ever had
}

// Span is a row of numbers, from the first to the last.
type Span struct{ First, Last uint64 }

// Edit changes one entry, if it is there.
type Edit struct {
	Number uint64
	Kind   EditKind
	Entry  *Entry // of EditPut; EditCount: Count, Base and Extra without Parts; EditDue: Due. Immutable
}

// On changes an entry as an EditCount or EditDue says.
func (e *Edit) On(entry *Entry) {
	switch e.Kind {
	case EditCount:
		entry.recount(e.Entry)
	case EditDue:
		entry.delay(e.Entry.Due())
	}
}

// EditKind says what an edit does.
type EditKind uint8

const (
	EditRemove EditKind = iota + 1 // the entry is gone
	EditCount                      // the entry has this count, base, due and annotations
	EditDue                        // the entry has this due time
	EditPut                        // the level has this entry, whether or not it had one of that number
)

// sort brings edits in order of their numbers; those of one number stay in order.
func (b *LevelBatch) sort() {
	byNumber := func(a, b Edit) int { return cmp.Compare(a.Number, b.Number) }
	if !slices.IsSortedFunc(b.Edits, byNumber) {
		slices.SortStableFunc(b.Edits, byNumber)
	}
}
