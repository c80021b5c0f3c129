package admin

import (
	"fmt"
	"testing"

	"github.com/letomq/leto/engine"
)

// TestScheduledMessages: what waits for its time is shown page by page in the order in which it is due, and the rest of it
// is as it was when some has been cancelled or made due.
func TestScheduledMessages(t *testing.T) {
	const n, path = 7, "/api/v1/queues/later/scheduled"
	a := newAPI(t, engine.Options{})
	first := a.publishLater("later", n)
	show := func() (bodies string) {
		t.Helper()
		for after, pages := "", 0; ; pages++ {
			var page MessagePage
			if status := a.ask("GET", path+"?count=2&after="+after, "", &page); status != 200 || pages > n {
				t.Fatalf("page %d: %d", pages, status)
			}
			for _, m := range page.Messages {
				bodies += fmt.Sprint(m.Body)
				if want := first + int64(m.Body.(string)[0]-'0')*1000; m.DueAt == nil || m.DueAt.UnixMilli() != want {
					t.Errorf("message %v is due at %v, want %d", m.Body, m.DueAt, want)
				}
			}
			if after = page.Next; after == "" {
				return bodies
			}
		}
	}
	do := func(act, body string, want int) {
		t.Helper()
		var p Progress
		if status := a.ask("POST", path+"/"+act, body, &p); status != 200 || p.Done != want || !p.Ended {
			t.Errorf("%s %s: %d %+v, want %d", act, body, status, p, want)
		}
	}
	if all := show(); all != "0123456" {
		t.Errorf("shown: %s", all)
	}
	var page MessagePage
	a.ask("GET", path+"?count=4", "", &page)
	third, fourth := page.Messages[2].Number, page.Messages[3].Number
	do("cancel", fmt.Sprintf(`{"number":%d}`, third), 1)
	do("cancel", fmt.Sprintf(`{"number":%d}`, third), 0)
	do("cancel", `{"count":1}`, 1)
	do("deliver", fmt.Sprintf(`{"number":%d}`, fourth), 1)
	if left := show(); left != "1456" {
		t.Errorf("left: %s", left)
	}
	var q Queue
	if a.ask("GET", "/api/v1/queues/later", "", &q); q.Messages != 1 || q.Delayed != 4 {
		t.Errorf("%d wait and %d for their time, want 1 and 4", q.Messages, q.Delayed)
	}
	do("deliver", `{}`, 4)
	do("cancel", `{}`, 0)
	if a.ask("GET", "/api/v1/queues/later", "", &q); q.Messages != 5 || q.Delayed != 0 {
		t.Errorf("%d wait and %d for their time, want 5 and none", q.Messages, q.Delayed)
	}
}

// TestScheduledBeyondTheCalendar: what is due later than JSON's dates go is told as due all the same.
func TestScheduledBeyondTheCalendar(t *testing.T) {
	a := newAPI(t, engine.Options{})
	p, err := a.Producer(engine.ProducerSpec{Address: "later"}, ignoreConfirms{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Publish(&engine.Message{Payload: encode(t, value("x")), Durable: true, Address: "later", Due: 1 << 50}, 1)
	if err := a.Sync(); err != nil {
		t.Fatal(err)
	}
	var page MessagePage
	if a.ask("GET", "/api/v1/queues/later/scheduled", "", &page); len(page.Messages) != 1 || page.Messages[0].DueAt == nil || page.Messages[0].DueAt.Year() != 9999 {
		t.Errorf("shown %+v, want one that is due in 9999", page.Messages)
	}
}
