package engine

import (
	"fmt"

	"github.com/letomq/leto/engine/queue"
)

// How much recovery loads at once.
const (
	loadEntries = 1024
	loadBytes   = 4 << 20
)

// recover brings back the queues and messages of the store. Nothing runs yet. A message that was in several queues
// comes back as one for each of them.
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
				broker: b, name: d.Address, settings: b.settings.find(d.Address), routing: d.Routing, auto: d.Auto,
			}
			b.totals.addresses.Add(1)
			b.names.getOrMake(a.name, func() (*address, error) { return a, nil })
		}
		q := &boundQueue{name: d.Name, id: d.ID, auto: d.Auto, address: a}
		if d.Link != "" {
			q.subscription = &subscription{d.Container, d.Link, true}
			b.subscriptions.add(q)
		}
		a.place(q)
		b.totals.queues.Add(1)
		if err := q.load(store, state.Summaries[i].Levels); err != nil {
			return fmt.Errorf("store: queue %s::%s: load: %w", a.name, q.name, err)
		}
	}
	return nil
}

// load brings back the messages of a queue.
func (q *boundQueue) load(store Store, levels []Level) error {
	b := q.broker()
	for _, l := range levels {
		for from := l.Head; ; {
			entries, err := store.Load(q.id, l.Priority, from, loadEntries, loadBytes)
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				break
			}
			for _, s := range entries {
				b.memory.force(cost(s.Message, 1))
				s.Message.Hold(1)
				// The time is 0: what has expired meanwhile leaves when the keeper runs.
				q.carryOut(q.core.Insert(queue.Arrival{
					Message: s.Message, Number: s.Number, Count: s.Count, Base: s.Base, Annotations: s.Annotations,
					Acquired: s.Count > 0,
				}, 0, nil), nil)
			}
			from = entries[len(entries)-1].Number + 1
		}
	}
	return nil
}
