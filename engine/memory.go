package engine

import (
	"sync"
	"sync/atomic"

	"github.com/letomq/leto/engine/queue"
)

// memory is the budget of all messages held: transient ones, what is in the commit window, what consumers have, and what
// queues keep or have loaded of what the store holds. What waits in the store only isn't in it.
type memory struct {
	used    atomic.Int64
	hard    int64 // 0: none
	soft    int64 // above: pressure
	low     int64 // below again: relief
	pressed atomic.Bool
	wake    chan struct{} // tells the keeper of relief

	// What consumers hold and don't settle must not grow by loading more for them, nor keep others from publishing:
	// loading is restrained well below the soft limit.
	tight int64         // above: the budget is tight
	calm  int64         // below again: not any more
	ample chan struct{} // tells the keeper of that
	pages *queue.Budget
	spill *queue.Budget // of the same kind; nil: none

	mu        sync.Mutex
	listeners map[int]func()
	next      int
}

func newMemory(limit int64, pages, spill *queue.Budget) *memory {
	return &memory{
		tight: limit / 10 * 6, calm: limit / 10 * 5, ample: make(chan struct{}, 1), pages: pages, spill: spill,
		hard: limit, soft: limit / 10 * 8, low: limit / 10 * 7,
		wake: make(chan struct{}, 1), listeners: map[int]func(){},
	}
}

// take reserves n bytes, and reports false when they are not to be had.
func (m *memory) take(n int64) bool {
	used := m.used.Add(n)
	if m.hard == 0 {
		return true
	}
	if used > m.hard {
		m.used.Add(-n)
		m.press()
		return false
	}
	m.watch(used)
	return true
}

// force takes n bytes whatever the limit: for messages that are held already and only change place.
func (m *memory) force(n int64) {
	if used := m.used.Add(n); m.hard > 0 {
		m.watch(used)
	}
}

// watch acts on what is used after it has grown.
func (m *memory) watch(used int64) {
	if used <= m.tight {
		return
	}
	if !m.pages.Tight.Load() {
		if m.spill != nil { // first: it mustn't stay when the other one goes
			m.spill.Tight.Store(true)
		}
		m.pages.Tight.Store(true)
		m.free(0) // it may have been freed between the two
	}
	if used > m.soft {
		m.press()
	}
}

func (m *memory) press() {
	if !m.pressed.Load() {
		m.pressed.Store(true)
		m.free(0) // it may have been freed between the two
	}
}

// free gives n bytes back.
func (m *memory) free(n int64) {
	used := m.used.Add(-n)
	if m.pages.Tight.Load() && used < m.calm && m.pages.Tight.CompareAndSwap(true, false) {
		if m.spill != nil {
			m.spill.Tight.Store(false)
		}
		select {
		case m.ample <- struct{}{}:
		default:
		}
	}
	if m.pressed.Load() && used < m.low && m.pressed.CompareAndSwap(true, false) {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

// relieve calls those who wait for relief.
func (m *memory) relieve() {
	m.mu.Lock()
	listeners := make([]func(), 0, len(m.listeners))
	for _, f := range m.listeners {
		listeners = append(listeners, f)
	}
	m.mu.Unlock()
	for _, f := range listeners {
		f()
	}
}

// Pressure reports whether so much memory is used that producers should get no more credit: above 80 % of the limit,
// until it is below 70 %.
func (b *Broker) Pressure() bool { return b.memory.pressed.Load() }

// OnRelief has f called each time Pressure ends, from a goroutine of the broker. It must not block. The returned
// function takes it back.
func (b *Broker) OnRelief(f func()) (cancel func()) {
	m := b.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	id := m.next
	m.listeners[id] = f
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.listeners, id)
	}
}

// cost is what a message takes that goes to n queues.
func cost(m *Message, n int) int64 { return int64(m.Size()) + int64(n)*queue.EntryCost }

// release gives back what one queue has held of a message.
func (mem *memory) release(m *Message) {
	n := int64(queue.EntryCost)
	if m.Drop() {
		n += int64(m.Size())
	}
	mem.free(n)
}
