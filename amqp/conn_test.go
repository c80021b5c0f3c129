package amqp

import (
	"testing"
	"time"

	"github.com/letomq/leto/codec"
)

func TestWant(t *testing.T) {
	c := New(Config{Server: true, MaxFrameSize: 1000, HandshakeFrameSize: 600, ChannelMax: 1}, time.Unix(0, 0))
	if got := c.Want(nil); got != 8 {
		t.Errorf("before the header: %d", got)
	}
	c.Next(time.Unix(0, 0), codec.HeaderAMQP[:])
	for _, w := range []struct {
		b    []byte
		want int
	}{
		{nil, 8},
		{[]byte{0, 0, 1}, 8},
		{[]byte{0, 0, 1, 0, 2, 0, 0, 0}, 256},
		{[]byte{0, 0, 1, 0, 2, 0, 0, 0, 9, 9}, 256},
		{[]byte{0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0}, 600},
	} {
		if got := c.Want(w.b); got != w.want {
			t.Errorf("%x: %d, not %d", w.b, got, w.want)
		}
	}
}

func TestErrorText(t *testing.T) {
	long := Errorf(ConditionNotFound, "%0400d", 1)
	if got := long.wire(); len(got.Description) != maxDescription {
		t.Errorf("description of %d octets is written", len(got.Description))
	}
	for description, want := range map[string]string{"": "", "a\xffb": "a?b", "é": "é"} {
		if got := (&Error{Description: description}).wire().Description; got != want {
			t.Errorf("%q is written as %q", description, got)
		}
	}
	half := &Error{Description: string(make([]byte, maxDescription-1)) + "é"}
	if got := half.wire().Description; len(got) != maxDescription-1 {
		t.Errorf("half a character is written: %d octets", len(got))
	}
	if (*Error)(nil).wire() != nil || fromWire(nil) != nil {
		t.Error("no error is an error")
	}
}
