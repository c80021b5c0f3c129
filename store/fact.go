package store

import (
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
)

// factKind says what a fact of a window states: FORMAT.md.
type factKind uint8

const (
	factDefine factKind = iota + 1
	factDelete
	factBody
	factEnqueue
	factRemove
	factCount
	factMove
	factCell
	factDue
	factPurge
	factCounters
	factRelocate
	factRestated
	factDeleted
	factRemember
	factForget
)

// windowVersion is the version of a window's form.
const windowVersion = 1

// fact is one fact as it was read. What it refers to belongs to the window.
type fact struct {
	kind        factKind
	queue       uint64
	number      uint64
	from        uint64 // move: queue
	fromNumber  uint64
	priority    uint8
	body        uint64 // one more than the body's number in its window; 0: none
	count, base uint32
	annotations []byte // without the count when there are none
	due         int64  // unix milliseconds; enqueue, relocate, move, count: of the due fact right behind, 0 without

	definition engine.Definition // define

	bytes   []byte // body: the whole fact
	at      int    // body: where that stands in the window
	space   uint64 // cell
	key     []byte // cell; remember and forget: address
	value   []byte
	lastNum uint64 // counters
	lastQ   uint64
	ranges  []index.Span // purge and deleted
	id      [16]byte     // remember
	keep    uint64
}
