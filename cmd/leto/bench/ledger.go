package bench

import "sync"

// ledger checks what consumers got against what producers sent.
type ledger struct {
	mu        sync.Mutex
	producers []account
	foreign   uint64 // not of this run
	open      bool   // producers are met as their messages come
}

// account is one producer's: seen has a bit per sequence number.
type account struct {
	seen       []uint64
	received   uint64
	duplicates uint64
	highest    uint64 // sequence number so far, and one
}

func newLedger(producers int) *ledger { return &ledger{producers: make([]account, producers)} }

// enter books a batch of messages.
func (l *ledger) enter(batch []stamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range batch {
		for l.open && int(s.producer) >= len(l.producers) {
			l.producers = append(l.producers, account{})
		}
		if int(s.producer) >= len(l.producers) {
			l.foreign++
			continue
		}
		a := &l.producers[s.producer]
		word, bit := s.sequence/64, uint64(1)<<(s.sequence%64)
		for uint64(len(a.seen)) <= word {
			a.seen = append(a.seen, make([]uint64, max(1024, len(a.seen)))...)
		}
		if a.seen[word]&bit != 0 {
			a.duplicates++
			continue
		}
		a.seen[word] |= bit
		a.received++
		a.highest = max(a.highest, s.sequence+1)
	}
}

// gaps is how many messages are missing before the last one that came of each producer.
func (l *ledger) gaps() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n uint64
	for i := range l.producers {
		n += l.producers[i].highest - l.producers[i].received
	}
	return n
}
