package index

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// writer writes keys in as many transactions as it takes. Readers see none of them before the view moves on, and Open
// takes back those that aren't covered by a checkpoint, so they need not be one.
type writer struct {
	x     *Index
	txn   *badger.Txn
	arena []byte // keys and values, which Badger refers to until they are committed
	keys  int
}

const arenaSize = 64 << 10

func (x *Index) writer() *writer { return &writer{x: x} }

func (w *writer) keep(b []byte) []byte {
	if cap(w.arena)-len(w.arena) < len(b) {
		w.arena = make([]byte, 0, max(arenaSize, len(b)))
	}
	at := len(w.arena)
	w.arena = append(w.arena, b...)
	return w.arena[at:len(w.arena):len(w.arena)]
}

func (w *writer) set(key, value []byte) error {
	if len(value) >= valueThreshold {
		return fmt.Errorf("%w: %d bytes for table %q", ErrTooLarge, len(value), key[0])
	}
	e := badger.NewEntry(w.keep(key), w.keep(value))
	return w.try(func() error { return w.txn.SetEntry(e) })
}

func (w *writer) delete(key []byte) error {
	key = w.keep(key)
	return w.try(func() error { return w.txn.Delete(key) })
}

func (w *writer) try(write func() error) error {
	if w.txn == nil {
		w.txn = w.x.db.NewTransactionAt(w.x.ts, true)
	}
	err := write()
	if errors.Is(err, badger.ErrTxnTooBig) {
		if err = w.commit(); err != nil {
			return err
		}
		w.txn = w.x.db.NewTransactionAt(w.x.ts, true)
		err = write()
	}
	if err != nil {
		return fmt.Errorf("index: write: %w", err)
	}
	w.keys++
	return nil
}

func (w *writer) commit() error {
	if w.txn == nil {
		return nil
	}
	txn := w.txn
	w.txn = nil
	if err := txn.CommitAt(w.x.ts+1, nil); err != nil {
		return fmt.Errorf("index: commit: %w", err)
	}
	w.x.ts++
	return nil
}

func (w *writer) discard() {
	if w.txn != nil {
		w.txn.Discard()
		w.txn = nil
	}
}
