package journal

import (
	"os"
	"path/filepath"
)

// OS returns the file system below a folder.
func OS(root string) FS { return osFS(root) }

type osFS string

func (root osFS) path(name string) string {
	return filepath.Join(string(root), filepath.FromSlash(name))
}

func (root osFS) Open(name string, create bool) (File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(root.path(name), flags, 0o640)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f, fd: int(f.Fd())}, nil
}

func (root osFS) Rename(from, to string) error { return os.Rename(root.path(from), root.path(to)) }

func (root osFS) Remove(name string) error { return os.Remove(root.path(name)) }

func (root osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(root.path(dir))
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// MkdirAll also flushes the folder that the first new one is in.
func (root osFS) MkdirAll(dir string) error {
	path := root.path(dir)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}

func (root osFS) SyncDir(dir string) error { return syncPath(root.path(dir)) }

func syncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}

func (root osFS) Free() (int64, error) { return freeBytes(string(root)) }

type osFile struct {
	*os.File
	fd int // asked for once: Fd of a file isn't free
}

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
