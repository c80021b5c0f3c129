//go:build !unix

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrLocked says that another process has the store.
var ErrLocked = errors.New("store: in use by another process")

// lock opens the file and locks nothing: a second process must be kept away by other means. Badger locks its folder.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("store: lock: %w", err)
	}
	return f, nil
}
