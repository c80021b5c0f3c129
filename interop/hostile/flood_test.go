package hostile

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// repeat has n connections say the same again and again, until each is cut off, and then anew.
func repeat(n int, before, again []byte) func(a *attacker) {
	again = bytes.Repeat(again, max(1, 32<<10/len(again)))
	return func(a *attacker) {
		a.each(n, func(int) {
			for a.going() {
				c := a.reading(before)
				if c == nil {
					a.pause(time.Millisecond)
					continue
				}
				for a.say(c, again) && a.going() {
				}
				a.drop(c)
			}
		})
	}
}

// TestControlFloods: frames that cost their sender nothing.
func TestControlFloods(t *testing.T) {
	echo := frame(0, wire.CodeFlow, nil, wire.Uint(0), wire.Uint(1000), wire.Uint(0), wire.Uint(1000), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Bool(true))
	echoLink := frame(0, wire.CodeFlow, nil, wire.Uint(0), wire.Uint(1000), wire.Uint(0), wire.Uint(1000), wire.Uint(0), wire.Uint(0), wire.Uint(1), wire.Null(), wire.Bool(false), wire.Bool(true))
	accepted := wire.Described(wire.CodeAccepted, wire.List())
	wide := func(role bool, from, to uint32, settled bool) []byte {
		return frame(0, wire.CodeDisposition, nil, wire.Bool(role), wire.Uint(from), wire.Uint(to), wire.Bool(settled), accepted)
	}
	consumer := bytes.Join([][]byte{begin(0, 1<<31-1), receiver(0, 0, "in", "control", 0), credit(0, 0, 1<<31-1, 2000, false)}, nil)
	backlog := func(a *attacker) { fill(a.t, a.b, "control", 200, 10) }
	for _, f := range []struct {
		class, name   string
		prepare       func(*attacker)
		before, again []byte
	}{
		{"echoes", "heartbeats", nil, nil, []byte{0, 0, 0, 8, 2, 0, 0, 0}},
		{"echoes", "echoes of a session", nil, begin(0, 10), echo},
		{"echoes", "echoes of a link", nil, append(begin(0, 10), receiver(0, 0, "in", "control", 0)...), echoLink},
		{"echoes", "drains", nil, append(begin(0, 10), receiver(0, 0, "in", "control", 0)...), credit(0, 0, 1000, 100, true)},
		{"echoes", "credit given and taken", backlog, consumer, append(credit(0, 0, 1<<31-1, 1000, false), credit(0, 0, 1<<31-1, 0, false)...)},
		{"dispositions", "ranges of half the numbers", backlog, consumer, wide(true, 0, 1<<31-1, false)},
		{"dispositions", "ranges of unknown numbers", nil, consumer, wide(true, 1<<30, 1<<31, true)},
		{"dispositions", "ranges of the sender's", nil, append(begin(0, 10), sender(0, 0, "out", "control")...), wide(false, 0, 1<<31-1, true)},
		{"dispositions", "ranges backwards", nil, consumer, wide(true, 1<<31, 0, true)},
		{"churn", "sessions", nil, nil, append(begin(0, 10), end(0)...)},
		{"churn", "links", nil, begin(0, 10), append(receiver(0, 0, "in", "control", 0), detach(0, 0)...)},
		{"churn", "links with a window of messages", backlog, begin(0, 1<<31-1), bytes.Join([][]byte{receiver(0, 0, "in", "control", 0), credit(0, 0, 1<<31-1, 100, false), detach(0, 0)}, nil)},
		{"churn", "refused links", nil, begin(0, 10), append(receiver(0, 0, "in", "bad\x00name", 0), detach(0, 0)...)},
		{"churn", "dynamic nodes", nil, begin(0, 10), append(dynamic(0, 0, "in"), detach(0, 0)...)},
		{"violations", "transfers without credit", nil, append(begin(0, 10), receiver(0, 1, "in", "control", 0)...), bytes.Join([][]byte{sender(0, 0, "out", "control"), settled(0, 0, 5000), detach(0, 0)}, nil)},
		{"violations", "transfers beyond the window", nil, nil, bytes.Join([][]byte{begin(0, 10), sender(0, 0, "out", "control"), bytes.Repeat(wire.Continue(9, true, nil), 3000), end(0)}, nil)},
		{"violations", "numbers used twice", nil, nil, bytes.Join([][]byte{begin(0, 10), sender(0, 0, "out", "topic://nobody"), wire.Transfer(0, 5, false, volatile(1, 10)), wire.Transfer(0, 5, false, volatile(1, 10)), detach(0, 0), end(0)}, nil)},
		{"violations", "links of unknown handles", nil, nil, bytes.Join([][]byte{begin(0, 10), detach(0, 77), end(0)}, nil)},
		{"fragments", "fragments of a byte", nil, nil, bytes.Join([][]byte{begin(0, 10), sender(0, 0, "out", "tiny"), wire.Transfer(0, 0, true, volatile(1, 10)[:1]), bytes.Repeat(wire.Continue(0, true, []byte{0}), 500), detach(0, 0), end(0)}, nil)},
		{"fragments", "fragments without a byte", nil, nil, bytes.Join([][]byte{begin(0, 10), sender(0, 0, "out", "tiny"), wire.Transfer(0, 0, true, nil), bytes.Repeat(wire.Continue(0, true, nil), 1100), detach(0, 0), end(0)}, nil)},
		{"fragments", "aborted deliveries", nil, nil, bytes.Join([][]byte{begin(0, 10), sender(0, 0, "out", "tiny"), wire.Transfer(0, 0, true, make([]byte, 8000)), abort(0), detach(0, 0), end(0)}, nil)},
	} {
		against(t, f.class, f.name, attack{prepare: f.prepare, run: repeat(4, f.before, f.again)})
	}
}

