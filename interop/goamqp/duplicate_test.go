package goamqp

import (
	"fmt"
	"slices"
	"testing"

	"github.com/Azure/go-amqp"

	"github.com/letomq/leto/interop/harness"
)

// TestCase241_SentAgainAfterAKill sends the same ids before and after SIGKILL, of each kind that an application has.
func TestCase241_SentAgainAfterAKill(t *testing.T) {
	b, err := harness.Launch()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	}()
	ids := []any{"1", int64(1), int32(1), []byte("1"), amqp.UUID{1}, uint64(1)}
	for life := range 2 {
		conn, err := amqp.Dial(waiting(t), b.URL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := conn.NewSession(waiting(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		to, err := s.NewSender(waiting(t), "orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		for round := range 2 {
			for i, id := range ids {
				m := text("%d", i)
				if (i+round)%2 == 0 {
					m.ApplicationProperties = map[string]any{"_AMQ_DUPL_ID": id}
				} else {
					m.Annotations = amqp.Annotations{"x-opt-dup-id": id}
				}
				if err := to.Send(waiting(t), m, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		if life == 0 {
			if err := b.Again(); err != nil {
				t.Fatal(err)
			}
			_ = conn.Close() // it is gone
			continue
		}
		last := text("last")
		last.ApplicationProperties = map[string]any{"_AMQ_DUPL_ID": "last"}
		if err := to.Send(waiting(t), last, nil); err != nil {
			t.Fatal(err)
		}
		from, err := s.NewReceiver(waiting(t), "orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for i := range ids {
			want = append(want, fmt.Sprint(i))
		}
		for want = append(want, "last"); len(got) == 0 || got[len(got)-1] != "last"; {
			m, err := from.Receive(waiting(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := from.AcceptMessage(waiting(t), m); err != nil {
				t.Fatal(err)
			}
			got = append(got, string(m.GetData()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
