package index

import (
	"bytes"
	"slices"

	"github.com/dgraph-io/badger/v4"
)

// run is the run that is looked at. Its slices are used again.
type run struct {
	last    uint64 // of its key
	entries []Entry
	gone    bitmap
	marked  bool  // the bitmap has a key
	expiry  int64 // the earliest of its entries as it was read, 0: none expires; its key in the table of expiries
}

func (r *run) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(r.entries, number, func(e Entry, n uint64) int {
		switch {
		case e.Number < n:
			return -1
		case e.Number > n:
			return 1
		}
		return 0
	})
}

// seek reads the first run of a level that ends at a number or above it.
func (a *applying) seek(queue uint64, priority uint8, number uint64) (bool, error) {
	if a.runs == nil {
		a.runs = a.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{tableRun}})
	}
	a.key = appendRunKey(a.key[:0], queue, priority, number, runEntries)
	a.runs.Seek(a.key)
	return a.next(queue, priority)
}

// next reads the next run of a level.
func (a *applying) next(queue uint64, priority uint8) (bool, error) {
	return a.run.read(a.runs, appendLevelKey(a.key[:0], tableRun, queue, priority))
}

// read reads the run that an iterator is at, if that has the prefix, and moves it on.
func (r *run) read(it *badger.Iterator, prefix []byte) (bool, error) {
	r.entries, r.gone, r.marked = r.entries[:0], r.gone[:0], false
	for ; it.Valid(); it.Next() { // a bitmap without a run is passed over
		item := it.Item()
		if key := item.Key(); !bytes.HasPrefix(key, prefix) {
			return false, nil
		} else if last, what := runLast(key); what == runEntries {
			r.last = last
			break
		}
	}
	if !it.Valid() {
		return false, nil
	}
	if err := it.Item().Value(func(value []byte) (err error) {
		r.entries, err = decodeRun(r.entries, value)
		return err
	}); err != nil {
		return false, err
	}
	it.Next()
	if it.Valid() && bytes.HasPrefix(it.Item().Key(), prefix) {
		if last, what := runLast(it.Item().Key()); last == r.last && what == runGone {
			r.marked = true
			if err := it.Item().Value(func(value []byte) error {
				r.gone = append(r.gone, value...)
				return nil
			}); err != nil {
				return false, err
			}
			it.Next()
		}
	}
	for len(r.gone) < (len(r.entries)+7)/8 {
		r.gone = append(r.gone, 0)
	}
	r.expiry, _ = expiries(r.entries, r.gone)
	return true, nil
}

func (a *applying) deleteRun(queue uint64, priority uint8) error {
	if a.run.expiry != 0 {
		if err := a.w.delete(appendTimeKey(a.key[:0], tableExpiry, a.run.expiry, queue, priority, a.run.last)); err != nil {
			return err
		}
	}
	if err := a.w.delete(appendRunKey(a.key[:0], queue, priority, a.run.last, runEntries)); err != nil || !a.run.marked {
		return err
	}
	return a.w.delete(appendRunKey(a.key[:0], queue, priority, a.run.last, runGone))
}

