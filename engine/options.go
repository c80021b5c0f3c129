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

	// Spill opens an empty spill, when there is something for it for the first time, and again after an error. Nil:
	// transient messages that wait are in memory, all of them. It isn't used without a limit of memory.
	Spill func() (Spill, error)
}

// Limits bound what a broker holds. Zero means no limit, except where said.
type Limits struct {
	MemoryBytes   int64 // messages held in memory, with 192 bytes for each entry; above it publishes are rejected, above 80 % of it Pressure says so. Durable messages that wait are in the store only beyond a quarter of it, transient ones in the spill beyond a sixth
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
	LoadFailed   func(error) // the store couldn't return messages; it is asked again each second, and this told once
	Spilling     func(error) // nothing is spilled any more, or nil: again; what is in memory stays there
	StoreFailed  func(error) // the store refused a commit: the broker takes nothing durable any more
}

// Dropped is a message that left a queue for nowhere.
type Dropped struct {
	Queue  string
	Number uint64
	Reason string // see DropReason constants
}
