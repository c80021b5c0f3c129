package churn

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
)

// mark is a message: where it was sent to, and as the how manieth.
type mark struct {
	queue    int
	sequence uint64
}

const bytesOfMark = 16

// hash spreads marks evenly; what is to happen to a message follows from it.
func (m mark) hash() uint64 {
	x := m.sequence<<4 | uint64(m.queue)
	x ^= x >> 31
	x *= 0x7fb5d329728ea185
	x ^= x >> 27
	return x * 0x81dadef4bc2dd44d
}

// body is the mark and bytes that follow from it: mostly some hundred, now and then so many that they are kept in parts.
func (m mark) body() []byte {
	h := m.hash()
	n := int(h >> 8 % 1200)
	switch k := h >> 32 % 4096; {
	case k == 0:
		n = 300<<10 + n
	case k < 64:
		n *= 16
	}
	b := make([]byte, bytesOfMark+n)
	binary.BigEndian.PutUint64(b, uint64(m.queue))
	binary.BigEndian.PutUint64(b[8:], m.sequence)
	for i := bytesOfMark; i < len(b); i++ {
		b[i] = byte(h >> (i & 31))
	}
	return b
}

// read returns the mark of a body that is as it was sent.
func read(body []byte) (mark, error) {
	if len(body) < bytesOfMark {
		return mark{}, fmt.Errorf("a body of %d bytes", len(body))
	}
	m := mark{int(binary.BigEndian.Uint64(body)), binary.BigEndian.Uint64(body[8:])}
	if m.queue >= queues || string(m.body()) != string(body) {
		return m, fmt.Errorf("message %v: another body than was sent", m)
	}
	return m, nil
}

// set is a set of sequences.
type set []uint64

func (s *set) add(n uint64) {
	for uint64(len(*s)) <= n/64 {
		*s = append(*s, 0)
	}
	(*s)[n/64] |= 1 << (n % 64)
}

func (s set) has(n uint64) bool { return n/64 < uint64(len(s)) && s[n/64]>>(n%64)&1 != 0 }

func (s set) size() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// book is what is known of all messages.
type book struct {
	mu       sync.Mutex
	room     *sync.Cond
	accepted [queues]set
	gone     [queues]set // accepted by a consumer, wherever they were
	under    [queues]int // sent and not gone
	dead     int
	expired  int
	faults   []string
}

func newBook() *book {
	b := new(book)
	b.room = sync.NewCond(&b.mu)
	return b
}

// send waits until fewer than limit are under way. It returns false when there is no more to be sent.
func (b *book) send(queue, limit int, stopped func() bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.under[queue] >= limit && !stopped() {
		b.room.Wait()
	}
	b.under[queue]++
	return !stopped()
}

// end wakes producers that wait.
func (b *book) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room.Broadcast()
}

func (b *book) accept(m mark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepted[m.queue].add(m.sequence)
}

// arrive notes a delivery: of one that is gone already it is a fault.
func (b *book) arrive(m mark, from string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone[m.queue].has(m.sequence) {
		b.fault("message %v comes back from %s", m, from)
	}
}

// take notes that a consumer accepts.
func (b *book) take(m mark, from string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone[m.queue].add(m.sequence)
	b.under[m.queue]--
	b.room.Broadcast()
	switch from {
	case deadLetters:
		b.dead++
	case expiry:
		b.expired++
	}
}

// fault is called with mu held.
func (b *book) fault(format string, args ...any) {
	if len(b.faults) < 20 {
		b.faults = append(b.faults, fmt.Sprintf(format, args...))
	}
}

// missing are those accepted that are not gone, and not expected to stay.
func (b *book) missing() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for q := range b.accepted {
		for i, w := range b.accepted[q] {
			if i < len(b.gone[q]) {
				w &^= b.gone[q][i]
			}
			n += bits.OnesCount64(w)
		}
	}
	return n
}
