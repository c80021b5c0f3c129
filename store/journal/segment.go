package journal

import (
	"cmp"
	"slices"
)

// segment is one that has been begun.
type segment struct {
	number uint64
	first  uint64
	epoch  uint64
	size   int64
	sealed bool
}

// SegmentInfo describes a segment.
type SegmentInfo struct {
	Number     uint64
	FirstIndex uint64 // of the first record in it, or the next one if it has none
	Epoch      uint64
	Size       int64 // bytes on the device
	Sealed     bool  // nothing is appended to it any more
}

// Segments returns the segments in order of their numbers.
func (j *Journal) Segments() []SegmentInfo {
	j.mu.RLock()
	defer j.mu.RUnlock()
	all := make([]SegmentInfo, len(j.segments))
	for i, s := range j.segments {
		all[i] = SegmentInfo{Number: s.number, FirstIndex: s.first, Epoch: s.epoch, Size: s.size, Sealed: s.sealed}
	}
	return all
}

// find returns where a segment stands, or would stand, in the order of numbers.
func find(segments []segment, number uint64) (int, bool) {
	return slices.BinarySearchFunc(segments, number, func(s segment, n uint64) int { return cmp.Compare(s.number, n) })
}

// ReadAt fills b from a segment, which must hold flushed bytes there. It doesn't check them: Place has a checksum.
func (j *Journal) ReadAt(segment uint64, offset int64, b []byte) error {
	j.mu.RLock()
	_, known := find(j.segments, segment)
	j.mu.RUnlock()
	if !known {
		return ErrNoSegment
	}
	h, err := j.files.borrow(segment)
	if err != nil {
		return err
	}
	defer j.files.giveBack(h)
	return readFull(h, b, offset)
}

// Free gives up a sealed segment. Nothing of it is in the journal when Free returns, also after a crash. It must lie
// before the segment of the position from which the journal will be opened next.
func (j *Journal) Free(segment uint64) error {
	if err := j.usable(); err != nil {
		return err
	}
	j.mu.Lock()
	i, known := find(j.segments, segment)
	if !known {
		j.mu.Unlock()
		return ErrNoSegment
	}
	s := j.segments[i]
	if !s.sealed {
		j.mu.Unlock()
		return ErrInUse
	}
	j.segments = slices.Delete(j.segments, i, i+1)
	j.freed.Store(true)
	j.mu.Unlock()
	j.files.drop(segment)
	if err := j.folder.retire(s.number, s.size); err != nil {
		return j.fail(err)
	}
	return nil
}
