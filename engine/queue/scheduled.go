package queue

import (
	"cmp"
	"slices"
)

// An administrator may look at the entries that wait for their time, have some leave, and have others be given at once.
// Of those that wait at a home only the home tells; what is to become of them is carried out between Recall and Rest.

// Slot is the place of an entry among those that wait for their time. The zero value is before all of them.
type Slot struct {
	At       int64 // unix milliseconds
	Priority uint8
	Number   uint64
}

// Compare orders slots by time, then as their entries are delivered.
func (s Slot) Compare(o Slot) int {
	return cmp.Or(cmp.Compare(s.At, o.At), cmp.Compare(o.Priority, s.Priority), cmp.Compare(s.Number, o.Number))
}

// Held is an entry in memory that waits for its time. Nobody can settle the delivery.
type Held struct {
	Slot
	Delivery
}

// slot returns the place of an entry in the heap.
func (e *Entry) slot() Slot { return Slot{e.more.wait.until, e.priority, e.number} }

// Held returns entries in memory that wait for their time: the first n behind a slot, in order. more says whether there
// are others.
func (q *Queue) Held(after Slot, n int) (held []Held, more bool) {
	if q.delays == nil || n <= 0 {
		return nil, false
	}
	var first []*Entry
	bySlot := func(a, b *Entry) int { return a.slot().Compare(b.slot()) }
	for _, e := range q.delays.heap {
		if e.slot().Compare(after) <= 0 {
			continue
		}
		if first = append(first, e); len(first) >= 2*n+64 {
			slices.SortFunc(first, bySlot)
			first, more = first[:n], true
		}
	}
	slices.SortFunc(first, bySlot)
	if len(first) > n {
		first, more = first[:n], true
	}
	for _, e := range first {
		d := Delivery{Message: e.message, Number: e.number, Count: e.count, Annotations: e.Annotations()}
		held = append(held, Held{e.slot(), d})
	}
	return held, more
}

// Parks reports whether some entries wait for their time at a home only.
func (q *Queue) Parks(h Home) bool { return q.parked(h) > 0 }

// Away returns those of some numbers, in ascending order, whose entries wait for their time at home only, by what the
// home has told lately. It changes the slice.
func (q *Queue) Away(h Home, numbers []uint64) []uint64 {
	d := q.delays
	if d == nil {
		return nil
	}
	here := map[uint64]bool{}
	for _, e := range d.heap {
		if _, told := slices.BinarySearch(numbers, e.number); told {
			here[e.number] = true
		}
	}
	return slices.DeleteFunc(numbers, func(n uint64) bool {
		_, leaves := d.leaving[n]
		_, purged := d.parked[h].purged[n]
		return n > d.parked[h].last || here[n] || leaves || purged
	})
}

// Cancel removes entries that wait in memory for their time: those of some numbers, which ascend. It returns how many
// there were.
func (q *Queue) Cancel(numbers []uint64, fx []Effect) (removed int, _ []Effect) {
	for _, e := range q.among(numbers) {
		removed++
		fx = q.purgeHeld(e, fx)
	}
	return removed, fx
}

// CancelAway removes an entry that Waits has named, whose payload has so many bytes. It is gone from its home as an
// EffectPurged says.
func (q *Queue) CancelAway(h Home, priority uint8, number uint64, bytes int, fx []Effect) []Effect {
	q.unpark(h, int64(bytes))
	q.bytes -= int64(bytes)
	return append(fx, loadEffect(EffectPurged, &Load{
		Priority: priority, Stored: h == InStore, Spilled: h == InSpill, From: number, Last: number,
	}))
}

// Hasten has entries be due that wait in memory for a later time: those of some numbers, which ascend. It returns how
// many there were. Wake gives them.
func (q *Queue) Hasten(numbers []uint64, now int64, fx []Effect) (hastened int, _ []Effect) {
	for _, e := range q.among(numbers) {
		w := &e.more.wait
		if w.until <= now {
			continue
		}
		hastened++
		w.until = now
		q.delays.up(w.place)
		if e.more.due != 0 {
			e.more.due = now
			fx = append(fx, Effect{Kind: EffectDue, Entry: e, Message: e.message})
		}
	}
	return hastened, fx
}

// among returns the entries that wait in memory for their time and have one of some numbers, which ascend.
func (q *Queue) among(numbers []uint64) []*Entry {
	var found []*Entry
	if q.delays == nil || len(numbers) == 0 {
		return nil
	}
	for _, e := range q.delays.heap {
		if _, named := slices.BinarySearch(numbers, e.number); named {
			found = append(found, e)
		}
	}
	return found
}
