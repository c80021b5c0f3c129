// Package crashfs is a file system in memory for tests. It knows what of each file has been flushed and what has only
// been written, and makes any state that a device may be in after the power went: sectors of 512 bytes that were not
// flushed each lost, kept or torn, sizes and names as flushed or not. It injects errors at a chosen operation.
//
// Its operations are those that change something: they are counted from 1. Folders are on the device as soon as they
// are made.
package crashfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"syscall"

	"github.com/letomq/leto/store/journal"
)

// ErrCrashed is what every operation returns from the crash on.
var ErrCrashed = errors.New("crashfs: crashed")

// Op is one operation.
type Op struct {
	Kind   OpKind
	Name   string // of the file, as it was opened, or the folder
	To     string // rename
	Offset int64  // write
	Length int64  // write, allocate, truncate
}

// OpKind says what an operation does.
type OpKind uint8

const (
	OpCreate OpKind = iota + 1
	OpWrite
	OpSync
	OpAllocate
	OpTruncate
	OpRename
	OpRemove
	OpSyncDir
)

// FS is a file system. It is safe for use by several goroutines.
type FS struct {
	mu       sync.Mutex
	names    map[string]*inode // as processes see them
	device   map[string]*inode // as they are flushed
	changes  []change          // of names, not flushed
	folders  map[string]bool
	capacity int64

	ops     int
	trace   func(Op)
	stopAt  int
	stopped bool
	failAt  int
	failure error
	sticky  bool
	faults  []string // what no program may do
}

var _ journal.FS = (*FS)(nil)

// change is a change of a name that isn't flushed. From is empty for a new file, to for a removed one.
type change struct {
	from, to string
	node     *inode
}

// New returns an empty file system.
func New() *FS {
	return &FS{names: map[string]*inode{}, device: map[string]*inode{}, folders: map[string]bool{".": true}}
}

// StopAt lets the n-th operation from now be the last: it may or may not have happened, and it and all later ones
// return ErrCrashed.
func (f *FS) StopAt(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopAt = f.ops + n
}

// FailAt lets the n-th operation from now fail. ENOSPC does nothing; a write that fails otherwise is done by half, and
// what a failed flush should have flushed may be on the device or not, whatever is flushed later.
func (f *FS) FailAt(n int, err error) { f.setFault(n, err, false) }

// FailFrom lets all operations fail from the n-th from now on, until FailAt(0, nil).
func (f *FS) FailFrom(n int, err error) { f.setFault(n, err, true) }

func (f *FS) setFault(n int, err error, sticky bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt, f.failure, f.sticky = f.ops+n, err, sticky
	if n == 0 {
		f.failure = nil
	}
}

// SetCapacity sets how many bytes all files together may have; 0 is no limit.
func (f *FS) SetCapacity(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity = bytes
}

// Trace calls t with every operation before it is done.
func (f *FS) Trace(t func(Op)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace = t
}

// Ops returns how many operations there were.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// Faults returns what a program must not do and did: to write or flush a file whose flush had failed.
func (f *FS) Faults() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

// Names returns the names of all files.
func (f *FS) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for name := range f.names {
		all = append(all, name)
	}
	return all
}

// ReadFile returns what is in a file, nil if it isn't there.
func (f *FS) ReadFile(name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.names[name]; n != nil {
		return append([]byte{}, n.data...)
	}
	return nil
}

// Flip turns one bit of a file over, on the device.
func (f *FS) Flip(name string, offset int64, bit uint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.names[name]
	n.own()
	n.data[offset] ^= 1 << bit
	if offset < int64(len(n.device)) {
		n.device[offset] ^= 1 << bit
	}
}

// begin counts an operation. crash says that it is the last, and may happen; otherwise an error means that it doesn't.
func (f *FS) begin(op Op) (crash bool, err error) {
	if f.stopped {
		return false, ErrCrashed
	}
	f.ops++
	if f.trace != nil {
		f.trace(op)
	}
	if f.ops == f.stopAt {
		f.stopped = true
		return true, nil
	}
	if f.failure != nil && (f.ops == f.failAt || f.sticky && f.ops > f.failAt) {
		return false, f.failure
	}
	return false, nil
}

func finish(crash bool) error {
	if crash {
		return ErrCrashed
	}
	return nil
}

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// Open opens a file.
func (f *FS) Open(name string, create bool) (journal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil, ErrCrashed
	}
	if n := f.names[name]; n != nil {
		return &file{fs: f, name: name, node: n}, nil
	}
	if !create || !f.folders[path.Dir(name)] {
		return nil, notExist("open", name)
	}
	crash, err := f.begin(Op{Kind: OpCreate, Name: name})
	if err != nil {
		return nil, err
	}
	n := newInode()
	f.names[name] = n
	f.changes = append(f.changes, change{to: name, node: n})
	return &file{fs: f, name: name, node: n}, finish(crash)
}

// Rename renames a file.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	crash, err := f.begin(Op{Kind: OpRename, Name: from, To: to})
	if err != nil {
		return err
	}
	n := f.names[from]
	if n == nil || !f.folders[path.Dir(to)] {
		return notExist("rename", from)
	}
	delete(f.names, from)
	f.names[to] = n
	f.changes = append(f.changes, change{from: from, to: to, node: n})
	return finish(crash)
}

// Remove removes a file.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	crash, err := f.begin(Op{Kind: OpRemove, Name: name})
	if err != nil {
		return err
	}
	n := f.names[name]
	if n == nil {
		return notExist("remove", name)
	}
	delete(f.names, name)
	f.changes = append(f.changes, change{from: name, node: n})
	return finish(crash)
}

// List returns the names of the files in a folder.
func (f *FS) List(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil, ErrCrashed
	}
	if !f.folders[path.Clean(dir)] {
		return nil, notExist("list", dir)
	}
	var names []string
	for name := range f.names {
		if path.Dir(name) == path.Clean(dir) {
			names = append(names, path.Base(name))
		}
	}
	return names, nil
}

// MkdirAll makes a folder and those it is in.
func (f *FS) MkdirAll(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return ErrCrashed
	}
	for dir = path.Clean(dir); dir != "." && dir != "/"; dir = path.Dir(dir) {
		f.folders[dir] = true
	}
	return nil
}

// SyncDir flushes the names in a folder.
func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	crash, err := f.begin(Op{Kind: OpSyncDir, Name: dir})
	if err != nil {
		return err
	}
	if crash {
		return ErrCrashed
	}
	dir = path.Clean(dir)
	var rest []change
	for _, c := range f.changes {
		if within := c.from != "" && path.Dir(c.from) == dir || c.to != "" && path.Dir(c.to) == dir; within {
			c.apply(f.device)
		} else {
			rest = append(rest, c)
		}
	}
	f.changes = rest
	return nil
}

func (c change) apply(names map[string]*inode) {
	if c.from != "" {
		if names[c.from] != c.node {
			return // what came before it is lost
		}
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.node
	}
}

// Free returns how many bytes can be written.
func (f *FS) Free() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.capacity == 0 {
		return 1 << 50, nil
	}
	return max(0, f.capacity-f.used()), nil
}

func (f *FS) used() int64 {
	used := int64(0)
	for _, n := range f.names {
		used += int64(len(n.data))
	}
	return used
}

// room returns ENOSPC if so many more bytes don't fit.
func (f *FS) room(more int64) error {
	if f.capacity > 0 && more > 0 && f.used()+more > f.capacity {
		return fmt.Errorf("crashfs: %w", syscall.ENOSPC)
	}
	return nil
}
