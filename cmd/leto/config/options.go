// Package config reads what an operator tells the broker: a YAML file, environment variables and
// flags, merged into one Options value. Later sources win key by key: file, environment, --set, flags.
//
//	opts, err := config.Load(config.Sources{File: "leto.yaml", Environ: os.Environ()})
//
// Every problem is reported with where it was written (file, line and column, or the variable or flag),
// all of them at once, so that a file is put right in one go.
package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"
)

// Options is everything that `leto serve` can be told, one struct per concern.
// The key tags are the names in the file; see Defaults for the values of what isn't told.
type Options struct {
	Node            Node              `key:"node"`
	Log             Log               `key:"log"`
	Listeners       []Listener        `key:"listeners" by:"bind"`
	HTTP            HTTP              `key:"http"`
	Store           Store             `key:"store"`
	AMQP            AMQP              `key:"amqp"`
	Auth            Auth              `key:"auth"`
	Limits          Limits            `key:"limits"`
	AddressSettings []AddressSettings `key:"address-settings" by:"match"`
	Addresses       []Address         `key:"addresses" by:"name"`
}

// Node says who this broker is.
type Node struct {
	Name string `key:"name"` // the container-id of every Open [2.7.1]; default: the host's name
	Data string `key:"data"` // folder of the durable store
}

// Log says how much is logged and in which form.
type Log struct {
	Level  LogLevel  `key:"level"`
	Format LogFormat `key:"format"`
}

// Listener is one socket that speaks AMQP.
type Listener struct {
	Bind string     `key:"bind"` // HOST:PORT; port 0 takes a free one
	Auth ListenAuth `key:"auth"` // empty: follows auth.anonymous
}

// HTTP is the socket of health, metrics and the API.
type HTTP struct {
	Bind  string   `key:"bind"`  // HOST:PORT, or "off"
	Hosts []string `key:"hosts"` // names of this broker in requests, beside its addresses and the host's name
}

// Off reports whether no HTTP server is wanted.
func (h HTTP) Off() bool { return h.Bind == "off" }

// scalar lets `http: off` stand for `http: { bind: off }`.
func (h *HTTP) scalar(text string) error {
	if text != "off" {
		return fmt.Errorf("must be a mapping such as { bind: 127.0.0.1:8161 }, or off")
	}
	h.Bind = text
	return nil
}

// Store says how what must survive a restart is kept.
type Store struct {
	Sync     StoreSync `key:"sync"`      // always: flushed before it is accepted; never: left to the system
	ApplyMax Bytes     `key:"apply-max"` // committed and not yet in the index, beyond which commits wait
}

// AMQP is what the broker offers and asks on the wire.
type AMQP struct {
	MaxFrameSize    Bytes    `key:"max-frame-size"`    // largest frame that a peer may send: 512 B to 16 MiB
	MaxMessageSize  Bytes    `key:"max-message-size"`  // largest message accepted
	ChannelMax      uint16   `key:"channel-max"`       // highest channel number; sessions per connection less one
	HandleMax       uint32   `key:"handle-max"`        // highest link handle; links per session less one
	IdleTimeout     Duration `key:"idle-timeout"`      // silence after which a connection is closed; 0: never
	LinkCredit      uint32   `key:"link-credit"`       // messages a producer may have under way
	LinkCreditBytes Bytes    `key:"link-credit-bytes"` // bytes a producer may have under way

	TransactionTimeout Duration `key:"transaction-timeout"` // after which a transaction is rolled back; 0: never
}

// Auth says who may connect. An absent section allows everybody, while every listener is on loopback.
type Auth struct {
	Anonymous *bool  `key:"anonymous"`  // nil: allowed exactly when there is no users file
	UsersFile string `key:"users-file"` // relative to the configuration file
}

// Limits bound what the whole process may hold.
type Limits struct {
	Memory      Bytes `key:"memory"`
	DiskFree    Bytes `key:"disk-free"` // free on the device below which durable messages are refused
	Connections int   `key:"connections"`
	Handshakes  int   `key:"handshakes"` // connections whose peers haven't opened
	Queues      int   `key:"queues"`
}

// Address is one that exists from the start.
type Address struct {
	Name    string  `key:"name"`
	Routing Routing `key:"routing"`
	Queues  []Queue `key:"queues" by:"name"`
}

