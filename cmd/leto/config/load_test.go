package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func ptr[T any](v T) *T { return &v }

// write puts text into leto.yaml in a fresh working directory, so that messages name it briefly.
func write(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("leto.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "leto.yaml"
}

// TestErrorsNameTheirPlace holds the exact text of every kind of refusal.
func TestErrorsNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"unknown key with a near one", "amqp:\n  max-fram-size: 64KiB\n",
			`leto.yaml:2:3: unknown key "max-fram-size" in amqp; did you mean "max-frame-size"?`},
		{"unknown top-level key", "listners:\n  - bind: 127.0.0.1:0\n",
			`leto.yaml:1:1: unknown key "listners"; did you mean "listeners"?`},
		{"unknown key with nothing near", "node: { colour: red }\n",
			`leto.yaml:1:9: unknown key "colour" in node`},
		{"slip in a key of a later version", "listeners:\n  - { bind: 127.0.0.1:0, websockt: true }\n",
			`leto.yaml:2:26: unknown key "websockt" in listeners; did you mean "websocket"?`},
		{"key of a later version", "ha:\n  group: a\n",
			`leto.yaml:1:1: ha is not supported by this version yet`},
		{"nested key of a later version", "listeners:\n  - bind: 127.0.0.1:0\n    tls: { cert: a, key: b }\n",
			`leto.yaml:3:5: listeners.tls is not supported by this version yet`},
		{"wrong word", "log: { level: wran }\n",
			`leto.yaml:1:15: log.level: "wran" is not one of trace, debug, info, warn, error, off; did you mean "warn"?`},
		{"size without sense", "limits: { memory: lots }\n",
			`leto.yaml:1:19: limits.memory: "lots" is not a size such as 64KiB, 100MB or 4096`},
		{"duration without unit", "amqp: { idle-timeout: 30 }\n",
			`leto.yaml:1:23: amqp.idle-timeout: "30" has no unit: write 30s or 30ms`},
		{"number too large for its field", "amqp: { channel-max: 65536 }\n",
			`leto.yaml:1:22: amqp.channel-max: "65536" is not a whole number from 0 to 65535`},
		{"out of range", "amqp:\n  max-frame-size: 100\n",
			`leto.yaml:2:19: amqp.max-frame-size: 100 is outside 512 to 16777216 bytes`},
		{"mapping where a value belongs", "node:\n  name: { first: a }\n",
			`leto.yaml:2:11: node.name needs a value and has a mapping`},
		{"value where a list belongs", "listeners: 127.0.0.1:5672\n",
			`leto.yaml:1:12: listeners must be a list and is a value`},
		{"value where a mapping belongs", "node: leto\n",
			`leto.yaml:1:7: node must be a mapping and is a value`},
		{"no value", "node:\n  name:\n",
			`leto.yaml:2:3: node.name needs a value and has nothing`},
		{"not a boolean", "address-settings:\n  - match: a\n    auto-create-queues: yes\n",
			`leto.yaml:3:25: address-settings.0.auto-create-queues: "yes" is neither true nor false`},
		{"setting of a later version", "address-settings: [ { match: a, max-size-bytes: 5 } ]\n",
			`leto.yaml:1:33: address-settings.max-size-bytes is not supported by this version yet`},
		{"delay", "address-settings: [ { match: a, redelivery-delay: soon } ]\n",
			`leto.yaml:1:51: address-settings.0.redelivery-delay: "soon" is not a time span such as 30s, or a number of milliseconds`},
		{"factor", "address-settings: [ { match: a, redelivery-collision-avoidance-factor: 1.5 } ]\n",
			`leto.yaml:1:72: address-settings.0.redelivery-collision-avoidance-factor: 1.5 is not from 0 to 1`},
		{"match missing", "address-settings:\n  - default-durable: false\n",
			`leto.yaml:2:5: address-settings.0: needs a match, such as "orders.#"`},
		{"match twice", "address-settings:\n  - match: a\n  - match: a\n",
			`leto.yaml:3:12: address-settings.1.match: "a" stands twice`},
		{"attempts", "address-settings: [ { match: a, max-delivery-attempts: 0 } ]\n",
			`leto.yaml:1:56: address-settings.0.max-delivery-attempts: 0 is neither -1 (endless) nor 1 or more`},
		{"dead letters to nowhere", "address-settings: [ { match: a, dead-letter-address: \"dead::\" } ]\n",
			`leto.yaml:1:54: address-settings.0.dead-letter-address: "dead::" is neither ADDRESS nor ADDRESS::QUEUE: a name has 1 to 1024 bytes of UTF-8 without control characters`},
		{"expired to nowhere", "address-settings: [ { match: a, expiry-address: \"a\\tb\" } ]\n",
			`leto.yaml:1:49: address-settings.0.expiry-address: "a\tb" is neither ADDRESS nor ADDRESS::QUEUE: a name has 1 to 1024 bytes of UTF-8 without control characters`},
		{"bind without port", "http: { bind: 127.0.0.1 }\n",
			`leto.yaml:1:15: http.bind: "127.0.0.1" is not HOST:PORT, such as 127.0.0.1:5672`},
		{"port that is none", "listeners: [ { bind: \"127.0.0.1:70000\" } ]\n",
			`leto.yaml:1:22: listeners.0.bind: "127.0.0.1:70000" has no port between 0 and 65535`},
		{"required without users", "listeners: [ { bind: 127.0.0.1:0, auth: required } ]\n",
			`leto.yaml:1:41: listeners.0.auth: required without auth.users-file would let nobody in`},
		{"nobody in", "auth: { anonymous: false }\n",
			`leto.yaml:1:20: auth.anonymous: false without auth.users-file would let nobody in`},
		{"address without name", "addresses:\n  - routing: anycast\n",
			`leto.yaml:2:5: addresses.0: needs a name`},
		{"address twice", "addresses:\n  - name: a\n  - name: a\n    routing: multicast\n",
			`leto.yaml:3:11: addresses.1.name: "a" stands twice`},
		{"queue twice", "addresses: [ { name: a, queues: [ { name: q }, { name: q } ] } ]\n",
			`leto.yaml:1:56: addresses.0.queues.1.name: "q" stands twice`},
		{"too little disk", "limits: { disk-free: 64MiB }\n",
			`leto.yaml:1:22: limits.disk-free: 67108864 is outside 201326592 to 9223372036854775807 bytes`},
		{"key twice", "node: { name: a }\nnode: { name: b }\n",
			`leto.yaml:2:1: mapping key "node" already defined at [1:1]`},
		{"two documents", "node: { name: a }\n---\nnode: { name: b }\n",
			`leto.yaml:3:5: a second document; one is read`},
		{"anchor", "node: { name: &a x }\n",
			`leto.yaml:1:15: anchor is not supported here`},
		{"not YAML", "node: { name: a\n",
			`leto.yaml:1:7: could not find flow mapping end token '}'`},
		{"all of them at once, in order", "log: { level: loud }\nnode: { nmae: a }\namqp: { link-credit: -1 }\n",
			`leto.yaml:1:15: log.level: "loud" is not one of trace, debug, info, warn, error, off` + "\n" +
				`leto.yaml:2:9: unknown key "nmae" in node; did you mean "name"?` + "\n" +
				`leto.yaml:3:22: amqp.link-credit: "-1" is not a whole number from 0 to 4294967295`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(Sources{File: write(t, c.file)})
			if err == nil {
				t.Fatal("accepted")
			}
			if got := err.Error(); got != c.want {
				t.Errorf("got\n  %s\nwant\n  %s", got, c.want)
			}
		})
	}
}