// settled are n transfers of settled messages, from delivery id on.
func settled(handle, id uint32, n int) (all []byte) {
	for i := range n {
		all = append(all, frame(0, wire.CodeTransfer, []byte{0, 0x53, 0x77, 0x40}, wire.Uint(handle), wire.Uint(id+uint32(i)), wire.Binary([]byte{1}), wire.Uint(0), wire.Bool(true))...)
	}
	return all
}

func abort(handle uint32) []byte {
	return frame(0, wire.CodeTransfer, nil, wire.Uint(handle), wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Bool(true), wire.Null(), wire.Null(), wire.Null(), wire.Bool(true))
}

// dynamic attaches a receiver of a node of its own.
func dynamic(channel uint16, handle uint32, name string) []byte {
	return frame(channel, wire.CodeAttach, nil, wire.String(name), wire.Uint(handle), wire.Bool(true), wire.Ubyte(0), wire.Ubyte(0),
		wire.Described(0x28, wire.List(wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Bool(true))), wire.Described(0x29, wire.List(wire.Null())))
}

// durable attaches a durable subscription.
func durable(channel uint16, handle uint32, name, topic string) []byte {
	return frame(channel, wire.CodeAttach, nil, wire.String(name), wire.Uint(handle), wire.Bool(true), wire.Ubyte(0), wire.Ubyte(0),
		wire.Described(0x28, wire.List(wire.String("topic://"+topic), wire.Uint(2), wire.Symbol("never"))), wire.Described(0x29, wire.List(wire.Null())))
}

