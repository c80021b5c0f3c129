package index

import (
	"encoding/binary"
	"slices"

	"github.com/dgraph-io/badger/v4"
)

// overrides calls f with what changed of a run's entries after it was written.
func overrides(txn *badger.Txn, queue uint64, priority uint8, r *run, f func(number uint64, value []byte) error) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: appendLevelKey(nil, tableOverride, queue, priority)})
	defer it.Close()
	for it.Seek(appendOverrideKey(nil, queue, priority, r.entries[0].Number)); it.Valid(); it.Next() {
		item := it.Item()
		number := binary.BigEndian.Uint64(item.Key()[10:])
		if number > r.last {
			break
		}
		if err := item.Value(func(value []byte) error { return f(number, value) }); err != nil {
			return err
		}
	}
	return nil
}

// Load calls f with the entries of a level in ascending order of number, from one number on, until it returns false.
// The entry is valid during the call. view is a View that is still there.
func (x *Index) Load(view, queue uint64, priority uint8, from uint64, f func(*Entry) bool) error {
	l, changed := x.level(view, queue, priority)
	if l == nil {
		return nil
	}
	return x.load(view, queue, l, max(from, l.Head), changed, f)
}

// Ready reports whether a level may have entries without a due time, by what was applied last.
func (x *Index) Ready(queue uint64, priority uint8) bool {
	s, known := x.Summary(queue)
	return known && slices.ContainsFunc(s.Levels, func(l Level) bool { return l.Priority == priority && l.Delayed < l.Entries })
}

// level returns that of a queue, nil for none, and whether entries of it may have changed after they were written.
func (x *Index) level(view, queue uint64, priority uint8) (l *Level, changed bool) {
	x.mu.Lock()
	s, known := x.queues[queue]
	latest := x.view == view && !x.ahead
	x.mu.Unlock()
	if !known {
		return nil, false
	}
	for i := range s.Levels {
		if l := &s.Levels[i]; l.Priority == priority {
			return l, l.Overrides > 0 || !latest
		}
	}
	return nil, false
}

func (x *Index) load(view, queue uint64, l *Level, from uint64, changed bool, f func(*Entry) bool) error {
	txn := x.db.NewTransactionAt(view, false)
	defer txn.Discard()
	prefix := appendLevelKey(nil, tableRun, queue, l.Priority)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	it.Seek(appendRunKey(nil, queue, l.Priority, from, runEntries))
	var r run
	for {
		found, err := r.read(it, prefix)
		if err != nil || !found {
			return err
		}
		if changed {
			if err := r.amend(txn, queue, l); err != nil {
				return err
			}
		}
		for i := range r.entries {
			if e := &r.entries[i]; e.Number >= from && !r.gone.has(i) && !f(e) {
				return nil
			}
		}
	}
}

// amend puts what changed since over the entries of a run.
func (r *run) amend(txn *badger.Txn, queue uint64, l *Level) error {
	return overrides(txn, queue, l.Priority, r, func(number uint64, value []byte) error {
		if i, found := r.find(number); found {
			return r.entries[i].override(value)
		}
		return nil
	})
}

// Overrides calls f with what changed of entries of a level after they were written: Number, Count, Base and Extra
// without Parts are set.
func (x *Index) Overrides(queue uint64, priority uint8, f func(*Entry) error) error {
	s, known := x.Summary(queue)
	if !known {
		return nil
	}
	for i := range s.Levels {
		if l := &s.Levels[i]; l.Priority != priority || l.Overrides == 0 {
			continue
		}
		prefix := appendLevelKey(nil, tableOverride, queue, priority)
		return x.scanAt(x.View(), prefix, func(key, value []byte) error {
			e := Entry{Number: binary.BigEndian.Uint64(key[10:])}
			if err := e.override(value); err != nil {
				return err
			}
			return f(&e)
		})
	}
	return nil
}
