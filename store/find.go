package store

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/letomq/leto/store/index"
)

// find calls f with those of some entries of a level that are there, pending ones and others, in ascending order, as
// are the numbers, of which none stands twice. The entry is valid during the call. The caller holds reading.
func (s *Store) find(queue uint64, priority uint8, numbers []uint64, f func(*index.Entry)) error {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return s.err
	}
	view := s.index.View()
	waiting := s.pending.find(queue, priority, numbers)
	s.mu.Unlock()
	if waiting.deleted {
		return nil
	}
	give := func(n uint64) {
		for len(waiting.fresh) > 0 && waiting.fresh[0].Number < n {
			f(&waiting.fresh[0])
			waiting.fresh = waiting.fresh[1:]
		}
	}
	err := s.index.Find(view, queue, priority, numbers, func(e *index.Entry) {
		give(e.Number)
		if len(waiting.fresh) > 0 && waiting.fresh[0].Number == e.Number || waiting.amend(e) {
			return
		}
		f(e)
	})
	if err != nil {
		return fmt.Errorf("store: find: %w", err)
	}
	give(^uint64(0))
	return nil
}

// pendingFound is what is pending of some entries of a level.
type pendingFound struct {
	deleted bool // with the queue
	fresh   []index.Entry
	edits   editMap
	purges  []pendingPurge
}

// find returns what is pending of some entries of a level.
func (p *pending) find(queue uint64, priority uint8, numbers []uint64) (found pendingFound) {
	s := p.shelves[queue]
	if s == nil || len(numbers) == 0 {
		return found
	}
	if s.deleted != 0 {
		found.deleted = true
		return found
	}
	l := s.levels[priority]
	if l == nil {
		return found
	}
	for _, n := range numbers {
		if i, there := l.search(n); there && !l.entries[i].gone {
			found.fresh = append(found.fresh, l.entries[i].Entry)
		}
	}
	first, last := numbers[0], numbers[len(numbers)-1]
	if len(numbers) >= sumNumbers && len(l.edits) >= sumEdits {
		l.sums.take(l.edits)
		for _, n := range numbers {
			if e, edited := l.sums.of[n]; edited {
				found.edits.put(e)
			}
		}
		return found.purged(l, first, last)
	}
	for i := range l.edits {
		e := &l.edits[i]
		if e.Number < first || e.Number > last || e.Kind == index.EditPut {
			continue
		}
		if _, asked := slices.BinarySearch(numbers, e.Number); asked {
			found.edits.add(e.Edit)
		}
	}
	return found.purged(l, first, last)
}

// purged adds the purges that are about some numbers.
func (p pendingFound) purged(l *shelfLevel, first, last uint64) pendingFound {
	for _, purge := range l.purges {
		if purge.First <= last && purge.Last >= first {
			p.purges = append(p.purges, purge)
		}
	}
	return p
}

// renews reports whether an entry that the index may have is there anew.
func (p *pendingFound) renews(number uint64) bool {
	_, there := slices.BinarySearchFunc(p.fresh, number, func(e index.Entry, n uint64) int { return cmp.Compare(e.Number, n) })
	return there
}

// removes reports whether an entry that the index has is gone.
func (p *pendingFound) removes(number uint64) bool {
	if p.deleted {
		return true
	}
	if p.renews(number) {
		return false
	}
	return p.edits[number].Kind == index.EditRemove ||
		slices.ContainsFunc(p.purges, func(s pendingPurge) bool { return number >= s.First && number <= s.Last })
}

// amend puts what is pending over an entry of the index, and reports whether that has gone.
func (p *pendingFound) amend(e *index.Entry) (gone bool) {
	for i := range p.purges {
		if e.Number >= p.purges[i].First && e.Number <= p.purges[i].Last {
			return true
		}
	}
	edit, changed := p.edits[e.Number]
	if !changed {
		return false
	}
	if edit.Kind == index.EditRemove {
		return true
	}
	edit.On(e)
	return false
}
