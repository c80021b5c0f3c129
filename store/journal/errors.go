package journal

import (
	"errors"
	"fmt"
)

var (
	// ErrFull says that the device has no room for the group that was being appended. Nothing of the group is in the
	// journal, and it can be appended again when there is space.
	ErrFull = errors.New("journal: no space left")
	// ErrFailed says that a write or a flush failed: what of the last group is on the device is unknown, and the
	// journal takes nothing more. What was flushed before can still be read.
	ErrFailed = errors.New("journal: failed")
	// ErrClosed says that the journal is closed.
	ErrClosed = errors.New("journal: closed")
	// ErrNotBegun says that Append or Flush came before Begin.
	ErrNotBegun = errors.New("journal: not begun")
	// ErrTooLarge says that a record doesn't fit into a segment.
	ErrTooLarge = errors.New("journal: record larger than a segment")
	// ErrNoSegment says that there is no segment of that number.
	ErrNoSegment = errors.New("journal: no such segment")
	// ErrInUse says that a segment that is being written can't be freed.
	ErrInUse = errors.New("journal: segment in use")
	// ErrEpoch says that an epoch is lower than one that the journal has seen.
	ErrEpoch = errors.New("journal: epoch is over")
	// ErrVersion says that a segment has a version of the format that this program doesn't know.
	ErrVersion = errors.New("journal: unknown version of the format")
	// ErrOtherStore says that a segment belongs to another store.
	ErrOtherStore = errors.New("journal: segment of another store")
)

// CorruptError says that something that had been flushed can't be read. A crash doesn't do that: the device or
// somebody else has changed or lost it.
type CorruptError struct {
	Segment uint64
	Offset  int64 // in the segment, of the record's header; 0 for the segment as a whole
	Reason  string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal: segment %016x is corrupt at %d: %s", e.Segment, e.Offset, e.Reason)
}
