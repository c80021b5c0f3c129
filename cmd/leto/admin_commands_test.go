package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/admin"
	"github.com/letomq/leto/cmd/leto/bench"
)

// TestQueueAndAddressCommands makes, shows and deletes queues and addresses of a broker, and wants to be asked before.
func TestQueueAndAddressCommands(t *testing.T) {
	p := broker(t, "--set", "address-settings[news.#].max-delivery-attempts=3")
	at := "http://" + p.http
	run := func(args ...string) result { return leto(t, append(args, "--admin-url", at)...) }

	run("queue", "create", "orders").want(t, exitDone, "queue orders: created")
	run("queue", "create", "orders").want(t, exitDone, "was there already")
	run("queue", "create", "orders", "--routing", "multicast").want(t, exitConflict, "anycast, not multicast")
	run("queue", "create", "orders", "--routing", "x").want(t, exitUsage, "anycast or multicast")
	run("address", "create", "news.eu", "--routing", "multicast").want(t, exitDone, "created")
	run("queue", "create", "news.eu::all").want(t, exitDone, "created")
	for range 3 {
		leto(t, "send", "orders", "hello", "--url", "amqp://"+p.amqp).want(t, exitDone, "")
	}
	for want, args := range map[string][]string{
		"messages 3":              {"queue", "show", "orders"},
		`"messages": 3`:           {"queue", "show", "orders", "--json"},
		"news.eu multicast 1":     {"address", "ls"},
		"max-delivery-attempts 3": {"address", "show", "news.eu"},
		`"match": "news.#"`:       {"address", "settings", "news.us", "--json"},
		"dead-letter-address DLQ": {"address", "settings", "x"},
	} {
		r := run(args...) // columns are as wide as what stands in them
		if r.code != exitDone || !strings.Contains(strings.Join(strings.Fields(r.out), " "), want) {
			t.Errorf("%v: %d %s%s, want %q", args, r.code, r.out, r.errOut, want)
		}
	}
	run("queue", "purge", "orders").want(t, exitUsage, "purge 3 messages from orders? Nobody is here to be asked: say --yes")
	run("queue", "rm", "orders").want(t, exitUsage, "--yes")
	run("queue", "rm", "orders", "--yes", "--if-empty").want(t, exitConflict, "isn't empty")
	if r := run("queue", "purge", "orders", "--yes"); r.code != exitDone || r.out != "3 purged\n" {
		t.Errorf("purge: %d %q %q", r.code, r.out, r.errOut)
	}
	run("queue", "rm", "orders", "--yes", "--if-empty").want(t, exitDone, "deleted")
	run("queue", "show", "orders").want(t, exitNotFound, "not found")
	run("address", "rm", "news.eu", "--yes").want(t, exitDone, "deleted")
	run("address", "show", "news.eu").want(t, exitNotFound, "not found")
}

