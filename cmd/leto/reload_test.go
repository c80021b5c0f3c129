package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// configuration is a file that a broker reads.
type configuration string

func newConfiguration(t *testing.T, text string) configuration {
	t.Helper()
	c := configuration(filepath.Join(t.TempDir(), "leto.yaml"))
	c.set(t, text)
	return c
}

// set replaces the file at once, as whoever reloads should.
func (c configuration) set(t *testing.T, text string) {
	t.Helper()
	next := string(c) + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, string(c)); err != nil {
		t.Fatal(err)
	}
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// await waits until what the broker has said after the first so many bytes contains a text, and returns that.
func (p *process) await(t *testing.T, after int, text string) string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if said := p.text()[after:]; strings.Contains(said, text) {
			return said
		}
		if time.Now().After(deadline) {
			t.Fatalf("it doesn't say %q:\n%s", text, p.text()[after:])
		}
	}
}

// hangUp sends SIGHUP and waits until the broker has said something new.
func (p *process) hangUp(t *testing.T, say string) string {
	t.Helper()
	before := len(p.text())
	p.signal(t, syscall.SIGHUP)
	return p.await(t, before, say)
}

// setting returns a setting in force at an address.
func (p *process) setting(t *testing.T, address, key string) string {
	t.Helper()
	r := leto(t, "address", "settings", address, "--admin-url", "http://"+p.http)
	for line := range strings.SplitSeq(r.out, "\n") {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key {
			return f[1]
		}
	}
	t.Fatalf("no setting %s at %s:\n%s%s", key, address, r.out, r.errOut)
	return ""
}

func (p *process) wantSetting(t *testing.T, address, key, want string) {
	t.Helper()
	if got := p.setting(t, address, key); got != want {
		t.Errorf("%s at %s is %s, want %s", key, address, got, want)
	}
}

func (p *process) wantAddress(t *testing.T, name string, code int) {
	t.Helper()
	leto(t, "address", "show", name, "--admin-url", "http://"+p.http).want(t, code, "")
}

// TestReload changes what may change, whole or not at all, and names what takes a restart.
func TestReload(t *testing.T) {
	file := newConfiguration(t, "address-settings: [ { match: a, max-delivery-attempts: 3 } ]\naddresses: [ { name: old } ]\n")
	p := broker(t, "--config", string(file), "--set", "limits.queues=20")
	attempts := func(want string) { t.Helper(); p.wantSetting(t, "a", "max-delivery-attempts", want) }
	attempts("3")

	file.set(t, `address-settings: [ { match: a, max-delivery-attempts: 4 } ]
addresses: [ { name: news, routing: multicast }, { name: multi, queues: [ { name: one } ] } ]
amqp: { link-credit: 7 }
listeners: [ { bind: 127.0.0.1:1 } ]
auth: { anonymous: true }
`)
	said := p.hangUp(t, "declared no more")
	if !strings.Contains(said, "configuration reloaded") || !strings.Contains(said, "old") {
		t.Errorf("a good reload: %s", said)
	}
	for _, key := range []string{"amqp.link-credit", "auth.anonymous"} {
		if !strings.Contains(said, key) {
			t.Errorf("%s takes a restart and isn't named: %s", key, said)
		}
	}
	if strings.Contains(said, "listeners") { // a flag says where it listens, before and after
		t.Errorf("listeners haven't changed: %s", said)
	}
	attempts("4")
	p.wantAddress(t, "news", exitDone)
	p.wantAddress(t, "old", exitDone)

	const more = "address-settings: [ { match: a, max-delivery-attempts: 5 } ]\n"
	for _, c := range []struct{ want, text string }{
		{`leto.yaml:2:1: unknown key \"nonsense\"`, more + "nonsense: 1\n"},
		{"leto.yaml:1:56: address-settings.0.max-delivery-attempts: 0 is neither", "address-settings: [ { match: a, max-delivery-attempts: 0 } ]\n"},
		{"leto.yaml:2:37: addresses.0.routing: address news is multicast", more + "addresses: [ { name: news, routing: anycast } ]\n"},
		{"leto.yaml:2:22: addresses.0.name: address $x: name is reserved", more + "addresses: [ { name: $x } ]\n"},
		{`leto.yaml:2:43: addresses.0.queues.0.name: queue y::\"a\\tb\"`, more + "addresses: [ { name: y, queues: [ { name: \"a\\tb\" } ] } ]\n"},
		{"there are more errors", more + numbered("nonsense-%d: 1\n", 25)},
		{"users file", more + "auth: { users-file: not-there }\n"},
		{"20 addresses: resource limit exceeded", more + "addresses: [ { name: multi, queues: [ { name: two } ] }" + numbered(", { name: n%d }", 40) + " ]\n"},
		{"no such file", ""},
	} {
		if c.text == "" {
			if err := os.Remove(string(file)); err != nil {
				t.Fatal(err)
			}
		} else {
			file.set(t, c.text)
		}
		p.hangUp(t, c.want)
		attempts("4")
	}
	p.wantAddress(t, "n1", exitNotFound)
	if r := leto(t, "address", "show", "multi", "--admin-url", "http://"+p.http); !strings.Contains(r.out, "one") || strings.Contains(r.out, "two") {
		t.Errorf("multi after a reload that was taken back: %s", r.out)
	}
	metric := func(want string) {
		t.Helper()
		if _, body := p.get(t, "/metrics"); !strings.Contains(body, "\nleto_config_last_reload_successful "+want+"\n") {
			t.Errorf("leto_config_last_reload_successful isn't %s", want)
		}
	}
	metric("0")

	file.set(t, "address-settings: [ { match: \"#\", dead-letter-address: b }, { match: b, dead-letter-address: a } ]\nlog: { level: warn }\n")
	if said := p.hangUp(t, "form a circle"); strings.Contains(said, "reloaded") {
		t.Errorf("a note in spite of log.level: %s", said)
	}
	attempts("10")
	metric("1")
}

