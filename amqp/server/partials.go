package server

import (
	"sync"
	"sync/atomic"
)

// partials are the messages that have arrived in part, of all connections. They share a budget of bytes. When it is
// used up, the message that began longest ago goes, whoever wants more: somebody who begins messages and doesn't end
// them must not keep others from sending theirs.
type partials struct {
	limit int64 // bytes
	bytes atomic.Int64

	mu          sync.Mutex // guards the list
	first, last *partial   // by when they began, the oldest first
}

// partial is one message that has arrived in part.
type partial struct {
	of *incoming

	listed     bool // in the list, which guards this and what is next; else it has ended or is evicted
	prev, next *partial

	mu      sync.Mutex // guards what follows between who receives and who needs the room
	bytes   []byte
	dropped bool // by who needed the room: nothing is added any more
}

// begin notes that a message of p has begun.
func (s *partials) begin(p *incoming) *partial {
	m := &partial{of: p, listed: true}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.prev = s.last; m.prev != nil {
		m.prev.next = m
	} else {
		s.first = m
	}
	s.last = m
	return m
}

// add keeps a fragment of a message; false when the message can't stay.
func (s *partials) add(m *partial, fragment []byte) bool {
	n := int64(len(fragment))
	for s.bytes.Add(n) > s.limit {
		s.bytes.Add(-n)
		if victim := s.evict(); victim == m || victim == nil { // nil: m has gone before
			return false
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dropped {
		s.bytes.Add(-n)
		return false
	}
	m.bytes = append(m.bytes, fragment...)
	return true
}

// evict has the oldest message go and tells its connection. It returns that message, or nil when there is none.
func (s *partials) evict() *partial {
	s.mu.Lock()
	m := s.first
	if m == nil {
		s.mu.Unlock()
		return nil
	}
	s.remove(m)
	s.mu.Unlock()
	m.mu.Lock()
	m.dropped = true
	s.bytes.Add(-int64(len(m.bytes)))
	m.bytes = nil
	m.mu.Unlock()
	m.of.conn.mail.notify(notice{kind: noticeEvicted, link: m.of.attachment})
	return m
}

// evicted reports whether a message that hasn't ended is out.
func (s *partials) evicted(m *partial) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !m.listed
}

// end takes a message out and returns its bytes, which are the caller's; false when it has been evicted.
func (s *partials) end(m *partial) ([]byte, bool) {
	s.mu.Lock()
	listed := m.listed
	if listed {
		s.remove(m)
	}
	s.mu.Unlock()
	if !listed {
		return nil, false // who evicts it takes the bytes back
	}
	s.bytes.Add(-int64(len(m.bytes)))
	return m.bytes, true
}

func (s *partials) remove(m *partial) {
	if m.prev != nil {
		m.prev.next = m.next
	} else {
		s.first = m.next
	}
	if m.next != nil {
		m.next.prev = m.prev
	} else {
		s.last = m.prev
	}
	m.prev, m.next, m.listed = nil, nil, false
}
