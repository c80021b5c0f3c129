package server

import "testing"

// TestReadBuffers: what is given back is given out again, only as what it is, and not without bound.
func TestReadBuffers(t *testing.T) {
	var p readBuffers
	for _, size := range []int{0, 1, readBufferMin, readBufferMin + 1, 3 * readBufferMin, readBufferMax - 1, readBufferMax + 1, 2 * readBufferMax} {
		p.put(make([]byte, size))
		if b := p.get(size); len(b) != size {
			t.Errorf("a buffer of %d bytes instead of %d", len(b), size)
		}
	}
	for i := range p.free {
		if len(p.free[i]) > 0 {
			t.Errorf("%d buffers are kept of a size that grows from nothing", len(p.free[i]))
		}
	}
	for size := 2 * readBufferMin; size <= readBufferMax; size *= 2 {
		b := p.get(size)
		p.put(b)
		if again := p.get(size); len(again) != size || &again[0] != &b[0] {
			t.Errorf("%d bytes: another one of %d", size, len(again))
		}
		for range 2 * readKept / size {
			p.put(make([]byte, size))
		}
	}
	kept := 0
	for _, all := range p.free {
		for _, b := range all {
			kept += len(b)
		}
	}
	if kept != readClasses*readKept {
		t.Errorf("%d bytes are kept, want %d", kept, readClasses*readKept)
	}
}
