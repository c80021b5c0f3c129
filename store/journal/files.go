package journal

import (
	"errors"
	"io/fs"
	"sync"
)

// files keeps segments open for reading, a bounded number of them besides those that are being read or written.
type files struct {
	fs    FS
	dir   string
	limit int

	mu     sync.Mutex
	open   map[uint64]*handle
	clock  uint64
	closed bool
}

// handle is an open segment that somebody has borrowed, or nobody.
type handle struct {
	File
	number uint64
	users  int
	used   uint64 // clock when it was borrowed last
	gone   bool   // not in the map any more: closed by the last who gives it back
}

// borrow returns a segment's file. It is given back with giveBack.
func (c *files) borrow(number uint64) (*handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	h := c.open[number]
	if h == nil {
		file, err := c.fs.Open(segmentName(c.dir, number), false)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrNoSegment
		}
		if err != nil {
			return nil, err
		}
		h = &handle{File: file, number: number}
		c.open[number] = h
	}
	c.clock++
	h.used = c.clock
	h.users++
	c.evict()
	return h, nil
}

// adopt takes over an open file as that of a segment, borrowed.
func (c *files) adopt(number uint64, file File) *handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	h := &handle{File: file, number: number, users: 1, used: c.clock}
	c.open[number] = h
	c.evict()
	return h
}

func (c *files) giveBack(h *handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.users--
	if h.users == 0 && h.gone {
		_ = h.Close() // nothing was written through it that isn't flushed
	} else {
		c.evict()
	}
}

// drop forgets a segment. Its file is closed when nobody reads it any more.
func (c *files) drop(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.open[number]; h != nil {
		c.forget(h)
	}
}

func (c *files) forget(h *handle) {
	delete(c.open, h.number)
	h.gone = true
	if h.users == 0 {
		_ = h.Close()
	}
}

// evict closes the files that were not used for longest, as long as there are more than the limit.
func (c *files) evict() {
	for len(c.open) > c.limit {
		var oldest *handle
		for _, h := range c.open {
			if h.users == 0 && (oldest == nil || h.used < oldest.used) {
				oldest = h
			}
		}
		if oldest == nil {
			return
		}
		c.forget(oldest)
	}
}

// close closes all files, those in use when they are given back.
func (c *files) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, h := range c.open {
		c.forget(h)
	}
}
