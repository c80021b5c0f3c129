package store

import "github.com/letomq/leto/store/journal"

// Gate decides when a window holds. It is given a window that is appended to the journal and in nobody's sight yet, and
// what flushes it, and returns when the window is in every place where it must be: alone that is the device, so that no
// gate is needed; with replicas the window travels while the device works, and the gate waits for both.
//
// It calls flush exactly once and returns its error as it is. After any other error the store has failed, and what of
// the window holds is unknown: it may come back after a restart. Parts of large payloads are on the device before the
// window that refers to them comes to the gate. The goroutine that commits waits in it, or the one that applies, one at
// a time. The payload of w may be read until the gate returns.
type Gate func(w journal.Record, flush func() error) error

// pass flushes what was appended, the window w last, through the gate.
func (s *Store) pass(w journal.Record) error {
	if s.o.Gate == nil {
		return s.journal.Flush()
	}
	return s.o.Gate(w, s.journal.Flush)
}
