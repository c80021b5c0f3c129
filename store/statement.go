package store

import (
	"errors"
	"math"
	"time"

	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// statement is what was restated last: all that the segments up to a window say, besides the entries that are still
// there, so that the index can be made anew although some of the segments are gone.
type statement struct {
	applied uint64 // the window up to which it speaks
	cost    int64  // bytes written, and read to know what to write
}

// statementWindow is about how large the windows of a statement are.
const statementWindow = 256 << 10

// restate writes a statement. The index has what it speaks of on the device.
func (s *Store) restate() error {
	st := restating{store: s, applied: s.applied.window}
	st.begin()
	err := st.write()
	if err == nil {
		err = st.flush()
	}
	if errors.Is(err, errNoRoom) {
		return nil // later
	}
	if err != nil {
		return err
	}
	s.statement = statement{st.applied, st.written + st.read}
	s.measure.restated.Add(st.written)
	return nil
}

// restating is the writing of a statement.
type restating struct {
	store         *Store
	applied       uint64
	w             windowWriter
	written, read int64
	queues        []uint64
}

func (st *restating) begin() {
	st.w.reset()
	st.w.restated(st.applied)
}

// errNoRoom says that something that could wait didn't fit on the device.
var errNoRoom = errors.New("store: no room")

// flush commits what has been written.
func (st *restating) flush() error {
	s := st.store
	s.append.Lock()
	defer s.append.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	_, err := s.appendWindow(st.w.b, 0, time.Now())
	if errors.Is(err, journal.ErrFull) {
		return errNoRoom
	}
	st.written += int64(len(st.w.b))
	st.begin()
	return err
}

func (st *restating) flushLarge() error {
	if len(st.w.b) < min(statementWindow, int(st.store.journal.MaxPayload()/2)) {
		return nil
	}
	return st.flush()
}

func (st *restating) write() error {
	x := st.store.index
	counters := x.Counters()
	st.w.counters(counters.LastNumber, counters.LastQueue)
	next := uint64(0)
	var deleted []index.Span
	if err := x.Definitions(func(queue uint64, value []byte) error {
		d, err := decodeDefinition(queue, value)
		if err != nil {
			return err
		}
		if queue > next {
			deleted = append(deleted, index.Span{First: next, Last: queue - 1})
		}
		next = queue + 1
		st.queues = append(st.queues, queue)
		st.w.define(&d)
		return st.flushLarge()
	}); err != nil {
		return err
	}
	// Numbers above may belong to queues that a later window defines; this speaks of those before.
	deleted = append(deleted, index.Span{First: next, Last: math.MaxUint64})
	for len(deleted) > 0 {
		n := min(len(deleted), 4096)
		st.w.deleted(deleted[:n])
		deleted = deleted[n:]
		if err := st.flushLarge(); err != nil {
			return err
		}
	}
	if err := x.Cells(func(space uint64, key, value []byte) error {
		st.w.cell(space, key, value)
		return st.flushLarge()
	}); err != nil {
		return err
	}
	if err := st.ids(); err != nil {
		return err
	}
	for _, queue := range st.queues {
		if err := st.queue(queue); err != nil {
			return err
		}
	}
	return nil
}

// ids restates which ids of messages are remembered, and that there are no others.
func (st *restating) ids() error {
	x := st.store.index
	st.w.forget("")
	return x.Remembering(func(address string, keep uint64) error {
		ids, err := x.Remembered(x.View(), address, math.MaxInt)
		if err != nil {
			return err
		}
		for i := range ids {
			st.read += int64(len(ids[i].Value))
			st.w.remember(address, ids[i].Number, keep, ids[i].Value)
			if err := st.flushLarge(); err != nil {
				return err
			}
		}
		return nil
	})
}

// queue restates which entries a queue doesn't have, and what changed of those it has.
func (st *restating) queue(queue uint64) error {
	sum, _ := st.store.index.Summary(queue)
	if n, _ := sum.Entries(); n == 0 {
		st.w.purge(queue, index.Priorities, index.Span{Last: math.MaxUint64})
		return st.flushLarge()
	}
	for priority := range uint8(index.Priorities) {
		if err := st.level(queue, priority); err != nil {
			return err
		}
	}
	return nil
}

// purgeSpans is how many ranges of numbers go into one fact.
const purgeSpans = 1024

func (st *restating) level(queue uint64, priority uint8) error {
	x := st.store.index
	next := uint64(0)
	var gone []index.Span
	err := x.Load(x.View(), queue, priority, 0, func(e *index.Entry) bool {
		st.read += 16 // about what an entry of a run takes
		if e.Number > next {
			gone = append(gone, index.Span{First: next, Last: e.Number - 1})
		}
		next = e.Number + 1
		return true
	})
	if err != nil {
		return err
	}
	gone = append(gone, index.Span{First: next, Last: math.MaxUint64})
	for len(gone) > 0 {
		n := min(len(gone), purgeSpans)
		st.w.purge(queue, priority, gone[:n]...)
		gone = gone[n:]
		if err := st.flushLarge(); err != nil {
			return err
		}
	}
	return x.Overrides(queue, priority, func(e *index.Entry) error {
		st.w.count(queue, e.Number, priority, e.Count, e.Base)
		if e.Extra != nil {
			st.w.rawAnnotations(e.Extra.Annotations)
		} else {
			st.w.rawAnnotations(nil)
		}
		if at := e.Due(); at != 0 {
			st.w.due(queue, e.Number, priority, at)
		}
		return st.flushLarge()
	})
}
