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
		if err := a.add(b.Queue, l, loose); err != nil {
			return err
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
	if err := a.add(b.Queue, l, b.Adds); err != nil {
		return err
	}
	if err := a.writeRuns(b.Queue, l, b.Adds); err != nil {
		return err
	}
	if l.Entries == 0 {
		l.Head = l.Last + 1
	}
	return nil
}

// add accounts for entries that are new.
func (a *applying) add(queue uint64, l *Level, entries []Entry) error {
	for i := range entries {
		e := &entries[i]
		a.account(l, e, 1)
		if err := a.delay(queue, l, e, 0); err != nil {
			return err
		}
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
		case there:
			e.On(&dst[at])
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

// editRun applies edits to the run that was read last; their numbers are within it. All edits of an entry are looked at
// before anything of it is written: what comes and goes again meanwhile leaves nothing.
func (a *applying) editRun(queue uint64, l *Level, edits []Edit) error {
	r := &a.run
	overridden, err := a.overridden(queue, l, r)
	if err != nil {
		return err
	}
	rewrite, marked := false, false
	for len(edits) > 0 {
		n := 1
		for n < len(edits) && edits[n].Number == edits[0].Number {
			n++
		}
		number := edits[0].Number
		at, found := r.find(number)
		before := edited{there: found && !r.gone.has(at)}
		if before.there {
			before.entry = r.entries[at]
			if value, changed := overridden[number]; changed {
				before.overridden = true
				if err := before.entry.override(value); err != nil {
					return err
				}
			}
		}
		after := before
		for i := range edits[:n] {
			after.edit(&edits[i])
		}
		edits = edits[n:]
		if err := a.change(queue, l, &before, &after); err != nil {
			return err
		}
		switch {
		case after.put && found:
			rewrite = true
			r.entries[at] = after.written
			r.gone[at/8] &^= 1 << (at % 8)
		case after.put:
			rewrite = true
			r.insert(at, after.written)
		case before.there && !after.there:
			marked = true
			r.gone.set(at)
		}
	}
	return a.writeBack(queue, l, rewrite, marked)
}

// edited is an entry of a run as edits find it, and as they leave it.
type edited struct {
	there      bool
	entry      Entry // with what has changed since it was written
	overridden bool
	put        bool  // it is written anew,
	written    Entry // as this
	changed    bool  // what overrides it is written anew
}

func (s *edited) edit(e *Edit) {
	switch {
	case e.Kind == EditPut:
		*s = edited{there: true, entry: *e.Entry, put: true, written: *e.Entry}
	case !s.there:
	case e.Kind == EditRemove:
		*s = edited{}
	case e.Kind == EditCount, s.entry.Due() != e.Entry.Due():
		e.On(&s.entry)
		s.overridden, s.changed = true, true
	}
}

// change brings what is kept beside the run from one state of an entry to another.
func (a *applying) change(queue uint64, l *Level, before, after *edited) error {
	due := before.entry.Due()
	if before.there && (after.put || !after.there) {
		a.account(l, &before.entry, -1)
		if due != 0 && (!after.there || after.entry.Payload != before.entry.Payload) {
			if err := a.unlist(queue, l, due, before.entry.Number); err != nil {
				return err
			}
			due = 0
		}
	}
	if before.overridden && !after.overridden {
		if err := a.dropOverride(queue, l, before.entry.Number); err != nil {
			return err
		}
	}
	if !after.there {
		return nil
	}
	if after.put {
		a.account(l, &after.written, 1)
	}
	if after.changed {
		if !before.overridden {
			l.Overrides++
		}
		a.key = appendOverrideKey(a.key[:0], queue, l.Priority, after.entry.Number)
		a.value = appendOverride(a.value[:0], &after.entry)
		if err := a.w.set(a.key, a.value); err != nil {
			return err
		}
	}
	return a.delay(queue, l, &after.entry, due)
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

// overridden returns what has changed of the entries of a run since it was written. nil is nothing.
func (a *applying) overridden(queue uint64, l *Level, r *run) (map[uint64][]byte, error) {
	if l.Overrides == 0 {
		return nil, nil
	}
	var found map[uint64][]byte
	err := overrides(a.txn, queue, l.Priority, r, func(number uint64, value []byte) error {
		if found == nil {
			found = map[uint64][]byte{}
		}
		found[number] = bytes.Clone(value)
		return nil
	})
	return found, err
}
