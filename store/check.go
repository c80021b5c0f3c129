package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// Report is what Check has found.
type Report struct {
	Segments int
	Windows  int
	Queues   int
	Entries  uint64
	Bytes    uint64   // of payloads
	Problems []string // the first hundred
	More     int      // problems that aren't named
}

const maxProblems = 100

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	} else {
		r.More++
	}
}

// Check opens a store that no process has, which brings its index up to date, and reads all of it: every record of the
// journal, every entry of the index, every body.
func Check(o Options) (r Report, err error) {
	s, err := Open(o)
	if err != nil {
		return r, err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	return s.Check()
}

// Check reads all of the store as it is now. It may run beside commits.
func (s *Store) Check() (r Report, err error) {
	snap, err := s.snapshot()
	if err != nil {
		return r, err
	}
	defer snap.release()
	c := checking{snap: snap, report: &r, live: map[uint64]index.Live{}, segments: map[uint64]bool{}}
	if err := c.run(); err != nil {
		return r, fmt.Errorf("store: check: %w", err)
	}
	return r, nil
}

type checking struct {
	snap     *snapshot
	report   *Report
	live     map[uint64]index.Live
	segments map[uint64]bool
}

func (c *checking) run() error {
	for _, seg := range c.snap.segments {
		c.segments[seg.Number] = true
	}
	c.report.Segments = len(c.snap.segments)
	if err := c.journal(); err != nil {
		return err
	}
	if err := c.snap.Definitions(func(queue uint64, value []byte) error {
		c.report.Queues++
		if _, err := decodeDefinition(queue, value); err != nil {
			c.report.problem("%v", err)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, queue := range c.snap.Queues() {
		if err := c.queue(queue); err != nil {
			return err
		}
	}
	if err := c.snap.CheckExpiries(func(problem string) { c.report.problem("%s", problem) }); err != nil {
		return err
	}
	if err := c.snap.CheckIDs(func(problem string) { c.report.problem("%s", problem) }); err != nil {
		return err
	}
	if err := c.snap.CheckDues(func(problem string) { c.report.problem("%s", problem) }); err != nil {
		return err
	}
	if live := c.snap.Live(); !maps.Equal(live, c.live) {
		for _, segment := range slices.Sorted(maps.Keys(c.segments)) {
			if a, b := live[segment], c.live[segment]; a != b {
				c.report.problem("segment %016x: the index counts %d entries with %d bytes, there are %d with %d", segment, a.Entries,
					a.Bytes, b.Entries, b.Bytes)
			}
		}
	}
	return nil
}

// journal reads every record.
func (c *checking) journal() error {
	var w windowReader
	err := c.snap.store.journal.Replay(journal.Position{}, func(rec journal.Record) error {
		if rec.Kind != journal.KindWindow {
			return nil
		}
		c.report.Windows++
		w.begin(rec.Payload)
		for w.next() {
			if w.fact.kind == factBody {
				if _, err := readBody(w.fact.bytes, nil); err != nil {
					c.report.problem("window %d: %v", rec.Index, err)
				}
			}
		}
		if w.err != nil {
			c.report.problem("window %d: %v", rec.Index, w.err)
		}
		return nil
	})
	var corrupt *journal.CorruptError
	if errors.As(err, &corrupt) {
		c.report.problem("%v", corrupt)
		return nil
	}
	return err
}

func (c *checking) queue(queue uint64) error {
	sum := c.snap.Summary(queue)
	for i := range sum.Levels {
		l := &sum.Levels[i]
		b := bodies{store: c.snap.store}
		n, bytes, last := uint64(0), uint64(0), uint64(0)
		if err := c.snap.Load(queue, l.Priority, func(e *index.Entry) bool {
			if e.Number <= last && n > 0 || e.Number < l.Head || e.Number > l.Last {
				c.report.problem("queue %d, priority %d: entry %d is out of place", queue, l.Priority, e.Number)
			}
			n, bytes, last = n+1, bytes+e.Payload, e.Number
			c.entry(queue, l.Priority, e, &b)
			return true
		}); err != nil {
			return err
		}
		if n != l.Entries || bytes != l.Bytes {
			c.report.problem("queue %d, priority %d: %d entries with %d bytes, its summary says %d with %d", queue, l.Priority, n,
				bytes, l.Entries, l.Bytes)
		}
		c.report.Entries += n
		c.report.Bytes += bytes
	}
	return nil
}

func (c *checking) entry(queue uint64, priority uint8, e *index.Entry, b *bodies) {
	c.refer(e.Place.Segment, int64(e.Place.Length))
	if e.Extra != nil {
		for _, p := range e.Extra.Parts {
			c.refer(p.Segment, int64(p.Bytes))
		}
	}
	b.reset([]index.Entry{*e})
	stored, err := b.read(e)
	var bad *BodyError
	switch {
	case errors.As(err, &bad):
		bad.Queue, bad.Number = engine.QueueID(queue), e.Number
		c.report.problem("%v", bad)
	case err != nil:
		c.report.problem("queue %d: entry %d: %v", queue, e.Number, err)
	case uint64(stored.Message.Size()) != e.Payload || level(stored.Message.Priority) != priority ||
		stored.Message.Expiry != e.Expiry:
		c.report.problem("queue %d: entry %d isn't what the index says", queue, e.Number)
	}
}

func (c *checking) refer(segment uint64, bytes int64) {
	if !c.segments[segment] {
		c.report.problem("segment %016x is missing, and needed", segment)
		c.segments[segment] = true
	}
	l := c.live[segment]
	l.Bytes += bytes
	l.Entries++
	c.live[segment] = l
}
