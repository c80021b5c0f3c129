package amqp

import "slices"

// ringSpan is how far the oldest entry may lie behind the newest before it
// moves aside: one delivery that stays unsettled for hours must not make the
// table as long as everything that came after it.
const ringSpan = 4096

// unsettled holds the unsettled deliveries of one session and direction by
// delivery-id [2.6.12]. Ids mostly rise by one, so a ring indexed by id serves
// them; old ones that stay are kept in a map beside it.
type unsettled[T any] struct {
	ring []slot[T] // power of two
	base uint32    // id of the oldest id the ring may hold
	span uint32    // ids base … base+span-1 are in the ring
	live int       // in ring and aside together

	aside map[uint32]T
	order []uint32 // ids in aside, rising; may name ids that are gone
}

type slot[T any] struct {
	live  bool
	value T
}

func (u *unsettled[T]) len() int { return u.live }

// put stores id, which must lie after every id that is there, by less than half
// the number space; false if it doesn't.
func (u *unsettled[T]) put(id uint32, v T) bool {
	if oldest, ok := u.oldest(); ok && ahead(id, oldest) <= 0 {
		return false
	}
	switch {
	case u.span == 0:
		if len(u.aside) > 0 && !before(u.order[len(u.order)-1], id) {
			return false
		}
		u.base = id
	case before(id, u.base+u.span):
		return false
	}
	for id-u.base >= ringSpan {
		if u.live == len(u.aside) { // the ring is empty: start anew at id
			u.base, u.span = id, 0
			break
		}
		u.retire()
	}
	want := id - u.base + 1
	if int(want) > len(u.ring) {
		u.grow(want)
	}
	u.span = want
	s := &u.ring[id&uint32(len(u.ring)-1)]
	s.live, s.value = true, v
	u.live++
	return true
}

// oldest returns an id that no entry lies before; false when there is none.
func (u *unsettled[T]) oldest() (uint32, bool) {
	for len(u.aside) > 0 {
		if _, ok := u.aside[u.order[0]]; ok {
			return u.order[0], true
		}
		u.order = u.order[1:]
	}
	return u.base, u.span > 0
}

// retire moves the oldest id of the ring aside.
func (u *unsettled[T]) retire() {
	s := &u.ring[u.base&uint32(len(u.ring)-1)]
	if s.live {
		if u.aside == nil {
			u.aside = make(map[uint32]T)
		}
		u.aside[u.base] = s.value
		u.order = append(u.order, u.base)
		*s = slot[T]{}
	}
	u.base++
	u.span--
}

func (u *unsettled[T]) grow(want uint32) {
	size := uint32(max(16, len(u.ring)))
	for size < want {
		size *= 2
	}
	ring := make([]slot[T], size)
	for i := range u.span {
		id := u.base + i
		ring[id&(size-1)] = u.ring[id&uint32(len(u.ring)-1)]
	}
	u.ring = ring
}

// trim gives memory back when nothing is stored.
func (u *unsettled[T]) trim() {
	if u.live == 0 {
		*u = unsettled[T]{}
	}
}

// get returns the entry of id.
func (u *unsettled[T]) get(id uint32) (v T, found bool) {
	if id-u.base < u.span {
		s := &u.ring[id&uint32(len(u.ring)-1)]
		return s.value, s.live
	}
	v, found = u.aside[id]
	return v, found
}

// set replaces the value of an id that is there.
func (u *unsettled[T]) set(id uint32, v T) {
	if id-u.base < u.span {
		u.ring[id&uint32(len(u.ring)-1)].value = v
		return
	}
	u.aside[id] = v
}

// remove takes id out; false when it wasn't there.
func (u *unsettled[T]) remove(id uint32) bool {
	if id-u.base < u.span {
		s := &u.ring[id&uint32(len(u.ring)-1)]
		if !s.live {
			return false
		}
		*s = slot[T]{}
		u.live--
		for u.span > 0 && !u.ring[u.base&uint32(len(u.ring)-1)].live {
			u.base++
			u.span--
		}
		return true
	}
	if _, ok := u.aside[id]; !ok {
		return false
	}
	delete(u.aside, id)
	u.live--
	if len(u.aside) == 0 {
		u.order = u.order[:0]
	} else if len(u.order) > 64 && len(u.order) > 2*len(u.aside) {
		u.order = slices.DeleteFunc(u.order, func(id uint32) bool { _, ok := u.aside[id]; return !ok })
	}
	return true
}

// next returns the first id in from…last that is there. It costs no more than
// the entries it passes, whatever the width of the range [2.7.6].
func (u *unsettled[T]) next(from, last uint32) (uint32, bool) {
	if len(u.aside) > 0 {
		i, _ := slices.BinarySearchFunc(u.order, from, func(id, from uint32) int { return int(ahead(id, from)) })
		for ; i < len(u.order) && !before(last, u.order[i]); i++ {
			if _, ok := u.aside[u.order[i]]; ok {
				return u.order[i], true
			}
		}
	}
	if u.span == 0 {
		return 0, false
	}
	if before(from, u.base) {
		from = u.base
	}
	for ; !before(last, from) && from-u.base < u.span; from++ {
		if u.ring[from&uint32(len(u.ring)-1)].live {
			return from, true
		}
	}
	return 0, false
}

// each calls f with every entry, in no order; f may set or remove the entry.
func (u *unsettled[T]) each(f func(uint32, T)) {
	for id, v := range u.aside {
		f(id, v)
	}
	from, n := u.base, u.span
	for i := range n {
		if v, ok := u.get(from + i); ok {
			f(from+i, v)
		}
	}
}

// removeIf takes out the entries that gone approves of.
func (u *unsettled[T]) removeIf(gone func(T) bool) {
	u.each(func(id uint32, v T) {
		if gone(v) {
			u.remove(id)
		}
	})
}
