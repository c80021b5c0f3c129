package bench

import (
	"net"
	"os"
	"testing"
	"time"
)

func TestPaceIsASchedule(t *testing.T) {
	p := &pace{start: 3 * time.Millisecond, interval: 2 * time.Millisecond}
	for n, want := range []time.Duration{3, 5, 7} {
		if due := p.due(uint64(n)); due != int64(want*time.Millisecond) {
			t.Errorf("message %d is due at %v, want %d ms", n, time.Duration(due), want)
		}
	}
}

// A read under way ends at a tick, and one that came just before the read is not lost.
func TestPaceEndsARead(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	ticks, err := newTicker(time.Millisecond, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	p := new(pace)
	done := make(chan struct{})
	go func() { p.run(ticks, near); close(done) }()
	for seen := 0; seen < 20; seen++ {
		if err := near.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if p.over() {
			continue
		}
		if _, err := near.Read(make([]byte, 1)); !os.IsTimeout(err) {
			t.Fatalf("read: %v", err)
		}
		if !p.over() {
			t.Fatal("the read ended without a tick")
		}
	}
	ticks.close()
	<-done
}
