package engine

import "fmt"

// Pause has a queue give nothing to consumers any more, or with false go on. It takes messages all the same, browsers see
// them, and what consumers have stays with them. A durable queue is paused over a restart too, once Sync has returned: an
// operator who has stopped a consumer from doing harm relies on it.
func (b *Broker) Pause(address, queueName string, yes bool) error {
	q, err := b.lookup(address, queueName)
	if err != nil {
		return err
	}
	q.guard.enter()
	if q.deleted {
		q.guard.leave()
		return fmt.Errorf("queue %s::%s: %w", address, q.name, ErrDeleted)
	}
	if q.core.Paused() == yes {
		q.guard.leave()
		return nil
	}
	if q.id != 0 {
		d := q.definition()
		d.Paused = yes
		if err := b.committer.enter([]Record{{Kind: RecordDefine, Queue: q.id, Definition: &d}}, nil); err != nil {
			q.guard.leave()
			return fmt.Errorf("queue %s::%s: %w", address, q.name, err)
		}
	}
	after := q.carryOut(q.core.Pause(yes, q.clock(), nil), nil)
	q.guard.leave()
	q.after(&after, nil)
	return nil
}

// definition returns what the store is told of a durable queue.
func (q *boundQueue) definition() Definition {
	d := Definition{
		ID: q.id, Address: q.address.name, Name: q.name, Routing: q.address.routing, Auto: q.auto, Paused: q.core.Paused(),
	}
	if q.subscription != nil {
		d.Container, d.Link = q.subscription.container, q.subscription.link
	}
	return d
}
