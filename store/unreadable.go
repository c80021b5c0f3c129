package store

import (
	"sync"
	"sync/atomic"

	"github.com/letomq/leto/store/journal"
)

// unreadable remembers bodies that the device doesn't give back, so that one bad place doesn't hold up a queue for ever.
type unreadable struct {
	known atomic.Int32 // len(tries), for those who read what reads well
	mu    sync.Mutex
	tries map[journal.Place]int
}

const (
	// unreadableTries is how often a body is tried before it is passed over. Whoever asks waits in between: a device
	// that is away for a moment loses nobody's place.
	unreadableTries = 3
	// unreadableMost is how many bodies are remembered. More are no bad places but a bad device, and are tried for ever.
	unreadableMost = 100
)

// failed notes that a body couldn't be read, and reports whether to pass it over.
func (u *unreadable) failed(p journal.Place) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	tries, known := u.tries[p]
	if !known && len(u.tries) >= unreadableMost {
		return false
	}
	if u.tries == nil {
		u.tries = map[journal.Place]int{}
	}
	u.tries[p] = min(tries+1, unreadableTries)
	u.known.Store(int32(len(u.tries)))
	return tries+1 >= unreadableTries
}

// read notes that a body can be read.
func (u *unreadable) read(p journal.Place) {
	if u.known.Load() == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.tries, p)
	u.known.Store(int32(len(u.tries)))
}

// passedOver reports whether a body that couldn't be read is to be passed over like one that is corrupt: it has been
// tried often enough, and the device gives something else of its segment. It stays where it is.
func (s *Store) passedOver(p journal.Place) bool {
	var header [8]byte
	return s.journal.ReadAt(p.Segment, 0, header[:]) == nil && s.unreadable.failed(p)
}
