package queue

// ring is a double-ended queue of entries in ascending order of their keys. It is cheap at both ends; in the middle it
// costs the way to the nearer end.
type ring struct {
	buf  []*Entry // as long as a power of two, or nil
	head uint32
	n    uint32
}

// Short rings are kept when they run empty; long ones are given back, so that an idle queue is small.
const (
	ringMin  = 8
	ringKeep = 16
)

func (r *ring) slot(i uint32) **Entry { return &r.buf[(r.head+i)&uint32(len(r.buf)-1)] }

func (r *ring) at(i uint32) *Entry { return *r.slot(i) }

// room makes space for k more.
func (r *ring) room(k uint32) {
	need := r.n + k
	if need <= uint32(len(r.buf)) {
		return
	}
	size := max(uint32(len(r.buf)), ringMin)
	for size < need {
		size *= 2
	}
	buf := make([]*Entry, size)
	if r.n > 0 {
		first := copy(buf, r.buf[r.head:min(r.head+r.n, uint32(len(r.buf)))])
		copy(buf[first:r.n], r.buf)
	}
	r.buf, r.head = buf, 0
}

// insert puts one entry in its place.
func (r *ring) insert(e *Entry) {
	r.room(1)
	key := e.key()
	if r.n == 0 || r.at(r.n-1).key() < key {
		r.n++
		*r.slot(r.n - 1) = e
		return
	}
	i := r.search(key)
	r.n++
	if i < r.n/2 {
		r.head = (r.head - 1) & uint32(len(r.buf)-1)
		for j := range i {
			*r.slot(j) = r.at(j + 1)
		}
	} else {
		for j := r.n - 1; j > i; j-- {
			*r.slot(j) = r.at(j - 1)
		}
	}
	*r.slot(i) = e
}

// merge puts many entries, in ascending order, in their places: as many steps as there are entries below the last of
// them. They usually come back to the front.
func (r *ring) merge(sorted []*Entry) {
	if len(sorted) < 4 {
		for _, e := range sorted {
			r.insert(e)
		}
		return
	}
	k := uint32(len(sorted))
	r.room(k)
	below := r.search(sorted[k-1].key())
	r.head = (r.head - k) & uint32(len(r.buf)-1)
	r.n += k
	read, end := k, k+below
	write := uint32(0)
	for _, e := range sorted {
		for read < end && r.at(read).key() < e.key() {
			*r.slot(write) = r.at(read)
			read, write = read+1, write+1
		}
		*r.slot(write) = e
		write++
	}
}

// search returns the place of the first entry whose key is at least key.
func (r *ring) search(key uint64) uint32 {
	lo, hi := uint32(0), r.n
	for lo < hi {
		mid := (lo + hi) / 2
		if r.at(mid).key() < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// popFront takes the first entry out.
func (r *ring) popFront() *Entry {
	slot := r.slot(0)
	e := *slot
	*slot = nil
	r.head = (r.head + 1) & uint32(len(r.buf)-1)
	r.n--
	r.shrink()
	return e
}

// remove takes the entry at i out.
func (r *ring) remove(i uint32) {
	if i < r.n/2 {
		for j := i; j > 0; j-- {
			*r.slot(j) = r.at(j - 1)
		}
		*r.slot(0) = nil
		r.head = (r.head + 1) & uint32(len(r.buf)-1)
	} else {
		for j := i; j < r.n-1; j++ {
			*r.slot(j) = r.at(j + 1)
		}
		*r.slot(r.n - 1) = nil
	}
	r.n--
	r.shrink()
}

// keep drops the entries that want refuses.
func (r *ring) keep(want func(*Entry) bool) {
	kept := uint32(0)
	for i := range r.n {
		if e := r.at(i); want(e) {
			*r.slot(kept) = e
			kept++
		}
	}
	for i := kept; i < r.n; i++ {
		*r.slot(i) = nil
	}
	r.n = kept
	r.shrink()
}

// shrink gives the space of an empty ring back.
func (r *ring) shrink() {
	if r.n == 0 && len(r.buf) > ringKeep {
		*r = ring{}
	}
}
