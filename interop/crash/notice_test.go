package crash

import (
	"strings"
	"testing"
)

// TestLedgerNotices tells a ledger of what must not be, one thing at a time, and of the same without it.
func TestLedgerNotices(t *testing.T) {
	sent := func(sequence uint32) message {
		return message{name: name{1, queueA, sequence}, durable: true, priority: 4}
	}
	seen := func(sequence, count uint32) *arrival {
		return &arrival{name: sent(sequence).name, queue: queueA, at: queueA, count: count, first: count == 0}
	}
	dead := func(sequence, count uint32) *arrival {
		a := seen(sequence, count)
		a.at, a.first = deadLetters, false
		return a
	}
	for _, c := range []struct {
		name  string
		want  string // part of the fault; "": none
		tells func(l *ledger, by, other *link)
	}{
		{"all is well", "", func(l *ledger, by, _ *link) {
			l.deliver(seen(1, 0), by)
			l.deliver(seen(2, 0), by)
			l.confirm(l.claim(seen(1, 0), accept, by))
			l.confirm(l.claim(seen(2, 0), accept, by))
		}},
		{"an accepted one is gone", "lost", func(*ledger, *link, *link) {}},
		{"one is gone that was only released", "lost", func(l *ledger, by, _ *link) {
			l.deliver(seen(1, 0), by)
			l.confirm(l.claim(seen(1, 0), release, by))
		}},
		{"settled, confirmed and back", "delivered from", func(l *ledger, by, _ *link) {
			l.deliver(seen(1, 0), by)
			l.confirm(l.claim(seen(1, 0), accept, by))
			l.restart()
			l.deliver(seen(1, 0), by)
		}},
		{"settled, not confirmed and back", "", func(l *ledger, by, other *link) {
			l.deliver(seen(1, 0), by)
			l.claim(seen(1, 0), accept, by)
			l.restart()
			l.deliver(seen(1, 0), other)
			l.confirm(l.claim(seen(1, 0), accept, other))
			l.deliver(seen(2, 0), other)
			l.claim(seen(2, 0), accept, other)
		}},
		{"dead letter that is in its queue as well", "there twice", func(l *ledger, by, other *link) {
			l.deliver(seen(1, 0), by)
			l.claim(seen(1, 0), reject, by)
			l.restart()
			l.beginLook()
			l.look(seen(1, 0), by)
			l.entries[key{sent(1).name, queueA}].where |= inLetters
			l.look(dead(1, 0), other)
		}},
		{"rejected, confirmed and back", "seen from crash.a", func(l *ledger, by, other *link) {
			l.deliver(seen(1, 0), by)
			l.confirm(l.claim(seen(1, 0), reject, by))
			l.restart()
			l.beginLook()
			l.look(seen(1, 0), other)
		}},
		{"a confirmed failure isn't counted", "delivery-count 0", func(l *ledger, by, other *link) {
			l.deliver(seen(1, 0), by)
			l.confirm(l.claim(seen(1, 0), fail, by))
			l.restart()
			l.deliver(seen(1, 0), other)
		}},
		{"dead and delivered", "delivered from", func(l *ledger, by, other *link) {
			l.deliver(seen(1, 0), by)
			l.claim(seen(1, 0), reject, by)
			l.deliver(dead(1, 0), other)
			l.deliver(seen(1, 0), by)
		}},
		{"dead, and its delivery is read late while the broker stops", "", func(l *ledger, by, other *link) {
			l.end()
			l.deliver(seen(1, 0), by)
			l.claim(seen(1, 0), reject, by)
			l.deliver(dead(1, 0), other)
			l.deliver(seen(1, 0), by)
			l.confirm(l.claim(dead(1, 0), accept, other))
			l.deliver(seen(2, 0), other)
			l.confirm(l.claim(seen(2, 0), accept, other))
		}},
		{"counted twice", "delivery-count 2", func(l *ledger, by, other *link) {
			l.deliver(seen(1, 0), by)
			l.lose([]arrival{*seen(1, 0)}, nil, by)
			l.deliver(seen(1, 2), other)
		}},
		{"counted though nobody has had it", "delivery-count 1", func(l *ledger, by, _ *link) { l.deliver(seen(1, 1), by) }},
		{"two have it", "while link", func(l *ledger, by, other *link) {
			l.deliver(seen(1, 0), by)
			l.deliver(seen(1, 0), other)
		}},
		{"the other order", "behind that of number 2", func(l *ledger, by, _ *link) {
			l.deliver(seen(2, 0), by)
			l.deliver(seen(1, 0), by)
		}},
		{"the other order at rest", "out of order at rest", func(l *ledger, by, _ *link) {
			l.beginLook()
			l.look(seen(2, 0), by)
			l.look(seen(1, 0), by)
		}},
		{"never sent", "never sent", func(l *ledger, by, _ *link) { l.deliver(seen(9, 0), by) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLedger(1)
			for sequence := range uint32(2) {
				m := sent(1 + sequence)
				l.send(&m)
				l.answer(m.name, true)
			}
			c.tells(l, l.newLink(), l.newLink())
			if c.want != "lost" && c.want != "" && !strings.Contains(strings.Join(l.faults, "\n"), c.want) {
				t.Errorf("faults are %q, want one with %q", l.faults, c.want)
			}
			if c.want == "" && len(l.faults) > 0 {
				t.Errorf("faults: %q", l.faults)
			}
			l.faults = nil
			l.finish()
			if lost := len(l.faults) > 0; lost != (c.want == "lost") && (c.want == "" || c.want == "lost") {
				t.Errorf("faults in the end: %q", l.faults)
			}
		})
	}
}

