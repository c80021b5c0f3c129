package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// copyStore copies a store's folder while it is in use, so that the copy is what a kill leaves: names may come and go
// in the index, but not during the copy.
func copyStore(t testing.TB, dir string) string {
	t.Helper()
	for range 1000 {
		to := t.TempDir()
		before := names(t, dir)
		err := os.CopyFS(to, os.DirFS(dir))
		if err == nil && slices.Equal(before, names(t, dir)) {
			return to
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	t.Fatal("the store never stands still")
	return ""
}

func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			all = append(all, path)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// removeFiles removes files of a store, and returns how many.
func removeFiles(t testing.TB, dir, pattern string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	return len(found)
}