// Queue is a queue of an Address.
type Queue struct {
	Name string `key:"name"`
}

// LogLevel is trace, debug, info, warn, error or off.
type LogLevel string

func (LogLevel) words() []string {
	return []string{"trace", "debug", "info", "warn", "error", "off"}
}

// LogFormat is text (for people) or json (one object per line).
type LogFormat string

func (LogFormat) words() []string { return []string{"text", "json"} }

// StoreSync is always (a message is accepted when it is flushed) or never (when it is written: it
// survives the end of the process, but not that of the machine).
type StoreSync string

const (
	SyncAlways StoreSync = "always"
	SyncNever  StoreSync = "never"
)

func (StoreSync) words() []string { return []string{string(SyncAlways), string(SyncNever)} }

// ListenAuth is optional (anonymous peers are let in) or required (a known user only).
type ListenAuth string

const (
	AuthOptional ListenAuth = "optional"
	AuthRequired ListenAuth = "required"
)

func (ListenAuth) words() []string { return []string{string(AuthOptional), string(AuthRequired)} }

// Routing is anycast (one of the queues' consumers gets a message) or multicast (every queue does).
type Routing string

const (
	Anycast   Routing = "anycast"
	Multicast Routing = "multicast"
)

func (Routing) words() []string { return []string{string(Anycast), string(Multicast)} }

// Defaults are the values of what nobody tells. Those of address settings are the engine's.
func Defaults() Options {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "leto"
	}
	return Options{
		Node:      Node{Name: name, Data: "leto-data"},
		Log:       Log{Level: "info", Format: "text"},
		Listeners: []Listener{{Bind: "127.0.0.1:5672"}},
		HTTP:      HTTP{Bind: "127.0.0.1:8161"},
		AMQP: AMQP{
			MaxFrameSize:    64 << 10,
			MaxMessageSize:  100 << 20,
			ChannelMax:      255,
			HandleMax:       1023,
			IdleTimeout:     Duration(60 * time.Second),
			LinkCredit:      1000,
			LinkCreditBytes: 4 << 20,

			TransactionTimeout: Duration(300 * time.Second),
		},
		Store:  Store{Sync: SyncAlways, ApplyMax: 32 << 20},
		Limits: Limits{Memory: 256 << 20, DiskFree: 1 << 30, Connections: 10_000, Handshakes: 1000, Queues: 100_000},
	}
}

// Problem is one thing that Validate, or Sources.Check, found wrong. Key is the path of the offending value.
type Problem struct{ Key, Text string }

