package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The garbage collector works for a broker: under load most of the heap is
// messages that are gone in a moment, so collecting rarely pays, up to a share
// of the memory limit; and a broker that has become quiet gives its memory back.
const (
	// gcPercent quarters the collector's work while little stays. Where much
	// does, garbage takes no more than garbageShare of limits.memory: what peers
	// make stay must not be multiplied. leastPercent keeps collecting rarer than
	// allocating; the memory limit makes it more frequent when it must.
	gcPercent    = 400
	garbageShare = 0.15
	leastPercent = 20
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
	afterCollection((&headroom{room: garbageShare * float64(limit), percent: gcPercent}).adjust)
}

// headroom keeps the heap's room for garbage the same, whatever stays. It is for one goroutine.
type headroom struct {
	room    float64 // bytes
	percent int     // in force
}

// adjust is called when a collection has ended.
func (h *headroom) adjust() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(sample)
	stays := 0.0 // what the collector takes its percentage of
	for _, s := range sample {
		stays += float64(s.Value.Uint64())
	}
	// Setting it stops the world for a moment: not for little.
	if percent := h.fitting(stays); percent < h.percent*4/5 || percent > h.percent*5/4 || percent == gcPercent && h.percent != gcPercent {
		h.percent = percent
		debug.SetGCPercent(percent)
	}
}

// fitting returns the percentage of what stays that makes up the room.
func (h *headroom) fitting(stays float64) int {
	return int(min(max(100*h.room/max(stays, 1), leastPercent), gcPercent))
}

// afterCollection has f called after every collection from now on, by the runtime's goroutine for such things.
func afterCollection(f func()) {
	type token struct{ _ [16]byte } // of a size that isn't put together with others
	var again func(*token)
	again = func(t *token) {
		f()
		runtime.SetFinalizer(t, again)
	}
	runtime.SetFinalizer(new(token), again)
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
