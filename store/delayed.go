package store

import (
	"fmt"
	"slices"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
)

// Delayed returns entries of a queue that are due behind after, at until or before, and when the next one is.
func (s *Store) Delayed(q engine.QueueID, after engine.Due, until int64, n int) ([]engine.Due, int64, error) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	s.views.RLock()
	defer s.views.RUnlock()
	for {
		d := delaying{store: s, queue: uint64(q), until: until, want: max(n, 0) + 1}
		if after.At != 0 {
			d.from = index.Delayed{At: after.At, Priority: after.Priority, Number: after.Number + 1}
		}
		absent, err := d.run()
		if err != nil {
			return nil, 0, err
		}
		if absent {
			continue // they are forgotten now: it ends
		}
		var due []engine.Due
		for _, e := range d.found {
			if e.At > until || len(due) >= n {
				return due, e.At, nil
			}
			due = append(due, engine.Due{Queue: q, Priority: e.Priority, Number: e.Number, Bytes: int(e.Payload), At: e.At})
		}
		return due, 0, nil
	}
}

// delaying finds the entries of a queue that are due first: what the index lists, as far as nothing that is pending says
// otherwise, and what waits by what is pending. The caller holds views, so that what the index has doesn't become
// another share of that meanwhile.
type delaying struct {
	store *Store
	queue uint64
	from  index.Delayed // none before that
	until int64
	want  int             // entries: one more than is asked for, and one at most that is due later
	found []index.Delayed // in the order in which they are due
}

// laterMax is how many entries are read at once of those that are due later, if those before turn out not to be.
const laterMax = 1024

// noPayload stands for a size that isn't known.
const noPayload = ^uint64(0)

// run reports whether there were records about entries that aren't there: it has to be run again.
func (d *delaying) run() (absent bool, err error) {
	s := d.store
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return false, s.err
	}
	view := s.index.View()
	from, first := d.from, false // whether it reads all that may be due first
	if shelf := s.pending.shelves[d.queue]; shelf != nil && shelf.passed.Compare(from) >= 0 {
		from, first = shelf.passed, true
	}
	first = first || d.from.At == 0
	s.mu.Unlock()
	for later := 1; ; later = min(4*later, laterMax) {
		read, beyond, ended := 0, 0, true
		if err := s.index.Delayed(view, d.queue, from, func(e index.Delayed) bool {
			if read == d.want || beyond == later {
				ended = false
				return false
			}
			read++
			if e.At > d.until {
				beyond++
			}
			d.found, from = append(d.found, e), e
			return true
		}); err != nil {
			return false, fmt.Errorf("store: due: %w", err)
		}
		from.Number++
		s.mu.Lock()
		d.found = s.pending.stillDue(d.queue, d.found)
		n := len(d.found)
		if shelf := s.pending.shelves[d.queue]; shelf != nil && first && read > 0 {
			shelf.passed = from
			if n > 0 {
				shelf.passed = d.found[0]
			}
		}
		if ended || n >= d.want || n > 0 && d.found[n-1].At > d.until {
			d.found = s.pending.waiting(d.queue, d.found, d.from, d.want)
			s.mu.Unlock()
			break
		}
		s.mu.Unlock()
	}
	return d.look()
}

// look finds out how large the payloads are of entries that the index has and that wait by what is pending, and whether
// those are there at all.
func (d *delaying) look() (absent bool, err error) {
	s := d.store
	for priority := range uint8(index.Priorities) {
		var numbers []uint64
		for _, e := range d.found {
			if e.Priority == priority && e.Payload == noPayload {
				numbers = append(numbers, e.Number)
			}
		}
		if len(numbers) == 0 {
			continue
		}
		slices.Sort(numbers)
		there := map[uint64]index.Delayed{}
		if err := s.find(d.queue, priority, numbers, func(e *index.Entry) {
			there[e.Number] = index.Delayed{At: e.Due(), Payload: e.Payload}
		}); err != nil {
			return false, err
		}
		kept := d.found[:0]
		for _, e := range d.found {
			if e.Priority == priority && e.Payload == noPayload {
				now, known := there[e.Number]
				if !known {
					absent = true
					s.forgetWait(d.queue, e)
					continue
				}
				e.At, e.Payload = now.At, now.Payload // a commit that isn't over may have changed it
				if e.At == 0 || e.Compare(d.from) < 0 {
					continue
				}
			}
			kept = append(kept, e)
		}
		d.found = kept
	}
	slices.SortFunc(d.found, index.Delayed.Compare)
	return absent, nil
}

// forgetWait drops a due time that is pending for an entry that isn't there.
func (s *Store) forgetWait(queue uint64, e index.Delayed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shelf := s.pending.shelves[queue]; shelf != nil && shelf.levels[e.Priority] != nil {
		shelf.levels[e.Priority].wait(e.Number, 0, 0)
	}
}

// stillDue returns those of what the index lists about which nothing is pending.
func (p *pending) stillDue(queue uint64, listed []index.Delayed) []index.Delayed {
	s := p.shelves[queue]
	if s == nil {
		return listed
	}
	if s.deleted != 0 {
		return listed[:0]
	}
	for priority, l := range s.levels {
		if l == nil {
			continue
		}
		var numbers []uint64
		for _, e := range listed {
			if int(e.Priority) == priority {
				numbers = append(numbers, e.Number)
			}
		}
		if len(numbers) == 0 {
			continue
		}
		slices.Sort(numbers)
		waiting := p.find(queue, uint8(priority), numbers)
		listed = slices.DeleteFunc(listed, func(e index.Delayed) bool {
			return int(e.Priority) == priority && waiting.changes(e.Number)
		})
	}
	return listed
}

// changes reports whether an entry that the index has is another one now, or gone.
func (p *pendingFound) changes(number uint64) bool {
	_, edited := p.edits[number]
	return edited || p.removes(number) || p.renews(number)
}

// delays reports whether entries of a level wait by what is pending.
func (p *pending) delays(queue uint64, priority uint8) bool {
	s := p.shelves[queue]
	return s != nil && s.levels[priority] != nil && len(s.levels[priority].waits) > 0
}

// waiting adds the entries to some that wait by what is pending, none of them before from, and returns the first n of all.
func (p *pending) waiting(queue uint64, found []index.Delayed, from index.Delayed, n int) []index.Delayed {
	cut := func() {
		slices.SortFunc(found, index.Delayed.Compare)
		found = found[:min(n, len(found))]
	}
	if s := p.shelves[queue]; s != nil {
		for priority, l := range s.levels {
			if l == nil {
				continue
			}
			for number, w := range l.waits {
				e := index.Delayed{At: w.at, Priority: uint8(priority), Number: number, Payload: noPayload}
				if e.Compare(from) < 0 {
					continue
				}
				if i, fresh := l.search(number); fresh {
					e.Payload = l.entries[i].Payload
				}
				if found = append(found, e); len(found) >= 4*n+64 {
					cut()
				}
			}
		}
	}
	cut()
	return found
}
