package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// announce tells people what was started and what to try next. Scripts get the same addresses from
// the log, or from these lines: SCHEME://HOST:PORT with the port in use.
func (n *node) announce(out io.Writer, took time.Duration) {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "leto %s is running as node %s (started in %d ms)\n", buildVersion(), n.opts.Node.Name, took.Milliseconds())
	for i, socket := range n.listeners {
		who := "with user and password"
		if n.opts.AnonymousOn(n.opts.Listeners[i]) {
			who = "without a password"
		}
		line("AMQP 1.0", "amqp://%s, %s", socket.Addr(), who)
	}
	if n.http != nil {
		line("HTTP", "http://%s (/livez, /readyz, /metrics, /api/v1/queues)", n.http.Addr())
	} else {
		line("HTTP", "off")
	}
	line("data", "%s; a durable message is accepted when it is flushed", n.opts.Node.Data)
	line("memory", "%s for the whole process", n.opts.Limits.Memory)

	url := ""
	if address := reachable(n.listeners[0].Addr()); address != "127.0.0.1:5672" {
		url = " --url amqp://" + address
	}
	fmt.Fprintf(&b, "try, in another terminal:\n  leto send orders 'hello'%s\n  leto receive orders%s\n", url, url)
	_, _ = io.WriteString(out, b.String()) // nobody reads it: the log still has it
}

// reachable is an address that this host can dial: a listener on all interfaces has none of its own.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return a.String()
}
