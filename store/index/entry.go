package index

import (
	"slices"

	"github.com/letomq/leto/store/journal"
)

// Entry is what the index knows of one entry of a queue.
type Entry struct {
	Number  uint64
	Place   journal.Place // of the body
	Payload uint64        // bytes of the message's payload
	Expiry  int64         // unix milliseconds, 0 = never
	Count   uint32
	Base    uint32
	Extra   *Extra // what few entries have; immutable
}

// Extra is what few entries have.
type Extra struct {
	Due         int64  // unix milliseconds the entry waits for, 0 = none
	Annotations []byte // as the facts have them; nil: none
	Parts       []Part // where the payload is, if not in the body
}

// Due returns the time that the entry waits for, in unix milliseconds, 0 for none.
func (e *Entry) Due() int64 {
	if e.Extra == nil {
		return 0
	}
	return e.Extra.Due
}

// Part is a share of a large payload: so many bytes of it are in that segment.
type Part struct {
	Segment uint64
	Bytes   uint64
}

// Priorities is how many priorities there are.
const Priorities = 10

// Live is what a segment holds that is still needed.
type Live struct {
	Bytes   int64 // of bodies; one that several entries share counts for each of them
	Entries int64 // that refer to the segment
}

// Definition is a queue's: the bytes are the caller's.
type Definition struct {
	Queue uint64
	Value []byte
}

// Counters are numbers that must never be given again.
type Counters struct {
	LastNumber uint64
	LastQueue  uint64
}

// Level is a summary of the entries of a queue that have one priority.
type Level struct {
	Priority  uint8
	Entries   uint64
	Delayed   uint64 // those of them that have a due time
	Bytes     uint64 // of payloads
	Head      uint64 // no entry has a lower number
	Last      uint64 // no entry has ever had a higher number
	Overrides uint64 // entries that changed after they were written
}

// Summary is what is known of a queue without reading its entries: its levels, in no particular order, with those
// that have no entries now.
type Summary struct {
	Levels []Level
}

// Entries returns how many entries a queue has, and the bytes of their payloads.
func (s *Summary) Entries() (n, bytes uint64) {
	for i := range s.Levels {
		n += s.Levels[i].Entries
		bytes += s.Levels[i].Bytes
	}
	return n, bytes
}

// Delayed returns how many of its entries have a due time.
func (s *Summary) Delayed() (n uint64) {
	for i := range s.Levels {
		n += s.Levels[i].Delayed
	}
	return n
}

func (s *Summary) level(priority uint8) *Level {
	i := slices.IndexFunc(s.Levels, func(l Level) bool { return l.Priority == priority })
	if i < 0 {
		s.Levels = append(s.Levels, Level{Priority: priority})
		i = len(s.Levels) - 1
	}
	return &s.Levels[i]
}

func (s *Summary) clone() *Summary { return &Summary{Levels: slices.Clone(s.Levels)} }
