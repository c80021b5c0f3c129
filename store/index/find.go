package index

import "github.com/dgraph-io/badger/v4"

// Find calls f with those of some entries of a level that are there, in ascending order, as are the numbers. The entry
// is valid during the call. view is a View that is still there.
func (x *Index) Find(view, queue uint64, priority uint8, numbers []uint64, f func(*Entry)) error {
	l, changed := x.level(view, queue, priority)
	if l == nil {
		return nil
	}
	return x.find(view, queue, l, numbers, changed, f)
}

func (x *Index) find(view, queue uint64, l *Level, numbers []uint64, changed bool, f func(*Entry)) error {
	txn := x.db.NewTransactionAt(view, false)
	defer txn.Discard()
	prefix := appendLevelKey(nil, tableRun, queue, l.Priority)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	var r run
	var key []byte
	for len(numbers) > 0 {
		key = appendRunKey(key[:0], queue, l.Priority, numbers[0], runEntries)
		it.Seek(key)
		found, err := r.read(it, prefix)
		if err != nil || !found {
			return err
		}
		if changed {
			if err := r.amend(txn, queue, l); err != nil {
				return err
			}
		}
		for len(numbers) > 0 && numbers[0] <= r.last {
			if i, there := r.find(numbers[0]); there && !r.gone.has(i) {
				f(&r.entries[i])
			}
			numbers = numbers[1:]
		}
	}
	return nil
}
