//go:build linux

package powerloss

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// board is memory that the writer shares with whoever watches it: what it says there holds at that moment, and no
// power failure of the test takes it away.
type board struct {
	acked     atomic.Int64 // batches that are held
	open      atomic.Int64 // 1: the store is open
	opening   atomic.Int64 // how long that took, in nanoseconds
	relocated atomic.Int64
	freed     atomic.Int64
	saved     atomic.Int64 // checkpoints
	bad       atomic.Int64 // bodies that didn't read well
	rebuilt   atomic.Int64 // 1: the index didn't open
}

// newBoard makes the file of one.
func newBoard(name string) (*board, error) {
	if err := os.WriteFile(name, make([]byte, os.Getpagesize()), 0o600); err != nil {
		return nil, err
	}
	return openBoard(name)
}

// openBoard maps it, for as long as the process lives.
func openBoard(name string) (*board, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	page, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("board: %w", err)
	}
	return (*board)(unsafe.Pointer(unsafe.SliceData(page))), nil
}

// reset makes it that of a writer that has yet to start.
func (b *board) reset(acked int64) {
	b.acked.Store(acked)
	for _, v := range []*atomic.Int64{&b.open, &b.opening, &b.relocated, &b.freed, &b.saved, &b.bad, &b.rebuilt} {
		v.Store(0)
	}
}
