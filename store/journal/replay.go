package journal

import "slices"

// Replay calls f with every record from a position on, in order, up to the end as it is at the call. An error of f
// ends it and is returned. Segments that Replay reads must not be freed meanwhile. It may start before Options.From:
// what is read then is checked, and *CorruptError is possible.
func (j *Journal) Replay(from Position, f func(Record) error) error {
	j.mu.RLock()
	segments, end := slices.Clone(j.segments), j.end
	j.mu.RUnlock()
	if len(segments) == 0 || from.Index >= end.Index && from.Segment != 0 {
		return nil
	}
	w := walk{journal: j, segments: segments, gaps: from.Segment < j.options.From.Segment || j.freed.Load()}
	if err := w.from(from); err != nil {
		return err
	}
	for w.more() && w.at.Index < end.Index {
		why, reason, err := w.segment(true, func(rec Record) (bool, error) { return rec.Index+1 == end.Index, f(rec) })
		switch {
		case err != nil:
			return err
		case why == goesOn: // that was the last
			return nil
		case !w.more():
			return w.corrupt(reason)
		}
		if err := w.follow(why, reason); err != nil {
			return err
		}
	}
	return nil
}
