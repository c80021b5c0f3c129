package memory

import (
	"cmp"
	"slices"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// entries is one queue: its entries by number. Entries come in ascending order and leave mostly from the front, so
// one that is removed stays as a blank, without message, until the blanks are half of all.
type entries struct {
	definition engine.Definition
	all        []engine.Stored
	blanks     int
	agenda     agenda
}

// search returns the place of a number, and whether something stands there.
func (q *entries) search(number uint64) (int, bool) {
	return slices.BinarySearchFunc(q.all, number, func(e engine.Stored, n uint64) int { return cmp.Compare(e.Number, n) })
}

func (q *entries) find(number uint64) *engine.Stored {
	if i, found := q.search(number); found && q.all[i].Message != nil {
		return &q.all[i]
	}
	return nil
}

func (q *entries) put(e engine.Stored) {
	if len(q.all) == 0 || q.all[len(q.all)-1].Number < e.Number {
		q.all = append(q.all, e)
		return
	}
	i, found := q.search(e.Number)
	if !found {
		q.all = slices.Insert(q.all, i, e)
		return
	}
	if q.all[i].Message == nil {
		q.blanks--
	}
	q.all[i] = e
}

func (q *entries) remove(number uint64) bool {
	i, found := q.search(number)
	if !found || q.all[i].Message == nil {
		return false
	}
	q.all[i] = engine.Stored{Number: number}
	q.blanks++
	if q.blanks == len(q.all) {
		q.all, q.blanks = nil, 0
	} else if q.blanks > 32 && q.blanks > len(q.all)/2 {
		q.all = slices.DeleteFunc(q.all, func(e engine.Stored) bool { return e.Message == nil })
		q.blanks = 0
		if cap(q.all) > 4*len(q.all) {
			q.all = slices.Clone(q.all)
		}
	}
	return true
}

// between returns the numbers of a priority from one number to another.
func (q *entries) between(priority uint8, from, last uint64) (numbers []uint64) {
	for i, _ := q.search(from); i < len(q.all) && q.all[i].Number <= last; i++ {
		if e := &q.all[i]; e.Message != nil && level(e.Message) == priority {
			numbers = append(numbers, e.Number)
		}
	}
	return numbers
}

// expiring returns how many entries expire.
func (q *entries) expiring() (n int) {
	for i := range q.all {
		if m := q.all[i].Message; m != nil && m.Expiry > 0 {
			n++
		}
	}
	return n
}

func (q *entries) load(priority uint8, from uint64, n, bytes int) []engine.Stored {
	i, _ := q.search(from)
	var found []engine.Stored
	for ; i < len(q.all) && len(found) < n; i++ {
		e := q.all[i]
		if e.Message == nil || e.Due != 0 || level(e.Message) != priority {
			continue
		}
		e.Message = e.Message.Fresh()
		found = append(found, e)
		if bytes -= e.Message.Size(); bytes <= 0 {
			break
		}
	}
	return found
}

// level returns a message's priority as one of ten.
func level(m *queue.Message) uint8 { return min(m.Priority, 9) }

func (q *entries) summary() engine.Summary {
	var s engine.Summary
	var levels [10]engine.Level
	for _, e := range q.all {
		if e.Message == nil {
			continue
		}
		s.Entries++
		s.Bytes += int64(e.Message.Size())
		l := &levels[level(e.Message)]
		if l.Entries+l.Delayed == 0 {
			l.Head = e.Number
		}
		if e.Due != 0 {
			l.Delayed++
		} else {
			l.Entries++
		}
	}
	for p := 9; p >= 0; p-- {
		if levels[p].Entries+levels[p].Delayed > 0 {
			levels[p].Priority = uint8(p)
			s.Levels = append(s.Levels, levels[p])
		}
	}
	return s
}
