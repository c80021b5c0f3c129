package engine

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// name is an address as clients write it, taken apart.
type name struct {
	address string
	queue   string  // of address::queue, else empty
	routing Routing // of a queue:// or topic:// prefix, else unset
}

// maxName bounds the bytes of an address or queue name.
const maxName = 1024

// parseName takes apart an address, queue://address, topic://address or address::queue, and checks that routing, from
// a terminus's capabilities, doesn't contradict it. Names are kept as they are, query parts and all.
func parseName(text string, routing Routing) (name, error) {
	n := name{routing: routing}
	rest := text
	fixed := RoutingUnset
	if after, found := strings.CutPrefix(text, "queue://"); found {
		rest, fixed = after, Anycast
	} else if after, found := strings.CutPrefix(text, "topic://"); found {
		rest, fixed = after, Multicast
	}
	if fixed != RoutingUnset {
		if routing != RoutingUnset && routing != fixed {
			return name{}, fmt.Errorf("address %.80q: prefix says %s, capability says %s: %w", text, fixed, routing, ErrInvalid)
		}
		n.routing = fixed
	}
	address, queue, full := strings.Cut(rest, "::")
	n.address, n.queue = address, queue
	if !validName(address) || full && !validName(queue) {
		return name{}, fmt.Errorf("address %.80q: name is empty, too long, or has control characters: %w", text, ErrInvalid)
	}
	return n, nil
}

// ValidAddress reports whether a text can be an address, or a queue of one, as parseName takes it.
func ValidAddress(text string) bool {
	_, err := parseName(text, RoutingUnset)
	return err == nil
}

func validName(s string) bool {
	if s == "" || len(s) > maxName || !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, unicode.IsControl) < 0
}

// reserved reports whether an address is never made on first use: the server's own nodes, and dynamic nodes.
func reserved(address string) bool { return strings.HasPrefix(address, "$") || isTemporary(address) }

// subscriptionName returns the queue name of a durable subscription. The separator is escaped in the container, so
// that two subscriptions never share a name.
func subscriptionName(container, link string) string {
	return strings.NewReplacer(`\`, `\\`, `.`, `\.`).Replace(container) + "." + link
}
