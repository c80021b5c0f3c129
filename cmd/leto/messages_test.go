package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/letomq/leto/admin"
)

// run runs a messaging command against the broker.
func (p *process) run(t *testing.T, args ...string) result {
	t.Helper()
	return leto(t, append([]string{p.url()}, args...)...)
}

// done runs a messaging command that must succeed and returns what it printed.
func (p *process) done(t *testing.T, args ...string) string {
	t.Helper()
	r := p.run(t, args...)
	if r.code != exitDone {
		t.Fatalf("leto %s: exit code %d, %s", strings.Join(args, " "), r.code, r.errOut)
	}
	return r.out
}

// queue is what the API says of a queue.
func (p *process) queue(t *testing.T, name string) admin.Queue {
	t.Helper()
	r := leto(t, "queue", "ls", "--json", "--admin-url", "http://"+p.http)
	var queues []admin.Queue
	if err := json.Unmarshal([]byte(r.out), &queues); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	for _, q := range queues {
		if q.Name == name {
			return q
		}
	}
	return admin.Queue{}
}

func TestSendReceive(t *testing.T) {
	p := broker(t)
	p.done(t, "send", "orders", "hello")
	if out := p.done(t, "receive", "orders"); out != "hello\n" {
		t.Errorf("received %q", out)
	}
	if q := p.queue(t, "orders"); q.Messages != 0 || q.Added != 1 || q.Acknowledged != 1 {
		t.Errorf("afterwards: %+v", q)
	}
}

func TestEveryPropertyArrives(t *testing.T) {
	p := broker(t)
	p.done(t, "send", "orders", "hello", "--subject", "s", "--id", "i", "--group", "g", "--ttl", "1h", "--delay", "1ms",
		"--priority", "7", "--durable=false", "-p", "text=a,b", "-p", "n:int=5")
	var got map[string]any
	out := p.done(t, "receive", "orders", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if ttl, _ := got["ttl_ms"].(float64); ttl <= 3_500_000 || ttl > 3_600_000 {
		t.Errorf("ttl_ms %v", got["ttl_ms"])
	}
	delete(got, "ttl_ms")
	want := `{"annotations":{"x-opt-delivery-delay":1},"application_properties":{"n":5,"text":"a,b"},"body":"hello",` +
		`"delivery_count":0,"durable":false,"first_acquirer":true,"group_id":"g","message_id":"i","priority":7,"subject":"s"}`
	if text, err := json.Marshal(got); err != nil || string(text) != want {
		t.Errorf("got\n  %s\nwant\n  %s", text, want)
	}
}

func TestBodies(t *testing.T) {
	p := broker(t)
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte{0xff, 0, 1}, 0o600); err != nil {
		t.Fatal(err)
	}
	p.done(t, "send", "q", "--file", file)
	if r := letoWith(t, "line one\nline two", "send", "q", "-", p.url()); r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	p.done(t, "send", "q", "--size", "100000") // more than a frame holds
	p.done(t, "send", "q", "")
	p.done(t, "send", "q", "--", "--looks-like-a-flag")
	want := "\xff\x00\x01\nline one\nline two\n" + strings.Repeat("\x00", 100000) + "\n\n--looks-like-a-flag\n"
	if out := p.done(t, "receive", "q", "--count", "5"); out != want {
		t.Errorf("received %d bytes, want %d", len(out), len(want))
	}
}

func TestManyInOrder(t *testing.T) {
	p := broker(t)
	const n = 3 * sendWindow
	r := p.run(t, "send", "q", "x", "--count", fmt.Sprint(n))
	r.want(t, exitDone, fmt.Sprintf("sent %d messages to q", n))
	p.done(t, "send", "q", "last", "--settled")
	out := p.done(t, "receive", "q", "--count", fmt.Sprint(n+1))
	if out != strings.Repeat("x\n", n)+"last\n" {
		t.Errorf("received %d lines", strings.Count(out, "\n"))
	}
}

func TestReceiveFewer(t *testing.T) {
	p := broker(t)
	p.run(t, "receive", "q", "--timeout", "50ms").want(t, exitTimeout, "leto: address q: 0 of 1 message")
	p.done(t, "send", "q", "a")
	r := p.run(t, "receive", "q", "--count", "2", "--timeout", "200ms")
	r.want(t, exitTimeout, "leto: address q: 1 of 2 messages")
	if r.out != "a\n" {
		t.Errorf("received %q", r.out)
	}
}

