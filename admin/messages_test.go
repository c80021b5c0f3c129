package admin

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/url"
	"testing"
	"time"

	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// encode writes a message of sections.
func encode(t *testing.T, sections ...func([]byte) ([]byte, error)) []byte {
	t.Helper()
	var b []byte
	for _, s := range sections {
		var err error
		if b, err = s(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func annotations(m codec.Map) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) { return codec.AppendMessageAnnotations(b, m) }
}

func properties(p codec.Properties) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) { return p.Append(b), nil }
}

func custom(m codec.Map) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) { return codec.AppendApplicationProperties(b, m) }
}

func value(v any) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) { return codec.AppendAmqpValue(b, v) }
}

func data(text string) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) { return codec.AppendData(b, []byte(text)), nil }
}

// publish publishes messages and waits until they are there.
func (a *api) publish(address string, payloads ...[]byte) {
	a.t.Helper()
	p, err := a.Producer(engine.ProducerSpec{Address: address}, ignoreConfirms{})
	if err != nil {
		a.t.Fatal(err)
	}
	defer p.Close()
	for i, payload := range payloads {
		p.Publish(&engine.Message{Payload: payload, Durable: true, Priority: 4, Address: address, Arrived: 1000}, uint64(i))
	}
	if err := a.Sync(); err != nil {
		a.t.Fatal(err)
	}
}

// publishLater publishes n messages that are due an hour from now and each a second after the one before, and waits until
// they are there. Their bodies are their numbers, from 0.
func (a *api) publishLater(address string, n int) (first int64) {
	a.t.Helper()
	p, err := a.Producer(engine.ProducerSpec{Address: address}, ignoreConfirms{})
	if err != nil {
		a.t.Fatal(err)
	}
	defer p.Close()
	first = time.Now().Add(time.Hour).UnixMilli()
	for i := range n {
		p.Publish(&engine.Message{
			Payload: encode(a.t, value(fmt.Sprint(i))), Durable: true, Priority: 4, Address: address, Arrived: 1000, Due: first + int64(i)*1000,
		}, uint64(i))
	}
	if err := a.Sync(); err != nil {
		a.t.Fatal(err)
	}
	return first
}

// sink takes deliveries and tells of them.
type sink struct{ got chan engine.Delivery }

func (s sink) Deliver(d engine.Delivery) { s.got <- d }
func (s sink) Drained()                  {}
func (s sink) Settled(uint64)            {}
func (s sink) Unsettled(uint64)          {}
func (s sink) Ended(error)               {}

// reject has n messages of a queue be rejected.
func (a *api) reject(address string, n int, why string) {
	a.t.Helper()
	s := sink{make(chan engine.Delivery, n)}
	c, err := a.Consumer(engine.ConsumerSpec{Address: address}, s)
	if err != nil {
		a.t.Fatal(err)
	}
	defer c.Close(engine.ClosingClean)
	c.SetLimit(uint64(n))
	for range n {
		d := <-s.got
		c.Settle([]engine.Settlement{{Handle: d.Handle, Acquisition: d.Acquisition}}, engine.Outcome{
			Kind: engine.Rejected, Condition: "amqp:internal-error", Description: why,
		}, 1)
	}
	if err := a.Sync(); err != nil {
		a.t.Fatal(err)
	}
}

func (a *api) page(queue string, query url.Values) MessagePage {
	a.t.Helper()
	var p MessagePage
	if code := a.ask("GET", "/api/v1/queues/"+queue+"/messages?"+query.Encode(), "", &p); code != 200 {
		a.t.Fatalf("messages of %s: %d", queue, code)
	}
	return p
}

func TestMessagesAreShown(t *testing.T) {
	a := newAPI(t, engine.Options{})
	a.publish("q",
		encode(t,
			annotations(codec.Map{{Key: codec.Symbol("x-a"), Value: int32(5)}, {Key: codec.Symbol(engine.DeathReason), Value: "a sender's"}}),
			properties(codec.Properties{MessageID: "id-1", Subject: codec.Some("s"), CorrelationID: codec.UUID{1, 2}}),
			custom(codec.Map{{Key: "amount", Value: int64(7)}, {Key: "nan", Value: math.NaN()}}), value("hellö")),
		encode(t, data("by"), data("tes")),
		encode(t, data("\xff\xfe")),
		encode(t, value(codec.Map{{Key: "k", Value: codec.List{true, nil, codec.Char('x')}}})),
		[]byte("broken"),
	)
	a.reject("q", 1, "no such customer")
	dead := a.page("DLQ", nil).Messages
	if len(dead) != 1 {
		t.Fatalf("%d dead letters", len(dead))
	}
	m := dead[0]
	if m.DeathReason != "rejected: amqp:internal-error: no such customer" || m.OriginalAddress != "q" || m.OriginalQueue != "q" ||
		m.DeliveryCount != 1 || m.MessageID != "id-1" || m.CorrelationID != "01020000-0000-0000-0000-000000000000" ||
		m.Subject != "s" || m.Body != "hellö" || m.Annotations["x-a"] != 5.0 || m.ApplicationProperties["amount"] != 7.0 ||
		m.ApplicationProperties["nan"] != "NaN" || m.ArrivedAt == nil || !m.Durable || m.Truncated || m.Malformed != "" {
		t.Errorf("%+v", m)
	}
	page := a.page("q", url.Values{"count": {"2"}})
	if len(page.Messages) != 2 || page.Next == "" || page.Messages[0].Body != "bytes" ||
		page.Messages[1].BodyBase64 != base64.StdEncoding.EncodeToString([]byte("\xff\xfe")) {
		t.Fatalf("%+v", page)
	}
	page = a.page("q", url.Values{"after": {page.Next}})
	if len(page.Messages) != 2 || page.Next != "" || fmt.Sprint(page.Messages[0].Body) != "map[k:[true <nil> x]]" ||
		page.Messages[1].Malformed == "" {
		t.Errorf("%+v", page)
	}
	for body, query := range map[string]url.Values{"hell": {"body_bytes": {"5"}}, "": {"body_bytes": {"0"}}} {
		m := a.page("DLQ", query).Messages[0]
		if got, _ := m.Body.(string); got != body || !m.Truncated {
			t.Errorf("cut to %v: %q", query, got)
		}
	}
	for _, query := range []string{"count=0", "count=x", "body_bytes=-1", "after=x", "after=10-1", "filter=%28"} {
		if code := a.ask("GET", "/api/v1/queues/q/messages?"+query, "", nil); code != 400 {
			t.Errorf("%s: %d", query, code)
		}
	}
	if code := a.ask("GET", "/api/v1/queues/none/messages", "", nil); code != 404 {
		t.Errorf("no queue: %d", code)
	}
}