// numbered repeats a format with 1 to n.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// TestReloadOfUsers: who may log in changes for connections to come, and for HTTP at once.
func TestReloadOfUsers(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("leto.yaml", "auth: { users-file: users }\n")
	put("users", "ann:"+hash(t, "secret")+"\n")
	p := broker(t, "--config", filepath.Join(dir, "leto.yaml"))
	send := func(user string, code int) {
		t.Helper()
		leto(t, "send", "q", "hello", "--url", "amqp://"+user+"@"+p.amqp).want(t, code, "")
	}
	send("ann:secret", exitDone)
	send("bob:other", exitForbidden)

	put("users", "bob:"+hash(t, "other")+"\n")
	p.hangUp(t, "configuration reloaded")
	send("bob:other", exitDone)
	send("ann:secret", exitForbidden)

	put("users", "bob:clear\n")
	p.hangUp(t, "users:1: user bob has no bcrypt hash")
	send("bob:other", exitDone)

	put("more", "carl:"+hash(t, "third")+"\n")
	put("leto.yaml", "auth: { users-file: more }\n")
	if said := p.hangUp(t, "configuration reloaded"); strings.Contains(said, "next start") {
		t.Errorf("another users file needs no restart: %s", said)
	}
	send("carl:third", exitDone)
	send("bob:other", exitForbidden)

	put("leto.yaml", "{}\n") // everybody may come, from the next start on
	p.hangUp(t, "auth.users-file")
	send("bob:other", exitForbidden)
	send("carl:third", exitDone)
}

// TestReloadUnderLoad: nothing is lost, comes twice or out of order, whatever is reloaded meanwhile, good and bad, many at
// a time; and what is in force in the end is what was told last.
func TestReloadUnderLoad(t *testing.T) {
	file := newConfiguration(t, "{}\n")
	p := broker(t, "--config", string(file))
	load := make(chan result, 1)
	go func() {
		load <- leto(t, "bench", p.url(), "--producers", "2", "--consumers", "2", "--queues", "2", "--count", "100000", "--durable")
	}()
	random := rand.New(rand.NewPCG(1, 2))
	reloads := 0
	for running := true; running; {
		reloads++
		if n := random.IntN(4); n == 0 {
			file.set(t, "address-settings: [ { match: \"#\" }")
		} else {
			file.set(t, fmt.Sprintf(`
address-settings:
  - { match: "#", max-delivery-attempts: %d, redelivery-delay: %d, id-cache-size: %d, auto-delete-queues: %t }
addresses: [ { name: more.%d } ]
`, n, n*100, n*10, n == 1, reloads%50))
		}
		for range 1 + random.IntN(3) {
			p.signal(t, syscall.SIGHUP)
		}
		select {
		case r := <-load:
			r.want(t, exitDone, "")
			running = false
		case <-time.After(time.Duration(random.IntN(20)) * time.Millisecond):
		}
	}
	t.Logf("%d reloads", reloads)
	file.set(t, "address-settings: [ { match: \"#\", max-delivery-attempts: 77 } ]\n")
	before := len(p.text())
	p.signal(t, syscall.SIGHUP)
	p.await(t, before, "configuration reloaded")
	for deadline := time.Now().Add(patience); p.setting(t, "q", "max-delivery-attempts") != "77"; { // an earlier one may have been under way
		if time.Now().After(deadline) {
			t.Fatal("what was told last isn't in force")
		}
	}
}

// TestReloadWhileStartingAndStopping: a signal that comes early is acted on once the broker runs, and one that comes late
// doesn't end it before its time.
func TestReloadWhileStartingAndStopping(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--http", "off", "--data", filepath.Join(dir, "data"))
	p := start(t, cmd)
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Microsecond) {
		if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it makes no store")
		}
	}
	for !strings.Contains(p.text(), "listening") {
		p.signal(t, syscall.SIGHUP)
	}
	p.await(t, 0, "configuration reloaded")
	p.signal(t, syscall.SIGTERM)
	for range 1000 {
		if p.cmd.Process.Signal(syscall.SIGHUP) != nil {
			break
		}
	}
	if err := p.wait(); err != nil || !strings.Contains(p.text(), "stopped") {
		t.Errorf("%v\n%s", err, p.text())
	}
}

// TestReloadThenKill: once it has said so, what a reload has made survives.
func TestReloadThenKill(t *testing.T) {
	file := newConfiguration(t, "{}\n")
	data := filepath.Join(t.TempDir(), "data")
	for round := range 3 {
		p := broker(t, "--config", string(file), "--data", data)
		for i := range round {
			p.wantAddress(t, fmt.Sprint("made.", i), exitDone)
		}
		file.set(t, fmt.Sprintf("addresses: [ { name: made.%d, routing: multicast } ]\n", round))
		p.hangUp(t, "configuration reloaded")
		p.kill(t)
		file.set(t, "{}\n")
	}
	p := broker(t, "--config", string(file), "--data", data)
	if code, body := p.get(t, "/api/v1/addresses/made.2"); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
}
