package journal

import (
	"fmt"
	"slices"
)

// Open opens the journal in a folder, or a new one if there are no segments. It makes sure that what it can read is
// on the device, checks everything from o.From on, and cuts off what a crash left of the last group. *CorruptError
// says that more than that is wrong; nothing has been changed then.
func Open(o Options) (*Journal, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := o.FS.MkdirAll(o.Dir); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{options: o}
	j.files = &files{fs: o.FS, dir: o.Dir, limit: o.OpenFiles, open: map[uint64]*handle{}}
	j.folder = &folder{fs: o.FS, dir: o.Dir, size: o.SegmentSize, spares: o.Spares}
	j.preparer = &preparer{folder: j.folder, fail: j.fail, inline: o.inline}
	if err := j.recover(); err != nil {
		j.files.close()
		return nil, err
	}
	j.preparer.start()
	return j, nil
}

// recover reads what is there: first everything is judged, then what a crash left is cleared away.
func (j *Journal) recover() error {
	numbers, unfinished, err := j.folder.read()
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	named, err := j.headers(numbers)
	if err != nil {
		return err
	}
	if err := j.syncLast(); err != nil {
		return err
	}
	torn, err := j.scan(j.options.From)
	if err != nil {
		return err
	}
	for _, s := range named {
		if err := j.unbegun(s); err != nil {
			return err
		}
	}

	for _, s := range named {
		if err := j.folder.keep(s.number); err != nil {
			return fmt.Errorf("journal: segment %016x: %w", s.number, err)
		}
	}
	if err := j.folder.tidy(unfinished); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if torn {
		if err := j.cut(); err != nil {
			return fmt.Errorf("journal: segment %016x: %w", j.end.Segment, err)
		}
	}
	j.preparer.next = 1
	if n := len(j.segments); n > 0 {
		j.preparer.next = j.segments[n-1].number + 1
	}
	return nil
}

// headers reads the segments' headers. Segments that come last and have none were made ready and not begun: they are
// returned, with number and size.
func (j *Journal) headers(numbers []uint64) (named []segment, err error) {
	for _, number := range numbers {
		s, begun, err := j.header(number)
		switch {
		case err != nil:
			return nil, err
		case !begun:
			named = append(named, s)
		case len(named) > 0:
			return nil, &CorruptError{Segment: named[0].number, Reason: fmt.Sprintf("no header, but segment %016x has one", number)}
		default:
			j.segments = append(j.segments, s)
		}
	}
	return named, nil
}

func (j *Journal) header(number uint64) (s segment, begun bool, err error) {
	file, err := j.files.borrow(number)
	if err != nil {
		return s, false, err
	}
	defer j.files.giveBack(file)
	size, err := file.Size()
	if err != nil {
		return s, false, fmt.Errorf("journal: segment %016x: %w", number, err)
	}
	s = segment{number: number, size: size, sealed: true}
	if size < headerSize {
		return s, false, nil
	}
	var b [headerUsed]byte
	if err := readFull(file, b[:], 0); err != nil {
		return s, false, fmt.Errorf("journal: segment %016x: %w", number, err)
	}
	h, whole, err := readHeader(b[:])
	switch {
	case err != nil:
		return s, false, fmt.Errorf("journal: segment %016x: %w", number, err)
	case !whole || h.number != number: // of another number: recycled
		return s, false, nil
	case h.store != j.options.StoreID:
		return s, false, fmt.Errorf("%w: segment %016x: store %x", ErrOtherStore, number, h.store)
	case h.segment != size || size%headerSize != 0 || size > MaxSegmentSize:
		return s, false, &CorruptError{Segment: number, Reason: fmt.Sprintf("size %d, header says %d", size, h.segment)}
	}
	s.first, s.epoch = h.first, h.epoch
	return s, true, nil
}

// syncLast flushes the last segment: a process that was killed may have left bytes there that can be read and are not
// on the device. All others were flushed before it was begun.
func (j *Journal) syncLast() error {
	if len(j.segments) == 0 {
		return nil
	}
	number := j.segments[len(j.segments)-1].number
	file, err := j.files.borrow(number)
	if err != nil {
		return err
	}
	defer j.files.giveBack(file)
	if err := file.Sync(); err != nil {
		return fmt.Errorf("journal: segment %016x: %w", number, err)
	}
	return nil
}

// scan checks all records from a position on, and finds the end. torn says that bytes may stand behind it.
func (j *Journal) scan(from Position) (torn bool, err error) {
	j.end = Position{Index: 1}
	if len(j.segments) == 0 {
		if from.Segment != 0 {
			return false, &CorruptError{Segment: from.Segment, Offset: from.Offset, Reason: "there are no segments"}
		}
		return false, nil
	}
	w := walk{journal: j, segments: j.segments}
	if err := w.from(from); err != nil {
		return false, err
	}
	for w.more() {
		why, reason, err := w.segment(false, nil)
		if err != nil {
			return false, err
		}
		torn = why != sealed
		if w.more() {
			if err := w.follow(why, reason); err != nil {
				return false, err
			}
		}
		if torn && !w.more() {
			if err := w.judge(reason); err != nil {
				return false, err
			}
		}
	}
	j.end, j.epoch = w.at, w.epoch
	return torn, nil
}

// unbegun makes sure that a segment without header has no record either: its header was flushed before any was
// written, and has been lost if there is one.
func (j *Journal) unbegun(s segment) error {
	file, err := j.files.borrow(s.number)
	if err != nil {
		return err
	}
	defer j.files.drop(s.number) // it gets another name
	defer j.files.giveBack(file)
	to := min(s.size, MaxSegmentSize) &^ (recordAlign - 1)
	at, err := search(file, headerSize, to, sought{
		seed: seedOf(j.options.StoreID, s.number), low: j.end.Index, high: j.end.Index + uint64(to/recordMinimum), epoch: j.epoch,
	})
	if err != nil {
		return fmt.Errorf("journal: segment %016x: %w", s.number, err)
	}
	if at >= 0 {
		return &CorruptError{Segment: s.number, Reason: fmt.Sprintf("no header, but a record at %d", at)}
	}
	return nil
}

// cut overwrites what stands behind the end with zeros, and flushes.
func (j *Journal) cut() error {
	i, _ := find(j.segments, j.end.Segment)
	file, err := j.files.borrow(j.end.Segment)
	if err != nil {
		return err
	}
	defer j.files.giveBack(file)
	buf := make([]byte, min(readSize, j.segments[i].size))
	for at, to := j.end.Offset, j.segments[i].size; at < to; {
		piece := buf[:min(int64(len(buf)), to-at)]
		if err := readFull(file, piece, at); err != nil {
			return err
		}
		if slices.ContainsFunc(piece, func(b byte) bool { return b != 0 }) {
			if _, err := file.WriteAt(zeros[:len(piece)], at); err != nil {
				return err
			}
		}
		at += int64(len(piece))
	}
	return file.Sync()
}