// TestDeadLetterCommands has messages die, looks at why, and sends some of them back.
func TestDeadLetterCommands(t *testing.T) {
	p := broker(t)
	at, url := "http://"+p.http, "amqp://"+p.amqp
	run := func(args ...string) result { return leto(t, append(args, "--admin-url", at)...) }
	for _, n := range []string{"1", "2", "3"} {
		leto(t, "send", "orders", "body "+n, "--property", "n:int="+n, "--url", url).want(t, exitDone, "")
	}
	leto(t, "receive", "orders", "--count", "3", "--ack", "reject", "--timeout", "10s", "--url", url).want(t, exitDone, "")
	if r := run("queue", "peek", "DLQ", "--filter", "n > 1", "--count", "1"); r.code != exitDone ||
		!strings.Contains(r.out, "1 failed attempt, from orders, died at 20") || !strings.Contains(r.out, "Z: rejected\n") || !strings.Contains(r.out, "    n = 2\n    body 2\n") {
		t.Errorf("peek: %d %q %q", r.code, r.out, r.errOut)
	}
	if r := leto(t, "browse", "DLQ", "--count", "1", "-o", "json", "--url", url); !strings.Contains(r.out, `"x-opt-death-reason":"rejected`) {
		t.Errorf("browse: %q %q", r.out, r.errOut)
	}
	run("queue", "retry", "DLQ", "--filter", "n >").want(t, exitUsage, "--yes")
	run("queue", "retry", "DLQ", "--filter", "n >", "--yes").want(t, exitUsage, "something is missing")
	run("queue", "retry", "DLQ", "--count", "0", "--yes").want(t, exitUsage, "--count must be 1 or more")
	if r := run("queue", "retry", "DLQ", "--filter", "n >= 2", "--count", "1", "--yes"); r.code != exitDone || r.out != "1 sent back\n" {
		t.Errorf("retry: %d %q %q", r.code, r.out, r.errOut)
	}
	if r := run("queue", "move", "DLQ", "later", "--yes", "--json"); r.code != exitDone || !strings.Contains(r.out, `"done": 2`) {
		t.Errorf("move: %d %q %q", r.code, r.out, r.errOut)
	}
	run("queue", "move", "DLQ", "--yes").want(t, exitUsage, "QUEUE and TO are needed")
	run("queue", "move", "later", "later", "--yes").want(t, exitConflict, "to where they are")
	run("queue", "pause", "orders").want(t, exitDone, "paused")
	leto(t, "receive", "orders", "--count", "1", "--timeout", "300ms", "--url", url).want(t, exitTimeout, "")
	run("queue", "resume", "orders").want(t, exitDone, "gives messages")
	if r := leto(t, "receive", "orders", "--count", "1", "--timeout", "10s", "--url", url); r.out != "body 2\n" {
		t.Errorf("receive: %q %q", r.out, r.errOut)
	}
}

// TestScheduledCommands looks at what was sent for later and what has failed, cancels some of it, and has some be due.
func TestScheduledCommands(t *testing.T) {
	p := broker(t, "--set", "address-settings[#].redelivery-delay=1h")
	at, url := "http://"+p.http, "amqp://"+p.amqp
	run := func(args ...string) result {
		return leto(t, append(append([]string{"queue", "scheduled"}, args...), "--admin-url", at)...)
	}
	for _, n := range []string{"3", "1", "2"} {
		leto(t, "send", "later", "body "+n, "--property", "n:int="+n, "--delay", n+"h", "--url", url).want(t, exitDone, "")
	}
	leto(t, "send", "later", "tried", "--url", url).want(t, exitDone, "")
	leto(t, "receive", "later", "--count", "1", "--ack", "modify", "--timeout", "10s", "--url", url).want(t, exitDone, "")

	r := run("ls", "later")
	at1, at2, at3 := strings.Index(r.out, "body 1"), strings.Index(r.out, "body 2"), strings.Index(r.out, "body 3")
	if r.code != exitDone || at1 < 0 || at2 < at1 || at3 < at2 || strings.Count(r.out, ", due at 20") != 4 || strings.Count(r.out, ", 1 failed attempt\n") != 1 {
		t.Errorf("ls: %d %s%s", r.code, r.out, r.errOut)
	}
	if r := run("ls", "later", "--filter", "n > 1", "--count", "1", "--json"); !strings.Contains(r.out, `"due_at":"20`) || !strings.Contains(r.out, `"body":"body 2"`) || strings.Count(r.out, "\n") != 1 {
		t.Errorf("ls --json: %s%s", r.out, r.errOut)
	}
	run("cancel", "later").want(t, exitUsage, "delete 4 messages of those that wait for their time in later? Nobody is here to be asked: say --yes")
	leto(t, "queue", "purge", "later", "--admin-url", at).want(t, exitUsage, "purge 4 messages from later?") // it takes them, too
	run("deliver", "later", "--number", "7").want(t, exitUsage, "have message 7 of those that wait for their time in later be due now?")
	for _, args := range [][]string{{"cancel", "later", "--filter", ""}, {"cancel", "later", "--count", "0"}, {"deliver", "later", "--number", "0"}, {"cancel", ""}} {
		if r := run(append(args, "--yes")...); r.code != exitUsage {
			t.Errorf("%q: %d %s%s", args, r.code, r.out, r.errOut)
		}
	}
	run("cancel", "nowhere", "--yes").want(t, exitNotFound, "not found")
	for _, c := range []struct{ args, told string }{
		{"cancel later --filter n=2", "1 cancelled\n"},
		{"deliver later --filter n=3", "1 made due\n"},
		{"cancel later --count 1", "1 cancelled\n"}, // the first that is due: an hour from now
		{"deliver later", "1 made due\n"},
		{"deliver later", "0 made due\n"},
	} {
		if r := run(append(strings.Fields(c.args), "--yes")...); r.code != exitDone || r.out != c.told {
			t.Errorf("%s: %d %q %q", c.args, r.code, r.out, r.errOut)
		}
	}
	if r := leto(t, "receive", "later", "--count", "2", "--timeout", "10s", "--url", url); r.out != "body 3\ntried\n" {
		t.Errorf("receive: %d %q %q", r.code, r.out, r.errOut)
	}
	if r := run("ls", "later"); r.code != exitDone || r.out != "" {
		t.Errorf("ls: %d %q %q", r.code, r.out, r.errOut)
	}
}

