package server

import "sync"

// buffers are output buffers that no connection uses at the moment: an idle
// connection holds none.
type buffers struct {
	mu   sync.Mutex
	free [][]byte
}

// Bounds of what is kept: a writer needs two at most, and few write at once.
const (
	buffersKept   = 64
	bufferKept    = 512 << 10
	bufferInitial = 4 << 10
)

func (b *buffers) get() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		buf := b.free[n-1]
		b.free[n-1] = nil
		b.free = b.free[:n-1]
		return buf
	}
	return make([]byte, 0, bufferInitial)
}

func (b *buffers) put(buf []byte) {
	if cap(buf) == 0 || cap(buf) > bufferKept {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) < buffersKept {
		b.free = append(b.free, buf[:0])
	}
}
