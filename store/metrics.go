package store

import (
	"sync/atomic"
	"time"

	"github.com/letomq/leto/store/index"
)

// measures counts what the store does.
type measures struct {
	windows        atomic.Int64
	windowBytes    atomic.Int64
	flushTime      atomic.Int64
	flushMax       atomic.Int64
	refused        atomic.Int64
	waited         atomic.Int64
	applies        atomic.Int64
	applyTime      atomic.Int64
	indexed        atomic.Int64
	edited         atomic.Int64
	checkpoints    atomic.Int64
	checkpointTime atomic.Int64
	freed          atomic.Int64
	relocated      atomic.Int64
	restated       atomic.Int64
	badBodies      atomic.Int64
	reads          atomic.Int64
}

func (m *measures) flushed(bytes int64, took time.Duration) {
	m.windows.Add(1)
	m.windowBytes.Add(bytes)
	m.flushTime.Add(int64(took))
	if int64(took) > m.flushMax.Load() {
		m.flushMax.Store(int64(took)) // only who appends does this
	}
}

func (m *measures) applied(b *index.Batch, took time.Duration) {
	m.applies.Add(1)
	m.applyTime.Add(int64(took))
	for _, l := range b.Levels {
		m.indexed.Add(int64(len(l.Adds)))
		m.edited.Add(int64(len(l.Edits)))
	}
}

// Metrics is what the store has done since it was opened, and how it is now. Times are sums.
type Metrics struct {
	Windows     int64 // flushes: one each
	WindowBytes int64
	FlushTime   time.Duration
	FlushMax    time.Duration
	Refused     int64         // commits, for want of space
	Waited      time.Duration // of commits, for the index

	Applies        int64
	ApplyTime      time.Duration
	Indexed        int64 // entries that stayed long enough to be entered in the index
	Edited         int64 // changes to entries of the index
	PendingBytes   int64 // committed and not applied
	PendingWindows int
	PendingAge     time.Duration // of the oldest of them

	Checkpoints    int64
	CheckpointTime time.Duration

	Segments     int
	JournalBytes int64 // of segments
	LiveBytes    int64 // of bodies that are needed; those that several entries share count for each
	Freed        int64 // segments
	Relocated    int64 // entries
	Restated     int64 // bytes

	Queues       uint64
	Entries      uint64 // in the index
	PayloadBytes uint64

	BadBodies int64 // that didn't read well
	Alarms    int64 // of the index
	Free      int64 // bytes on the device
	Full      bool  // messages are refused
	Failed    error
}

// Metrics returns the store's. It may be called at any time, also after Close.
func (s *Store) Metrics() Metrics {
	m := &s.measure
	r := Metrics{
		Windows: m.windows.Load(), WindowBytes: m.windowBytes.Load(),
		FlushTime: time.Duration(m.flushTime.Load()), FlushMax: time.Duration(m.flushMax.Load()),
		Refused: m.refused.Load(), Waited: time.Duration(m.waited.Load()),
		Applies: m.applies.Load(), ApplyTime: time.Duration(m.applyTime.Load()),
		Indexed: m.indexed.Load(), Edited: m.edited.Load(),
		Checkpoints: m.checkpoints.Load(), CheckpointTime: time.Duration(m.checkpointTime.Load()),
		Freed: m.freed.Load(), Relocated: m.relocated.Load(), Restated: m.restated.Load(),
		BadBodies: m.badBodies.Load(), Alarms: s.index.Alarms(),
		Free: s.space.free.Load(), Full: s.full.Load(),
	}
	for _, seg := range s.journal.Segments() {
		r.Segments++
		r.JournalBytes += seg.Size
	}
	for _, l := range s.index.Live() {
		r.LiveBytes += l.Bytes
	}
	r.Queues, r.Entries, r.PayloadBytes = s.index.Totals()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.PendingBytes, r.PendingWindows = s.pending.bytes, len(s.pending.windows)
	if len(s.pending.windows) > 0 {
		r.PendingAge = time.Since(s.pending.windows[0].since)
	}
	r.Failed = s.err
	return r
}
