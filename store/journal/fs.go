package journal

import "io"

// FS is what the journal needs of a file system. Names are relative to its root, with slashes. Its methods may be
// called from several goroutines at once.
type FS interface {
	// Open opens a file for reading and writing. With create it is made, empty, when it isn't there; without, that is
	// fs.ErrNotExist.
	Open(name string, create bool) (File, error)
	// Rename gives a file another name; a file that had that name is gone.
	Rename(from, to string) error
	Remove(name string) error
	// List returns the names of the files in a folder, without the folder, in no particular order.
	List(dir string) ([]string, error)
	MkdirAll(dir string) error
	// SyncDir returns when the names in a folder are on the device.
	SyncDir(dir string) error
	// Free returns how many bytes can still be written.
	Free() (int64, error)
}

// File is an open file. Its methods may be called from several goroutines at once.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Sync returns when the file's bytes and its size are on the device. After an error nobody knows which are.
	Sync() error
	// Allocate makes the file at least this long and reserves room for all of it: later writes inside don't run out of
	// space. What wasn't written reads as zeros.
	Allocate(size int64) error
	Truncate(size int64) error
	Size() (int64, error)
	Close() error
}
