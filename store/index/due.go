package index

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// An entry with a due time has a key in the table of dues, so that what is due in a queue is found in order of time. Its
// value is the payload's size. Other entries cost nothing.

// delay has an entry wait for its due time, where it has waited for another one, 0 for none.
func (a *applying) delay(queue uint64, l *Level, e *Entry, before int64) error {
	due := e.Due()
	if due == before {
		return nil
	}
	if before != 0 {
		if err := a.unlist(queue, l, before, e.Number); err != nil {
			return err
		}
	}
	if due == 0 {
		return nil
	}
	l.Delayed++
	d := Delayed{At: due, Priority: l.Priority, Number: e.Number, Payload: e.Payload}
	if first, known := a.floors[queue]; !known || d.Compare(first) < 0 {
		if a.floors == nil {
			a.floors = map[uint64]Delayed{}
		}
		a.floors[queue] = d
	}
	a.key = appendDueKey(a.key[:0], queue, due, l.Priority, e.Number)
	a.value = binary.AppendUvarint(a.value[:0], e.Payload)
	return a.w.set(a.key, a.value)
}

// unlist takes an entry out of the table of dues.
func (a *applying) unlist(queue uint64, l *Level, due int64, number uint64) error {
	l.Delayed--
	return a.w.delete(appendDueKey(a.key[:0], queue, due, l.Priority, number))
}

// Delayed is an entry that has a due time.
type Delayed struct {
	At       int64 // unix milliseconds
	Priority uint8
	Number   uint64
	Payload  uint64 // bytes
}

// Compare orders entries of a queue as they are due: by time, then priority, the higher first, then number.
func (d Delayed) Compare(e Delayed) int {
	switch {
	case d.At != e.At:
		return compare(uint64(d.At), uint64(e.At))
	case d.Priority != e.Priority:
		return int(e.Priority) - int(d.Priority)
	}
	return compare(d.Number, e.Number)
}

// Delayed calls f with the entries of a queue that have a due time, in the order in which they are due, from one on that
// need not be there, until f returns false. view is a View that is still there.
func (x *Index) Delayed(view, queue uint64, from Delayed, f func(Delayed) bool) error {
	x.mu.Lock()
	s, known := x.queues[queue]
	floor := x.floors[queue]
	x.mu.Unlock()
	if !known || s.Delayed() == 0 {
		return nil
	}
	whole := from.Compare(floor) <= 0
	if whole {
		from = floor // what stood before has gone, and Badger would go through all of that
	}
	txn := x.db.NewTransactionAt(view, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: queueKey(tableDue, queue)})
	defer it.Close()
	for it.Seek(appendDueKey(nil, queue, from.At, from.Priority, from.Number)); it.Valid(); it.Next() {
		item := it.Item()
		var d Delayed
		d.At, d.Priority, d.Number = splitDueKey(item.Key())
		if err := item.Value(func(value []byte) error {
			r := reader{b: value}
			d.Payload = r.uvarint()
			return nil
		}); err != nil {
			return fmt.Errorf("index: dues: %w", err)
		}
		if whole {
			x.raise(view, queue, d)
			whole = false
		}
		if !f(d) {
			return nil
		}
	}
	return nil
}

// raise notes what of a queue is due first.
func (x *Index) raise(view, queue uint64, first Delayed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s, known := x.queues[queue]; known && x.view == view && !x.ahead && s.Delayed() > 0 {
		x.floors[queue] = first
	}
}

// CheckDues calls f with whatever of the table of dues isn't what the entries say.
func (s *Snapshot) CheckDues(f func(problem string)) error {
	txn := s.x.db.NewTransactionAt(s.view, false)
	defer txn.Discard()
	want, found := 0, 0
	var key []byte
	for queue, sum := range s.queues {
		for i := range sum.Levels {
			l := &sum.Levels[i]
			delayed := uint64(0)
			var failed error
			if err := s.Load(queue, l.Priority, func(e *Entry) bool {
				if e.Due() == 0 {
					return true
				}
				delayed++
				key = appendDueKey(key[:0], queue, e.Due(), l.Priority, e.Number)
				item, err := txn.Get(key)
				payload := ^uint64(0)
				if err == nil {
					err = item.Value(func(value []byte) error {
						r := reader{b: value}
						payload = r.uvarint()
						return nil
					})
				}
				if err != nil && !errors.Is(err, badger.ErrKeyNotFound) {
					failed = err
					return false
				}
				if payload != e.Payload {
					f(fmt.Sprintf("queue %d, priority %d: entry %d isn't listed to be due at %d", queue, l.Priority, e.Number, e.Due()))
				}
				return true
			}); err != nil || failed != nil {
				return fmt.Errorf("index: dues: %w", errors.Join(err, failed))
			}
			if delayed != l.Delayed {
				f(fmt.Sprintf("queue %d, priority %d: %d entries wait, its summary says %d", queue, l.Priority, delayed, l.Delayed))
			}
			want += int(delayed)
		}
	}
	if err := s.x.scanAt(s.view, []byte{tableDue}, func(_, _ []byte) error { found++; return nil }); err != nil {
		return err
	}
	if found != want {
		f(fmt.Sprintf("%d entries are listed to wait, want %d", found, want))
	}
	return nil
}
