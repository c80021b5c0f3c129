package index

import (
	"encoding/binary"
	"fmt"
)

// purge carries out the purges of all levels, and commits them: edits of the same runs build on it.
func (a *applying) purge(levels []*LevelBatch) error {
	for _, b := range levels {
		s, known := a.summary(b.Queue)
		if !known || len(b.Purges) == 0 {
			continue
		}
		l := s.level(b.Priority)
		for _, span := range b.Purges {
			if err := a.purgeSpan(b.Queue, l, span); err != nil {
				return fmt.Errorf("index: purge queue %d: %w", b.Queue, err)
			}
			// The next one may be of the same run.
			if err := a.w.commit(); err != nil {
				return err
			}
			a.close()
			a.begin()
		}
	}
	return nil
}

func (a *applying) purgeSpan(queue uint64, l *Level, span Span) error {
	if l.Entries == 0 {
		return nil
	}
	first := max(span.First, l.Head)
	found, err := a.seek(queue, l.Priority, first)
	for ; found && err == nil; found, err = a.next(queue, l.Priority) {
		r := &a.run
		if r.entries[0].Number > span.Last {
			break
		}
		if l.Delayed > 0 && l.Overrides > 0 {
			if err := r.amend(a.txn, queue, l); err != nil {
				return err
			}
		}
		marked := false
		for i := range r.entries {
			e := &r.entries[i]
			if e.Number >= first && e.Number <= span.Last && !r.gone.has(i) {
				a.account(l, e, -1)
				if due := e.Due(); due != 0 && l.Delayed > 0 {
					if err := a.unlist(queue, l, due, e.Number); err != nil {
						return err
					}
				}
				r.gone.set(i)
				marked = true
			}
		}
		if !marked {
			continue
		}
		if err := a.writeBack(queue, l, false, true); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if l.Overrides > 0 {
		prefix := appendLevelKey(nil, tableOverride, queue, l.Priority)
		if err := a.x.scanAt(a.x.ts, prefix, func(key, _ []byte) error {
			number := binary.BigEndian.Uint64(key[10:])
			if number < span.First || number > span.Last {
				return nil
			}
			return a.dropOverride(queue, l, number)
		}); err != nil {
			return err
		}
	}
	if l.Entries == 0 {
		l.Head = l.Last + 1
	}
	return nil
}