// Validate checks ranges and what must fit together. It opens no file and no socket.
func (o *Options) Validate() []Problem {
	var found []Problem
	bad := func(key, format string, args ...any) {
		found = append(found, Problem{key, fmt.Sprintf(format, args...)})
	}
	between := func(key string, v, low, high int64, unit string) {
		if v < low || v > high {
			bad(key, "%d is outside %d to %d%s", v, low, high, unit)
		}
	}

	if o.Node.Name == "" {
		bad("node.name", "must not be empty: it is the container-id that clients see")
	}
	// A frame is the unit of memory that a peer can make the broker hold before anything is checked:
	// 512 is the protocol's floor [2.4.1], 16 MiB more than any client asks for.
	between("amqp.max-frame-size", int64(o.AMQP.MaxFrameSize), 512, 16<<20, " bytes")
	between("amqp.max-message-size", int64(o.AMQP.MaxMessageSize), 1024, 2<<30, " bytes")
	between("amqp.link-credit", int64(o.AMQP.LinkCredit), 1, 1_000_000, " messages")
	between("amqp.link-credit-bytes", int64(o.AMQP.LinkCreditBytes), 64<<10, 1<<30, " bytes")
	if d := time.Duration(o.AMQP.IdleTimeout); d != 0 && (d < time.Second || d > 24*time.Hour) {
		bad("amqp.idle-timeout", "%s is outside 1s to 24h (0s: never)", d)
	}
	if d := time.Duration(o.AMQP.TransactionTimeout); d != 0 && (d < time.Second || d > 24*time.Hour) {
		bad("amqp.transaction-timeout", "%s is outside 1s to 24h (0s: never)", d)
	}
	between("limits.memory", int64(o.Limits.Memory), 16<<20, math.MaxInt64, " bytes")
	// A journal grows by 64 MiB at once: with less than three times that, one message more could leave no room to clear up in.
	between("limits.disk-free", int64(o.Limits.DiskFree), 192<<20, math.MaxInt64, " bytes")
	between("store.apply-max", int64(o.Store.ApplyMax), 1<<20, 1<<30, " bytes")
	between("limits.connections", int64(o.Limits.Connections), 1, 1_000_000, "")
	between("limits.handshakes", int64(o.Limits.Handshakes), 16, 1_000_000, "")
	between("limits.queues", int64(o.Limits.Queues), 1, 10_000_000, "")

	if len(o.Listeners) == 0 {
		bad("listeners", "at least one is needed, such as { bind: 127.0.0.1:5672 }")
	}
	for i := range o.Listeners {
		o.checkListener(i, bad)
	}
	if !o.HTTP.Off() {
		if err := checkBind(o.HTTP.Bind); err != nil {
			bad("http.bind", "%v", err)
		} else if !Loopback(o.HTTP.Bind) && o.Auth.UsersFile == "" && o.Auth.Anonymous == nil {
			bad("http.bind", "%s", needsAuth(o.HTTP.Bind, "http: { bind: 127.0.0.1:8161 }"))
		}
	}
	if o.Auth.Anonymous != nil && !*o.Auth.Anonymous && o.Auth.UsersFile == "" {
		bad("auth.anonymous", "false without auth.users-file would let nobody in")
	}
	for i, s := range o.AddressSettings {
		key := fmt.Sprintf("address-settings.%d", i)
		s.check(key, bad)
		if slices.ContainsFunc(o.AddressSettings[:i], func(before AddressSettings) bool { return before.Match == s.Match }) {
			bad(key+".match", "%q stands twice", s.Match)
		}
	}
	for i, a := range o.Addresses {
		if a.Name == "" {
			bad(fmt.Sprintf("addresses.%d", i), "needs a name")
		}
		if slices.ContainsFunc(o.Addresses[:i], func(before Address) bool { return before.Name == a.Name }) {
			bad(fmt.Sprintf("addresses.%d.name", i), "%q stands twice", a.Name)
		}
		for j, q := range a.Queues {
			if q.Name == "" {
				bad(fmt.Sprintf("addresses.%d.queues.%d", i, j), "needs a name")
			}
			if slices.Contains(a.Queues[:j], q) {
				bad(fmt.Sprintf("addresses.%d.queues.%d.name", i, j), "%q stands twice", q.Name)
			}
		}
	}
	return found
}

func (o *Options) checkListener(i int, bad func(key, format string, args ...any)) {
	l, key := o.Listeners[i], fmt.Sprintf("listeners.%d", i)
	if err := checkBind(l.Bind); err != nil {
		bad(key+".bind", "%v", err)
		return
	}
	if l.Auth == AuthRequired && o.Auth.UsersFile == "" {
		bad(key+".auth", "required without auth.users-file would let nobody in")
	}
	if o.AnonymousOn(l) && !Loopback(l.Bind) && o.Auth.Anonymous == nil {
		bad(key+".bind", "%s", needsAuth(l.Bind, "listeners: [ { bind: 127.0.0.1:5672 } ]"))
	}
}

// AnonymousOn reports whether a listener lets peers in that name no user.
func (o *Options) AnonymousOn(l Listener) bool {
	switch {
	case l.Auth != "":
		return l.Auth == AuthOptional
	case o.Auth.Anonymous != nil:
		return *o.Auth.Anonymous
	}
	return o.Auth.UsersFile == ""
}

func needsAuth(bind, local string) string {
	return bind + ` can be reached from other hosts and asks nobody who they are; add one of these to the configuration file:
    auth: { users-file: users }     # lines NAME:BCRYPT-HASH, as "htpasswd -B" writes them
    auth: { anonymous: true }       # everybody who can reach it may do everything
    ` + local + "   # this host only"
}

// checkBind wants HOST:PORT with a number for the port.
func checkBind(bind string) error {
	_, port, err := net.SplitHostPort(bind)
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT, such as 127.0.0.1:5672", bind)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no port between 0 and 65535", bind)
	}
	return nil
}

// Loopback reports whether only this host can reach the address. A name other than localhost
// counts as reachable: what it resolves to may change.
func Loopback(bind string) bool {
	host, _, err := net.SplitHostPort(bind)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
