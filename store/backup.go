package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/letomq/leto/store/index"
	"github.com/letomq/leto/store/journal"
)

// Backup writes a copy of the store, as it is at one moment, to a folder that isn't there yet or is empty. The copy is
// a store that can be opened. It may run beside commits; segments aren't given back meanwhile. With an error the
// folder isn't a store: remove it.
func (s *Store) Backup(dir string) error {
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return fmt.Errorf("store: backup: %s isn't empty", dir)
	}
	snap, err := s.snapshot()
	if err != nil {
		return err
	}
	defer snap.release()
	if err := snap.copyTo(dir); err != nil {
		return fmt.Errorf("store: backup: %w", err)
	}
	return nil
}

func (s *snapshot) copyTo(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, indexDir), 0o750); err != nil {
		return err
	}
	to := journal.OS(dir)
	if err := to.MkdirAll(journalDir); err != nil {
		return err
	}
	ts, err := s.CopyTo(index.Options{Dir: filepath.Join(dir, indexDir), Alarm: s.store.o.Alarm})
	if err != nil {
		return err
	}
	for _, seg := range s.segments {
		if err := s.store.usable(); err != nil {
			return err
		}
		if err := s.copySegment(to, seg); err != nil {
			return fmt.Errorf("segment %016x: %w", seg.Number, err)
		}
	}
	if err := to.SyncDir(journalDir); err != nil {
		return err
	}
	p := position{window: s.window, next: s.end, epoch: s.epoch, time: ts, storeID: s.store.id}
	if err := p.write(to); err != nil {
		return err
	}
	// Only now it is a store.
	return writeFormat(to, s.store.id)
}

// copySegment copies a segment, as far as it was written at the moment of the snapshot.
func (s *snapshot) copySegment(to journal.FS, seg journal.SegmentInfo) (err error) {
	name := fmt.Sprintf("%s/%016x.seg", journalDir, seg.Number)
	from, err := s.store.o.FS.Open(name, false)
	if err != nil {
		return err
	}
	defer from.Close()
	copied, err := to.Open(name, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	n := seg.Size
	if seg.Number == s.end.Segment {
		n = min(n, s.end.Offset)
	}
	if err := copied.Truncate(seg.Size); err != nil {
		return err
	}
	if _, err := io.Copy(io.NewOffsetWriter(copied, 0), io.NewSectionReader(from, 0, n)); err != nil {
		return err
	}
	return copied.Sync()
}
