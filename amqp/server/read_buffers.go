package server

import (
	"math/bits"
	"sync"
)

// readBuffers are read buffers that nobody uses at the moment, of the sizes between the smallest and the largest that makes
// things faster. A frame's buffer grows with what has come of it, so that each large frame of a new connection would leave
// twice its size to the collector.
type readBuffers struct {
	mu   sync.Mutex
	free [readClasses][][]byte // by size: twice readBufferMin first
}

const (
	readClasses = 6
	// readKept is how many bytes of each size are kept.
	readKept = 1 << 20
)

// class returns where buffers of a size are, false if they aren't kept.
func (p *readBuffers) class(size int) (int, bool) {
	i := bits.Len(uint(size/readBufferMin)) - 2
	return i, i >= 0 && i < readClasses && readBufferMin<<(i+1) == size
}

func (p *readBuffers) get(size int) []byte {
	if i, kept := p.class(size); kept {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := len(p.free[i]); n > 0 {
			b := p.free[i][n-1]
			p.free[i][n-1] = nil
			p.free[i] = p.free[i][:n-1]
			return b
		}
	}
	return make([]byte, size)
}

// put takes a buffer that nobody refers to any more.
func (p *readBuffers) put(b []byte) {
	i, kept := p.class(len(b))
	if !kept {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free[i]) < readKept/len(b) {
		p.free[i] = append(p.free[i], b)
	}
}
