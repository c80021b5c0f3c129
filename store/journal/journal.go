package journal

import "errors"

const (
	// DefaultSegmentSize is used when Options name none.
	DefaultSegmentSize = 64 << 20
	// MinSegmentSize and MaxSegmentSize are the limits of Options.SegmentSize.
	MinSegmentSize = 64 << 10
	MaxSegmentSize = 2 << 30
)

// Options say how a journal is opened.
type Options struct {
	FS          FS
	Dir         string   // folder of the segments in FS; it is made if it isn't there
	StoreID     [16]byte // segments of other stores are refused
	SegmentSize int64    // bytes, of segments that are made from now on; a multiple of 4096. 0: DefaultSegmentSize
	Spares      int      // freed segments that are kept for use again; what is beyond is removed
	OpenFiles   int      // sealed segments kept open for reading; 0: 64
	// From is where Replay will start. Everything from there on is checked, and has to be there without a gap. Zero:
	// the first segment there is; segments that were freed since may be missing then.
	From Position
}

// Journal is an open journal. Append, Flush and Begin are called by one goroutine; the other methods by any.
type Journal struct{}

// SegmentInfo describes a segment.
type SegmentInfo struct {
	Number     uint64
	FirstIndex uint64 // of the first record in it, or the next one if it has none
	Epoch      uint64
	Size       int64 // bytes on the device
	Sealed     bool  // nothing is appended to it any more
}

var errNotBuilt = errors.New("journal: not built yet")

// Open opens the journal in a folder, or a new one if there are no segments. It makes sure that what it can read is
// on the device, checks everything from o.From on, and cuts off what a crash left of the last group. *CorruptError
// says that more than that is wrong; nothing has been changed then.
func Open(o Options) (*Journal, error) { return nil, errNotBuilt }

// Replay calls f with every record from a position on, in order, up to the end as it is at the call. An error of f
// ends it and is returned. Segments that Replay reads must not be freed meanwhile.
func (j *Journal) Replay(from Position, f func(Record) error) error { return errNotBuilt }

// Begin starts a new segment in an epoch, which must not be lower than any before. It is called once, before anything
// is appended.
func (j *Journal) Begin(epoch uint64) error { return errNotBuilt }

// Append adds a record of KindWindow or KindPart to the group that the next Flush writes. The payload, which isn't
// empty, is copied from its pieces. The returned Record says where the payload will be; it can be read from there
// when the Flush has returned. After an error the whole group is dropped, and begins anew with the next Append.
func (j *Journal) Append(kind Kind, payload ...[]byte) (Record, error) { return Record{}, errNotBuilt }

// Flush writes the group and returns when it is on the device. On ErrFull nothing of it is in the journal. On
// ErrFailed any prefix of it may be there after a restart.
func (j *Journal) Flush() error { return errNotBuilt }

// ReadAt fills b from a segment, which must hold flushed bytes there. It doesn't check them: Place has a checksum.
func (j *Journal) ReadAt(segment uint64, offset int64, b []byte) error { return errNotBuilt }

// End returns the position behind the last record that was flushed.
func (j *Journal) End() Position { return Position{} }

// Epoch returns the highest epoch in the journal.
func (j *Journal) Epoch() uint64 { return 0 }

// MaxPayload returns the length of the largest payload that fits into a segment.
func (j *Journal) MaxPayload() int64 { return 0 }

// Segments returns the segments in order of their numbers.
func (j *Journal) Segments() []SegmentInfo { return nil }

// Free gives up a sealed segment. Nothing of it is in the journal when Free returns, also after a crash.
func (j *Journal) Free(segment uint64) error { return errNotBuilt }

// Close ends the journal. What was appended and not flushed is dropped.
func (j *Journal) Close() error { return errNotBuilt }
