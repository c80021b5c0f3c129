package engine

import (
	"io"
	"time"
)

// Options is what a broker needs to know.
type Options struct {
	Node     string            // the broker's name; part of nothing that is stored
	Settings []AddressSettings // in any order: the more specific match wins, key by key
	Limits   Limits
	Now      func() time.Time // nil: time.Now
	Rand     io.Reader        // 16 unpredictable bytes per generated name; nil: crypto/rand
	Observer Observer
}

// Limits bound what a broker holds. Zero means no limit, except where said.
type Limits struct {
	MemoryBytes   int64 // messages held in memory, with 192 bytes for each entry; above it publishes are rejected, above 80 % of it Pressure says so. Durable messages that wait are in the store only beyond a quarter of it
	Queues        int   // queues of all kinds; as many addresses
	WindowRecords int   // messages and settlements in one commit window before publishers wait; 0: 4096
	WindowBytes   int64 // payload bytes in one commit window before publishers wait; 0: 8 MiB
}

// Observer hears of what happens without anybody having asked. Every function may be nil; none may block or call the
// engine.
type Observer struct {
	QueueCreated func(address, queue string)
	QueueDeleted func(address, queue string)
	Dropped      func(Dropped)
	LoadFailed   func(error) // the store couldn't return messages; it is asked again each second
	StoreFailed  func(error) // the store refused a commit: the broker takes nothing durable any more
}

// Dropped is a message that left a queue for nowhere.
type Dropped struct {
	Queue  string
	Number uint64
	Reason string // see DropReason constants
}