func TestErrorsOfOtherSources(t *testing.T) {
	for _, c := range []struct {
		name string
		from Sources
		want string
	}{
		{"variable", Sources{Environ: []string{"LETO_AMQP__MAX_FRAM_SIZE=1"}},
			`environment LETO_AMQP__MAX_FRAM_SIZE: unknown key "max-fram-size" in amqp; did you mean "max-frame-size"?`},
		{"set", Sources{Set: []string{"log.level=loud"}},
			`--set log.level: log.level: "loud" is not one of trace, debug, info, warn, error, off`},
		{"set without value", Sources{Set: []string{"log.level"}},
			`--set log.level: is not KEY=VALUE, such as amqp.idle-timeout=30s`},
		{"set below a value", Sources{Set: []string{"log.level=info", "log.level.amqp=debug"}},
			`--set log.level.amqp: log.level holds a value and has no keys`},
		{"set past the end of a list", Sources{Set: []string{"listeners.3.bind=127.0.0.1:0"}},
			`--set listeners.3.bind: listeners has no item "3"`},
		{"set with an open bracket", Sources{Set: []string{"address-settings[a.b=1"}},
			`--set address-settings[a.b: "address-settings[a.b" lacks a closing bracket`},
		{"set of broken YAML", Sources{Set: []string{"listeners=[ { bind: a"}},
			`--set listeners: could not find flow mapping end token '}'`},
		{"flag", Sources{Flags: []Flag{{"--listen", "listeners", []string{"here"}}}},
			`--listen: listeners.0.bind: "here" is not HOST:PORT, such as 127.0.0.1:5672`},
		{"no such file", Sources{File: "/nonexistent/leto.yaml"},
			`configuration file /nonexistent/leto.yaml: no such file or directory`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(c.from)
			if err == nil {
				t.Fatal("accepted")
			}
			if got := err.Error(); got != c.want {
				t.Errorf("got\n  %s\nwant\n  %s", got, c.want)
			}
		})
	}
}

