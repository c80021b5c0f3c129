package memory

import (
	"cmp"
	"slices"

	"github.com/letomq/leto/engine"
)

// agenda lists the entries of a queue that have a due time, in the order in which they are due. Those that have gone
// stay until they are half of all.
type agenda struct {
	all  []delayed
	gone int
}

// delayed is an entry that has a due time.
type delayed struct {
	at     int64
	level  uint8 // 9 - priority
	number uint64
}

func compareDelayed(a, b delayed) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.level, b.level), cmp.Compare(a.number, b.number))
}

// delay gives an entry its due time.
func (q *entries) delay(e *engine.Stored, due int64) {
	if e.Due == due {
		return
	}
	if e.Due != 0 {
		q.agenda.gone++
	}
	if e.Due = due; due == 0 {
		return
	}
	d := delayed{due, 9 - level(e.Message), e.Number}
	i, found := slices.BinarySearchFunc(q.agenda.all, d, compareDelayed)
	if found { // it had gone
		q.agenda.gone--
		return
	}
	q.agenda.all = slices.Insert(q.agenda.all, i, d)
}

// waits returns an entry that still has that due time, or nil.
func (q *entries) waits(d delayed) *engine.Stored {
	e := q.find(d.number)
	if e == nil || e.Due != d.at || 9-level(e.Message) != d.level {
		return nil
	}
	return e
}

// forget drops what has gone from the agenda, if that is half of it.
func (q *entries) forget() {
	if a := &q.agenda; a.gone > 32 && a.gone > len(a.all)/2 {
		a.all = slices.DeleteFunc(a.all, func(d delayed) bool { return q.waits(d) == nil })
		a.gone = 0
	}
}

// Delayed returns entries of a queue that are due behind after, at until or before, and when the next one is.
func (s *Store) Delayed(id engine.QueueID, after engine.Due, until int64, n int) (due []engine.Due, next int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[id]
	if q == nil {
		return nil, 0, nil
	}
	for a := &q.agenda; len(a.all) > 0 && q.waits(a.all[0]) == nil; a.gone-- {
		a.all = a.all[1:]
	}
	first, _ := slices.BinarySearchFunc(q.agenda.all, delayed{after.At, 9 - after.Priority, after.Number + 1}, compareDelayed)
	for _, d := range q.agenda.all[first:] {
		e := q.waits(d)
		if e == nil {
			continue
		}
		if d.at > until || len(due) >= n {
			return due, d.at, nil
		}
		due = append(due, engine.Due{Queue: id, Priority: level(e.Message), Number: d.number, Bytes: e.Message.Size(), At: d.at})
	}
	return due, 0, nil
}
