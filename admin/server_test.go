package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/letomq/leto/amqp/server"
	"github.com/letomq/leto/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fakeBroker struct {
	Broker
	queues []engine.QueueInfo
}

func (b fakeBroker) Queues() []engine.QueueInfo { return b.queues }
func (b fakeBroker) Totals() engine.Totals {
	return engine.Totals{Queues: len(b.queues), Messages: 3, Delivering: 2, Added: 10, Memory: 512, MemoryLimit: 1024}
}
func (b fakeBroker) Pressure() bool { return true }

func (b fakeBroker) Spill() engine.SpillInfo { return engine.SpillInfo{} }

type fakeWire struct{}

func (fakeWire) Stats() server.Stats {
	return server.Stats{Connections: 4, ConnectionsTotal: 9, FramesIn: 100}
}

func options() Options {
	o := Defaults()
	o.Broker, o.Wire, o.Ready = fakeBroker{}, fakeWire{}, func() error { return nil }
	o.Name, o.Version, o.Hosts = "n1", "v0", []string{"leto"}
	return o
}

// start serves on a free port and stops with the test. It returns HOST:PORT.
func start(t *testing.T, o Options) string {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("serve ended with %v", err)
		}
	})
	return l.Addr().String()
}

var client = http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func do(t *testing.T, method, url string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestHealth(t *testing.T) {
	why := errors.New("replaying")
	o := options()
	o.Ready = func() error { return why }
	at := "http://" + start(t, o)
	if answer, body := do(t, "GET", at+"/livez", nil); answer.StatusCode != 200 || body != "ok\n" {
		t.Errorf("livez: %d %q", answer.StatusCode, body)
	}
	if answer, body := do(t, "GET", at+"/readyz", nil); answer.StatusCode != 503 || body != "unavailable\nnode: replaying\n" {
		t.Errorf("readyz: %d %q", answer.StatusCode, body)
	}
	asJSON := func(r *http.Request) { r.Header.Set("Accept", "application/json") }
	answer, body := do(t, "GET", at+"/readyz", asJSON)
	want := `{"status":"unavailable","checks":[{"name":"node","status":"unavailable","detail":"replaying"}]}` + "\n"
	if answer.StatusCode != 503 || body != want || answer.Header.Get("Content-Type") != "application/json" {
		t.Errorf("readyz as JSON: %d %q", answer.StatusCode, body)
	}
	if answer, body := do(t, "HEAD", at+"/livez", nil); answer.StatusCode != 200 || body != "" {
		t.Errorf("HEAD livez: %d %q", answer.StatusCode, body)
	}
}

func TestQueues(t *testing.T) {
	o := options()
	at := "http://" + start(t, o)
	if _, body := do(t, "GET", at+"/api/v1/queues", nil); body != "[]\n" {
		t.Errorf("no queues: %q", body)
	}
	o.Broker = fakeBroker{queues: []engine.QueueInfo{
		{Name: "a", Address: "x", Routing: engine.Anycast, Messages: 1, Bytes: 7, Durable: true},
		{Name: "b", Address: "y", Routing: engine.Multicast, Temporary: true, Killed: 2},
	}}
	at = "http://" + start(t, o)
	answer, body := do(t, "GET", at+"/api/v1/queues", nil)
	var got []Queue
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	want := []Queue{
		{Name: "a", Address: "x", Routing: "anycast", Messages: 1, Bytes: 7, Durable: true},
		{Name: "b", Address: "y", Routing: "multicast", Temporary: true, Killed: 2},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] || answer.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %+v", got)
	}
}

func TestMetrics(t *testing.T) {
	at := "http://" + start(t, options())
	_, body := do(t, "GET", at+"/metrics", nil)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"leto_connections": 4, "leto_ready": 1, "leto_memory_used_bytes": 512, "leto_memory_limit_bytes": 1024, "leto_alarm": 1,
	} {
		if f := families[name]; f == nil || f.GetMetric()[0].GetGauge().GetValue() != want {
			t.Errorf("%s: %v, want %g", name, f, want)
		}
	}
	for name, want := range map[string]float64{
		"leto_connections_opened_total": 9, "leto_frames_received_total": 100, "leto_messages_added_total": 10,
	} {
		if f := families[name]; f == nil || f.GetMetric()[0].GetCounter().GetValue() != want {
			t.Errorf("%s: %v, want %g", name, f, want)
		}
	}
	for _, line := range []string{`leto_queue_messages_sum{state="ready"} 3`, `leto_queue_messages_sum{state="delivering"} 2`, `leto_queue_messages_sum{state="delayed"} 0`} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, name := range []string{"go_goroutines", "process_start_time_seconds"} {
		if families[name] == nil {
			t.Errorf("no %s", name)
		}
	}
}

