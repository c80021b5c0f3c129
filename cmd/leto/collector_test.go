package main

import (
	"runtime"
	"testing"
	"time"
)

// The room for garbage is a share of the limit, not a multiple of what stays.
func TestHeadroom(t *testing.T) {
	h := headroom{room: 40 << 20, percent: gcPercent}
	for stays, want := range map[float64]int{0: 400, 1 << 20: 400, 10 << 20: 400, 40 << 20: 100, 80 << 20: 50, 1 << 30: leastPercent} {
		if got := h.fitting(stays); got != want {
			t.Errorf("%.0f MiB stay: %d %%, want %d %%", stays/(1<<20), got, want)
		}
	}
}

func TestAfterCollection(t *testing.T) {
	called := make(chan struct{}, 1)
	afterCollection(func() {
		select {
		case called <- struct{}{}:
		default:
		}
	})
	for range 3 {
		runtime.GC()
		select {
		case <-called:
		case <-time.After(20 * time.Second):
			t.Fatal("not called after a collection")
		}
	}
}
