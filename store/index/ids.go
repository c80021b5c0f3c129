package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/dgraph-io/badger/v4"
)

// ID is the id of a message that an address has taken, so that it isn't taken again.
type ID struct {
	Number uint64 // of the message: ids of an address are in this order
	Value  [16]byte
}

// IDBatch is what changes of the ids of one address. One that isn't higher than all that the address has had is known.
type IDBatch struct {
	Address string
	Forget  bool   // those before are gone
	Keep    uint64 // so many of those that came last stay at least
	IDs     []ID   // in ascending order of number
}

// Ids of an address are in runs, each under the number of its last one. A run that is shorter than idsFew is written
// again with what comes next: an address that is sent little would otherwise have a key for each.
const (
	idsMax = 512
	idsFew = 32
)

const (
	idRunForm   = 1
	idTableForm = 1
)

// idTable is what is known of the ids of an address without reading them.
type idTable struct {
	keep    uint64
	entries uint64
	head    uint64 // no run ends lower
	last    uint64 // no id has a higher number
	tail    uint64 // ids in the last run
}

func addressKey(table byte, address string) []byte {
	key := make([]byte, 0, 3+len(address)+8)
	key = binary.BigEndian.AppendUint16(append(key, table), uint16(len(address)))
	return append(key, address...)
}

// keyAddress returns the address of a key.
func keyAddress(key []byte) string {
	return string(key[3 : 3+int(binary.BigEndian.Uint16(key[1:]))])
}

func idRunKey(address string, last uint64) []byte {
	return binary.BigEndian.AppendUint64(addressKey(tableIDs, address), last)
}

func (t *idTable) encode(dst []byte) []byte {
	dst = append(dst, idTableForm)
	for _, v := range [...]uint64{t.keep, t.entries, t.head, t.last, t.tail} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func (t *idTable) decode(value []byte) error {
	r := reader{b: value}
	form := r.byte()
	*t = idTable{keep: r.uvarint(), entries: r.uvarint(), head: r.uvarint(), last: r.uvarint(), tail: r.uvarint()}
	if r.failed || form != idTableForm || len(r.b) > 0 {
		return fmt.Errorf("%w: table of ids", errMalformed)
	}
	return nil
}

// get reads the table of an address; it stays as it is if there is none.
func (t *idTable) get(txn *badger.Txn, address string) error {
	item, err := txn.Get(addressKey(tableAddress, address))
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
		return nil
	case err == nil:
		err = item.Value(t.decode)
	}
	if err != nil {
		return fmt.Errorf("index: ids of %q: %w", address, err)
	}
	return nil
}

func appendIDRun(dst []byte, ids []ID) []byte {
	dst = binary.AppendUvarint(append(dst, idRunForm), uint64(len(ids)))
	number := uint64(0)
	for i := range ids {
		dst = binary.AppendUvarint(dst, ids[i].Number-number)
		dst = append(dst, ids[i].Value[:]...)
		number = ids[i].Number
	}
	return dst
}

func decodeIDRun(dst []ID, value []byte) ([]ID, error) {
	r := reader{b: value}
	form, n, number := r.byte(), r.uvarint(), uint64(0)
	if form != idRunForm || n > uint64(len(value)) {
		return dst, fmt.Errorf("%w: run of ids", errMalformed)
	}
	for range n {
		number += r.uvarint()
		id := ID{Number: number}
		copy(id.Value[:], r.bytes(uint64(len(id.Value))))
		dst = append(dst, id)
	}
	if r.failed || len(r.b) > 0 {
		return dst, fmt.Errorf("%w: run of ids", errMalformed)
	}
	return dst, nil
}

// eachIDRun calls f with the runs of an address that end at a number or above it, in their order, until it returns
// false.
func eachIDRun(txn *badger.Txn, address string, from uint64, f func(last uint64, value []byte) (bool, error)) error {
	prefix := addressKey(tableIDs, address)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	more := true
	for it.Seek(idRunKey(address, from)); more && it.Valid(); it.Next() {
		last := binary.BigEndian.Uint64(it.Item().Key()[len(prefix):])
		if err := it.Item().Value(func(value []byte) (err error) {
			more, err = f(last, value)
			return err
		}); err != nil {
			return fmt.Errorf("index: ids of %q: %w", address, err)
		}
	}
	return nil
}

// remember applies what changes of the ids of an address.
func (a *applying) remember(b *IDBatch) error {
	var t idTable
	if err := t.get(a.txn, b.Address); err != nil {
		return err
	}
	ids := b.IDs
	for len(ids) > 0 && ids[0].Number <= t.last && !b.Forget {
		ids = ids[1:]
	}
	if keep := max(b.Keep, 1); b.Forget || uint64(len(ids)) >= keep { // none of the others stays
		if err := a.forget(b.Address, &t); err != nil {
			return err
		}
		t, ids = idTable{}, ids[max(len(ids)-int(min(keep, 1<<30)), 0):]
	}
	if len(ids) == 0 {
		return nil
	}
	t.keep = b.Keep
	merged := t.last // the run that ends there is written anew
	if t.tail == 0 || t.tail >= idsFew {
		merged = 0
	} else {
		tail, err := a.idRun(b.Address, t.last)
		if err != nil {
			return err
		}
		if err := a.w.delete(idRunKey(b.Address, t.last)); err != nil {
			return err
		}
		t.entries -= uint64(len(tail))
		ids = append(tail, ids...)
	}
	t.last = ids[len(ids)-1].Number
	t.entries += uint64(len(ids))
	if err := a.trimIDs(b.Address, &t, merged); err != nil {
		return err
	}
	for len(ids) > 0 {
		n := min(len(ids), idsMax)
		a.value = appendIDRun(a.value[:0], ids[:n])
		if err := a.w.set(idRunKey(b.Address, ids[n-1].Number), a.value); err != nil {
			return err
		}
		ids, t.tail = ids[n:], uint64(n)
	}
	return a.w.set(addressKey(tableAddress, b.Address), t.encode(a.value[:0]))
}