func TestMessagesAreSelected(t *testing.T) {
	a := newAPI(t, engine.Options{})
	a.publish("q", encode(t,
		annotations(codec.Map{{Key: codec.Symbol("x-a"), Value: codec.Symbol("note")}}),
		properties(codec.Properties{
			MessageID: uint64(5), CorrelationID: "c", Subject: codec.Some("s"), GroupID: codec.Some("g"),
			CreationTime: codec.Some(codec.Timestamp(1234)), ReplyTo: codec.Some("r"),
		}),
		custom(codec.Map{
			{Key: "f", Value: float32(0.5)}, {Key: "i", Value: uint8(3)}, {Key: "huge", Value: uint64(math.MaxUint64)}, {Key: "list", Value: codec.List{}},
		}), value("x")))
	for filter, want := range map[string]int{
		"JMSMessageID = 5 AND JMSCorrelationID = 'c' AND JMSType = 's' AND JMSXGroupID = 'g' AND JMSTimestamp = 1234 AND JMSReplyTo = 'r'": 1,
		"JMSPriority = 4 AND JMSDeliveryMode = 'PERSISTENT' AND JMSExpiration = 0 AND JMSXDeliveryCount = 1 AND JMSDestination = 'q'":      1,
		"f = 0.5 AND i = 3 AND huge > 1e18 AND list IS NULL AND m.x-a = 'note'":                                                            1,
		"none = 1": 0, "i = 4": 0, "m.x-b IS NOT NULL": 0,
	} {
		if got := len(a.page("q", url.Values{"filter": {filter}}).Messages); got != want {
			t.Errorf("%s selects %d", filter, got)
		}
	}
}

func TestDeadLettersAreSentBack(t *testing.T) {
	a := newAPI(t, engine.Options{})
	var payloads [][]byte
	for i := range 10 {
		payloads = append(payloads, encode(t, custom(codec.Map{{Key: "n", Value: int32(i)}}), value("x")))
	}
	a.publish("q", payloads...)
	a.reject("q", 10, "no")
	var p Progress
	if code := a.ask("POST", "/api/v1/queues/DLQ/retry", `{"filter":"n >= 5 AND m.x-opt-death-reason LIKE 'rejected%'","count":3}`, &p); code != 200 || p.Done != 3 {
		t.Fatalf("retry: %d %+v", code, p)
	}
	for i, m := range a.page("q", nil).Messages {
		if m.ApplicationProperties["n"] != float64(i+5) || m.DeathReason != "" || m.DeliveryCount != 0 || m.OriginalQueue != "" {
			t.Errorf("sent back: %+v", m)
		}
	}
	if code := a.ask("POST", "/api/v1/queues/DLQ/move", `{"to":"archive::old","count":2}`, &p); code != 200 || p.Done != 2 {
		t.Errorf("move: %d %+v", code, p)
	}
	if code := a.ask("POST", "/api/v1/queues/DLQ/purge", `{"filter":"n = 9"}`, &p); code != 200 || p.Done != 1 {
		t.Errorf("purge: %d %+v", code, p)
	}
	for name, want := range map[string]int{"q": 3, "DLQ": 4, "archive::old": 2} {
		if got := len(a.page(name, nil).Messages); got != want {
			t.Errorf("%s has %d messages, want %d", name, got, want)
		}
	}
	for path, body := range map[string]string{
		"DLQ/retry": `{"to":"x"}`, "DLQ/move": `{}`, "DLQ/purge": `{"count":-1}`, "q/retry": `{"filter":"n ="}`,
	} {
		if code := a.ask("POST", "/api/v1/queues/"+path, body, nil); code != 400 {
			t.Errorf("%s %s: %d", path, body, code)
		}
	}
	if code := a.ask("POST", "/api/v1/queues/DLQ/move", `{"to":"DLQ"}`, nil); code != 409 {
		t.Errorf("move to itself: %d", code)
	}
}

func TestQueuesArePaused(t *testing.T) {
	a := newAPI(t, engine.Options{})
	a.fill("q", 1)
	var q Queue
	for _, path := range []string{"pause", "resume"} {
		if code := a.ask("POST", "/api/v1/queues/none/"+path, `{}`, nil); code != 404 {
			t.Errorf("%s of no queue: %d", path, code)
		}
	}
	if code := a.ask("POST", "/api/v1/queues/q/pause", `{}`, &q); code != 200 || !q.Paused {
		t.Errorf("pause: %d %+v", code, q)
	}
	if code := a.ask("POST", "/api/v1/queues/q/resume", `{}`, &q); code != 200 || q.Paused {
		t.Errorf("resume: %d %+v", code, q)
	}
}
