package index

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Checkpoint returns when all that was applied is on the device, and the time that Open needs to come back to it.
// After an error nobody knows what is: the index must not be used any more.
func (x *Index) Checkpoint() (ts uint64, err error) {
	ts = x.ts
	if x.loose {
		return ts, nil
	}
	// Badger may flush and compact meanwhile. Whatever was in a file that goes is in one that comes, so go on until
	// nothing new is there. What Badger writes later concerns nothing that was applied up to here.
	seen := map[string]bool{}
	for {
		entries, err := os.ReadDir(x.dir)
		if err != nil {
			return 0, fmt.Errorf("index: checkpoint: %w", err)
		}
		fresh := false
		for _, e := range entries {
			name := e.Name()
			if seen[name] || x.synced[name] || !kept(name) {
				continue
			}
			seen[name], fresh = true, true
			if err := syncFile(filepath.Join(x.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return 0, fmt.Errorf("index: checkpoint: %w", err)
			}
		}
		if !fresh {
			break
		}
	}
	if err := syncFile(x.dir); err != nil {
		return 0, fmt.Errorf("index: checkpoint: %w", err)
	}
	for name := range seen {
		if filepath.Ext(name) == ".sst" {
			x.synced[name] = true
		}
	}
	return ts, nil
}

// kept says whether a file of Badger holds something that must survive.
func kept(name string) bool {
	switch filepath.Ext(name) {
	case ".mem", ".sst", ".vlog":
		return true
	}
	return name == "MANIFEST" || name == "DISCARD" || name == "KEYREGISTRY"
}

// Keep says that Open will be asked for no state before ts.
func (x *Index) Keep(ts uint64) { x.db.SetDiscardTs(ts) }