func TestReceiveTakesNoMoreThanAsked(t *testing.T) {
	p := broker(t)
	p.done(t, "send", "q", "x", "--count", "5")
	p.done(t, "receive", "q", "--count", "2")
	if q := p.queue(t, "q"); q.Messages != 3 || q.Delivering != 0 {
		t.Errorf("afterwards: %+v", q)
	}
	// None of the three was touched: nobody acquired it before.
	if out := p.done(t, "receive", "q", "-o", "json"); !strings.Contains(out, `"first_acquirer":true,"delivery_count":0`) {
		t.Error(out)
	}
}

func TestBrowseTakesNothing(t *testing.T) {
	p := broker(t)
	for _, body := range []string{"a", "b", "c"} {
		p.done(t, "send", "q", body)
	}
	if out := p.done(t, "browse", "q"); out != "a\nb\nc\n" {
		t.Errorf("browsed %q", out)
	}
	if out := p.done(t, "browse", "q", "--count", "2"); out != "a\nb\n" {
		t.Errorf("browsed %q", out)
	}
	if q := p.queue(t, "q"); q.Messages != 3 {
		t.Errorf("afterwards: %+v", q)
	}
	if out := p.done(t, "receive", "q", "--count", "3", "-o", "json"); strings.Count(out, `"delivery_count":0`) != 3 {
		t.Errorf("browsing counted as an attempt: %s", out)
	}
}

func TestAnswers(t *testing.T) {
	p := broker(t)
	for _, c := range []struct {
		ack   string
		count string // delivery-count afterwards; empty: it isn't there any more
	}{{"release", "0"}, {"modify", "1"}, {"accept", ""}, {"reject", ""}} {
		q := "q." + c.ack
		p.done(t, "send", q, c.ack)
		if out := p.done(t, "receive", q, "--ack", c.ack); out != c.ack+"\n" {
			t.Errorf("%s: received %q", c.ack, out)
		}
		if c.count == "" {
			p.run(t, "receive", q, "--timeout", "50ms").want(t, exitTimeout, "0 of 1")
			continue
		}
		if out := p.done(t, "receive", q, "-o", "json"); !strings.Contains(out, `"delivery_count":`+c.count+"}") {
			t.Errorf("%s: then %s", c.ack, out)
		}
	}
	if out := p.done(t, "receive", "DLQ"); out != "reject\n" {
		t.Errorf("dead letter: %q", out)
	}
	// Given back at the end, each of the two is seen once.
	p.done(t, "send", "two", "x", "--count", "2")
	if out := p.done(t, "receive", "two", "--count", "2", "--ack", "release", "-o", "json"); strings.Count(out, `"first_acquirer":true`) != 2 {
		t.Errorf("released: %s", out)
	}
}

func TestReceiveFollowEndsCleanly(t *testing.T) {
	p := broker(t)
	p.done(t, "send", "q", "a")
	cmd := exec.Command(binary, "receive", "q", "--follow", p.url())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer killer.Stop()
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := out.Read(got); err != nil || string(got) != want {
			t.Errorf("read %q, %v", got, err)
		}
	}
	read("a\n")
	p.done(t, "send", "q", "b")
	read("b\n")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGINT: %v", err)
	}
}

func TestUnknownAddress(t *testing.T) {
	p := broker(t, "--set", "address-settings.#.auto-create-addresses=false", "--set", "address-settings.#.auto-create-queues=false",
		"--set", "addresses=[{name: known}]")
	p.run(t, "send", "unknown", "x").want(t, exitNotFound, "leto: address unknown: ")
	p.run(t, "receive", "unknown").want(t, exitNotFound, "(amqp:not-found)")
	p.run(t, "browse", "unknown").want(t, exitNotFound, "(amqp:not-found)")
	p.done(t, "send", "known", "x")
	if out := p.done(t, "receive", "known"); out != "x\n" {
		t.Errorf("received %q", out)
	}
}

func TestBrokerRefusesMessage(t *testing.T) {
	p := broker(t, "--set", "amqp.max-message-size=64KiB")
	p.run(t, "send", "q", "--size", "100000").want(t, exitRefused, "leto: address q: ")
	if q := p.queue(t, "q"); q.Added != 0 {
		t.Errorf("the queue has it: %+v", q)
	}
}

