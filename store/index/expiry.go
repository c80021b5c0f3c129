package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/dgraph-io/badger/v4"
)

// A run with entries that expire has a key in the table of expiries, at the earliest of them. So what expires is found
// in order of time, at a cost per run and not per entry: the runs that were written together mostly expire together.

// never is later than any time.
const never = math.MaxInt64

// expiries returns the earliest and the latest expiry of entries that aren't gone, 0 if none expires.
func expiries(entries []Entry, gone bitmap) (first, last int64) {
	for i := range entries {
		at := entries[i].Expiry
		if at <= 0 || gone.has(i) {
			continue
		}
		if first == 0 || at < first {
			first = at
		}
		last = max(last, at)
	}
	return first, last
}

// setExpiry writes the key of a run: its value is the latest expiry, or a later one.
func (a *applying) setExpiry(queue uint64, priority uint8, run uint64, first, last int64) error {
	if a.soonest == 0 || first < a.soonest {
		a.soonest = first
	}
	a.key = appendTimeKey(a.key[:0], tableExpiry, first, queue, priority, run)
	a.value = binary.AppendUvarint(a.value[:0], uint64(last))
	return a.w.set(a.key, a.value)
}

// moveExpiry brings the key of the run that was read last to where it belongs now that some of its entries are gone.
func (a *applying) moveExpiry(queue uint64, priority uint8) error {
	r := &a.run
	first, last := expiries(r.entries, r.gone)
	if first == r.expiry {
		return nil
	}
	if err := a.w.delete(appendTimeKey(a.key[:0], tableExpiry, r.expiry, queue, priority, r.last)); err != nil || first == 0 {
		return err
	}
	return a.setExpiry(queue, priority, r.last, first, last)
}

// readSoonest finds the earliest expiry.
func (x *Index) readSoonest() error {
	x.soonest, x.timed = never, 0
	err := x.scan(tableExpiry, func(key, _ []byte) error {
		x.soonest, _, _, _ = splitTimeKey(key)
		return errFound
	})
	if errors.Is(err, errFound) {
		return nil
	}
	return err
}

var errFound = errors.New("found")

// Expiring reads entries in about the order in which they expire, in rounds: one round takes all up to a time, and the
// next one what has come up since. What a round has passed over and is still there isn't looked at again.
//
// It belongs to one goroutine, which may be another than the owner of the index.
type Expiring struct {
	x *Index

	// The last whole round.
	until int64  // took all up to there
	seen  uint64 // of what had been written by then

	// The round under way.
	running bool
	to      int64
	begun   uint64
	cursor  []byte // where it goes on
	number  uint64 // and behind which entry, if the run of the cursor is still there
	next    int64  // the earliest expiry behind to that it came by
	view    uint64 // read last

	// Runs that stand where entries expired that have been told: until those are gone they would be read in each round.
	met map[runPlace]runMet
}

// runPlace is a key in the table of expiries.
type runPlace struct {
	at       int64
	queue    uint64
	priority uint8
	last     uint64
}

// runMet is what a reader knows of a run as long as its key isn't written anew.
type runMet struct {
	version uint64
	next    int64 // all before has been told
}

// maxMet bounds the runs that a reader remembers: 256 KiB.
const maxMet = 4096

// Expiring returns a reader that has seen nothing.
func (x *Index) Expiring() *Expiring { return &Expiring{x: x, met: map[runPlace]runMet{}} }

// View returns the View that Next has read last.
func (r *Expiring) View() uint64 { return r.view }

// What one call of Next does at most, besides the entries it was asked for.
const (
	expiringRuns = 64
	expiringKeys = 8192
)

// Next calls f with entries that expire at until, a unix millisecond, or before: n at most. f may not keep the entry.
// It returns when to ask again: until or before if there may be more now, 0 if nothing expires.
func (r *Expiring) Next(until int64, n int, f func(queue uint64, priority uint8, e *Entry)) (next int64, err error) {
	x := r.x
	x.mu.Lock()
	view, soonest := x.view, x.soonest
	x.mu.Unlock()
	fresh := !r.running
	r.view = view
	if fresh {
		if soonest > until {
			return later(soonest), nil
		}
		r.running, r.to, r.begun, r.next = true, until, view, never
		r.cursor, r.number = appendTimeKey(nil, tableExpiry, soonest, 0, Priorities-1, 0), 0
	}
	ended, first, err := r.read(view, n, f)
	if err != nil {
		return 0, fmt.Errorf("index: expiries: %w", err)
	}
	if !ended {
		return min(until, r.to), nil
	}
	r.running, r.until, r.seen = false, r.to, r.begun
	x.mu.Lock()
	defer x.mu.Unlock()
	if fresh && x.view == view && !x.ahead {
		x.soonest = first
	}
	if x.timed > r.begun && x.soonest <= r.to { // written meanwhile, perhaps where this round had been already
		return min(until, r.to), nil
	}
	return later(r.next), nil
}