func TestProblems(t *testing.T) {
	at := "http://" + start(t, options())
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/nothing", 404}, {"GET", "/api/v1/nothing", 404}, {"POST", "/api/v1/queues", 405}, {"DELETE", "/livez", 405},
	} {
		answer, body := do(t, c.method, at+c.path, nil)
		var told problemDetails
		err := json.Unmarshal([]byte(body), &told)
		if answer.StatusCode != c.status || err != nil || told.Status != c.status || told.Detail == "" ||
			answer.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %q", c.method, c.path, answer.StatusCode, body)
		}
	}
}

func TestUsersAreAskedFor(t *testing.T) {
	o := options()
	o.Verify = func(user, password string) bool { return user == "ann" && password == "secret" }
	at := "http://" + start(t, o)
	for _, path := range []string{"/metrics", "/api/v1/queues"} {
		for _, c := range []struct {
			user, password string
			status         int
		}{{"", "", 401}, {"ann", "wrong", 401}, {"ann", "secret", 200}} {
			answer, _ := do(t, "GET", at+path, func(r *http.Request) {
				if c.user != "" {
					r.SetBasicAuth(c.user, c.password)
				}
			})
			if answer.StatusCode != c.status {
				t.Errorf("%s as %q: %d, want %d", path, c.user, answer.StatusCode, c.status)
			}
		}
	}
	if answer, _ := do(t, "GET", at+"/livez", nil); answer.StatusCode != 200 {
		t.Error("health asks for a user")
	}
}

func TestHugeHeaderIsRefused(t *testing.T) {
	at := start(t, options())
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, "GET /livez HTTP/1.0\r\nX: "+strings.Repeat("x", maxHeader+8<<10)); err != nil {
		return // cut off before it was all sent
	}
	// No end of the header was sent: only a server that stopped reading answers.
	if line, err := bufio.NewReader(c).ReadString('\n'); err == nil && !strings.Contains(line, "431") {
		t.Errorf("answer %q", line)
	} else if e := net.Error(nil); errors.As(err, &e) && e.Timeout() {
		t.Error("the server reads on")
	}
}

// TestIdlePeersLoseTheirPlace: peers that connect and say nothing hold all places, and others are
// served as soon as their time is over.
func TestIdlePeersLoseTheirPlace(t *testing.T) {
	o := options()
	o.MaxConnections, o.HeaderTimeout = 2, 100*time.Millisecond
	at := start(t, o)
	var idle []net.Conn
	for range 4 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	if answer, _ := do(t, "GET", "http://"+at+"/livez", nil); answer.StatusCode != 200 {
		t.Errorf("status %d", answer.StatusCode)
	}
	_ = idle[0].SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, idle[0]); err != nil {
		t.Errorf("an idle peer wasn't closed: %v", err)
	}
}

// TestConnectionLimit: with one place taken by a request under way, the next connection waits.
func TestConnectionLimit(t *testing.T) {
	under, release := make(chan struct{}), make(chan struct{})
	o := options()
	o.MaxConnections = 1
	first := true
	o.Ready = func() error {
		if first {
			first = false
			close(under)
			<-release
		}
		return nil
	}
	at := start(t, o)
	one, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	fmt.Fprint(one, "GET /readyz HTTP/1.0\r\n\r\n")
	<-under
	two, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	fmt.Fprint(two, "GET /readyz HTTP/1.0\r\n\r\n")
	_ = two.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := two.Read(make([]byte, 1)); err == nil {
		t.Fatal("a second connection was served")
	}
	close(release)
	_ = two.SetReadDeadline(time.Now().Add(10 * time.Second))
	if line, err := bufio.NewReader(two).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Errorf("after the first has ended: %q, %v", line, err)
	}
}

func TestOptionsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Options){
		"no broker":      func(o *Options) { o.Broker = nil },
		"no wire":        func(o *Options) { o.Wire = nil },
		"no readiness":   func(o *Options) { o.Ready = nil },
		"no connections": func(o *Options) { o.MaxConnections = 0 },
		"no time-out":    func(o *Options) { o.RequestTimeout = 0 },
	} {
		o := options()
		spoil(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
