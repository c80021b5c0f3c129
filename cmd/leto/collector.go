package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The garbage collector works for a broker: under load most of the heap is
// messages that are gone in a moment, so collecting rarely pays, up to the
// memory limit; and a broker that has become quiet gives its memory back.
const (
	// gcPercent quarters the collector's work; the memory limit makes it work
	// earlier when there is much that stays.
	gcPercent = 400
	// messageShare of limits.memory is for messages; the rest is for
	// connections, buffers, and garbage that isn't collected yet.
	messageShare = 0.6

	quietCheck = 2 * time.Second
	// quietRate is how many bytes may be allocated between two checks by a
	// broker that counts as quiet, and quietGain how many must have been
	// allocated since the last collection for another one to be worth it.
	quietRate = 1 << 20
	quietGain = 4 << 20
)

func tuneCollector(limit int64) {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(limit)
}

// giveBack returns memory to the system whenever allocation has died down, until ctx ends.
func giveBack(ctx context.Context) {
	ticker := time.NewTicker(quietCheck)
	defer ticker.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	read := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	last := read()
	returned := last
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := read()
		if now-last < quietRate && now-returned > quietGain {
			debug.FreeOSMemory()
			now = read()
			returned = now
		}
		last = now
	}
}
