package goamqp

import (
	"fmt"
	"sync"
	"testing"

	"github.com/Azure/go-amqp"
)

func TestDrain(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	out, from := sender(t, s, to, nil), receiver(t, s, to, manual())
	empty(t, from) // nothing there at all
	send(t, out, text("0"), text("1"), text("2"))
	drained(t, from, 2, 2)
	if got := drained(t, from, 10, 1); string(got[0].GetData()) != "2" {
		t.Fatalf("got %q last", got[0].GetData())
	}
	// A drain that is answered leaves no credit behind.
	send(t, out, text("3"))
	other := receiver(t, s, to, nil)
	if got := accept(t, other); string(got.GetData()) != "3" {
		t.Errorf("got %q", got.GetData())
	}
	if m := from.Prefetched(); m != nil {
		t.Errorf("got %q without credit", m.GetData())
	}
}

func TestCreditOfOne(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	out := sender(t, s, to, nil)
	for i := range 20 {
		send(t, out, text("%d", i))
	}
	from := receiver(t, s, to, manual())
	for i := range 20 {
		got := drained(t, from, 1, 1)
		if string(got[0].GetData()) != fmt.Sprint(i) {
			t.Fatalf("message %d: got %q", i, got[0].GetData())
		}
		if err := from.AcceptMessage(waiting(t), got[0]); err != nil {
			t.Fatal(err)
		}
	}
	empty(t, from)
}

func TestCreditIsShared(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	one, two := receiver(t, s, to, manual()), receiver(t, s, to, manual())
	for _, from := range []*consumer{one, two} {
		grant(t, from, 10)
	}
	out := sender(t, s, to, nil)
	for i := range 10 {
		send(t, out, text("%d", i))
	}
	for i, from := range []*consumer{one, two} {
		for range 5 {
			accept(t, from)
		}
		if m := from.Prefetched(); m != nil {
			t.Errorf("consumer %d got more than half of the messages", i)
		}
	}
}

func TestBrowse(t *testing.T) {
	t.Parallel()
	s, to := session(t), address(t)
	out := sender(t, s, to, nil)
	send(t, out, text("0"), text("1"), text("2"))
	for range 2 {
		browser := receiver(t, s, to, &amqp.ReceiverOptions{Credit: -1, SourceDistributionMode: amqp.SourceDistributionModeCopy})
		for i, m := range drained(t, browser, 10, 3) {
			if string(m.GetData()) != fmt.Sprint(i) {
				t.Errorf("browser saw %q at %d", m.GetData(), i)
			}
			if err := browser.AcceptMessage(waiting(t), m); err != nil {
				t.Fatal(err)
			}
		}
		empty(t, browser)
		if err := browser.Close(waiting(t)); err != nil {
			t.Fatal(err)
		}
	}
	from := receiver(t, s, to, nil)
	for i := range 3 {
		if got := accept(t, from); string(got.GetData()) != fmt.Sprint(i) || deliveryCount(got) != 0 {
			t.Errorf("after browsing: got %q with delivery-count %d", got.GetData(), deliveryCount(got))
		}
	}
}

func TestTwoHundredSessions(t *testing.T) {
	t.Parallel()
	conn, _ := dial(t, nil)
	to := address(t)
	var sessions []*amqp.Session
	for i := range 200 {
		s, err := conn.NewSession(waiting(t), nil)
		if err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		sessions = append(sessions, s)
	}
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			queue := fmt.Sprintf("%s-%d", to, i)
			out, err := s.NewSender(t.Context(), queue, nil)
			if err != nil {
				t.Errorf("session %d: %v", i, err)
				return
			}
			from, err := s.NewReceiver(t.Context(), queue, nil)
			if err != nil {
				t.Errorf("session %d: %v", i, err)
				return
			}
			if err := out.Send(t.Context(), text("%d", i), nil); err != nil {
				t.Errorf("session %d: %v", i, err)
				return
			}
			m, err := from.Receive(t.Context(), nil)
			if err != nil || string(m.GetData()) != fmt.Sprint(i) {
				t.Errorf("session %d: got %v, %v", i, m, err)
				return
			}
			if err := from.AcceptMessage(t.Context(), m); err != nil {
				t.Errorf("session %d: %v", i, err)
			}
		})
	}
	all.Wait()
	for i, s := range sessions {
		if err := s.Close(waiting(t)); err != nil {
			t.Fatalf("session %d: close: %v", i, err)
		}
	}
}