// TestCommandsThatDestroyAsk: without --yes, where nobody can be asked, nothing is done; nor is it with a name or a
// filter that a script has failed to fill in.
func TestCommandsThatDestroyAsk(t *testing.T) {
	p := broker(t)
	t.Setenv("LETO_ADMIN_URL", "http://"+p.http)
	leto(t, "send", "q", "hello", "--count", "3", p.url()).want(t, exitDone, "")
	for _, args := range []string{
		"queue rm q", "queue rm q --if-empty", "queue purge q", "queue purge q --count 1", "queue move q r", "queue retry q", "address rm q",
		"queue scheduled cancel q", "queue scheduled deliver q",
	} {
		leto(t, strings.Fields(args)...).want(t, exitUsage, "say --yes")
	}
	for _, args := range [][]string{
		{"queue", "purge", "q", "--filter", "", "--yes"}, {"queue", "move", "q", "r", "--filter", "", "--yes"}, {"queue", "purge", "q::", "--yes"},
		{"queue", "purge", "q", "--count", "0", "--yes"}, {"queue", "rm", "", "--yes"}, {"queue", "rm", "q::", "--yes"}, {"address", "rm", "", "--yes"},
		{"queue", "move", "q", "", "--yes"}, {"queue", "rm", "..", "--yes"}, {"address", "rm", ".", "--yes"},
	} {
		if r := leto(t, args...); r.code == exitDone {
			t.Errorf("%q: done", args)
		}
	}
	if r := leto(t, "queue", "show", "q", "--json"); !strings.Contains(r.out, `"messages": 3`) {
		t.Errorf("not all is there any more:\n%s%s", r.out, r.errOut)
	}
}

