package journal

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	// DefaultSegmentSize is used when Options name none.
	DefaultSegmentSize = 64 << 20
	// MinSegmentSize and MaxSegmentSize are the limits of Options.SegmentSize.
	MinSegmentSize = 64 << 10
	MaxSegmentSize = 2 << 30

	defaultOpenFiles = 64
)

// Options say how a journal is opened.
type Options struct {
	FS          FS
	Dir         string   // folder of the segments in FS; it is made if it isn't there
	StoreID     [16]byte // segments of other stores are refused
	SegmentSize int64    // bytes, of segments that are made from now on; a multiple of 4096. 0: DefaultSegmentSize
	Spares      int      // freed segments that are kept for use again; what is beyond is removed
	OpenFiles   int      // segments kept open for reading; 0: 64
	// From is where Replay will start. Everything from there on is checked, and has to be there without a gap. Zero:
	// the first segment there is; segments between it and the last may have been freed.
	From Position

	inline bool // tests: no goroutine
}

func (o *Options) check() error {
	if o.SegmentSize == 0 {
		o.SegmentSize = DefaultSegmentSize
	}
	if o.OpenFiles <= 0 {
		o.OpenFiles = defaultOpenFiles
	}
	if o.SegmentSize < MinSegmentSize || o.SegmentSize > MaxSegmentSize || o.SegmentSize%headerSize != 0 {
		return fmt.Errorf("journal: segment size %d: not a multiple of %d from %d to %d", o.SegmentSize, headerSize,
			MinSegmentSize, MaxSegmentSize)
	}
	return nil
}

// Journal is an open journal. Begin, Append, Flush and Close are called by one goroutine; the other methods by any.
type Journal struct {
	options  Options
	files    *files
	folder   *folder
	preparer *preparer
	group    group // the committer's

	ended atomic.Pointer[error] // why nothing more is taken: ErrFailed or ErrClosed
	freed atomic.Bool           // a segment has been, so that there may be gaps

	mu       sync.RWMutex
	segments []segment // begun ones, by number. Appended to, else replaced
	end      Position
	epoch    uint64
}

// usable returns why the journal takes nothing, or nil.
func (j *Journal) usable() error {
	if err := j.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// fail ends the journal for good.
func (j *Journal) fail(cause error) error {
	err := fmt.Errorf("%w: %w", ErrFailed, cause)
	j.ended.CompareAndSwap(nil, &err)
	return j.usable()
}

// End returns the position behind the last record that was flushed.
func (j *Journal) End() Position {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.end
}

// Epoch returns the highest epoch in the journal; 0 if it is new.
func (j *Journal) Epoch() uint64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.epoch
}

// MaxPayload returns the length of the largest payload that Append takes.
func (j *Journal) MaxPayload() int64 { return j.options.SegmentSize - headerSize - recordHeader }

// Close ends the journal. What was appended and not flushed is dropped. Unless the journal has failed, its last
// segment gets an end, so that nothing has to be looked for behind it at the next start.
func (j *Journal) Close() error {
	failed := j.usable()
	if errors.Is(failed, ErrClosed) {
		return failed
	}
	j.group.drop(j)
	var err error
	if failed == nil {
		err = j.seal()
	}
	j.ended.Store(&closed)
	for _, p := range j.preparer.stop() {
		_ = p.file.Close() // flushed
		if failed == nil && err == nil {
			err = j.folder.keep(p.number)
		}
	}
	if j.group.reading != nil {
		j.files.giveBack(j.group.reading)
	}
	j.files.close()
	return err
}

var closed = ErrClosed

// seal writes an end of segment. Without room for it the journal is as good.
func (j *Journal) seal() error {
	if j.group.file == nil {
		return nil
	}
	j.group.end()
	if err := j.flush(); !errors.Is(err, ErrFull) {
		return err
	}
	return nil
}
