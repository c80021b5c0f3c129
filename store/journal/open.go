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
	end, err := j.scan(j.options.From)
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
	if len(j.segments) > 0 {
		if err := j.secure(end); err != nil {
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

// lastEnd describes the end of the last segment.
type lastEnd struct {
	group int64 // where the last group begins
	torn  bool  // something may stand behind it
}

// scan checks all records from a position on, and finds the end.
func (j *Journal) scan(from Position) (end lastEnd, err error) {
	j.end = Position{Index: 1}
	if len(j.segments) == 0 {
		if from.Segment != 0 {
			return end, &CorruptError{Segment: from.Segment, Offset: from.Offset, Reason: "there are no segments"}
		}
		return end, nil
	}
	w := walk{journal: j, segments: j.segments}
	if err := w.from(from); err != nil {
		return end, err
	}
	for {
		why, reason, err := w.segment(false, nil)
		switch {
		case err != nil:
			return end, err
		case w.more():
			if err := w.follow(why, reason); err != nil {
				return end, err
			}
			continue
		case why != sealed:
			if err := w.judge(reason); err != nil {
				return end, err
			}
		}
		j.end, j.epoch = w.at, w.epoch
		return lastEnd{group: w.reader.group, torn: why != sealed}, nil
	}
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

// secure brings to the device what was read of the last group, and zeros behind it if a crash has left something
// there. The group is written again: a process that was killed may have left it unflushed, and if a flush had failed
// before, the kernel takes for clean what isn't on the device. All that comes before was flushed, or the group would
// not have been begun.
func (j *Journal) secure(end lastEnd) error {
	last := j.segments[len(j.segments)-1]
	file, err := j.files.borrow(last.number)
	if err != nil {
		return err
	}
	defer j.files.giveBack(file)
	buf := make([]byte, min(readSize, last.size))
	rewrite := func(from, to int64) error {
		for n := int64(0); from < to; from += n {
			n = min(int64(len(buf)), to-from)
			if err := readFull(file, buf[:n], from); err != nil {
				return err
			}
			if _, err := file.WriteAt(buf[:n], from); err != nil {
				return err
			}
		}
		return nil
	}
	if j.end.Offset == headerSize { // no record: the header itself may not be flushed
		err = rewrite(0, headerSize)
	} else {
		err = rewrite(end.group, j.end.Offset)
	}
	if err == nil && end.torn {
		err = j.cut(file, buf, last.size)
	}
	if err != nil {
		return err
	}
	return file.Sync()
}

// cut writes zeros over what stands behind the end.
func (j *Journal) cut(file File, buf []byte, to int64) error {
	for at, n := j.end.Offset, int64(0); at < to; at += n {
		n = min(int64(len(buf)), to-at)
		if err := readFull(file, buf[:n], at); err != nil {
			return err
		}
		blank := !slices.ContainsFunc(buf[:n], func(b byte) bool { return b != 0 })
		if blank && at > j.end.Offset { // of the first piece, too, the kernel may know more than the device
			continue
		}
		if _, err := file.WriteAt(zeros[:n], at); err != nil {
			return err
		}
	}
	return nil
}
