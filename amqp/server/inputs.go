package server

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"
)

// inputs are the read buffers of all connections, as far as they are larger than what every connection has. They share
// a budget of bytes. Half of it is for speed: beyond that, a buffer is as large as the frame that is being read and no
// larger. When all is used up, the connection goes whose frame began longest ago: frames that begin and don't end must
// not take everybody's memory.
type inputs struct {
	limit   int64 // bytes; at least two frames of the largest size
	bytes   atomic.Int64
	evicted atomic.Uint64
	free    readBuffers

	mu    sync.Mutex
	begun list.List // of *connection, whose frame needs the buffer it has, the one that began longest ago first
}

// ample reports whether there is room for buffers that only make things faster.
func (s *inputs) ample() bool { return s.bytes.Load() < s.limit/2 }

// resize notes that c's buffer grows by n bytes, or shrinks. needed: the frame at its front needs it.
func (s *inputs) resize(c *connection, n int, needed bool) {
	s.mu.Lock()
	if !c.inputGone {
		c.inputHeld += int64(n)
		s.bytes.Add(int64(n))
	}
	if needed && c.begun == nil && !c.inputGone {
		c.begun = s.begun.PushBack(c)
	}
	var victims []*connection
	for n > 0 && s.bytes.Load() > s.limit && s.begun.Len() > 1 {
		victim := s.begun.Front().Value.(*connection)
		s.remove(victim)
		victim.inputGone = true
		s.bytes.Add(-victim.inputHeld) // freed in a moment
		s.evicted.Add(1)
		victims = append(victims, victim)
	}
	s.mu.Unlock()
	for _, victim := range victims {
		victim.socket.Close()
		victim.report(zerolog.WarnLevel, "no room for frames that don't end: connection cut off", nil)
	}
}

// ended notes that the frame that needed c's buffer is read.
func (s *inputs) ended(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(c)
}

// release notes that c reads no more.
func (s *inputs) release(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(c)
	if !c.inputGone {
		s.bytes.Add(-c.inputHeld)
	}
	c.inputGone = true
}

func (s *inputs) remove(c *connection) {
	if c.begun != nil {
		s.begun.Remove(c.begun)
		c.begun = nil
	}
}
