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
	// A broker that allocates less than idleRate bytes between two checks is
	// idle: a collection is worth it for idleGain bytes of garbage. One that
	// allocates less than calmRate is calm: for as much garbage as there may be
	// live bytes, calmGain at least.
	idleRate, idleGain = 1 << 20, 4 << 20
	calmRate, calmGain = 16 << 20, 32 << 20
)

func tuneCollector(limit int64) {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(limit)
}

// giveBack returns memory to the system whenever allocation has died down, until ctx ends.
func giveBack(ctx context.Context) {
	ticker := time.NewTicker(quietCheck)
	defer ticker.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	read := func() (allocated, live uint64) {
		metrics.Read(sample)
		return sample[0].Value.Uint64(), sample[1].Value.Uint64()
	}
	last, _ := read()
	returned := last
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, live := read()
		rate, garbage := now-last, now-returned
		if rate < idleRate && garbage > idleGain || rate < calmRate && garbage > max(calmGain, live) {
			debug.FreeOSMemory()
			now, _ = read()
			returned = now
		}
		last = now
	}
}
