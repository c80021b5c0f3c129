package engine

import (
	"slices"

	"github.com/letomq/leto/engine/queue"
)

// maxCircle bounds how far chains of dead-letter addresses are followed.
const maxCircle = 16

// next returns the address that dead letters of an address go to, empty for none.
func (t *settingsTable) next(address string) string {
	n, err := parseName(t.find(address).DeadLetterAddress, RoutingUnset)
	if err != nil {
		return ""
	}
	return n.address
}

// circle returns the addresses that dead letters of one would come through until they are back, itself first and last;
// nil when they don't come back.
func (t *settingsTable) circle(address string) []string {
	way := []string{address}
	for range maxCircle {
		next := t.next(way[len(way)-1])
		if next == "" {
			return nil
		}
		way = append(way, next)
		if next == address {
			return way
		}
	}
	return nil
}

// circles reports whether an entry that has failed too often is in a circle of dead-letter addresses and has died at
// another one of it before: a consumer that fails must not send it round for ever. One that is rejected goes its way, since each time somebody has said so.
func (q *boundQueue) circles(d departure) bool {
	if d.expired || d.cause != queue.CauseAttempts {
		return false
	}
	for _, a := range d.entry.Annotations() {
		if before, _ := a.Value.(string); a.Key == OrigAddress && before != q.address.name {
			return slices.Contains(q.broker().settings.Load().circle(q.address.name), before)
		}
	}
	return false
}

// DeadLetterCircles returns the circles that dead-letter addresses of these settings form, of two addresses or more. An
// address that is its own dead-letter address is where dead letters stay, and no circle.
func DeadLetterCircles(all []AddressSettings) [][]string {
	t := compileSettings(all)
	var circles [][]string
	for _, s := range all {
		if s.DeadLetterAddress == nil {
			continue
		}
		n, err := parseName(*s.DeadLetterAddress, RoutingUnset)
		if err != nil {
			continue
		}
		way := t.circle(n.address)
		if len(way) > 2 && !slices.ContainsFunc(circles, func(c []string) bool { return slices.Contains(c, n.address) }) {
			circles = append(circles, way)
		}
	}
	return circles
}
