package crashfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
)

const (
	sectorSize = 512
	versions   = 4 // of an unflushed sector that are remembered
)

// inode is a file, whatever its names.
type inode struct {
	data    []byte             // as processes see it
	device  []byte             // as it was flushed
	written map[int64][][]byte // by sector: what it held since, oldest first
	lost    map[int64][][]byte // as written, but a flush of it has failed: no other flush flushes it
	sizes   []int64            // that the file had since the flush
	failed  bool               // a flush has
	shared  bool               // data and device belong to copies as well
}

// own makes data and device the inode's own, before they are changed.
func (n *inode) own() {
	if n.shared {
		n.data, n.device, n.shared = slices.Clone(n.data), slices.Clone(n.device), false
	}
}

func newInode() *inode {
	return &inode{written: map[int64][][]byte{}, lost: map[int64][][]byte{}}
}

// resize changes the size; new bytes are zeros.
func (n *inode) resize(size int64) {
	if size == int64(len(n.data)) {
		return
	}
	n.own()
	if old := int64(len(n.data)); size < old {
		clear(n.data[size:])
		n.data = n.data[:size]
		n.note(size, old)
	} else {
		n.data = append(n.data, make([]byte, size-old)...)
	}
	n.sizes = append(n.sizes, size)
}

// note remembers what the sectors between two offsets hold now.
func (n *inode) note(from, to int64) {
	for s := from / sectorSize; s*sectorSize < to; s++ {
		content := make([]byte, sectorSize)
		if s*sectorSize < int64(len(n.data)) {
			copy(content, n.data[s*sectorSize:])
		}
		held := append(n.written[s], content)
		n.written[s] = held[max(0, len(held)-versions):]
	}
}

// flush brings to the device what was written since the last flush, whether that had failed or not.
func (n *inode) flush() {
	n.own()
	if size := len(n.data); size > len(n.device) {
		n.device = append(n.device, make([]byte, size-len(n.device))...)
	} else {
		n.device = n.device[:size]
	}
	for s := range n.written {
		if s*sectorSize < int64(len(n.device)) {
			copy(n.device[s*sectorSize:], n.data[s*sectorSize:min((s+1)*sectorSize, int64(len(n.data)))])
		}
		delete(n.lost, s)
	}
	n.written, n.sizes = map[int64][][]byte{}, nil
}

// spoil is a flush that fails.
func (n *inode) spoil() {
	for s, held := range n.written {
		n.lost[s] = append(n.lost[s], held...)
	}
	n.written, n.failed = map[int64][][]byte{}, true
}

// file is an open file.
type file struct {
	fs     *FS
	name   string
	node   *inode
	closed bool
}

// begin is FS.begin for an open file. f.fs.mu is held.
func (f *file) begin(op Op) (crash bool, err error) {
	if f.closed {
		return false, os.ErrClosed
	}
	op.Name = f.name
	if f.node.failed && (op.Kind == OpWrite || op.Kind == OpSync) {
		f.fs.faults = append(f.fs.faults, fmt.Sprintf("%s: operation %d after a failed flush", f.name, op.Kind))
	}
	return f.fs.begin(op)
}

func (f *file) ReadAt(b []byte, offset int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	switch {
	case f.fs.stopped:
		return 0, ErrCrashed
	case f.closed:
		return 0, os.ErrClosed
	case offset >= int64(len(f.node.data)):
		return 0, io.EOF
	}
	n := copy(b, f.node.data[offset:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, offset int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	crash, err := f.begin(Op{Kind: OpWrite, Offset: offset, Length: int64(len(b))})
	if err == nil {
		err = f.fs.room(offset + int64(len(b)) - int64(len(f.node.data)))
	}
	switch {
	case errors.Is(err, os.ErrClosed) || errors.Is(err, ErrCrashed) || errors.Is(err, syscall.ENOSPC):
		return 0, err
	case err != nil:
		b = b[:len(b)/2]
	}
	end := offset + int64(len(b))
	if end > int64(len(f.node.data)) {
		f.node.resize(end)
	}
	f.node.own()
	copy(f.node.data[offset:], b)
	f.node.note(offset, end)
	if crash {
		return 0, ErrCrashed
	}
	return len(b), err
}

func (f *file) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	crash, err := f.begin(Op{Kind: OpSync})
	switch {
	case errors.Is(err, os.ErrClosed) || errors.Is(err, ErrCrashed):
		return err
	case err != nil:
		f.node.spoil()
		return err
	case crash:
		return ErrCrashed
	}
	f.node.flush()
	return nil
}

func (f *file) Allocate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	crash, err := f.begin(Op{Kind: OpAllocate, Length: size})
	if err == nil {
		err = f.fs.room(size - int64(len(f.node.data)))
	}
	if err != nil {
		return err
	}
	if size > int64(len(f.node.data)) {
		f.node.resize(size)
	}
	return finish(crash)
}

func (f *file) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	crash, err := f.begin(Op{Kind: OpTruncate, Length: size})
	if err == nil {
		err = f.fs.room(size - int64(len(f.node.data)))
	}
	if err != nil {
		return err
	}
	f.node.resize(size)
	return finish(crash)
}

func (f *file) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.stopped {
		return 0, ErrCrashed
	}
	if f.closed {
		return 0, os.ErrClosed
	}
	return int64(len(f.node.data)), nil
}

func (f *file) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	f.closed = true
	return nil
}