func TestFilterThatIsNotApplied(t *testing.T) {
	p := broker(t)
	p.done(t, "send", "q", "x")
	// Taking messages that the selector doesn't match would lose them: either it holds, or nothing is taken.
	r := p.run(t, "receive", "q", "--filter", "color = 'red'", "--timeout", "100ms")
	if r.out != "" || r.code == exitDone {
		t.Errorf("%+v", r)
	}
	if q := p.queue(t, "q"); q.Messages != 1 {
		t.Errorf("afterwards: %+v", q)
	}
}

func TestDurableSubscription(t *testing.T) {
	p := broker(t)
	p.run(t, "receive", "topic://prices", "--durable", "audit", "--timeout", "50ms").want(t, exitTimeout, "0 of 1")
	p.done(t, "send", "topic://prices", "while away")
	if out := p.done(t, "receive", "topic://prices", "--durable", "audit"); out != "while away\n" {
		t.Errorf("received %q", out)
	}
}

func TestKnownUsersOnly(t *testing.T) {
	p := broker(t, "--set", "auth.users-file="+usersFile(t, "ann:"+hash(t, "secret")+"\n"))
	as := func(user string) string { return "--url=amqp://" + user + p.amqp }
	leto(t, "send", "q", "x", as("ann:secret@")).want(t, exitDone, "")
	leto(t, "receive", "q", as("ann:secret@")).want(t, exitDone, "")
	wrong := leto(t, "send", "q", "x", as("ann:wrong@"))
	wrong.want(t, exitForbidden, "user or password refused")
	if strings.Contains(wrong.errOut, "wrong") {
		t.Errorf("the password is shown: %s", wrong.errOut)
	}
	leto(t, "send", "q", "x", as("")).want(t, exitForbidden, "wants a user and password")
	if code, _ := p.get(t, "/metrics"); code != 401 {
		t.Errorf("metrics without a user: %d", code)
	}
	if code, _ := p.get(t, "/readyz"); code != 200 {
		t.Errorf("readyz: %d", code)
	}
}

// What users write to prove who they are, and what is kept of it, shows nowhere.
func TestCase256_NothingSecretIsShown(t *testing.T) {
	const password, wrong = "correct-horse", "battery-staple"
	kept := hash(t, password)
	p := broker(t, "--log-level", "debug", "--set", "auth.users-file="+usersFile(t, "ann:"+kept+"\n"))
	as := func(password string) string { return "--url=amqp://ann:" + password + "@" + p.amqp }
	leto(t, "send", "q", "x", as(password)).want(t, exitDone, "")
	shown := leto(t, "send", "q", "x", as(wrong)).errOut
	login := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:"+password))
	for _, path := range []string{"/metrics", "/readyz", "/api/v1/queues", "/api/v1/queues/q", "/api/v1/addresses", "/api/v1/addresses/q", "/api/v1/openapi.json"} {
		_, body := p.get(t, path, "Authorization", login)
		shown += body
	}
	p.get(t, "/metrics", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("ann:"+wrong)))
	p.hangUp(t, "")
	p.stop(t)
	shown += p.text()
	if !strings.Contains(shown, "ann") {
		t.Error("the log doesn't say whose login it was: this test looks at nothing")
	}
	for what, secret := range map[string]string{"password": password, "wrong password": wrong, "hash": kept, "login": login} {
		if strings.Contains(shown, secret) {
			t.Errorf("the %s is shown", what)
		}
	}
}

func TestWarnsBeyondLoopback(t *testing.T) {
	for set, want := range map[string]string{
		"auth.anonymous=true": "everybody who can reach this listener may do everything",
		"auth.users-file=" + usersFile(t, "ann:"+hash(t, "secret")+"\n"): "passwords cross the network in clear text",
	} {
		p := broker(t, "--listen", "0.0.0.0:0", "--set", set)
		p.stop(t)
		if !strings.Contains(p.text(), want) {
			t.Errorf("%s: no %q in\n%s", set, want, p.text())
		}
	}
}

func TestStopTellsClients(t *testing.T) {
	p := broker(t)
	cmd := exec.Command(binary, "receive", "q", "--follow", p.url())
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer killer.Stop()
	for deadline := time.Now().Add(patience); p.queue(t, "q").Consumers == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no consumer")
		}
	}
	p.stop(t)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitConnect || !strings.Contains(said.String(), "amqp:connection:forced") {
		t.Errorf("%v, %q", err, said.String())
	}
}

