package engine

import (
	"fmt"

	"github.com/letomq/leto/engine/queue"
)

// recover brings back the queues of the store. Nothing runs yet. Their messages stay where they are until somebody
// wants them. A message that was in several queues comes back as one for each of them.
func (b *Broker) recover(store Store) error {
	state, err := store.Recover()
	if err != nil {
		return fmt.Errorf("store: recover: %w", err)
	}
	b.lastQueue.Store(uint64(state.LastQueue))
	b.committer = newCommitter(store, b.limits, state.LastNumber, b.observer.StoreFailed)
	for i, d := range state.Queues {
		a := b.names.get(d.Address)
		if a == nil {
			a = &address{
				broker: b, name: d.Address, routing: d.Routing, auto: d.Auto,
			}
			a.rules.Store(b.settings.Load().find(d.Address))
			b.totals.addresses.Add(1)
			b.names.getOrMake(a.name, func() (*address, error) { return a, nil })
		}
		if d.Name == "" {
			a.id, a.auto = d.ID, false
			continue
		}
		q := &boundQueue{name: d.Name, id: d.ID, auto: d.Auto, address: a}
		if d.Link != "" {
			q.subscription = &subscription{d.Container, d.Link, true}
			b.subscriptions.add(q)
		}
		a.place(q)
		q.core.Pause(d.Paused, 0, nil)
		b.totals.queues.Add(1)
		q.restore(&state.Summaries[i], state.LastNumber)
	}
	b.duplicates.recover(state.Remembering)
	return nil
}

// restore tells a queue what the store holds of it; last is the highest number that any entry may have.
func (q *boundQueue) restore(s *Summary, last uint64) {
	levels := make([]queue.Stored, len(s.Levels))
	for i, l := range s.Levels {
		levels[i] = queue.Stored{Priority: l.Priority, Entries: int(l.Entries), Delayed: int(l.Delayed), First: l.Head, Last: last}
	}
	q.core.Restore(levels, s.Bytes)
	q.arm()
}
