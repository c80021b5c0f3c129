package engine

import (
	"cmp"
	"slices"
)

// spillExpiries tells which entries expire of those that are in the spill, or in what is to be written to it.
type spillExpiries struct {
	spiller *spiller
	of      Spill
	written Expiries // of that
	until   int64    // of the last question
}

// Expiries returns a reader of what expires.
func (s *spiller) Expiries() Expiries { return &spillExpiries{spiller: s} }

// Due returns entries that expire at until or before, and when to ask again. What isn't written it tells at once.
func (x *spillExpiries) Due(until int64, n int) (due []Due, next int64, err error) {
	s := x.spiller
	s.reading.RLock()
	defer s.reading.RUnlock()
	s.mu.Lock()
	soonest := int64(0)
	for _, w := range [2]*spillWindow{s.filling, s.writing} {
		if w == nil {
			continue
		}
		for k, all := range w.levels {
			for i := range all {
				switch at := all[i].Message.Expiry; {
				case at == 0 || at <= x.until:
				case at <= until:
					due = append(due, Due{
						Queue: k.queue, Priority: k.priority, Number: all[i].Number, Bytes: all[i].Message.Size(), At: all[i].Due,
					})
				case soonest == 0 || at < soonest:
					soonest = at
				}
			}
		}
	}
	spill, broken := s.spill, s.broken
	s.mu.Unlock()
	x.until = until
	if spill != nil && !broken {
		if x.of != spill {
			x.of, x.written = spill, spill.Expiries()
		}
		var more []Due
		if more, next, err = x.written.Due(until, n); err != nil {
			return nil, 0, err
		}
		due = append(due, more...)
	}
	if next == 0 || soonest != 0 && soonest < next {
		next = soonest
	}
	slices.SortFunc(due, func(a, b Due) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
	})
	return slices.CompactFunc(due, func(a, b Due) bool { // being written, it may have been in both
		return a.Queue == b.Queue && a.Priority == b.Priority && a.Number == b.Number
	}), next, nil
}

// Pick returns some entries of a queue that have a priority, of those that are there.
func (s *spiller) Pick(id QueueID, priority uint8, numbers []uint64, bytes int) ([]Stored, error) {
	k := spillKey{id, priority}
	s.reading.RLock()
	defer s.reading.RUnlock()
	s.mu.Lock()
	p := s.filling.pick(k, numbers)
	if s.writing != nil {
		p = p.with(s.writing.pick(k, numbers))
	}
	spill, broken := s.spill, s.broken
	s.mu.Unlock()
	if spill != nil && !broken {
		found, err := spill.Pick(id, priority, numbers, bytes)
		if err != nil {
			return nil, err
		}
		p = pageOf(found, len(numbers)+1, bytes).with(p)
	}
	return p.trim(len(numbers), bytes).entries, nil
}

// Delayed returns entries of a queue whose due times are behind after and at until or before, the first of them first.
func (s *spiller) Delayed(id QueueID, after Due, until int64, n int) (due []Due, next int64, err error) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	s.mu.Lock()
	for _, w := range [2]*spillWindow{s.filling, s.writing} {
		for p := range uint8(10) {
			if w == nil {
				break
			}
			for _, r := range w.levels[spillKey{id, p}] {
				if r.Due == 0 {
					continue
				}
				d := Due{Queue: id, Priority: p, Number: r.Number, Bytes: r.Message.Size(), At: r.Due}
				if compareDue(d, after) > 0 {
					due = append(due, d)
				}
			}
		}
	}
	spill, broken := s.spill, s.broken
	s.mu.Unlock()
	if spill != nil && !broken {
		found, after, err := spill.Delayed(id, after, until, n)
		if err != nil {
			return nil, 0, err
		}
		due, next = append(due, found...), after
	}
	slices.SortFunc(due, compareDue)
	due = slices.CompactFunc(due, func(a, b Due) bool { return a.Number == b.Number }) // being written, it may have been in both
	for i := range due {
		if i == n || due[i].At > until {
			if next == 0 || due[i].At < next {
				next = due[i].At
			}
			due = due[:i]
			break
		}
	}
	return due, next, nil
}

// Room reports whether something can be spilled.
func (s *spiller) Room() bool { return !s.budget.Closed.Load() }

// settled returns when what has been purged up to now is gone.
func (s *spiller) settled() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.taken
	if len(s.filling.facts) > 0 {
		last++
	}
	for s.settledTo < last && !s.closed && !s.broken {
		s.start()
		s.room.Wait()
	}
	return nil
}

// failed reports whether there is nothing to be asked any more: what is in memory for good is known to expire as well.
func (s *spiller) failed() bool { return false }

// pick returns those of some entries that the window has, with messages of their own.
func (w *spillWindow) pick(k spillKey, numbers []uint64) page {
	p := page{whole: true}
	for _, r := range w.levels[k] {
		if _, wanted := slices.BinarySearch(numbers, r.Number); wanted {
			p.entries = append(p.entries, r.stored())
		}
	}
	return p
}

// stored returns an entry as a store does.
func (r *Record) stored() Stored {
	return Stored{Number: r.Number, Count: r.Count, Base: r.Base, Due: r.Due, Annotations: r.Annotations, Message: r.Message.Fresh()}
}
