package server

import "sync"

// pool keeps what connections work with and don't need while they are idle.
type pool[T any] struct {
	make func() T

	mu   sync.Mutex
	free []T
}

const (
	// poolSize bounds what is kept: few connections work at once.
	poolSize = 64
	// bufferInitial is what a new output buffer holds, in bytes; one that has
	// grown beyond bufferKept isn't kept.
	bufferInitial = 4 << 10
	bufferKept    = 512 << 10
)

func (p *pool[T]) get() T {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		var none T
		v := p.free[n-1]
		p.free[n-1] = none
		p.free = p.free[:n-1]
		return v
	}
	return p.make()
}

func (p *pool[T]) put(v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < poolSize {
		p.free = append(p.free, v)
	}
}
