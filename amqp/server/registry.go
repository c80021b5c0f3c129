package server

import (
	"hash/maphash"
	"sync"
)

// linkKey identifies a link [2.6.1]: its name, its direction and the two
// containers; ours is always the broker, and the identity keeps a stranger
// from using a container-id that isn't his.
type linkKey struct {
	identity, container, name string
	sender                    bool
}

// registry knows who holds which link, so that a second attach takes the link over. It is split, so that connections
// that attach again and again don't hold up each other and everybody else.
type registry struct {
	seed   maphash.Seed
	shards [64]registryShard
}

type registryShard struct {
	mu    sync.Mutex
	links map[linkKey]*attachment
}

func (r *registry) shard(k linkKey) *registryShard {
	return &r.shards[maphash.Comparable(r.seed, k)%uint64(len(r.shards))]
}

// claim makes a the holder of its key and returns the holder before, if any.
func (r *registry) claim(a *attachment) *attachment {
	s := r.shard(a.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links == nil {
		s.links = make(map[linkKey]*attachment)
	}
	before := s.links[a.key]
	s.links[a.key] = a
	return before
}

// release gives the key up, unless somebody else holds it by now.
func (r *registry) release(a *attachment) {
	s := r.shard(a.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links[a.key] == a {
		delete(s.links, a.key)
	}
}
