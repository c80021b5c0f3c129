package crashfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Kill ends the process that uses the file system: f takes nothing more. The returned one is what the next process
// finds: everything that was written can be read, and what wasn't flushed still isn't.
func (f *FS) Kill() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	return f.copy()
}

// Copy returns a file system in the same state, in which nothing is open.
func (f *FS) Copy() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.copy()
}

func (f *FS) copy() *FS {
	next := f.empty()
	copies := map[*inode]*inode{}
	clone := func(n *inode) *inode {
		if copies[n] == nil {
			copies[n] = n.clone()
		}
		return copies[n]
	}
	for name, n := range f.names {
		next.names[name] = clone(n)
	}
	for name, n := range f.device {
		next.device[name] = clone(n)
	}
	for _, c := range f.changes {
		next.changes = append(next.changes, change{c.from, c.to, clone(c.node)})
	}
	return next
}

func (n *inode) clone() *inode {
	n.shared = true
	return &inode{data: n.data, device: n.device, shared: true, written: cloneSectors(n.written), lost: cloneSectors(n.lost),
		sizes: slices.Clone(n.sizes)}
}

func cloneSectors(sectors map[int64][][]byte) map[int64][][]byte {
	all := make(map[int64][][]byte, len(sectors))
	for s, contents := range sectors {
		all[s] = slices.Clone(contents)
	}
	return all
}

func (f *FS) empty() *FS {
	next := New()
	next.capacity = f.capacity
	maps.Copy(next.folders, f.folders)
	return next
}

// Crash returns a file system as it may be after the power went now. f stays as it is: another call may return
// another outcome. What is left to chance comes from rng.
func (f *FS) Crash(rng *rand.Rand) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.empty()
	names := maps.Clone(f.device)
	keep := fate(rng)
	for _, c := range f.changes {
		if keep() {
			c.apply(names)
		}
	}
	copies := map[*inode]*inode{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := names[name]
		if copies[n] == nil {
			after := newInode()
			after.data = n.crash(rng)
			after.device, after.shared = after.data, true
			copies[n] = after
		}
		next.names[name], next.device[name] = copies[n], copies[n]
	}
	return next
}

// fate returns a function that says, for one thing after the other, whether it was still written: all, none, the
// first ones, the last ones, or any.
func fate(rng *rand.Rand) func() bool {
	left := rng.IntN(16)
	switch rng.IntN(6) {
	case 0:
		return func() bool { return true }
	case 1:
		return func() bool { return false }
	case 2:
		return func() bool { left--; return left >= 0 }
	case 3:
		return func() bool { left--; return left < 0 }
	case 4:
		return func() bool { return rng.IntN(12) != 0 }
	}
	return func() bool { return rng.IntN(2) == 0 }
}

// crash returns what may be on the device.
func (n *inode) crash(rng *rand.Rand) []byte {
	if len(n.written)+len(n.lost)+len(n.sizes) == 0 {
		n.shared = true
		return n.device
	}
	size := int64(len(n.device))
	if len(n.sizes) > 0 && rng.IntN(2) == 0 {
		size = n.sizes[rng.IntN(len(n.sizes))]
	}
	image := make([]byte, size)
	copy(image, n.device)
	sectors := map[int64][][]byte{}
	for _, held := range []map[int64][][]byte{n.lost, n.written} {
		for s, contents := range held {
			sectors[s] = append(slices.Clone(sectors[s]), contents...)
		}
	}
	keep, tear := fate(rng), rng.IntN(3) == 0
	for _, s := range slices.Sorted(maps.Keys(sectors)) {
		if s*sectorSize >= size || !keep() {
			continue
		}
		sector := image[s*sectorSize : min((s+1)*sectorSize, size)]
		held := sectors[s]
		for _, content := range held[:1+rng.IntN(len(held))] {
			length := len(sector)
			if tear && rng.IntN(4) == 0 {
				length = rng.IntN(length + 1)
			}
			copy(sector[:length], content)
		}
	}
	return image
}
