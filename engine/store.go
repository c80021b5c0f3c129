package engine

import (
	"cmp"
	"errors"

	"github.com/letomq/leto/engine/queue"
)

// Store keeps what must survive a restart. Its records are facts: applying one needs no clock, configuration or
// randomness, and applying it again changes nothing. A record that names a queue that isn't defined, or an entry that
// isn't there, is passed over.
//
// Commit, Load and Pick may be called at the same time, Commit by one goroutine only.
type Store interface {
	// Recover returns what is stored. A broker calls it once, before anything else: the first one after the store was
	// opened, or one that is built over a store that another broker has left, closed, inside the process.
	Recover() (State, error)
	// Commit makes all records hold, in their order, or none, and returns when they do. With ErrStoreFull none holds,
	// and records that bring no new message are still taken while there is any space. After any other error the store is broken: what of the batch
	// holds is unknown and every later Commit fails. The records are not kept; the messages they point to may be, and
	// are never changed.
	Commit(records []Record) error
	// Room reports whether Commit takes new messages now.
	Room() bool
	// Load returns the entries of a queue that have a priority and no due time, in ascending order of number, from one
	// number on: at most n, and no further once their payloads have reached that many bytes. At least one is returned if
	// there is one. The messages are new structs, the caller's own; their payloads may be shared.
	Load(q QueueID, priority uint8, from uint64, n, bytes int) ([]Stored, error)
	// Pick returns some entries of a queue that have a priority: those of the numbers, which ascend, that are there,
	// whatever their due times, and no further once their payloads have reached that many bytes, but at least one. The
	// messages are as Load's.
	Pick(q QueueID, priority uint8, numbers []uint64, bytes int) ([]Stored, error)
	// Expiries returns a reader of what expires, which has told nothing yet.
	Expiries() Expiries
	// Remembered returns the ids of an address that came last, n at the most, in the order in which they came.
	Remembered(address string, n int) ([]DuplicateID, error)
	// Delayed returns entries of a queue whose due times are at until, a unix millisecond, or before, n at the most, in
	// ascending order of due time, then of priority (the higher first) and number. Of after these three are read: only
	// what comes behind it in that order is returned, and the zero value is before all. It is the state as of the last
	// Commit that has returned. next is the due time of the first entry behind after that isn't returned, 0 for none.
	Delayed(q QueueID, after Due, until int64, n int) (due []Due, next int64, err error)
}

// Expiries tells which entries of a store expire. It is used by one goroutine, beside Commit and Load.
type Expiries interface {
	// Due returns entries that expire at until, a unix millisecond, or before, n at the most, in about the order in which
	// they expire and sorted by queue, priority and number among themselves. An entry is told once; whoever lets it be
	// will know when to look at it again. It may be told once more if the store has written it anew. One that has been
	// committed lately may be told late, and one that is told is there.
	//
	// next is when to ask again: until or before when there may be more now, 0 when nothing that is stored expires.
	Due(until int64, n int) (due []Due, next int64, err error)
}

// Due is an entry whose time has come: to expire, or to be delivered.
type Due struct {
	Queue    QueueID
	Priority uint8
	Number   uint64
	Bytes    int   // of its payload
	At       int64 // its due time, a unix millisecond; 0: it has none, and expires while it is ready
}

// compareDue orders entries of a queue as they are due.
func compareDue(a, b Due) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
}

// ErrStoreFull says that a store has no room for messages now. It goes on when there is space again.
var ErrStoreFull = errors.New("store: no space for messages")

// QueueID names a durable queue in the store. It is never used again for another queue.
type QueueID uint64

// State is what a store holds besides entries.
type State struct {
	Queues     []Definition
	Summaries  []Summary // of the queues, at the same places
	LastQueue  QueueID   // highest ever defined
	LastNumber uint64    // highest ever enqueued, in any queue, or remembered with an id

	Remembering []string // addresses that ids are remembered of, in no order
}

// Definition is a durable queue, or with no name an address that is there without any.
type Definition struct {
	ID        QueueID
	Address   string
	Name      string
	Routing   Routing // of the address
	Auto      bool    // made on first use
	Paused    bool    // gives nothing to consumers
	Container string  // of the durable subscription that the queue is, as is:
	Link      string
}

// Summary is what a store knows of a queue without reading its entries.
type Summary struct {
	Entries uint64  // with a due time and without
	Bytes   int64   // of their payloads
	Levels  []Level // those that have entries, the highest priority first
}

// Level is the entries of a queue that have one priority.
type Level struct {
	Priority uint8  // 0..9
	Entries  uint64 // without a due time
	Delayed  uint64 // with one
	Head     uint64 // no entry has a lower number
}

// Record is one fact.
type Record struct {
	Kind        RecordKind
	Queue       QueueID
	Number      uint64
	From        QueueID // move: where the entry comes from, and
	FromNumber  uint64  // its number there; purge: the first number that is gone, Number being the last
	Priority    uint8   // remove, count, due, move, purge: what the entry was enqueued with; a move doesn't change it
	Count, Base uint32  // enqueue, move, count: as in queue.Arrival, absolute
	Due         int64   // enqueue, move, count, due: before that unix millisecond it is given to nobody; 0: it has no due time
	Annotations []queue.Annotation
	Message     *queue.Message // enqueue; move: the same payload under what is now its header
	Definition  *Definition    // define
	Remembered  *Remembered    // remember, with the message's Number; forget: Address alone
}

// Remembered says that an address has taken a message with an id. It is passed over if the address has had one since
// that came with a higher number.
type Remembered struct {
	Address string
	ID      DuplicateID
	Keep    int // how many ids of the address are kept at least, of those that came last: 1 or more
}

// RecordKind says what a record states.
type RecordKind uint8

const (
	RecordDefine   RecordKind = iota + 1 // there is a queue
	RecordDelete                         // the queue and all its entries are gone
	RecordEnqueue                        // the queue has this entry
	RecordRemove                         // the entry is gone
	RecordCount                          // the entry has this count, this due time and these annotations
	RecordMove                           // the queue has the entry that another one had, under a new number
	RecordPurge                          // the entries of one priority from FromNumber to Number are gone, with a due time or without
	RecordRemember                       // the address has taken a message with this id
	RecordForget                         // no id of the address is remembered
	RecordDue                            // the entry has this due time
)

// Stored is an entry as the store holds it.
type Stored struct {
	Number      uint64
	Count, Base uint32
	Due         int64 // as in Record
	Annotations []queue.Annotation
	Message     *queue.Message
}
