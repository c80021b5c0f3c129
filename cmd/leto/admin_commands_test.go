package main

import (
	"strings"
	"testing"
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
		!strings.Contains(r.out, "1 failed attempts, from orders, died at 20") || !strings.Contains(r.out, "Z: rejected\n") || !strings.Contains(r.out, "    n = 2\n    body 2\n") {
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
