package server

import "container/list"

// handshakes are the connections whose peers haven't opened yet, the oldest first. Whoever can reach a listener can
// make them, so there are few, and where there is no room the oldest goes: peers that mean it have opened long before.
// They belong to the server's mu.
type handshakes struct {
	max     int // 0: no limit
	waiting list.List
	leaving int // connections that went for want of room and are connections still
}

// add takes an accepted connection in.
func (h *handshakes) add(c *connection) { c.handshake = h.waiting.PushBack(c) }

// full reports whether there is no room for one more.
func (h *handshakes) full() bool { return h.max > 0 && h.waiting.Len() >= h.max }

// evict takes the oldest out, whose socket the caller has to close; nil: there is none.
func (h *handshakes) evict() *connection {
	oldest := h.waiting.Front()
	if oldest == nil {
		return nil
	}
	c := oldest.Value.(*connection)
	h.remove(c)
	c.evicted = true
	h.leaving++
	return c
}

// remove takes out a connection that has opened, or is none any more.
func (h *handshakes) remove(c *connection) {
	if c.handshake != nil {
		h.waiting.Remove(c.handshake)
		c.handshake = nil
	}
}

// opened: the peer of a connection has opened it.
func (s *Server) opened(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handshakes.remove(c)
}