// TestHoards: as many of everything as a few connections may have, and none given up.
func TestHoards(t *testing.T) {
	long := strings.Repeat("n", 1000)
	links := func(session func(ch uint16, h uint32) []byte) func(a *attacker) {
		return func(a *attacker) {
			a.each(2, func(k int) {
				c := a.reading()
				if c == nil {
					return
				}
				for ch := range uint16(some(256, 48)) { // as many as there is room for come first
					said := [][]byte{begin(ch, 1000)}
					for h := range uint32(512) {
						said = append(said, session(ch+uint16(k)<<8, h))
						if len(said) == 64 {
							if !a.say(c, said...) {
								return
							}
							said = nil
						}
					}
					if !a.say(c, said...) {
						return
					}
				}
			})
			a.built()
			a.hold()
		}
	}
	ch := func(n uint16) uint16 { return n & 255 }
	for _, s := range []struct {
		name   string
		set    []string
		run    func(a *attacker)
		leaves int64
	}{
		{"sessions", nil, func(a *attacker) {
			for range 300 {
				c := a.reading()
				if c == nil {
					break
				}
				var said [][]byte
				for ch := range uint16(256) {
					said = append(said, begin(ch, 1<<31-1))
				}
				a.say(c, said...)
			}
			a.built()
			a.hold()
		}, 0},
		{"links", nil, links(func(n uint16, h uint32) []byte { return receiver(ch(n), h, fmt.Sprint(n, ".", h), "links", 0) }), 0},
		{"links with long names", nil, links(func(n uint16, h uint32) []byte { return sender(ch(n), h, fmt.Sprint(n, ".", h, long, long), "links") }), 0},
		{"dynamic nodes", nil, links(func(n uint16, h uint32) []byte { return dynamic(ch(n), h, fmt.Sprint(n, ".", h)) }), 0},
		{"queues made on first use", []string{"limits.queues=5000"}, links(func(n uint16, h uint32) []byte { return sender(ch(n), h, "l", fmt.Sprint("made.", n, ".", h)) }), 64 * mib},
		{"queues with long names", []string{"limits.queues=2500"}, links(func(n uint16, h uint32) []byte { return sender(ch(n), h, "l", fmt.Sprint(n, ".", h, long)) }), 96 * mib},
		{"durable subscriptions", []string{"limits.queues=5000"}, links(func(n uint16, h uint32) []byte { return durable(ch(n), h, fmt.Sprint(n, ".", h), "hoard") }), 64 * mib},
		{"queues made by messages", []string{"limits.queues=5000"}, func(a *attacker) {
			c := a.reading(begin(0, 1000), frame(0, wire.CodeAttach, nil, wire.String("relay"), wire.Uint(0), wire.Bool(false), wire.Ubyte(1), wire.Ubyte(0),
				wire.Described(0x28, wire.List()), wire.Described(0x29, wire.List(wire.Null())), wire.Null(), wire.Null(), wire.Uint(0)))
			for i := uint32(0); c != nil && a.going(); i++ {
				if i == 6000 {
					a.built()
				}
				if i%500 == 0 && !a.pause(5*time.Millisecond) { // credit comes
					return
				}
				m := append(wire.Described(wire.SectionHeader, wire.List(wire.Bool(false))), wire.Described(wire.SectionProperties, wire.List(wire.Null(), wire.Null(), wire.String(fmt.Sprint("to.", serial.Add(1)))))...)
				if !a.say(c, frame(0, wire.CodeTransfer, append(m, body(i, 10)...), wire.Uint(0), wire.Uint(i), wire.Binary([]byte{1}), wire.Uint(0), wire.Bool(true))) {
					return
				}
			}
		}, 64 * mib},
	} {
		against(t, "hoards", s.name, attack{builds: true, full: s.leaves > 0, set: s.set, run: s.run, leaves: s.leaves})
	}
}

// TestPartialMessages: large messages that never end, on as many links as it takes, and connections that are dropped in the middle.
func TestPartialMessages(t *testing.T) {
	part := func(a *attacker, keep bool) {
		a.each(4, func(int) {
			for a.going() {
				said := [][]byte{begin(0, 1<<31-1)}
				for h := range uint32(20) {
					said = append(said, sender(0, h, fmt.Sprint("more", h), "partial"), wire.Transfer(h, h, true, make([]byte, 60_000)))
				}
				c := a.reading(said...)
				if c == nil {
					return
				}
				for range 20 {
					for h := range uint32(20) {
						if !a.say(c, wire.Continue(h, true, make([]byte, 60_000))) {
							break
						}
					}
				}
				if !keep {
					a.drop(c)
				}
			}
		})
	}
	against(t, "partial messages", "messages that never end", attack{set: []string{"limits.memory=96MiB"}, run: func(a *attacker) { part(a, true) }})
	against(t, "partial messages", "connections dropped within messages", attack{set: []string{"limits.memory=96MiB"}, run: func(a *attacker) { part(a, false) }})
}

