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

// Behind the peer's close no link is attached: what is on the handles is
// forgotten, although our close isn't written yet.
func TestAttachBehindThePeersClose(t *testing.T) {
	now := time.Unix(0, 0)
	cfg := Defaults()
	cfg.Server = true
	c := New(cfg, now)
	in := append([]byte(nil), codec.HeaderAMQP[:]...)
	for _, p := range []interface{ Append([]byte) []byte }{
		&codec.Open{ContainerID: "peer", MaxFrameSize: 512}, &codec.Begin{HandleMax: 9},
		&codec.Attach{Name: "a", Role: codec.RoleReceiver}, &codec.Close{},
	} {
		start := len(in)
		in = codec.BeginFrame(in, codec.FrameAMQP, 0)
		in = p.Append(in)
		codec.EndFrame(in, start)
	}
	var session *Session
	for {
		n, ev := c.Next(now, in)
		if in = in[n:]; ev == nil {
			break
		}
		switch ev.Kind {
		case EventOpened:
			c.Accept(nil)
		case EventBegun:
			session = ev.Session
		case EventAttached:
			ev.Link.Accept(Terms{})
		}
	}
	if l := session.Attach("b", codec.RoleSender, Terms{}); l != nil {
		t.Error("attached")
	}
}