// idRun reads the run that ends at a number.
func (a *applying) idRun(address string, last uint64) (ids []ID, err error) {
	item, err := a.txn.Get(idRunKey(address, last))
	if err == nil {
		err = item.Value(func(value []byte) (err error) {
			ids, err = decodeIDRun(nil, value)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("index: ids of %q: %w", address, err)
	}
	return ids, nil
}

// trimIDs removes the oldest runs as long as enough ids are left, except one that has been removed already.
func (a *applying) trimIDs(address string, t *idTable, removed uint64) error {
	if t.entries < t.keep+idsMax {
		return nil
	}
	return eachIDRun(a.txn, address, t.head, func(last uint64, value []byte) (bool, error) {
		r := reader{b: value}
		r.byte()
		n := r.uvarint()
		if last == removed || t.entries < t.keep+n {
			return false, nil
		}
		t.entries -= n
		t.head = last + 1
		return true, a.w.delete(idRunKey(address, last))
	})
}

// forget removes all ids of an address.
func (a *applying) forget(address string, t *idTable) error {
	if t.last == 0 {
		return nil
	}
	if err := eachIDRun(a.txn, address, t.head, func(last uint64, _ []byte) (bool, error) {
		return true, a.w.delete(idRunKey(address, last))
	}); err != nil {
		return err
	}
	return a.w.delete(addressKey(tableAddress, address))
}

// forgetAll removes the ids of all addresses, and commits that: what follows builds on it.
func (a *applying) forgetAll() error {
	for _, table := range []byte{tableIDs, tableAddress} {
		if err := a.x.scanAt(a.x.ts, []byte{table}, func(key, _ []byte) error { return a.w.delete(key) }); err != nil {
			return err
		}
	}
	if err := a.w.commit(); err != nil {
		return err
	}
	a.close()
	a.begin()
	return nil
}

// Remembered returns the ids of an address that came last, n at the most, in the order in which they came. view is a
// View that is still there.
func (x *Index) Remembered(view uint64, address string, n int) ([]ID, error) {
	txn := x.db.NewTransactionAt(view, false)
	defer txn.Discard()
	var t idTable
	if err := t.get(txn, address); err != nil || t.entries == 0 || n <= 0 {
		return nil, err
	}
	ids := make([]ID, 0, t.entries)
	err := eachIDRun(txn, address, t.head, func(_ uint64, value []byte) (_ bool, err error) {
		ids, err = decodeIDRun(ids, value)
		return true, err
	})
	return ids[max(len(ids)-n, 0):], err
}

// LastID returns the highest number that came with an id of an address, 0 for none.
func (x *Index) LastID(address string) (uint64, error) {
	txn := x.db.NewTransactionAt(x.View(), false)
	defer txn.Discard()
	var t idTable
	err := t.get(txn, address)
	return t.last, err
}

// Remembering calls f with all addresses that have ids, and how many of them stay at least.
func (x *Index) Remembering(f func(address string, keep uint64) error) error {
	return x.remembering(x.View(), f)
}

func (x *Index) remembering(view uint64, f func(address string, keep uint64) error) error {
	return x.scanAt(view, []byte{tableAddress}, func(key, value []byte) error {
		var t idTable
		if err := t.decode(value); err != nil {
			return err
		}
		return f(keyAddress(key), t.keep)
	})
}

// Remembering calls f with all addresses that have ids, and how many of them stay at least.
func (s *Snapshot) Remembering(f func(address string, keep uint64) error) error {
	return s.x.remembering(s.view, f)
}

// Remembered returns all ids of an address, in the order in which they came.
func (s *Snapshot) Remembered(address string) ([]ID, error) {
	return s.x.Remembered(s.view, address, math.MaxInt)
}

// CheckIDs calls f with whatever of the tables of ids isn't what the runs say.
func (s *Snapshot) CheckIDs(f func(problem string)) error {
	txn := s.x.db.NewTransactionAt(s.view, false)
	defer txn.Discard()
	runs := 0
	if err := s.x.scanAt(s.view, []byte{tableAddress}, func(key, value []byte) error {
		address := keyAddress(key)
		var t idTable
		if err := t.decode(value); err != nil {
			return err
		}
		n, last, tail := uint64(0), uint64(0), uint64(0)
		if err := eachIDRun(txn, address, 0, func(end uint64, value []byte) (bool, error) {
			ids, err := decodeIDRun(nil, value)
			runs++
			for _, id := range ids {
				if id.Number <= last {
					f(fmt.Sprintf("address %q: id of message %d is out of place", address, id.Number))
				}
				last = id.Number
			}
			if n += uint64(len(ids)); end < t.head || end != last {
				f(fmt.Sprintf("address %q: the run of ids that ends at %d is out of place", address, end))
			}
			tail = uint64(len(ids))
			return true, err
		}); err != nil {
			return err
		}
		if n != t.entries || last != t.last || tail != t.tail {
			f(fmt.Sprintf("address %q: %d ids up to %d, its table says %d up to %d", address, n, last, t.entries, t.last))
		}
		return nil
	}); err != nil {
		return err
	}
	listed := 0
	if err := s.x.scanAt(s.view, []byte{tableIDs}, func(_, _ []byte) error { listed++; return nil }); err != nil {
		return err
	}
	if listed != runs {
		f(fmt.Sprintf("%d runs of ids, want %d", listed, runs))
	}
	return nil
}
