package server

import "sync"

// linkKey identifies a link [2.6.1]: its name, its direction and the two
// containers; ours is always the broker, and the identity keeps a stranger
// from using a container-id that isn't his.
type linkKey struct {
	identity, container, name string
	sender                    bool
}

// registry knows who holds which link, so that a second attach takes the link over.
type registry struct {
	mu    sync.Mutex
	links map[linkKey]*attachment
}

// claim makes a the holder of its key and returns the holder before, if any.
func (r *registry) claim(a *attachment) *attachment {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.links == nil {
		r.links = make(map[linkKey]*attachment)
	}
	before := r.links[a.key]
	r.links[a.key] = a
	return before
}

// release gives the key up, unless somebody else holds it by now.
func (r *registry) release(a *attachment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.links[a.key] == a {
		delete(r.links, a.key)
	}
}