func TestBeyondLoopbackNeedsAuthentication(t *testing.T) {
	listen := func(bind string) Sources {
		return Sources{Flags: []Flag{{"--listen", "listeners", []string{bind}}}}
	}
	for _, bind := range []string{"0.0.0.0:5672", ":5672", "[::]:5672", "192.0.2.1:5672", "host.example:5672"} {
		_, err := Load(listen(bind))
		if err == nil || !strings.Contains(err.Error(), "auth: { users-file: users }") {
			t.Errorf("%s: error %v, want one that says which lines to add", bind, err)
		}
	}
	for _, bind := range []string{"127.0.0.1:5672", "127.8.8.8:1", "[::1]:5672", "localhost:0"} {
		if _, err := Load(listen(bind)); err != nil {
			t.Errorf("%s: %v", bind, err)
		}
	}
	if _, err := Load(Sources{Set: []string{"http.bind=0.0.0.0:8161"}}); err == nil {
		t.Error("HTTP on all interfaces without authentication was accepted")
	}
	for _, set := range []string{"auth.anonymous=true", "auth.users-file=users"} {
		from := listen("0.0.0.0:5672")
		from.Set = []string{set}
		if _, err := Load(from); err != nil {
			t.Errorf("with %s: %v", set, err)
		}
	}
	// An explicitly optional listener beyond loopback lets anonymous peers in although there is a users file.
	_, err := Load(Sources{Set: []string{"auth.users-file=users", "listeners=[{bind: '0.0.0.0:5672', auth: optional}]"}})
	if err == nil {
		t.Error("optional authentication on all interfaces was accepted without auth.anonymous: true")
	}
}

