package amqp

import (
	"testing"
	"time"

	"github.com/letomq/leto/codec"
)

// TestReclaim: a workspace isn't given back with something in it.
func TestReclaim(t *testing.T) {
	now := time.Unix(0, 0)
	cfg := Defaults()
	cfg.Server, cfg.Lent = true, true
	c := New(cfg, now)
	if c.Lent() || c.Reclaim() != nil {
		t.Fatal("a lent machine starts with a workspace")
	}
	c.Lend(new(Workspace))
	c.Next(now, codec.HeaderAMQP[:])
	if c.Reclaim() != nil {
		t.Error("reclaimed with output")
	}
	c.Output(now, nil)
	if w := c.Reclaim(); w == nil || c.Lent() {
		t.Error("not reclaimed")
	} else {
		c.Lend(w)
	}

	c.fail(ConditionInternalError, "an event nobody has taken")
	c.Output(now, nil)
	if c.Reclaim() != nil {
		t.Error("reclaimed with an event")
	}
	c.Next(now, nil)
	c.Next(now, nil)
	c.sweep.session = new(Session)
	if c.Reclaim() != nil {
		t.Error("reclaimed in the midst of a range")
	}
	c.sweep.session = nil
	if c.Reclaim() == nil {
		t.Error("not reclaimed at last")
	}
}

// TestPlain: what is no user never reaches verify.
func TestPlain(t *testing.T) {
	asked := 0
	m := Plain(func(string, string) Verdict { asked++; return Known })
	for _, response := range []string{"", "\x00", "\x00\x00", "\x00\x00p", "a\x00\x00p", "u\x00p", "\x00u\x00p\x00", "\x00u\xff\x00p", "r\x00u\x00p"} {
		if step := m.Start().Step([]byte(response)); !step.Done || step.OK || asked > 0 {
			t.Errorf("%q is let in", response)
		}
	}
	if step := m.Start().Step(nil); !step.Done || step.OK {
		t.Error("nothing is let in")
	}
	if step := m.Start().Step([]byte("\x00u\x00")); !step.OK || step.Identity != "u" {
		t.Error("an empty password is the verifier's to refuse")
	}
}

// TestAnonymous: anybody is let in, without an identity.
func TestAnonymous(t *testing.T) {
	if step := Anonymous().Start().Step([]byte("trace")); !step.Done || !step.OK || step.Identity != "" {
		t.Errorf("step is %+v", step)
	}
}
