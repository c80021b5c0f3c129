package server

import (
	"sync"

	"github.com/letomq/leto/engine"
)

// mailbox is how queues and the committer reach a connection. Putting
// something in never waits; what is in it is bounded by the credit the
// connection gave and by what it asked to be told.
type mailbox struct {
	mu         sync.Mutex
	deliveries []parcel
	confirms   []confirm
	notices    []notice
	wake       chan struct{} // capacity one: the writer has something to do
}

// parcel is a delivery for a consumer; without one, the answer to its drain.
type parcel struct {
	to       *outgoing
	delivery engine.Delivery
	drained  bool
}

// confirm is the fate of a published message, of a settlement or of a discharge.
type confirm struct {
	producer *incoming
	consumer *outgoing
	control  *coordinator
	ticket   uint64
	refusal  *engine.Result // nil: accepted; of a discharge the result, whatever it is
	unknown  bool           // of a consumer: not confirmed, and never will be
}

type noticeKind uint8

const (
	noticeRelief   noticeKind = iota // producers may be given credit again
	noticeShutdown                   // the server stops
	noticeEnded                      // a consumer's queue is gone
	noticeStolen                     // a link of the same name was attached elsewhere
	noticeEvicted                    // there is no room for a message that is arriving
	noticeNode                       // a node has something to send on a link
)

type notice struct {
	kind     noticeKind
	consumer *outgoing
	link     *attachment
	err      error
}

// letters is what was in a mailbox; its slices are used again.
type letters struct {
	deliveries []parcel
	confirms   []confirm
	notices    []notice
}

func (m *mailbox) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox) deliver(p parcel) {
	m.mu.Lock()
	first := len(m.deliveries) == 0
	m.deliveries = append(m.deliveries, p)
	m.mu.Unlock()
	if first {
		m.poke()
	}
}

func (m *mailbox) confirm(c confirm) {
	m.mu.Lock()
	first := len(m.confirms) == 0
	m.confirms = append(m.confirms, c)
	m.mu.Unlock()
	if first {
		m.poke()
	}
}

func (m *mailbox) notify(n notice) {
	m.mu.Lock()
	m.notices = append(m.notices, n)
	m.mu.Unlock()
	m.poke()
}

// swap takes what is in the mailbox and leaves into's emptied slices for the
// next letters. False: there was nothing.
func (m *mailbox) swap(into *letters) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.deliveries)+len(m.confirms)+len(m.notices) == 0 {
		return false
	}
	into.deliveries, m.deliveries = m.deliveries, reuse(into.deliveries)
	into.confirms, m.confirms = m.confirms, reuse(into.confirms)
	into.notices, m.notices = m.notices, reuse(into.notices)
	return true
}

// full reports whether so many deliveries wait that the peer has to read before more is done for it.
func (m *mailbox) full() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.deliveries) > mailboxPause
}

// reuse empties a slice, and lets go of one that a burst made large.
func reuse[T any](s []T) []T {
	if cap(s) > 2*consumerWindow {
		return nil
	}
	clear(s)
	return s[:0]
}