func TestPrecedence(t *testing.T) {
	file := write(t, "node: { name: file }\nlog: { level: debug, format: json }\nlimits: { queues: 7 }\namqp: { handle-max: 9 }\n")
	opts, err := Load(Sources{
		File:    file,
		Environ: []string{"LETO_NODE__NAME=env", "LETO_LOG__LEVEL=warn", "LETO_LIMITS__QUEUES=8", "LETO_URL=amqp://x", "HOME=/"},
		Set:     []string{"node.name=set", "log.level=error"},
		Flags:   []Flag{{"--name", "node.name", []string{"flag"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if opts.Node.Name != "flag" || opts.Log.Level != "error" || opts.Limits.Queues != 8 || opts.Log.Format != "json" || opts.AMQP.HandleMax != 9 {
		t.Errorf("flag > --set > environment > file doesn't hold: %+v", opts)
	}
	if opts.Limits.Connections != 10_000 || opts.AMQP.IdleTimeout != Duration(time.Minute) {
		t.Errorf("what nobody told isn't the default: %+v", opts)
	}
}

func TestWholeFile(t *testing.T) {
	opts, err := Load(Sources{File: write(t, `
node:      { name: leto-1, data: /var/lib/leto }
log:       { level: info, format: json }
listeners:
  - { bind: 127.0.0.1:5672, auth: optional }
  - { bind: 0.0.0.0:5673 }
http:      off
amqp:      { max-frame-size: 128KiB, max-message-size: 1GiB, channel-max: 10, handle-max: 20, idle-timeout: 0s, link-credit: 5, link-credit-bytes: 1MiB, transaction-timeout: 2m }
auth:      { anonymous: false, users-file: users }
store:     { sync: never, apply-max: 8MiB }
limits:    { memory: 512MB, disk-free: 2GiB, connections: 5, handshakes: 30, queues: 6 }
address-settings:
  - match: "#"
    dead-letter-address: dead
    reject-policy: redeliver
    count-on-loss: false
  - match: orders.#
    max-delivery-attempts: -1
    default-queue-routing-type: multicast
addresses:
  - { name: orders, routing: anycast, queues: [ { name: orders }, { name: copy } ] }
`)})
	if err != nil {
		t.Fatal(err)
	}
	want := Options{
		Node:      Node{"leto-1", "/var/lib/leto"},
		Log:       Log{"info", "json"},
		Listeners: []Listener{{"127.0.0.1:5672", AuthOptional}, {"0.0.0.0:5673", ""}},
		HTTP:      HTTP{Bind: "off"},
		AMQP:      AMQP{128 << 10, 1 << 30, 10, 20, 0, 5, 1 << 20, Duration(2 * time.Minute)},
		Auth:      Auth{ptr(false), "users"},
		Store:     Store{SyncNever, 8 << 20},
		Limits:    Limits{512_000_000, 2 << 30, 5, 30, 6},
		AddressSettings: []AddressSettings{
			{Match: "#", DeadLetterAddress: ptr("dead"), RejectPolicy: ptr(RejectRedeliver), CountOnLoss: ptr(false)},
			{Match: "orders.#", MaxDeliveryAttempts: ptr(-1), DefaultQueueRouting: ptr(Multicast)},
		},
		Addresses: []Address{{"orders", Anycast, []Queue{{"orders"}, {"copy"}}}},
	}
	if !reflect.DeepEqual(opts, want) {
		t.Errorf("got\n  %+v\nwant\n  %+v", opts, want)
	}
	if !opts.AnonymousOn(opts.Listeners[0]) || opts.AnonymousOn(opts.Listeners[1]) {
		t.Error("the first listener must let anonymous peers in, the second must not")
	}
}

func TestSetReachesIntoLists(t *testing.T) {
	file := write(t, "address-settings:\n  - match: orders.#\n    default-durable: true\n")
	opts, err := Load(Sources{File: file, Set: []string{
		"address-settings[orders.#].default-durable=false", // an item of the file, by its match
		"address-settings.#.auto-create-queues=false",      // a new one; # needs no brackets
		"address-settings.0.max-delivery-attempts=3",       // by number
		"listeners=[{bind: '127.0.0.1:0'}, {bind: '[::1]:0'}]",
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []AddressSettings{
		{Match: "orders.#", DefaultDurable: ptr(false), MaxDeliveryAttempts: ptr(3)},
		{Match: "#", AutoCreateQueues: ptr(false)},
	}
	if !reflect.DeepEqual(opts.AddressSettings, want) {
		t.Errorf("got %+v", opts.AddressSettings)
	}
	if len(opts.Listeners) != 2 || opts.Listeners[1].Bind != "[::1]:0" {
		t.Errorf("listeners %+v", opts.Listeners)
	}
}

func TestUsersFileIsRelativeToTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "leto.yaml")
	if err := os.WriteFile(file, []byte("auth: { users-file: users }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := Load(Sources{File: file})
	if err != nil || opts.Auth.UsersFile != filepath.Join(dir, "users") {
		t.Errorf("users file %q, error %v", opts.Auth.UsersFile, err)
	}
	opts, err = Load(Sources{File: file, Set: []string{"auth.users-file=users"}})
	if err != nil || opts.Auth.UsersFile != "users" {
		t.Errorf("told by flag: users file %q, error %v", opts.Auth.UsersFile, err)
	}
}

func TestDefaultsAreValid(t *testing.T) {
	opts := Defaults()
	if found := opts.Validate(); len(found) > 0 {
		t.Error(found)
	}
	empty, err := Load(Sources{File: write(t, "# nothing told\n")})
	if err != nil || !reflect.DeepEqual(empty, opts) {
		t.Errorf("an empty file gives %+v, %v", empty, err)
	}
}

// FuzzSet: whatever --set says, it is refused or understood, never a crash.
func FuzzSet(f *testing.F) {
	f.Add("node.name", "a")
	f.Add("address-settings[orders.#].max-delivery-attempts", "-1")
	f.Add("listeners.1.bind", "127.0.0.1:0")
	f.Fuzz(func(t *testing.T, key, value string) {
		root, d := &tree{kind: mapping}, decoder{origins: map[string]Origin{}}
		d.overlay(root, Origin{Source: "--set"}, key, strings.TrimLeft(value, "{[")) // values in YAML are the parser's to fuzz
		d.overlay(root, Origin{Source: "--set"}, key+".below", "x")
		opts := Defaults()
		d.value("", root, reflect.ValueOf(&opts).Elem())
		opts.Validate()
	})
}
