package journal

import "fmt"

// walk goes through segments, record by record.
type walk struct {
	journal  *Journal
	segments []segment
	gaps     bool // segments may be missing: freed ones, before the position that the index is known to have

	next   int // in segments
	at     Position
	epoch  uint64
	reader reader
}

// from sets the walk on a position.
func (w *walk) from(p Position) error {
	if p.Segment == 0 {
		w.gaps = true
		s := w.segments[0]
		w.at = Position{Index: s.first, Segment: s.number, Offset: headerSize}
		return nil
	}
	i, there := find(w.segments, p.Segment)
	if !there {
		return &CorruptError{Segment: p.Segment, Offset: p.Offset, Reason: "the segment of the position is missing"}
	}
	if s := w.segments[i]; p.Offset < headerSize || p.Offset > s.size || p.Offset%recordAlign != 0 || p.Index < s.first {
		return &CorruptError{Segment: p.Segment, Offset: p.Offset, Reason: fmt.Sprintf("not the place of record %d", p.Index)}
	}
	w.next, w.at = i, p
	return nil
}

func (w *walk) more() bool { return w.next < len(w.segments) }

// segment reads the rest of a segment and gives its records to visit, if there is one, until `until` comes next. It
// says why it ended.
func (w *walk) segment(payload bool, visit func(Record) (bool, error)) (why ending, reason string, err error) {
	s := w.segments[w.next]
	w.next++
	file, err := w.journal.files.borrow(s.number)
	if err != nil {
		return bad, "", err
	}
	defer w.journal.files.giveBack(file)
	r := &w.reader
	r.open(file, seedOf(w.journal.options.StoreID, s.number), s.size, w.at.Offset, w.at.Index, max(w.epoch, s.epoch))
	for {
		rec, why, reason, err := r.next(payload)
		w.at, w.epoch = Position{Index: r.index, Segment: s.number, Offset: r.offset}, r.epoch
		if err != nil {
			return bad, "", fmt.Errorf("journal: segment %016x at %d: %w", s.number, r.offset, err)
		}
		if why == misplaced {
			return bad, "", w.corrupt(reason)
		}
		if why != goesOn {
			return why, reason, nil
		}
		if visit != nil {
			rec.Segment = s.number
			if stop, err := visit(rec); err != nil || stop {
				return goesOn, "", err
			}
		}
	}
}

// follow goes on to the next segment. Its header was flushed after everything before it: so the index in it tells
// whether what ended the segment before was its end.
func (w *walk) follow(why ending, reason string) error {
	s, before := w.segments[w.next], w.segments[w.next-1]
	if s.first != w.at.Index {
		if why == sealed || s.first < w.at.Index {
			reason = fmt.Sprintf("%d comes next, but segment %016x begins with %d", w.at.Index, s.number, s.first)
		}
		freed := w.gaps && s.number != before.number+1 && s.first > w.at.Index
		if !freed || why == bad {
			return w.corrupt(reason)
		}
		if why == blank {
			if err := w.judge(reason); err != nil {
				return err
			}
		}
	}
	w.at = Position{Index: s.first, Segment: s.number, Offset: headerSize}
	return nil
}

func (w *walk) corrupt(reason string) error {
	return &CorruptError{Segment: w.at.Segment, Offset: w.at.Offset, Reason: reason}
}

// judge looks behind the end of the last segment for a whole record that says that what stands at the end had been
// flushed. If there is none, a crash has torn it.
func (w *walk) judge(reason string) error {
	s := w.segments[w.next-1]
	file, err := w.journal.files.borrow(s.number)
	if err != nil {
		return err
	}
	defer w.journal.files.giveBack(file)
	at, err := search(file, w.at.Offset, s.size, sought{
		seed: seedOf(w.journal.options.StoreID, s.number), low: w.at.Index, epoch: w.epoch,
		high: w.at.Index + uint64((s.size-w.at.Offset)/recordMinimum), flushed: w.at.Index,
	})
	if err != nil {
		return fmt.Errorf("journal: segment %016x: %w", s.number, err)
	}
	if at >= 0 {
		return w.corrupt(fmt.Sprintf("%s, but the record at %d says that it had been flushed", reason, at))
	}
	return nil
}
