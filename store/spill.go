package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/journal"
)

// Spill is what a broker writes that needn't survive: a store in a folder of its own that never waits for the device,
// and whose folder is removed when it is closed, and when the store beside it is opened.
type Spill struct{ store *Store }

var _ engine.Spill = (*Spill)(nil)

// SpillOptions say how a spill is opened. What is zero gets the default that is named.
type SpillOptions struct {
	Dir string     // folder of the store that the spill belongs to
	FS  journal.FS // where the spill's journal is; nil: the spill's folder

	SegmentSize int64         // bytes of a segment; 16 MiB
	Checkpoint  time.Duration // how often segments that aren't needed are looked for; 500 ms
	Reserve     int64         // of the store: the spill takes nothing below one and a half times that; 0: as Options says
	Alarm       func(string)  // as in Options
}

// What a spill takes of memory is little beside what it saves. Reading is from the device anyway, and it is emptied in
// the order in which it was filled.
const (
	spillSegment  = 16 << 20
	spillApplyMax = 8 << 20
	spillMemTable = 1 << 20

	spillCheckpoint = 500 * time.Millisecond // it costs no flush
)

// OpenSpill opens an empty spill. There must be no other one of the same store.
func OpenSpill(o SpillOptions) (*Spill, error) {
	dir := filepath.Join(o.Dir, spillDir)
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("spill: %w", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("spill: %w", err)
	}
	own := Options{
		Dir: dir, FS: o.FS, SegmentSize: o.SegmentSize, Spares: 1, Checkpoint: o.Checkpoint,
		ApplyMax: spillApplyMax, MemTable: spillMemTable, volatile: true,
	}
	if own.FS == nil {
		own.FS = journal.OS(dir)
	}
	own.FS = journal.Unflushed(own.FS)
	if own.SegmentSize <= 0 {
		own.SegmentSize = spillSegment
	}
	if own.Checkpoint <= 0 {
		own.Checkpoint = spillCheckpoint
	}
	reserve, err := reserveOf(o.Reserve, own.FS)
	if err != nil {
		return nil, fmt.Errorf("spill: %w", err)
	}
	own.Reserve = reserve + reserve/2
	if o.Alarm != nil {
		own.Alarm = func(what string) { o.Alarm("spill: " + what) }
	}
	s, err := Open(own)
	if err != nil {
		return nil, fmt.Errorf("spill: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	return &Spill{s}, nil
}

// Commit makes all records hold until the spill is closed: see engine.Spill.
func (s *Spill) Commit(records []engine.Record) error { return s.store.Commit(records) }

// Load returns entries of a queue that have a priority. One that can't be read is left out and reported.
func (s *Spill) Load(q engine.QueueID, priority uint8, from uint64, n, bytes int) ([]engine.Stored, error) {
	return s.store.Load(q, priority, from, n, bytes)
}

// Pick returns some entries of a queue that have a priority. One that can't be read is left out and reported.
func (s *Spill) Pick(q engine.QueueID, priority uint8, numbers []uint64, bytes int) ([]engine.Stored, error) {
	return s.store.Pick(q, priority, numbers, bytes)
}

// Expiries returns a reader of what expires.
func (s *Spill) Expiries() engine.Expiries { return s.store.Expiries() }

// Delayed returns entries of a queue that are due behind after, at until or before, and when the next one is.
func (s *Spill) Delayed(q engine.QueueID, after engine.Due, until int64, n int) ([]engine.Due, int64, error) {
	return s.store.Delayed(q, after, until, n)
}

// Size returns the bytes of the spill's segments. It may be called at any time.
func (s *Spill) Size() int64 {
	size := int64(0)
	for _, seg := range s.store.journal.Segments() {
		size += seg.Size
	}
	return size
}

// Metrics returns the spill's, as those of a store. They may be asked for at any time.
func (s *Spill) Metrics() Metrics { return s.store.Metrics() }

// Close ends the spill and removes its folder.
func (s *Spill) Close() error {
	return errors.Join(s.store.Close(), os.RemoveAll(s.store.o.Dir))
}
