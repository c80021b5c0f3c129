package memory

import (
	"cmp"
	"slices"

	"github.com/letomq/leto/engine"
)

// timetable lists entries in the order in which they expire. Those that have gone stay until they are half of all.
type timetable struct {
	all  []timed
	gone int
	last uint64 // mark given last
}

type timed struct {
	at     int64
	mark   uint64 // ascending in the order in which they were added
	queue  engine.QueueID
	number uint64
}

func compareTimed(a, b timed) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.mark, b.mark))
}

func (t *timetable) add(at int64, queue engine.QueueID, number uint64) {
	t.last++
	e := timed{at, t.last, queue, number}
	i, _ := slices.BinarySearchFunc(t.all, e, compareTimed)
	t.all = slices.Insert(t.all, i, e)
}

// expiries is a reader of what expires. It goes in rounds, each of which takes all up to a time.
type expiries struct {
	store *Store
	until int64  // the last round took all up to there,
	seen  uint64 // of what had been added by then
	to    int64  // of the round under way; 0: none
	begun uint64
	at    timed // told last in it
}

// Expiries returns a reader of what expires.
func (s *Store) Expiries() engine.Expiries { return &expiries{store: s} }

// Due returns entries that expire at until or before, and when to ask again.
func (x *expiries) Due(until int64, n int) (due []engine.Due, next int64, err error) {
	s := x.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	t := &s.times
	if x.to == 0 {
		x.to, x.begun, x.at = until, t.last, timed{}
	}
	i, _ := slices.BinarySearchFunc(t.all, x.at, compareTimed)
	for ; i < len(t.all) && t.all[i].at <= x.to; i++ {
		e := t.all[i]
		if e == x.at || e.at <= x.until && e.mark <= x.seen {
			continue
		}
		if len(due) == n {
			return sorted(due), min(until, x.to), nil
		}
		x.at = e
		if stored := s.find(e); stored != nil {
			due = append(due, engine.Due{
				Queue: e.queue, Priority: level(stored.Message), Number: e.number, Bytes: stored.Message.Size(),
				At: stored.Due,
			})
		}
	}
	if i < len(t.all) {
		next = t.all[i].at
	}
	if slices.ContainsFunc(t.all[:i], func(e timed) bool { return e.mark > x.begun }) {
		next = min(until, x.to) // it came meanwhile, perhaps where this round had been already
	}
	x.until, x.seen, x.to = x.to, x.begun, 0
	return sorted(due), next, nil
}

func sorted(due []engine.Due) []engine.Due {
	slices.SortFunc(due, func(a, b engine.Due) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
	})
	return due
}

// find returns an entry that is still there, or nil.
func (s *Store) find(e timed) *engine.Stored {
	q := s.queues[e.queue]
	if q == nil {
		return nil
	}
	stored := q.find(e.number)
	if stored == nil || stored.Message.Expiry != e.at {
		return nil
	}
	return stored
}

// forget drops entries that have gone, if they are half of the timetable.
func (s *Store) forget() {
	t := &s.times
	if t.gone < 64 || t.gone < len(t.all)/2 {
		return
	}
	t.all = slices.DeleteFunc(t.all, func(e timed) bool { return s.find(e) == nil })
	t.gone = 0
}
