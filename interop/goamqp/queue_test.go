package goamqp

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

func TestPriority(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	out := sender(t, s, to, nil)
	for i := range 30 {
		priority := uint8(i * 7 % 10)
		m := text("%d-%02d", priority, i)
		m.Header = &amqp.MessageHeader{Priority: priority}
		send(t, out, m)
	}
	from := receiver(t, s, to, nil)
	var last string
	for i := range 30 {
		got := string(accept(t, from).GetData())
		if want := fmt.Sprint(9 - i/3); got[:1] != want {
			t.Errorf("message %d: got %q, want priority %s", i, got, want)
		}
		if last != "" && last[0] == got[0] && last > got {
			t.Errorf("%q came before %q", last, got)
		}
		last = got
	}
}

// TestExpiry waits for messages that nobody takes in time.
func TestExpiry(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*amqp.Message){
		"ttl": func(m *amqp.Message) { m.Header = &amqp.MessageHeader{TTL: 200 * time.Millisecond} },
		"absolute": func(m *amqp.Message) {
			m.Properties.AbsoluteExpiryTime = ptr(time.Now().Add(200 * time.Millisecond))
		},
		"the-earlier": func(m *amqp.Message) {
			m.Header = &amqp.MessageHeader{TTL: time.Hour}
			m.Properties.AbsoluteExpiryTime = ptr(time.Now().Add(200 * time.Millisecond))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, to := session(t), address(t)
			m := marked(t)
			limit(m)
			send(t, sender(t, s, to, nil), m)
			late := find(t, "ExpiryQueue", m.Properties.MessageID)
			for key, want := range map[string]string{"x-opt-ORIG-ADDRESS": to, "x-opt-ORIG-QUEUE": to} {
				if got := late.Annotations[key]; got != want {
					t.Errorf("%s: got %v, want %q", key, got, want)
				}
			}
			if late.Annotations["x-opt-ACTUAL-EXPIRY"] == nil {
				t.Errorf("annotations %v lack x-opt-ACTUAL-EXPIRY", late.Annotations)
			}
			empty(t, receiver(t, s, to, manual()))
		})
	}
}

func TestTimeToLiveIsEnough(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	m := text("in time")
	m.Header = &amqp.MessageHeader{TTL: time.Minute}
	send(t, sender(t, s, to, nil), m)
	got := accept(t, receiver(t, s, to, nil))
	if string(got.GetData()) != "in time" || got.Header == nil || got.Header.TTL <= 0 || got.Header.TTL > time.Minute {
		t.Errorf("got %q with header %+v", got.GetData(), got.Header)
	}
}