// TestBooksNotice tells books of what must not be, one thing at a time, and of the same without it.
func TestBooksNotice(t *testing.T) {
	const me, other = 1, 2
	at := func(n name, count uint32) *delivery { return &delivery{name: n, at: n.to, count: count} }
	first, second := name{producer: me, to: placeA}, name{producer: me, to: placeFew}
	for _, c := range []struct {
		name  string
		want  string                  // part of the fault; "": none
		tells func(b *books, w *work) // w has posted both
	}{
		{"all of it", "", func(b *books, w *work) {
			b.commit(w)
			b.restart()
			b.look(first, placeA, 0)
			b.look(second, placeFew, 0)
			b.endLook()
		}},
		{"none of it", "", func(b *books, w *work) { b.commit(w); b.restart(); b.endLook() }},
		{"half of it", "work 1 is decided", func(b *books, w *work) {
			b.commit(w)
			b.restart()
			b.look(second, placeFew, 0)
			b.endLook()
		}},
		{"none though it was answered", "not seen", func(b *books, w *work) {
			b.commit(w)
			b.told(w, holds)
			b.restart()
			b.endLook()
		}},
		{"some though it was rolled back", "seen in", func(b *books, w *work) {
			b.rollback(w)
			b.restart()
			b.look(first, placeA, 0)
			b.endLook()
		}},
		{"twice", "there twice", func(b *books, w *work) {
			b.commit(w)
			b.look(first, placeA, 0)
			b.look(first, letters, 1)
		}},
		{"two have it", "while client 1 has it", func(b *books, w *work) {
			b.commit(w)
			b.deliver(first, placeA, 0, me)
			b.deliver(first, placeA, 0, other)
		}},
		{"a rollback that counts", "", func(b *books, w *work) {
			b.commit(w)
			b.deliver(first, placeA, 0, me)
			x := b.begin(false)
			b.retire(x, at(first, 0), accept, true)
			b.rollback(x)
			b.told(x, undone)
			b.deliver(first, placeA, 1, other)
		}},
		{"a rollback that isn't counted", "count 0", func(b *books, w *work) {
			b.commit(w)
			b.told(w, holds)
			b.deliver(first, placeA, 0, me)
			x := b.begin(false)
			b.retire(x, at(first, 0), accept, true)
			b.rollback(x)
			b.told(x, undone)
			b.restart()
			b.look(first, placeA, 0)
			b.look(second, placeFew, 0)
			b.endLook()
		}},
		{"attempts that are used up", "", func(b *books, w *work) {
			b.commit(w)
			b.told(w, holds)
			b.deliver(second, placeFew, 0, me)
			x := b.begin(true)
			b.retire(x, at(second, 0), fail, false)
			b.told(x, holds)
			b.deliver(second, placeFew, 1, me)
			x = b.begin(true)
			b.retire(x, at(second, 1), fail, false)
			b.restart()
			b.look(first, placeA, 0)
			b.look(second, letters, 2)
			b.endLook()
		}},
		{"accepted, confirmed and back", "seen in", func(b *books, w *work) {
			b.commit(w)
			b.told(w, holds)
			b.deliver(first, placeA, 0, me)
			x := b.begin(true)
			b.retire(x, at(first, 0), accept, false)
			b.told(x, holds)
			b.restart()
			b.look(first, placeA, 0)
			b.look(second, placeFew, 0)
			b.endLook()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBooks()
			w := b.begin(false)
			b.post(w, first)
			b.post(w, second)
			c.tells(b, w)
			if said := strings.Join(b.faults, "\n"); c.want == "" && said != "" || !strings.Contains(said, c.want) {
				t.Errorf("faults are %q, want one with %q", b.faults, c.want)
			}
		})
	}
}
