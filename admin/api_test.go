package admin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// api is the HTTP side of a real broker.
type api struct {
	*engine.Broker
	t  *testing.T
	at string
}

func newAPI(t *testing.T, opts engine.Options) *api {
	t.Helper()
	b, err := engine.New(opts, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	o := options()
	o.Broker = b
	return &api{b, t, "http://" + start(t, o)}
}

// ask sends a request, with a JSON body unless that is empty, and reads the answer into a value that isn't nil.
func (a *api) ask(method, path, body string, into any, headers ...string) int {
	a.t.Helper()
	r, err := http.NewRequest(method, a.at+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer answer.Body.Close()
	if into != nil {
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
			a.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return answer.StatusCode
}

type ignoreConfirms struct{}

func (ignoreConfirms) Confirmed(uint64, engine.Result) {}

// fill publishes n messages and waits until they are there.
func (a *api) fill(address string, n int) {
	a.t.Helper()
	p, err := a.Producer(engine.ProducerSpec{Address: address}, ignoreConfirms{})
	if err != nil {
		a.t.Fatal(err)
	}
	defer p.Close()
	for i := range n {
		p.Publish(&engine.Message{Payload: []byte("x"), Durable: true, Priority: 4, Address: address}, uint64(i))
	}
	if err := a.Sync(); err != nil {
		a.t.Fatal(err)
	}
}

func TestQueuesAreMadeShownAndDeleted(t *testing.T) {
	a := newAPI(t, engine.Options{})
	var q Queue
	for _, want := range []int{201, 200} {
		if code := a.ask("PUT", "/api/v1/queues/orders%2Feu", `{}`, &q); code != want || q.Name != "orders/eu" || !q.Durable {
			t.Errorf("create: %d %+v, want %d", code, q, want)
		}
	}
	if code := a.ask("PUT", "/api/v1/queues/prices::audit", `{"routing":"multicast"}`, &q); code != 201 || q.Address != "prices" {
		t.Errorf("create: %d %+v", code, q)
	}
	if code := a.ask("PUT", "/api/v1/queues/prices::more", `{"routing":"anycast"}`, nil); code != 409 {
		t.Errorf("another routing: %d", code)
	}
	for body, want := range map[string]int{`{"routing":"x"}`: 400, `{"rooting":"anycast"}`: 400, `{`: 400, `{} {}`: 400} {
		if code := a.ask("PUT", "/api/v1/queues/x", body, nil); code != want {
			t.Errorf("%s: %d", body, code)
		}
	}
	a.fill("orders/eu", 3)
	if code := a.ask("GET", "/api/v1/queues/orders%2Feu", "", &q); code != 200 || q.Messages != 3 {
		t.Errorf("show: %d %+v", code, q)
	}
	if code := a.ask("DELETE", "/api/v1/queues/orders%2Feu?if_empty=true", "", nil); code != 409 {
		t.Errorf("delete if empty: %d", code)
	}
	if code := a.ask("DELETE", "/api/v1/queues/orders%2Feu?if_empty=maybe", "", nil); code != 400 {
		t.Errorf("delete if maybe: %d", code)
	}
	var p Progress
	if code := a.ask("POST", "/api/v1/queues/orders%2Feu/purge", `{}`, &p); code != 200 || p != (Progress{Looked: 3, Done: 3, Ended: true}) {
		t.Errorf("purge: %d %+v", code, p)
	}
	if code := a.ask("DELETE", "/api/v1/queues/orders%2Feu?if_empty=true&if_unused=true", "", nil); code != 204 {
		t.Errorf("delete: %d", code)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if code := a.ask(method, "/api/v1/queues/orders%2Feu", "", nil); code != 404 {
			t.Errorf("%s: %d", method, code)
		}
	}
	if code := a.ask("POST", "/api/v1/queues/nowhere/purge", `{}`, nil); code != 404 {
		t.Errorf("purge nowhere: %d", code)
	}
}

func TestAddressesAreMadeShownAndDeleted(t *testing.T) {
	a := newAPI(t, engine.Options{Settings: []engine.AddressSettings{{Match: "news.#", MaxDeliveryAttempts: new(3)}}})
	var d AddressDetail
	if code := a.ask("PUT", "/api/v1/addresses/news.eu", `{"routing":"multicast"}`, &d); code != 201 || d.Routing != "multicast" {
		t.Errorf("create: %d %+v", code, d)
	}
	if code := a.ask("PUT", "/api/v1/addresses/$x", `{}`, nil); code != 409 {
		t.Errorf("reserved: %d", code)
	}
	a.ask("PUT", "/api/v1/queues/news.eu::all", `{}`, nil)
	if code := a.ask("GET", "/api/v1/addresses/news.eu", "", &d); code != 200 || len(d.QueueList) != 1 || d.QueueList[0].Name != "all" {
		t.Errorf("show: %d %+v", code, d)
	}
	var all []Setting
	if code := a.ask("GET", "/api/v1/addresses/news.us/settings", "", &all); code != 200 {
		t.Errorf("settings: %d", code)
	}
	want := Setting{"max-delivery-attempts", 3.0, "news.#"}
	found := false
	for _, s := range all {
		found = found || s == want
	}
	if !found {
		t.Errorf("%+v isn't among %+v", want, all)
	}
	var list []Address
	if a.ask("GET", "/api/v1/addresses", "", &list); len(list) != 1 || list[0].Name != "news.eu" || list[0].Queues != 1 {
		t.Errorf("list: %+v", list)
	}
	if code := a.ask("DELETE", "/api/v1/addresses/news.eu", "", nil); code != 204 {
		t.Errorf("delete: %d", code)
	}
	if code := a.ask("GET", "/api/v1/addresses/news.eu", "", nil); code != 404 {
		t.Errorf("show what isn't there: %d", code)
	}
}

// TestPagesOfOtherSitesChangeNothing sends what a browser would for a page of another site, and for one whose name
// leads here.
func TestPagesOfOtherSitesChangeNothing(t *testing.T) {
	a := newAPI(t, engine.Options{})
	a.fill("q", 2)
	purge := "/api/v1/queues/q/purge"
	for _, c := range []struct {
		what    string
		code    int
		headers []string
	}{
		{"a form", 415, []string{"Content-Type", "text/plain"}},
		{"a form that says what it is", 415, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"another site's script", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"another origin", 403, []string{"Origin", "http://evil.example"}},
		{"a name that leads here", 421, []string{"Host", "evil.example:8161"}},
		{"a name that begins like ours", 421, []string{"Host", "localhost.evil.example"}},
	} {
		if code := a.ask("POST", purge, `{}`, nil, c.headers...); code != c.code {
			t.Errorf("%s: %d, want %d", c.what, code, c.code)
		}
	}
	if code := a.ask("GET", "/api/v1/queues", "", nil, "Host", "evil.example"); code != 421 {
		t.Errorf("a name that leads here reads queues: %d", code)
	}
	if q, err := a.Queue("q", "q"); err != nil || q.Messages != 2 {
		t.Errorf("q = %+v, %v", q, err)
	}
	for _, host := range []string{"localhost:8161", "LOCALHOST.", "[::1]:8161", "127.0.0.1", "x.localhost"} {
		if !ownHost(host, nil) {
			t.Errorf("%s is refused", host)
		}
	}
	if !ownHost("leto:8161", []string{"leto"}) {
		t.Error("a name that is known is refused")
	}
	if code := a.ask("POST", purge, `{}`, nil, "Content-Type", "application/json; charset=utf-8"); code != 200 {
		t.Errorf("purge: %d", code)
	}
}

func TestProgressIsTold(t *testing.T) {
	a := newAPI(t, engine.Options{})
	a.fill("q", 10)
	var last Progress
	if code := a.ask("POST", "/api/v1/queues/q/purge", `{}`, &last, "Accept", ProgressType); code != 200 || last.Done != 10 || !last.Ended {
		t.Errorf("%d %+v", code, last)
	}
	last = Progress{}
	if code := a.ask("POST", "/api/v1/queues/none/purge", `{}`, &last, "Accept", ProgressType); code != 200 || last.Status != 404 || !last.Ended {
		t.Errorf("%d %+v", code, last)
	}
}
