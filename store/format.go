package store

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/letomq/leto/store/journal"
)

// Names in a store's folder.
const (
	formatName    = "format"
	positionName  = "position"
	positionFresh = "position.tmp"
	journalDir    = "journal"
	indexDir      = "index"
	spillDir      = "spill"
)

const formatHead = "leto-store "

// ErrFormat says that a folder holds a store of a form that this program doesn't know, or no store at all.
var ErrFormat = errors.New("store: unknown format")

// readFormat returns the store's id, and gives a new store one.
func readFormat(files journal.FS) (id [16]byte, err error) {
	b, err := readFile(files, formatName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return id, fmt.Errorf("store: format: %w", err)
	}
	if len(bytes.Trim(b, "\x00")) == 0 { // none, or one that a crash cut off before anything else was there
		if names, err := files.List(journalDir); err == nil && len(names) > 0 {
			return id, fmt.Errorf("%w: the folder has a journal and no format", ErrFormat)
		}
		rand.Read(id[:])
		return id, writeFormat(files, id)
	}
	lines := bytes.Split(b, []byte("\n"))
	if len(lines) < 2 || string(lines[0]) != formatHead+"1" || hex.DecodedLen(len(lines[1])) != len(id) {
		return id, fmt.Errorf("%w: it begins with %.40q", ErrFormat, b)
	}
	if _, err := hex.Decode(id[:], lines[1]); err != nil {
		return id, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return id, nil
}

func writeFormat(files journal.FS, id [16]byte) error {
	text := fmt.Sprintf("%s1\n%x\n", formatHead, id)
	if err := replaceFile(files, formatName+".tmp", formatName, []byte(text)); err != nil {
		return fmt.Errorf("store: format: %w", err)
	}
	return nil
}

func readFile(files journal.FS, name string) ([]byte, error) {
	f, err := files.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || size > 1<<20 {
		return nil, errors.Join(err, fmt.Errorf("file of %d bytes", size))
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && size > 0 {
		return nil, err
	}
	return b, nil
}

// replaceFile writes a small file so that after a crash either the old or the new one is there.
func replaceFile(files journal.FS, fresh, name string, b []byte) error {
	f, err := files.Open(fresh, true)
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = files.Rename(fresh, name)
	}
	if err == nil {
		err = files.SyncDir(".")
	}
	return err
}

// removeFile returns when a file isn't there, also after a crash.
func removeFile(files journal.FS, name string) error {
	if err := files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return files.SyncDir(".")
}
