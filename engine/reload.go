package engine

// Reload replaces all address settings, for addresses that there are and for those to come, while everything goes on.
// What has been decided stays: routing types, when messages expire, until when they wait. A policy for failures holds
// from the next failure on, and one that deletes queues from the next time that they run empty or lose a consumer.
func (b *Broker) Reload(all []AddressSettings) {
	b.reloading.Lock()
	defer b.reloading.Unlock()
	table := compileSettings(all)
	b.settings.Store(table) // first: an address that is made from now on has the new ones
	for _, a := range b.names.all() {
		if a.enter() != nil {
			continue // deleted meanwhile
		}
		s := table.find(a.name)
		a.rules.Store(s)
		for _, q := range a.queues() {
			q.guard.enter()
			q.govern(s)
			q.guard.leave()
		}
		a.mu.Unlock()
	}
}
