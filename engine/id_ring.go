package engine

import "hash/maphash"

// idRing is the ids that came last, at most as many as its size. It takes 24 bytes for each, and a table of places that
// is at most two thirds full, because there may be very many.
type idRing struct {
	size  int
	seed  maphash.Seed  // so that nobody can make ids that meet in the table
	ids   []DuplicateID // in the order in which they came, from next on once there are size of them; zero: removed
	next  int
	table []uint32 // one more than the place in ids, 0: free
	count int      // ids that aren't removed
}

const smallestRing = 8

// has reports whether an id is there.
func (r *idRing) has(id DuplicateID) bool {
	_, there := r.find(id)
	return there
}

// push adds an id that isn't there. When there are too many, the oldest goes.
func (r *idRing) push(id DuplicateID) {
	place := len(r.ids)
	if place < r.size {
		if place == cap(r.ids) { // no more than needed: append would go beyond the size
			ids := make([]DuplicateID, place, min(max(smallestRing, 2*place), r.size))
			copy(ids, r.ids)
			r.ids = ids
		}
		r.ids = append(r.ids, id)
	} else {
		place = r.next
		r.next = (r.next + 1) % r.size
		r.remove(r.ids[place])
		r.ids[place] = id
	}
	if r.count++; 3*r.count > 2*len(r.table) {
		r.grow()
		return
	}
	slot, _ := r.find(id)
	r.table[slot] = uint32(place) + 1
}

// remove takes an id out, if it is there.
func (r *idRing) remove(id DuplicateID) {
	slot, there := r.find(id)
	if !there {
		return
	}
	r.ids[r.table[slot]-1] = DuplicateID{}
	r.count--
	mask := len(r.table) - 1
	for i := (slot + 1) & mask; r.table[i] != 0; i = (i + 1) & mask { // what follows must be found without it
		if home := r.home(r.ids[r.table[i]-1]); (i-home)&mask >= (i-slot)&mask {
			r.table[slot] = r.table[i]
			slot = i
		}
	}
	r.table[slot] = 0
}

// each calls f with the ids in the order in which they came.
func (r *idRing) each(f func(DuplicateID)) {
	for i := range r.ids {
		if id := r.ids[(r.next+i)%len(r.ids)]; id != (DuplicateID{}) {
			f(id)
		}
	}
}

// bytes returns how much memory the ring takes.
func (r *idRing) bytes() int64 {
	return int64(cap(r.ids)*len(DuplicateID{}) + len(r.table)*4)
}

// find returns the slot of an id, or the one where it would be.
func (r *idRing) find(id DuplicateID) (slot int, there bool) {
	if len(r.table) == 0 || id == (DuplicateID{}) {
		return 0, false
	}
	for slot = r.home(id); ; slot = (slot + 1) & (len(r.table) - 1) {
		switch at := r.table[slot]; {
		case at == 0:
			return slot, false
		case r.ids[at-1] == id:
			return slot, true
		}
	}
}

// home returns the slot where an id is looked for first.
func (r *idRing) home(id DuplicateID) int {
	return int(maphash.Bytes(r.seed, id[:])) & (len(r.table) - 1)
}

func (r *idRing) grow() {
	r.table = make([]uint32, max(2*smallestRing, 2*len(r.table)))
	for place, id := range r.ids {
		if slot, there := r.find(id); !there && id != (DuplicateID{}) {
			r.table[slot] = uint32(place) + 1
		}
	}
}
