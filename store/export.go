package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// An export is a header and frames: FORMAT.md, "Exports".
const (
	exportMagic   = "LETOEXPT"
	exportVersion = 1
	exportFrame   = 1 << 20 // about how large frames are, bytes
	exportMax     = 2 << 30 // a message goes as a whole
)

// ErrExport says that what is read isn't an export, or not a whole one.
var ErrExport = errors.New("store: not a whole export")

// LeftOut is how many messages aren't in an export that is whole otherwise: their bodies can't be read.
type LeftOut int

func (n LeftOut) Error() string {
	return fmt.Sprintf("store: export: %d messages are left out, because their bodies are damaged", int(n))
}

// Export writes all that the store holds at one moment in a form that outlives versions of the store. It may run
// beside commits. A LeftOut error says that the export can be used and isn't complete; Options.Alarm was told of each.
func (s *Store) Export(w io.Writer) error {
	snap, err := s.snapshot()
	if err != nil {
		return err
	}
	defer snap.release()
	out := bufio.NewWriterSize(w, 1<<16)
	e := exporter{snap: snap, out: out}
	if err := e.run(); err != nil {
		return fmt.Errorf("store: export: %w", err)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if e.left > 0 {
		return e.left
	}
	return nil
}

type exporter struct {
	snap   *snapshot
	out    io.Writer
	w      windowWriter
	frames uint64
	left   LeftOut
}

func (e *exporter) run() error {
	head := binary.BigEndian.AppendUint16([]byte(exportMagic), exportVersion)
	if _, err := e.out.Write(head); err != nil {
		return err
	}
	e.w.reset()
	c := e.snap.Counters()
	e.w.counters(c.LastNumber, c.LastQueue)
	if err := e.snap.Definitions(func(queue uint64, value []byte) error {
		d, err := decodeDefinition(queue, value)
		if err == nil {
			e.w.define(&d)
			err = e.frame(exportFrame)
		}
		return err
	}); err != nil {
		return err
	}
	if err := e.snap.Cells(func(space uint64, key, value []byte) error {
		e.w.cell(space, key, value)
		return e.frame(exportFrame)
	}); err != nil {
		return err
	}
	if err := e.snap.Remembering(func(address string, keep uint64) error {
		ids, err := e.snap.Remembered(address)
		if err != nil {
			return err
		}
		for i := range ids {
			e.w.remember(address, ids[i].Number, keep, ids[i].Value)
			if err := e.frame(exportFrame); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for _, queue := range e.snap.Queues() {
		for priority := range uint8(index.Priorities) {
			if err := e.level(queue, priority); err != nil {
				return err
			}
		}
	}
	if err := e.frame(0); err != nil {
		return err
	}
	end := make([]byte, 8, 16)
	_, err := e.out.Write(binary.BigEndian.AppendUint64(end, e.frames))
	return err
}

// level writes the messages of a level. Those that don't read well are reported and left out.
func (e *exporter) level(queue uint64, priority uint8) error {
	s := e.snap.store
	b := bodies{store: s}
	var entries []index.Entry
	write := func() error {
		b.reset(entries)
		for i := range entries {
			stored, err := b.read(&entries[i])
			var bad *BodyError
			if errors.As(err, &bad) {
				bad.Queue, bad.Number = engine.QueueID(queue), entries[i].Number
				s.measure.badBodies.Add(1)
				s.alarm(bad.Error())
				e.left++
				continue
			}
			if err != nil {
				return err
			}
			e.w.body(stored.Message, nil)
			e.w.enqueue(factEnqueue, queue, stored.Number, priority, e.w.bodies, stored.Count, stored.Base)
			e.w.annotations(stored.Annotations)
			if stored.Due != 0 {
				e.w.due(queue, stored.Number, priority, stored.Due)
			}
			if err := e.frame(exportFrame); err != nil {
				return err
			}
		}
		entries = entries[:0]
		return nil
	}
	var failed error
	if err := e.snap.Load(queue, priority, func(entry *index.Entry) bool {
		if entries = append(entries, *entry); len(entries) == 1024 {
			failed = write()
		}
		return failed == nil
	}); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return write()
}

// frame writes what there is, if it is more than so many bytes.
func (e *exporter) frame(above int) error {
	if e.w.empty() || len(e.w.b) < above {
		return nil
	}
	if err := e.snap.store.usable(); err != nil {
		return err
	}
	if len(e.w.b) > exportMax {
		return fmt.Errorf("a message of %d bytes", len(e.w.b))
	}
	head := binary.BigEndian.AppendUint32(make([]byte, 0, 8), uint32(len(e.w.b)))
	head = binary.BigEndian.AppendUint32(head, journal.Checksum(e.w.b))
	if _, err := e.out.Write(head); err != nil {
		return err
	}
	if _, err := e.out.Write(e.w.b); err != nil {
		return err
	}
	e.frames++
	e.w.reset()
	return nil
}

// Import makes a new store in a folder out of an export. With an error the folder isn't a store yet: remove it.
func Import(o Options, r io.Reader) (err error) {
	s, err := Open(o)
	if err != nil {
		return err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	state, err := s.Recover()
	if err != nil {
		return err
	}
	if len(state.Queues) > 0 || state.LastQueue > 0 {
		return errors.New("store: import: the store isn't empty")
	}
	in := bufio.NewReaderSize(r, 1<<16)
	head := make([]byte, len(exportMagic)+2)
	if _, err := io.ReadFull(in, head); err != nil || string(head[:8]) != exportMagic {
		return fmt.Errorf("%w: no header", ErrExport)
	}
	if v := binary.BigEndian.Uint16(head[8:]); v != exportVersion {
		return fmt.Errorf("%w: version %d is unknown", ErrExport, v)
	}
	var b bytes.Buffer
	for frames := uint64(0); ; frames++ {
		if _, err := io.ReadFull(in, head[:8]); err != nil {
			return fmt.Errorf("%w: it ends after %d frames", ErrExport, frames)
		}
		n := binary.BigEndian.Uint32(head)
		if n == 0 {
			var count [8]byte
			if _, err := io.ReadFull(in, count[:]); err != nil || binary.BigEndian.Uint64(count[:]) != frames {
				return fmt.Errorf("%w: %d frames at the end", ErrExport, frames)
			}
			return nil
		}
		if n > exportMax {
			return fmt.Errorf("%w: frame of %d bytes", ErrExport, n)
		}
		b.Reset()
		if _, err := io.CopyN(&b, in, int64(n)); err != nil {
			return fmt.Errorf("%w: frame %d is cut off", ErrExport, frames)
		}
		if journal.Checksum(b.Bytes()) != binary.BigEndian.Uint32(head[4:]) {
			return fmt.Errorf("%w: frame %d has a wrong checksum", ErrExport, frames)
		}
		if err := s.importFrame(b.Bytes()); err != nil {
			return fmt.Errorf("store: import: frame %d: %w", frames, err)
		}
	}
}

// importFrame commits the facts of a frame.
func (s *Store) importFrame(payload []byte) error {
	var records []engine.Record
	var messages []*queue.Message
	w := readWindow(payload)
	for w.next() {
		f := &w.fact
		switch f.kind {
		case factDefine:
			d := f.definition
			records = append(records, engine.Record{Kind: engine.RecordDefine, Queue: d.ID, Definition: &d})
		case factBody:
			h, err := readBody(f.bytes, nil)
			if err != nil {
				return err
			}
			m := h.message.Fresh()
			m.Address, m.Payload = string(h.address), bytes.Clone(h.payload)
			messages = append(messages, m)
		case factEnqueue:
			if f.body == 0 || f.body > uint64(len(messages)) {
				return fmt.Errorf("%w: entry %d without body", errMalformed, f.number)
			}
			annotations, err := readAnnotations(f.annotations)
			if err != nil {
				return err
			}
			records = append(records, engine.Record{
				Kind: engine.RecordEnqueue, Queue: engine.QueueID(f.queue), Number: f.number, Message: messages[f.body-1],
				Count: f.count, Base: f.base, Due: f.due, Annotations: annotations,
			})
		case factRemember:
			records = append(records, engine.Record{Kind: engine.RecordRemember, Number: f.number, Remembered: &engine.Remembered{
				Address: string(f.key), ID: f.id, Keep: int(min(f.keep, math.MaxInt)),
			}})
		case factCounters, factCell:
			if err := s.importState(f); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: fact of kind %d", errMalformed, f.kind)
		}
	}
	if w.err != nil {
		return w.err
	}
	return s.Commit(records)
}

// importState commits a fact for which there is no record.
func (s *Store) importState(f *fact) error {
	if err := s.await(); err != nil {
		return err
	}
	s.append.Lock()
	defer s.append.Unlock()
	w := &s.writer
	w.reset()
	if f.kind == factCell {
		w.cell(f.space, f.key, f.value)
	} else {
		w.counters(f.lastNum, f.lastQ)
	}
	return s.appendState()
}
