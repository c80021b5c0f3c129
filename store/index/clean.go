package index

import (
	"fmt"
	"os"
	"path/filepath"
)

// headerSize is the smallest that a write-ahead log or value log of Badger can be.
const headerSize = 20

// clean removes files that a crash has left between truncation and removal, or between creation and their header:
// Badger wouldn't open with them.
func clean(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	removed := false
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".mem" && ext != ".vlog" {
			continue
		}
		info, err := e.Info()
		if err != nil || info.Size() >= headerSize {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("index: %w", err)
		}
		removed = true
	}
	if removed {
		return syncFile(dir)
	}
	return nil
}

// Empty removes an index that isn't open.
func Empty(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if err := syncFile(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
