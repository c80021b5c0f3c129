package store

import (
	"slices"

	"github.com/letomq/leto/store/index"
)

// pendingIDs is what is pending of the ids of one address.
type pendingIDs struct {
	forgotten uint64 // the window that says that there are none before these, 0: none does
	floor     uint64 // the index has had no higher number here since
	keep      uint64
	ids       []index.ID // in ascending order of number
	windows   []uint64   // where they come from
}

func (p *pending) remember(f *fact, window uint64) error {
	a := p.ids[string(f.key)]
	if a == nil {
		floor := uint64(0)
		if p.noIDs == 0 {
			var err error
			if floor, err = p.index.LastID(string(f.key)); err != nil {
				return err
			}
		}
		a = &pendingIDs{floor: floor}
		p.ids[string(f.key)] = a
	}
	if n := len(a.ids); f.number <= a.floor || n > 0 && f.number <= a.ids[n-1].Number {
		return nil
	}
	a.keep = f.keep
	a.ids, a.windows = append(a.ids, index.ID{Number: f.number, Value: f.id}), append(a.windows, window)
	return nil
}

// forget notes that an address has no ids; the empty one is all.
func (p *pending) forget(address string, window uint64) {
	if address == "" {
		clear(p.ids)
		p.noIDs = window
		return
	}
	p.ids[address] = &pendingIDs{forgotten: window}
}

// through returns how many of the ids come from windows up to one.
func (a *pendingIDs) through(window uint64) int {
	n, _ := slices.BinarySearch(a.windows, window+1)
	return n
}

func (p *pending) collectIDs(b *index.Batch, window uint64) {
	b.NoIDs = p.noIDs != 0 && p.noIDs <= window
	for address, a := range p.ids {
		ids := &index.IDBatch{
			Address: address, Forget: a.forgotten != 0 && a.forgotten <= window, Keep: a.keep, IDs: a.ids[:a.through(window)],
		}
		if ids.Forget || len(ids.IDs) > 0 {
			b.IDs = append(b.IDs, ids)
		}
	}
}

func (p *pending) appliedIDs(window uint64) {
	if p.noIDs <= window {
		p.noIDs = 0
	}
	for address, a := range p.ids {
		if a.forgotten <= window {
			a.forgotten = 0
		}
		n := a.through(window)
		if n > 0 {
			a.floor = a.ids[n-1].Number
		}
		if a.ids, a.windows = slices.Delete(a.ids, 0, n), slices.Delete(a.windows, 0, n); len(a.ids) == 0 && a.forgotten == 0 {
			delete(p.ids, address)
		}
	}
}
