package server

import "sync"

// pool keeps what connections work with and don't need while they are idle. Nobody waits for it: where two come at once,
// one of them makes what it needs, or drops it. Hundreds of connections that stand in line would hold up everybody.
type pool[T any] struct {
	make  func() T
	large func(T) bool // whether one is dear to keep

	mu     sync.Mutex
	free   []T
	larges int // of them
}

const (
	// poolSize bounds what is kept: few connections work at once; largeKept those of
	// them that hold more than largeSize bytes.
	poolSize  = 64
	largeKept = 8
	largeSize = 32 << 10
	// bufferInitial is what a new output buffer holds, in bytes; one that has
	// grown beyond bufferKept isn't kept.
	bufferInitial = 4 << 10
	bufferKept    = 512 << 10
)

func (p *pool[T]) get() T {
	if !p.mu.TryLock() {
		return p.make()
	}
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		var none T
		v := p.free[n-1]
		p.free[n-1] = none
		p.free = p.free[:n-1]
		if p.large(v) {
			p.larges--
		}
		return v
	}
	return p.make()
}

func (p *pool[T]) put(v T) {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	large := p.large(v)
	if len(p.free) >= poolSize || large && p.larges >= largeKept {
		return
	}
	p.free = append(p.free, v)
	if large {
		p.larges++
	}
}
