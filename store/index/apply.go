package index

import (
	"encoding/binary"
	"fmt"
	"maps"

	"github.com/dgraph-io/badger/v4"
)

// Apply makes a batch hold. Readers see it when Publish is called. After an error the index must not be used any more.
func (x *Index) Apply(b *Batch) error {
	a := applying{x: x, w: x.writer(), queues: map[uint64]*Summary{}, live: map[uint64]Live{}}
	a.begin()
	defer a.close()
	if err := a.apply(b); err != nil {
		a.w.discard()
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for queue, s := range a.queues {
		if s == nil {
			delete(x.queues, queue)
		} else {
			x.queues[queue] = s
		}
	}
	for segment, l := range a.live {
		if l == (Live{}) {
			delete(x.live, segment)
		} else {
			x.live[segment] = l
		}
	}
	if a.soonest != 0 {
		x.soonest, x.timed = min(x.soonest, a.soonest), x.ts
	}
	for queue, first := range a.floors {
		if floor, known := x.floors[queue]; known && first.Compare(floor) < 0 {
			x.floors[queue] = first
		}
	}
	for queue, s := range a.queues {
		if s == nil || s.Delayed() == 0 {
			delete(x.floors, queue)
		}
	}
	x.counters, x.ahead = a.counters, true
	return nil
}

// Publish lets readers see all that was applied.
func (x *Index) Publish() {
	x.mu.Lock()
	x.view, x.ahead = x.ts, false
	x.mu.Unlock()
}

// applying is one Apply.
type applying struct {
	x        *Index
	w        *writer
	txn      *badger.Txn // sees what was there before
	runs     *badger.Iterator
	queues   map[uint64]*Summary // those that change; nil: deleted
	live     map[uint64]Live     // of segments that change
	counters Counters

	key, value []byte
	run        run
	soonest    int64              // of the expiries that were written, 0: none
	floors     map[uint64]Delayed // the first of the due times that were written
}

// begin looks at what has been committed up to here.
func (a *applying) begin() { a.txn = a.x.db.NewTransactionAt(a.x.ts, false) }

func (a *applying) close() {
	if a.runs != nil {
		a.runs.Close()
		a.runs = nil
	}
	a.txn.Discard()
}

func (a *applying) apply(b *Batch) error {
	for _, d := range b.Defines {
		if err := a.w.set(queueKey(tableQueue, d.Queue), d.Value); err != nil {
			return err
		}
		if _, known := a.summary(d.Queue); !known {
			a.queues[d.Queue] = &Summary{}
		}
	}
	if err := a.purge(b.Levels); err != nil {
		return err
	}
	for _, l := range b.Levels {
		if s, known := a.summary(l.Queue); known {
			if err := a.level(s.level(l.Priority), l); err != nil {
				return fmt.Errorf("index: queue %d: %w", l.Queue, err)
			}
		}
	}
	for _, queue := range b.Deletes {
		if err := a.deleteQueue(queue); err != nil {
			return fmt.Errorf("index: delete queue %d: %w", queue, err)
		}
	}
	for _, c := range b.Cells {
		err := error(nil)
		if key := cellKey(c.Space, c.Key); len(c.Value) == 0 {
			err = a.w.delete(key)
		} else {
			err = a.w.set(key, c.Value)
		}
		if err != nil {
			return err
		}
	}
	if b.NoIDs {
		if err := a.forgetAll(); err != nil {
			return fmt.Errorf("index: forget ids: %w", err)
		}
	}
	for _, ids := range b.IDs {
		if err := a.remember(ids); err != nil {
			return err
		}
	}
	return a.finish(b.Counters)
}

// finish writes the sums.
func (a *applying) finish(c Counters) error {
	for queue, s := range a.queues {
		if s == nil {
			continue
		}
		a.value = appendSummary(a.value[:0], s)
		if err := a.w.set(queueKey(tableSummary, queue), a.value); err != nil {
			return err
		}
	}
	for segment, l := range a.live {
		key, err := queueKey(tableSegment, segment), error(nil)
		if l == (Live{}) {
			err = a.w.delete(key)
		} else {
			a.value = binary.AppendUvarint(a.value[:0], uint64(l.Bytes))
			a.value = binary.AppendUvarint(a.value, uint64(l.Entries))
			err = a.w.set(key, a.value)
		}
		if err != nil {
			return err
		}
	}
	a.counters = Counters{
		LastNumber: max(c.LastNumber, a.x.counters.LastNumber), LastQueue: max(c.LastQueue, a.x.counters.LastQueue),
	}
	return a.w.end(a.counters)
}

// end writes the counters last, so that the last commit always has a key that stays, and commits.
func (w *writer) end(c Counters) error {
	value := binary.AppendUvarint(nil, c.LastNumber)
	value = binary.AppendUvarint(value, c.LastQueue)
	if err := w.set([]byte{tableCounters}, value); err != nil {
		return err
	}
	return w.commit()
}

// summary returns one that may be changed, and whether there is that queue.
func (a *applying) summary(queue uint64) (*Summary, bool) {
	if s, known := a.queues[queue]; known {
		return s, s != nil
	}
	s, known := a.x.queues[queue]
	if !known {
		return nil, false
	}
	s = s.clone()
	a.queues[queue] = s
	return s, true
}

// account adds an entry, or takes it away, from what is known of its segments and its level.
func (a *applying) account(l *Level, e *Entry, sign int64) {
	l.Entries += uint64(sign)
	l.Bytes += uint64(sign * int64(e.Payload))
	a.refer(e.Place.Segment, int64(e.Place.Length), sign)
	if e.Extra != nil {
		for _, p := range e.Extra.Parts {
			a.refer(p.Segment, int64(p.Bytes), sign)
		}
	}
}

func (a *applying) refer(segment uint64, bytes, sign int64) {
	l, known := a.live[segment]
	if !known {
		l = a.x.live[segment]
	}
	l.Bytes += sign * bytes
	l.Entries += sign
	a.live[segment] = l
}

// deleteQueue removes a queue and all that it has.
func (a *applying) deleteQueue(queue uint64) error {
	s, known := a.summary(queue)
	if !known {
		return nil
	}
	a.queues[queue] = nil
	delayed := s.Delayed()
	for i := range s.Levels {
		l := &s.Levels[i]
		if err := a.emptyLevel(queue, l); err != nil {
			return err
		}
	}
	if delayed > 0 {
		if err := a.x.scanAt(a.x.ts, queueKey(tableDue, queue), func(key, _ []byte) error { return a.w.delete(key) }); err != nil {
			return err
		}
	}
	if err := a.w.delete(queueKey(tableSummary, queue)); err != nil {
		return err
	}
	return a.w.delete(queueKey(tableQueue, queue))
}

func (a *applying) emptyLevel(queue uint64, l *Level) error {
	if l.Entries == 0 {
		return nil
	}
	for found, err := a.seek(queue, l.Priority, l.Head); found || err != nil; found, err = a.next(queue, l.Priority) {
		if err != nil {
			return err
		}
		for i := range a.run.entries {
			if !a.run.gone.has(i) {
				a.account(l, &a.run.entries[i], -1)
			}
		}
		if err := a.deleteRun(queue, l.Priority); err != nil {
			return err
		}
	}
	if l.Overrides == 0 {
		return nil
	}
	prefix := appendLevelKey(nil, tableOverride, queue, l.Priority)
	return a.x.scanAt(a.x.ts, prefix, func(key, _ []byte) error { return a.w.delete(key) })
}

// Totals returns how many queues and entries there are, and the bytes of their payloads.
func (x *Index) Totals() (queues, entries, bytes uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for s := range maps.Values(x.queues) {
		n, b := s.Entries()
		entries += n
		bytes += b
	}
	return uint64(len(x.queues)), entries, bytes
}
