package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const (
	makingName  = "making.tmp" // a segment that isn't ready
	sparePrefix = "spare-"
	suffix      = ".seg"
)

func segmentName(dir string, number uint64) string {
	return path.Join(dir, fmt.Sprintf("%016x%s", number, suffix))
}

// folder is the journal's folder: it gives files their names, and knows which lie there to be used again.
type folder struct {
	fs     FS
	dir    string
	size   int64 // of the segments that are made
	spares int   // how many are kept

	mu        sync.Mutex // held while names are changed
	spare     []uint64
	lastSpare uint64
}

func (f *folder) spareName(n uint64) string {
	return path.Join(f.dir, sparePrefix+strconv.FormatUint(n, 10)+suffix)
}

// read lists the folder: the numbers of segments, in order, and whether an unfinished one is there.
func (f *folder) read() (numbers []uint64, unfinished bool, err error) {
	names, err := f.fs.List(f.dir)
	if err != nil {
		return nil, false, err
	}
	for _, name := range names {
		if name == makingName {
			unfinished = true
			continue
		}
		stem, ok := strings.CutSuffix(name, suffix)
		if !ok {
			continue
		}
		if digits, ok := strings.CutPrefix(stem, sparePrefix); ok {
			if n, err := strconv.ParseUint(digits, 10, 64); err == nil && name == path.Base(f.spareName(n)) {
				f.spare = append(f.spare, n)
				f.lastSpare = max(f.lastSpare, n)
			}
		} else if n, err := strconv.ParseUint(stem, 16, 64); err == nil && n > 0 && name == path.Base(segmentName("", n)) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	slices.Sort(f.spare)
	return numbers, unfinished, nil
}

// tidy removes what is no use: an unfinished segment, spares of another size and too many of them. It flushes the
// folder in any case: a process that was killed may have left names that are not on the device yet.
func (f *folder) tidy(unfinished bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if unfinished {
		if err := f.fs.Remove(path.Join(f.dir, makingName)); err != nil {
			return err
		}
	}
	var keep []uint64
	for _, n := range f.spare {
		size, err := f.sizeOf(f.spareName(n))
		if err != nil {
			return err
		}
		// At least one stays, so that a start needn't wait for a new one.
		if size == f.size && len(keep) < max(f.spares, 1) {
			keep = append(keep, n)
		} else if err := f.fs.Remove(f.spareName(n)); err != nil {
			return err
		}
	}
	f.spare = keep
	return f.fs.SyncDir(f.dir)
}

func (f *folder) sizeOf(name string) (int64, error) {
	file, err := f.fs.Open(name, false)
	if err != nil {
		return 0, err
	}
	size, err := file.Size()
	if e := file.Close(); err == nil {
		err = e
	}
	return size, err
}

// retire makes a segment a spare, or removes it if there are enough, and flushes the folder.
func (f *folder) retire(number uint64, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.shelve(number, size, f.spares); err != nil {
		return err
	}
	return f.fs.SyncDir(f.dir)
}

// keep makes a file that provide returned a spare again.
func (f *folder) keep(number uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.shelve(number, f.size, max(f.spares, 1)); err != nil {
		return err
	}
	return f.fs.SyncDir(f.dir)
}

func (f *folder) shelve(number uint64, size int64, limit int) error {
	if size != f.size || len(f.spare) >= limit {
		return f.fs.Remove(segmentName(f.dir, number))
	}
	n := f.lastSpare + 1
	if err := f.fs.Rename(segmentName(f.dir, number), f.spareName(n)); err != nil {
		return err
	}
	f.spare, f.lastSpare = append(f.spare, n), n
	return nil
}

// provide makes a file ready to be the segment of a number, and flushes its name. A new one is filled with zeros, so
// that writing to it later changes nothing but its bytes; hurry may end that early. If the device is full, nothing is
// left behind.
func (f *folder) provide(number uint64, hurry func() bool) (File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := segmentName(f.dir, number)
	if n := len(f.spare); n > 0 {
		from := f.spareName(f.spare[n-1])
		file, err := f.fs.Open(from, false)
		if err != nil {
			return nil, err
		}
		if err := f.name(from, name); err != nil {
			_ = file.Close()
			return nil, err
		}
		f.spare = f.spare[:n-1]
		return file, nil
	}
	making := path.Join(f.dir, makingName)
	f.mu.Unlock() // filling takes long, and Free needn't wait for it
	file, err := f.fill(making, hurry)
	f.mu.Lock()
	if err != nil {
		if isFull(err) {
			if e := f.fs.Remove(making); e != nil && !errors.Is(e, fs.ErrNotExist) {
				return nil, fmt.Errorf("%w, when there was no space", e)
			}
		}
		return nil, err
	}
	if err := f.name(making, name); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func (f *folder) name(from, to string) error {
	if err := f.fs.Rename(from, to); err != nil {
		return err
	}
	if err := f.fs.SyncDir(f.dir); err != nil {
		return flushError{err}
	}
	return nil
}

// fillSize is how much is written and flushed at a time, so that a commit never waits for much more.
const fillSize = 1 << 20

var zeros [fillSize]byte

func (f *folder) fill(name string, hurry func() bool) (_ File, err error) {
	file, err := f.fs.Open(name, true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	if err := file.Allocate(f.size); err != nil {
		return nil, err
	}
	for at := int64(0); at < f.size && !hurry(); at += fillSize {
		if _, err := file.WriteAt(zeros[:min(fillSize, f.size-at)], at); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
	}
	return file, file.Sync()
}

// flushError is the error of a flush of names that matter: which of them hold is unknown then, also on a full device.
type flushError struct{ error }

func (e flushError) Unwrap() error { return e.error }

func isFull(err error) bool {
	var flush flushError
	return (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) && !errors.As(err, &flush)
}