// TestBacklog: producers that fill what there is, and consumers that take and never settle.
func TestBacklog(t *testing.T) {
	for _, s := range []struct {
		name    string
		durable bool
	}{{"transient messages", false}, {"durable messages", true}} {
		against(t, "backlog", s.name+" without an end", attack{set: []string{"limits.memory=96MiB"}, leaves: 48 * mib, run: func(a *attacker) {
			hoarder := a.reading(begin(0, 1<<31-1), receiver(0, 0, "in", "backlog", 0), credit(0, 0, 1<<31-1, 1<<30, false))
			a.each(2, func(k int) {
				c, err := wire.Connect(a.b.AMQP, fmt.Sprint("fill", k))
				if err != nil {
					return
				}
				a.mu.Lock()
				a.conns = append(a.conns, c)
				a.mu.Unlock()
				s2, err := wire.NewSender(c, 0, "out", "backlog")
				if err != nil {
					return
				}
				m := volatile(1, 15_000)
				if s.durable {
					m = body(1, 15_000)
				}
				for i := 0; a.going(); i++ {
					if a.paced && !a.budget.take(len(m), pacedBytes, a.stop) {
						return
					}
					if _, err := s2.Deliver(m); err != nil {
						return
					}
				}
			})
			_ = hoarder
			a.hold()
		}})
	}
}

// TestPoison: a message that kills whoever takes it, and dead-letter queues that are consumed in the same way.
func TestPoison(t *testing.T) {
	against(t, "poison", "consumers that die of a message", attack{
		prepare: func(a *attacker) { fill(a.t, a.b, "poison", 50, 10) },
		run: func(a *attacker) {
			a.each(4, func(int) {
				for a.going() {
					c := a.open(begin(0, 1000), receiver(0, 0, "in", "poison", 0), credit(0, 0, 1000, 10, false))
					if c == nil {
						return
					}
					a.pause(2 * time.Millisecond)
					a.drop(c)
				}
			})
		},
		after: func(t *testing.T, b *harness.Broker) {
			if n, err := b.Metric("leto_messages_dropped_total"); err != nil || n > 0 {
				t.Errorf("%v messages dropped, %v", n, err)
			}
			empty(t, b, "poison")
			empty(t, b, "DLQ")
		},
	})
	modified := frame(0, wire.CodeDisposition, nil, wire.Bool(true), wire.Uint(0), wire.Uint(1<<30), wire.Bool(true), wire.Described(wire.CodeModified, wire.List(wire.Bool(false), wire.Bool(false))))
	released := wire.Settle(0, 1<<30, wire.CodeReleased)
	for name, d := range map[string][]byte{"released again and again": released, "modified again and again": modified} {
		against(t, "poison", "messages "+name, attack{
			prepare: func(a *attacker) { fill(a.t, a.b, "poison", 50, 10) },
			run: func(a *attacker) {
				a.each(2, func(int) {
					c := a.reading(begin(0, 1<<31-1), receiver(0, 0, "in", "poison", 0))
					if c == nil {
						return
					}
					count := uint32(0)
					for a.going() {
						count += 10
						if !a.say(c, wire.Flow(0, 0, count), d) {
							return
						}
						a.pause(time.Millisecond)
					}
				})
			},
			after: func(t *testing.T, b *harness.Broker) { empty(t, b, "poison"); empty(t, b, "DLQ") },
		})
	}
}