// level applies what changes in one level.
func (a *applying) level(l *Level, b *LevelBatch) error {
	b.sort()
	if len(b.Edits) > 0 && l.Entries > 0 {
		found, err := a.seek(b.Queue, b.Priority, l.Head)
		if err != nil {
			return err
		}
		if found {
			l.Head = max(l.Head, a.run.entries[0].Number)
		}
	}
	var loose []Entry // put where there is no run
	for edits := b.Edits; len(edits) > 0; {
		found := false
		if l.Last >= edits[0].Number {
			var err error
			if found, err = a.seek(b.Queue, b.Priority, edits[0].Number); err != nil {
				return err
			}
		}
		// Those before the run, or with no run behind them, are for entries that aren't there.
		n := len(edits)
		if found {
			first := a.run.entries[0].Number
			n, _ = slices.BinarySearchFunc(edits, first, func(e Edit, n uint64) int { return compare(e.Number, n) })
		}
		loose = gather(loose[:0], edits[:n])
		for i := range loose {
			a.account(l, &loose[i], 1)
		}
		if err := a.writeRuns(b.Queue, l, loose); err != nil {
			return err
		}
		edits = edits[n:]
		if found {
			n, _ := slices.BinarySearchFunc(edits, a.run.last+1, func(e Edit, n uint64) int { return compare(e.Number, n) })
			if err := a.editRun(b.Queue, l, edits[:n]); err != nil {
				return err
			}
			edits = edits[n:]
		}
	}
	for i := range b.Adds {
		a.account(l, &b.Adds[i], 1)
	}
	if err := a.writeRuns(b.Queue, l, b.Adds); err != nil {
		return err
	}
	if l.Entries == 0 {
		l.Head = l.Last + 1
	}
	return nil
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// gather carries out edits for numbers that no run has.
func gather(dst []Entry, edits []Edit) []Entry {
	for i := range edits {
		e := &edits[i]
		at := len(dst) - 1
		there := at >= 0 && dst[at].Number == e.Number
		switch {
		case e.Kind == EditPut && there:
			dst[at] = *e.Entry
		case e.Kind == EditPut:
			dst = append(dst, *e.Entry)
		case e.Kind == EditRemove && there:
			dst = dst[:at]
		case e.Kind == EditCount && there:
			dst[at].recount(e.Entry)
		}
	}
	return dst
}

func (e *Entry) recount(now *Entry) {
	e.Count, e.Base = now.Count, now.Base
	if now.Extra == nil {
		e.amend(0, nil)
	} else {
		e.amend(now.Extra.Due, now.Extra.Annotations)
	}
}

// writeRuns writes entries in runs, which must not reach into others.
func (a *applying) writeRuns(queue uint64, l *Level, entries []Entry) error {
	if len(entries) > 0 {
		if l.Entries == uint64(len(entries)) { // they are the only ones
			l.Head = entries[0].Number
		}
		l.Head = min(l.Head, entries[0].Number)
		l.Last = max(l.Last, entries[len(entries)-1].Number)
	}
	for len(entries) > 0 {
		n := min(runMax, len(entries))
		for {
			a.value = appendRun(a.value[:0], entries[:n])
			if len(a.value) < valueThreshold || n == 1 {
				break
			}
			n = (n + 1) / 2
		}
		a.key = appendRunKey(a.key[:0], queue, l.Priority, entries[n-1].Number, runEntries)
		if err := a.w.set(a.key, a.value); err != nil {
			return err
		}
		if first, last := expiries(entries[:n], nil); first != 0 {
			if err := a.setExpiry(queue, l.Priority, entries[n-1].Number, first, last); err != nil {
				return err
			}
		}
		entries = entries[n:]
	}
	return nil
}

// editRun applies edits to the run that was read last; their numbers are within it.
func (a *applying) editRun(queue uint64, l *Level, edits []Edit) error {
	r := &a.run
	overridden, err := a.overridden(queue, l, r)
	if err != nil {
		return err
	}
	rewrite, marked := false, false
	for i := range edits {
		e := &edits[i]
		at, found := r.find(e.Number)
		there := found && !r.gone.has(at)
		switch e.Kind {
		case EditRemove:
			if !there {
				continue
			}
			a.account(l, &r.entries[at], -1)
			r.gone.set(at)
			marked = true
			if overridden[e.Number] {
				delete(overridden, e.Number)
				if err := a.dropOverride(queue, l, e.Number); err != nil {
					return err
				}
			}
		case EditCount:
			if !there {
				continue
			}
			if !overridden[e.Number] {
				l.Overrides++
				if overridden == nil {
					overridden = map[uint64]bool{}
				}
				overridden[e.Number] = true
			}
			a.key = appendOverrideKey(a.key[:0], queue, l.Priority, e.Number)
			a.value = appendOverride(a.value[:0], e.Entry)
			if err := a.w.set(a.key, a.value); err != nil {
				return err
			}
		case EditPut:
			rewrite = true
			if there {
				a.account(l, &r.entries[at], -1)
			}
			if overridden[e.Number] {
				delete(overridden, e.Number)
				if err := a.dropOverride(queue, l, e.Number); err != nil {
					return err
				}
			}
			a.account(l, e.Entry, 1)
			if found {
				r.entries[at] = *e.Entry
				r.gone[at/8] &^= 1 << (at % 8)
			} else {
				r.insert(at, *e.Entry)
			}
		}
	}
	return a.writeBack(queue, l, rewrite, marked)
}

func (a *applying) dropOverride(queue uint64, l *Level, number uint64) error {
	l.Overrides--
	return a.w.delete(appendOverrideKey(a.key[:0], queue, l.Priority, number))
}

// writeBack writes the run as it is now.
func (a *applying) writeBack(queue uint64, l *Level, rewrite, marked bool) error {
	r := &a.run
	first := -1
	for i := range r.entries {
		if !r.gone.has(i) {
			first = i
			break
		}
	}
	if l.Head >= r.entries[0].Number { // no run is before this one
		if first < 0 {
			l.Head = max(l.Head, r.last+1)
		} else {
			l.Head = max(l.Head, r.entries[first].Number)
		}
	}
	switch {
	case first < 0:
		return a.deleteRun(queue, l.Priority)
	case rewrite:
		if err := a.deleteRun(queue, l.Priority); err != nil {
			return err
		}
		kept := r.entries[:0]
		for i := range r.entries {
			if !r.gone.has(i) {
				kept = append(kept, r.entries[i])
			}
		}
		return a.writeRuns(queue, l, kept)
	case marked:
		if err := a.moveExpiry(queue, l.Priority); err != nil {
			return err
		}
		return a.w.set(appendRunKey(a.key[:0], queue, l.Priority, r.last, runGone), r.gone)
	}
	return nil
}

// insert puts an entry at its place, and moves the marks of those behind it.
func (r *run) insert(at int, e Entry) {
	r.entries = slices.Insert(r.entries, at, e)
	gone := make(bitmap, (len(r.entries)+7)/8)
	for i := range r.entries {
		switch {
		case i < at && r.gone.has(i), i > at && r.gone.has(i-1):
			gone.set(i)
		}
	}
	r.gone = gone
}

// overridden returns which entries of a run have changed since it was written. nil is none.
func (a *applying) overridden(queue uint64, l *Level, r *run) (map[uint64]bool, error) {
	if l.Overrides == 0 {
		return nil, nil
	}
	var found map[uint64]bool
	err := overrides(a.txn, queue, l.Priority, r, func(number uint64, _ []byte) error {
		if found == nil {
			found = map[uint64]bool{}
		}
		found[number] = true
		return nil
	})
	return found, err
}