func TestMessagingUsage(t *testing.T) {
	body := []string{"send", "q", "x"}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"send"}, exitUsage, "send: ADDRESS is missing"},
		{[]string{"send", "q"}, exitUsage, "the body is missing"},
		{[]string{"send", "q", "x", "y"}, exitUsage, `unexpected argument "y"`},
		{append(body, "--size", "1"), exitUsage, "give one body"},
		{append(body, "--count", "0"), exitUsage, "--count must be 1 or more"},
		{append(body, "--count", "x"), exitUsage, `invalid value "x"`},
		{append(body, "--priority", "10"), exitUsage, "--priority must be 0 to 9"},
		{append(body, "--ttl", "1us"), exitUsage, "--ttl must be"},
		{append(body, "--delay", "-1s"), exitUsage, "--delay must not be negative"},
		{append(body, "--property", "x"), exitUsage, `"x" is not K=V`},
		{append(body, "--cuont", "1"), exitUsage, "did you mean --count?"},
		{append(body, "--url", "http://h"), exitUsage, "neither amqp nor amqps"},
		{append(body, "--url", "amqp://127.0.0.1:1"), exitConnect, "leto: cannot connect to amqp://127.0.0.1:1: connection refused"},
		{append(body, "--url", "127.0.0.1:1"), exitConnect, "leto: cannot connect to amqp://127.0.0.1:1: connection refused"},
		{[]string{"send", "q", "--file", "/nonexistent"}, exitUsage, "/nonexistent"},
		{[]string{"receive"}, exitUsage, "ADDRESS is missing"},
		{[]string{"receive", "q", "r"}, exitUsage, `unexpected argument "r"`},
		{[]string{"receive", "q", "--ack", "maybe"}, exitUsage, "--ack must be"},
		{[]string{"receive", "q", "--count", "0"}, exitUsage, "--count must be 1 or more"},
		{[]string{"receive", "q", "--timeout", "0s"}, exitUsage, "--timeout must be more than 0"},
		{[]string{"receive", "q", "--follow", "--timeout", "1s"}, exitUsage, "--follow waits for ever"},
		{[]string{"receive", "q", "--durable", "a", "--shared", "b"}, exitUsage, "name one subscription"},
		{[]string{"receive", "help"}, exitConnect, "cannot connect"}, // an address like any other
		{[]string{"receive", "q", "-o", "xml"}, exitUsage, "--output must be text or json"},
		{[]string{"browse", "q", "--ack", "accept"}, exitUsage, "unknown flag --ack"},
		{[]string{"sned", "q"}, exitUsage, `unknown command "sned"; did you mean "send"?`},
		{[]string{"queue", "sl"}, exitUsage, `unknown command "queue sl"; did you mean "queue ls"?`},
		{[]string{"frobnicate"}, exitUsage, `unknown command "frobnicate"; there are serve, send,`},
		{[]string{"version", "x"}, exitUsage, `unexpected argument "x"`},
	} {
		// Nobody listens on port 1: what gets past the checks fails there and not at a broker that happens to run.
		args := c.args
		if !slices.Contains(args, "--url") && c.code == exitConnect {
			args = append(args, "--url", "amqp://127.0.0.1:1")
		}
		leto(t, args...).want(t, c.code, c.want)
	}
}

// TestPeerThatIsNoBroker: what answers something else is no connection, and quickly so.
func TestPeerThatIsNoBroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "SSH-2.0-x\r\n")
			c.Close()
		}
	}()
	leto(t, "send", "q", "x", "--url", "amqp://"+l.Addr().String()).want(t, exitConnect, "leto: cannot connect to amqp://"+l.Addr().String())
}

func TestVersionAndHelp(t *testing.T) {
	if r := leto(t, "version"); r.code != exitDone || !strings.HasPrefix(r.out, "leto ") {
		t.Errorf("%+v", r)
	}
	r := leto(t, "version", "--json")
	var v map[string]string
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || v["version"] == "" {
		t.Errorf("%+v: %v", r, err)
	}
	for _, args := range [][]string{{}, {"help"}, {"--help"}, {"send", "--help"}, {"queue"}, {"queue", "ls", "-h"}} {
		if r := leto(t, args...); r.code != exitDone || !strings.Contains(r.out, "USAGE") || r.errOut != "" {
			t.Errorf("leto %v: %+v", args, r)
		}
	}
}
