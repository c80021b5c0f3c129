package index

import (
	"bytes"
	"errors"

	"github.com/dgraph-io/badger/v4"
)

// rollBack gives every key that has a version newer than ts the value that it had then, as a new version. A crash may
// have kept any of the later commits; afterwards none of them is seen. If a crash ends this, the next one does all of
// it again.
func (x *Index) rollBack(ts uint64) error {
	newest := x.db.NewTransactionAt(x.ts, false)
	defer newest.Discard()
	then := x.db.NewTransactionAt(ts, false)
	defer then.Discard()
	w := x.writer()
	it := newest.NewIterator(badger.IteratorOptions{AllVersions: true, SinceTs: ts})
	defer it.Close()
	var last []byte
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Item().Key()
		if it.Item().Version() <= ts || bytes.Equal(key, last) {
			continue
		}
		last = append(last[:0], key...)
		item, err := then.Get(key)
		switch {
		case errors.Is(err, badger.ErrKeyNotFound) || ts == 0:
			err = w.delete(key)
		case err == nil:
			err = item.Value(func(value []byte) error { return w.set(key, value) })
		}
		if err != nil {
			w.discard()
			return err
		}
	}
	if ts == 0 {
		return w.end(Counters{})
	}
	counters, err := x.countersAt(ts)
	if err != nil {
		return err
	}
	return w.end(counters)
}

func (x *Index) countersAt(ts uint64) (c Counters, err error) {
	err = x.scanAt(ts, []byte{tableCounters}, func(_, value []byte) error {
		r := reader{b: value}
		c = Counters{LastNumber: r.uvarint(), LastQueue: r.uvarint()}
		if r.failed {
			return errMalformed
		}
		return nil
	})
	return c, err
}