// TestInterruptedCommandsLeaveNothingTwice: a request that is cancelled in the middle ends there, and each message is in
// one of the two queues, or gone.
func TestInterruptedCommandsLeaveNothingTwice(t *testing.T) {
	const all = 60_000
	p := broker(t)
	fill := func() {
		t.Helper()
		p.bench(t, "--address", "q", "--consumers", "0", "--count", fmt.Sprint(all), "--durable")
	}
	fill()
	messages := func(queue string) int {
		t.Helper()
		var q admin.Queue
		code, body := p.get(t, "/api/v1/queues/"+queue)
		if code == http.StatusNotFound {
			return 0
		}
		if err := json.Unmarshal([]byte(body), &q); err != nil {
			t.Fatal(err)
		}
		return q.Messages + q.Delivering
	}
	// interrupt sends a request, cancels it once begun says so, and returns when what it did has come to rest: false when
	// it was through before.
	interrupt := func(path, body string, begun func() bool) bool {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.http+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		ended := make(chan error, 1)
		go func() {
			answer, err := http.DefaultClient.Do(request)
			if err == nil {
				answer.Body.Close()
			}
			ended <- err
		}()
		for deadline := time.Now().Add(patience); !begun(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s does nothing", path)
			}
		}
		cancel()
		interrupted := <-ended != nil
		for before, same := [2]int{}, 0; same < 5; time.Sleep(20 * time.Millisecond) {
			now := [2]int{messages("q"), messages("r")}
			if same++; now != before {
				before, same = now, 0
			}
		}
		return interrupted
	}
	// halfway has a request interrupted, which a machine that is busy elsewhere may be too slow for: again makes ready for
	// another try.
	halfway := func(path, body string, begun func() bool, again func()) {
		t.Helper()
		for range 5 {
			if interrupt(path, body, begun) {
				return
			}
			again()
		}
		t.Fatalf("%s: it is through too soon", path)
	}
	run := func(args ...string) {
		t.Helper()
		leto(t, append(args, "--yes", "--admin-url", "http://"+p.http)...).want(t, exitDone, "")
	}

	halfway("/api/v1/queues/q/move", `{"to":"r"}`, func() bool { return messages("r") > all/3 }, func() { run("queue", "retry", "r") })
	q, r := messages("q"), messages("r")
	if q+r != all || q == 0 || r == 0 {
		t.Errorf("moved: %d and %d of %d", q, r, all)
	}
	halfway("/api/v1/queues/r/retry", `{}`, func() bool { return messages("r") < r }, func() { run("queue", "move", "q", "r", "--count", fmt.Sprint(r)) })
	if q, r = messages("q"), messages("r"); q+r != all || r == 0 {
		t.Errorf("sent back: %d and %d of %d", q, r, all)
	}
	t.Logf("%d and %d of %d", q, r, all)
	run("queue", "retry", "r")
	// A drain knows each message that the fill has sent. Those that went and came back are behind the others.
	drain := func(n, gone int) {
		t.Helper()
		ran := p.run(t, "bench", "--json", "--address", "q", "--producers", "0", "--count", fmt.Sprint(n))
		var reports []bench.Report
		if err := json.Unmarshal([]byte(ran.out), &reports); err != nil || len(reports) != 1 {
			t.Fatalf("%v: %+v", err, ran)
		}
		if got := reports[0]; got.Received != uint64(n) || got.Lost != uint64(gone) || got.Duplicates+got.Foreign != 0 {
			t.Errorf("drained: %+v", got)
		}
	}
	drain(all, 0)
	if q, r = messages("q"), messages("r"); q+r != 0 {
		t.Errorf("%d and %d are left", q, r)
	}

	fill()
	halfway("/api/v1/queues/q/purge", `{"filter":"JMSPriority < 10"}`, func() bool { return messages("q") < all }, fill)
	if q = messages("q"); q == 0 || q == all {
		t.Errorf("%d of %d are left", q, all)
	}
	drain(q, all-q)
}

// TestBrokenProgressIsNoResult: what was told before the broker went away is told as that.
func TestBrokenProgressIsNoResult(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintln(w, `{"name":"q"}`)
			return
		}
		fmt.Fprintln(w, `{"looked":5,"done":3,"skipped":1,"ended":false}`)
	}))
	defer broken.Close()
	r := leto(t, "queue", "purge", "q", "--yes", "--admin-url", broken.URL)
	r.want(t, exitFailed, "EOF")
	if r.out != "at least 3 purged, 1 left where they were\n" {
		t.Errorf("%q", r.out)
	}
}

// TestPeekTellsWholeNumbers: the API's JSON has longs that no float64 has, and a command must not round them.
func TestPeekTellsWholeNumbers(t *testing.T) {
	p := broker(t)
	leto(t, "send", "orders", "x", "--property", "n:long=9007199254740993", "--url", "amqp://"+p.amqp).want(t, exitDone, "")
	for want, flag := range map[string]string{"    n = 9007199254740993\n": "--json=false", `"n":9007199254740993`: "--json"} {
		if r := leto(t, "queue", "peek", "orders", flag, "--admin-url", "http://"+p.http); r.code != exitDone || !strings.Contains(r.out, want) {
			t.Errorf("peek %s: %d %q %q, want %q", flag, r.code, r.out, r.errOut, want)
		}
	}
}
