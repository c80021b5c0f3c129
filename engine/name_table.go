package engine

import (
	"hash/maphash"
	"sync"
)

// nameTable finds addresses by name. It is read for every attach and every anonymous message and seldom written, so
// it is split: a writer holds up a small part of the readers for a moment.
type nameTable struct {
	seed   maphash.Seed
	shards [32]shard
}

type shard struct {
	mu        sync.RWMutex
	addresses map[string]*address
}

func newNameTable() *nameTable {
	t := &nameTable{seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].addresses = map[string]*address{}
	}
	return t
}

func (t *nameTable) shard(name string) *shard {
	return &t.shards[maphash.String(t.seed, name)%uint64(len(t.shards))]
}

// get returns the address of that name, or nil.
func (t *nameTable) get(name string) *address {
	s := t.shard(name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.addresses[name]
}

// getOrMake returns the address of that name, made by make if there is none.
func (t *nameTable) getOrMake(name string, make func() (*address, error)) (*address, error) {
	s := t.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.addresses[name]; a != nil {
		return a, nil
	}
	a, err := make()
	if err != nil {
		return nil, err
	}
	s.addresses[name] = a
	return a, nil
}

// remove takes an address out.
func (t *nameTable) remove(a *address) {
	s := t.shard(a.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addresses[a.name] == a {
		delete(s.addresses, a.name)
	}
}

// all returns all addresses, in no order.
func (t *nameTable) all() []*address {
	var all []*address
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.RLock()
		for _, a := range s.addresses {
			all = append(all, a)
		}
		s.mu.RUnlock()
	}
	return all
}
