package amqp

import (
	"testing"

	"github.com/letomq/leto/codec"
)

func TestSerial(t *testing.T) {
	for _, c := range []struct {
		a, b   uint32
		ahead  int32
		before bool
	}{
		{0, 0, 0, false},
		{1, 0, 1, false},
		{0, 1, -1, true},
		{0, 1<<32 - 1, 1, false},
		{1<<32 - 1, 0, -1, true},
		{1<<31 - 1, 0, 1<<31 - 1, false},
		{5, 1<<32 - 6, 11, false},
		{1<<31 + 1, 0, -(1<<31 - 1), true},
	} {
		if got := ahead(c.a, c.b); got != c.ahead {
			t.Errorf("ahead(%d, %d) is %d, not %d", c.a, c.b, got, c.ahead)
		}
		if got := before(c.a, c.b); got != c.before {
			t.Errorf("before(%d, %d) is %v", c.a, c.b, got)
		}
	}
}

// TestWindowFlow covers the arithmetic of [2.5.6] with ids on both sides of the
// place where they run over.
func TestWindowFlow(t *testing.T) {
	const top = 1<<32 - 1
	for _, c := range []struct {
		name                    string
		first, next             uint32 // our ids
		base                    codec.Opt[uint32]
		window, peerNext, known uint32
		want                    uint32
		violation               bool
	}{
		{name: "all arrived", next: 10, base: codec.Some[uint32](10), window: 5, want: 5},
		{name: "some in flight", next: 10, base: codec.Some[uint32](7), window: 5, want: 2},
		{name: "more in flight than window", next: 10, base: codec.Some[uint32](0), window: 5, want: 0},
		{name: "window of 2^32-1", next: 10, base: codec.Some[uint32](7), window: top, want: top - 3},
		{name: "window of 2^31", next: 10, base: codec.Some[uint32](10), window: 1 << 31, want: 1 << 31},
		{name: "window of 0", next: 10, base: codec.Some[uint32](10), window: 0, want: 0},
		{name: "ids ran over", next: 2, base: codec.Some[uint32](top), window: 10, want: 7},
		{name: "null base", first: top, next: 2, window: 10, want: 7},
		{name: "ahead by one", next: 10, base: codec.Some[uint32](11), window: 10, violation: true},
		{name: "ahead over the end", next: top, base: codec.Some[uint32](0), window: 10, violation: true},
		{name: "peer's ids behind", peerNext: 4, known: 5, base: codec.Some[uint32](0), violation: true},
		{name: "peer's ids behind over the end", peerNext: top, known: 0, base: codec.Some[uint32](0), violation: true},
		{name: "peer's ids run over", peerNext: 3, known: top, base: codec.Some[uint32](0), window: 1, want: 1},
	} {
		w := window{first: c.first, nextOutgoing: c.next, nextIncoming: c.known, outgoing: 77}
		violation := w.peerFlowed(&codec.Flow{NextIncomingID: c.base, IncomingWindow: c.window, NextOutgoingID: c.peerNext})
		switch {
		case (violation != "") != c.violation:
			t.Errorf("%s: violation %q", c.name, violation)
		case violation == "" && w.outgoing != c.want:
			t.Errorf("%s: window is %d, not %d", c.name, w.outgoing, c.want)
		case violation == "" && w.nextIncoming != c.peerNext:
			t.Errorf("%s: next-incoming-id is %d, not %d", c.name, w.nextIncoming, c.peerNext)
		}
	}
}

func TestWindowReceived(t *testing.T) {
	var w window
	w.peerBegan(&codec.Begin{NextOutgoingID: 1<<32 - 1, IncomingWindow: 9}, 2)
	for i, want := range []bool{true, true, false} {
		if got := w.received(); got != want {
			t.Errorf("frame %d in a window of 2: %v", i, got)
		}
	}
	if w.nextIncoming != 1 || w.outgoing != 9 {
		t.Errorf("next-incoming-id is %d, the window out %d", w.nextIncoming, w.outgoing)
	}
}