func later(at int64) int64 {
	if at == never {
		return 0
	}
	return at
}

// read goes on with a round; first is the first expiry that it came by.
func (r *Expiring) read(view uint64, n int, f func(uint64, uint8, *Entry)) (ended bool, first int64, err error) {
	txn := r.x.db.NewTransactionAt(view, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{tableExpiry}})
	defer it.Close()
	first = never
	runs := 0
	var one run
	for it.Seek(r.cursor); it.Valid(); it.Next() {
		item := it.Item()
		at, queue, priority, last := splitTimeKey(item.Key())
		first = min(first, at)
		if at > r.to {
			r.next = min(r.next, at)
			return true, first, nil
		}
		behind := uint64(0)
		if bytes.Equal(item.Key(), r.cursor) {
			behind = r.number
		}
		r.cursor, r.number = append(r.cursor[:0], item.Key()...), behind
		place, version := runPlace{at, queue, priority, last}, item.Version()
		met := r.met[place]
		told := version <= r.seen // what expires up to r.until has been
		latest := int64(0)
		if err := item.Value(func(value []byte) error {
			v := reader{b: value}
			latest = int64(v.uvarint())
			return nil
		}); err != nil {
			return false, first, err
		}
		if told && latest <= r.until || met.version == version && met.next > r.to {
			if met.version == version {
				r.next = min(r.next, met.next)
			}
			r.pass()
			if runs++; runs >= expiringKeys {
				return false, first, nil
			}
			continue
		}
		if err := one.get(txn, queue, priority, last); err != nil {
			return false, first, err
		}
		rest := int64(never)
		for i := range one.entries {
			e := &one.entries[i]
			switch {
			case e.Expiry <= 0 || one.gone.has(i):
				continue
			case e.Expiry > r.to:
				rest = min(rest, e.Expiry)
				continue
			case e.Number <= behind || told && e.Expiry <= r.until:
				continue
			case n == 0:
				return false, first, nil
			}
			n--
			r.number = e.Number
			f(queue, priority, e)
		}
		r.next = min(r.next, rest)
		if len(r.met) >= maxMet {
			clear(r.met)
		}
		if behind == 0 || version <= r.begun { // else it may have been written between two calls
			r.met[place] = runMet{version, rest}
		}
		r.pass()
		if runs += expiringKeys / expiringRuns; runs >= expiringKeys {
			return false, first, nil
		}
	}
	return true, first, nil
}

// pass leaves the run of the cursor behind.
func (r *Expiring) pass() { r.cursor, r.number = append(r.cursor, 0), 0 }

// get reads a run by its key. One that isn't there has no entries.
func (r *run) get(txn *badger.Txn, queue uint64, priority uint8, last uint64) error {
	r.last, r.entries, r.gone, r.marked = last, r.entries[:0], r.gone[:0], false
	for _, what := range [...]byte{runEntries, runGone} {
		item, err := txn.Get(appendRunKey(nil, queue, priority, last, what))
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err == nil {
			err = item.Value(func(value []byte) (err error) {
				if what == runGone {
					r.gone, r.marked = append(r.gone, value...), true
					return nil
				}
				r.entries, err = decodeRun(r.entries, value)
				return err
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckExpiries calls f with whatever of the table of expiries isn't what the runs say.
func (s *Snapshot) CheckExpiries(f func(problem string)) error {
	txn := s.x.db.NewTransactionAt(s.view, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{tableRun}})
	defer it.Close()
	want, found := 0, 0
	var r run
	for it.Rewind(); it.Valid(); {
		key := it.Item().KeyCopy(nil)
		queue, priority := binary.BigEndian.Uint64(key[1:]), Priorities-1-key[9]
		if ok, err := r.read(it, key[:10]); err != nil {
			return fmt.Errorf("index: expiries: %w", err)
		} else if !ok { // a bitmap without a run
			continue
		}
		first, last := expiries(r.entries, r.gone)
		if first == 0 {
			continue
		}
		want++
		item, err := txn.Get(appendTimeKey(nil, tableExpiry, first, queue, priority, r.last))
		latest := int64(0)
		if err == nil {
			err = item.Value(func(value []byte) error {
				v := reader{b: value}
				latest = int64(v.uvarint())
				return nil
			})
		}
		if err != nil && !errors.Is(err, badger.ErrKeyNotFound) {
			return fmt.Errorf("index: expiries: %w", err)
		}
		if err != nil || latest < last {
			f(fmt.Sprintf("queue %d, priority %d: the run that ends at %d isn't listed to expire at %d to %d", queue, priority,
				r.last, first, last))
		}
	}
	if err := s.x.scanAt(s.view, []byte{tableExpiry}, func(_, _ []byte) error { found++; return nil }); err != nil {
		return err
	}
	if found != want {
		f(fmt.Sprintf("%d runs are listed to expire, want %d", found, want))
	}
	return nil
}
