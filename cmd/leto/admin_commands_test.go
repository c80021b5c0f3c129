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
		"messages       3":                          {"queue", "show", "orders"},
		`"messages": 3`:                             {"queue", "show", "orders", "--json"},
		"news.eu  multicast       1":                {"address", "ls"},
		"max-delivery-attempts         3":           {"address", "show", "news.eu"},
		`"match": "news.#"`:                         {"address", "settings", "news.us", "--json"},
		"dead-letter-address           DLQ        ": {"address", "settings", "x"},
	} {
		if r := run(args...); r.code != exitDone || !strings.Contains(r.out, want) {
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
