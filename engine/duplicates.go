package engine

import (
	"container/list"
	"fmt"
	"hash/maphash"
	"sync"
)

// duplicates knows the ids of the messages that each address has taken last, so that one that is sent again is accepted
// and dropped. Those of durable messages are in the store, in the commit of the message; those of others are in memory
// only. Memory has the ids of the addresses that were sent to last, as far as there is room for them.
//
// An id is claimed when its message enters the commit window: under mu, so that whoever comes with the same id later
// stands behind it there, and hears what becomes of the first. It is remembered when the commit holds, and free again
// when it doesn't. A transaction claims all of its ids at once, when it enters the window as one.
type duplicates struct {
	broker *Broker
	store  Store
	seed   maphash.Seed
	limit  int64 // bytes of rings

	loading sync.Mutex // held to bring ids from the store; taken before mu

	mu     sync.Mutex // for moments; no guard is taken inside, and an address's mu may be held around it
	recent list.List  // of *addressIDs: the address that was sent to last in front
	bytes  int64      // of their rings
}

// addressIDs are the ids of one address. Under the mu of duplicates.
type addressIDs struct {
	address *address
	ring    idRing
	claims  map[DuplicateID]*claim
	pins    int           // it has to stay in memory
	place   *list.Element // nil: not in memory any more
}

// claim is the id of a message that is in the commit window.
type claim struct {
	Remembered // what the store is told
	ids        *addressIDs
	refusal    *Result // the message was given up; the committer's
}

const (
	idShare   = 8        // ids take at most one part in so many of the memory for messages,
	idMaximum = 64 << 20 // or so many bytes where that has no limit
	idFixed   = 512      // bytes that the ids of an address take beside their ring
)

func newDuplicates(b *Broker, store Store, memory int64) *duplicates {
	d := &duplicates{broker: b, store: store, seed: maphash.MakeSeed(), limit: memory / idShare}
	if memory == 0 {
		d.limit = idMaximum
	}
	return d
}

// lock locks mu and returns the ids of an address, which are brought from the store if need be. With an error it isn't
// locked.
func (d *duplicates) lock(a *address) (*addressIDs, error) {
	for {
		d.mu.Lock()
		if a.gone.Load() {
			d.mu.Unlock()
			return nil, fmt.Errorf("address %s: %w", a.name, ErrDeleted)
		}
		if a.ids != nil {
			d.recent.MoveToFront(a.ids.place)
			d.resize(a.ids)
			return a.ids, nil
		}
		d.mu.Unlock()
		if err := d.load(a); err != nil {
			return nil, fmt.Errorf("address %s: duplicate ids: %w", a.name, err)
		}
	}
}

// resize has an address remember as many ids as its settings say by now. Under mu.
func (d *duplicates) resize(ids *addressIDs) {
	size, old := ids.address.settings().IDCacheSize, ids.ring
	if size == old.size || size <= 0 {
		return
	}
	ids.ring = idRing{size: size, seed: d.seed}
	old.each(ids.ring.push)
	d.account(ids.ring.bytes() - old.bytes())
}

// load brings the ids of an address from the store.
func (d *duplicates) load(a *address) error {
	d.loading.Lock()
	defer d.loading.Unlock()
	d.mu.Lock()
	there, stored := a.ids != nil, a.remembers
	d.mu.Unlock()
	if there {
		return nil
	}
	ids := &addressIDs{
		address: a, ring: idRing{size: max(a.settings().IDCacheSize, 1), seed: d.seed}, claims: map[DuplicateID]*claim{},
	}
	if stored {
		all, err := d.store.Remembered(a.name, ids.ring.size)
		if err != nil {
			return err
		}
		for _, id := range all {
			ids.ring.remove(id) // it may have been forgotten in memory, and come again
			ids.ring.push(id)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !a.gone.Load() {
		a.ids, ids.place = ids, d.recent.PushFront(ids)
		d.account(ids.ring.bytes() + idFixed)
	}
	return nil
}

// account notes that rings have grown, or shrunk, and has those of the addresses that were sent to longest ago go when there is no
// room. Under mu.
func (d *duplicates) account(grown int64) {
	if grown == 0 {
		return
	}
	d.bytes += grown
	if grown < 0 { // fewer ids are wanted than before
		d.broker.memory.free(-grown)
		return
	}
	d.broker.memory.force(grown)
	for e := d.recent.Back(); e != nil && e != d.recent.Front() && d.bytes > d.limit; {
		ids := e.Value.(*addressIDs)
		e = e.Prev()
		if len(ids.claims)+ids.pins == 0 {
			d.evict(ids)
		}
	}
}

// evict takes the ids of an address out of memory. Under mu.
func (d *duplicates) evict(ids *addressIDs) {
	d.recent.Remove(ids.place)
	ids.place, ids.address.ids = nil, nil
	n := ids.ring.bytes() + idFixed
	d.bytes -= n
	d.broker.memory.free(n)
}

// add remembers an id. Under mu.
func (d *duplicates) add(ids *addressIDs, id DuplicateID) {
	if ids.place == nil {
		return // the address is gone
	}
	before := ids.ring.bytes()
	ids.ring.push(id)
	d.account(ids.ring.bytes() - before)
}

// publish puts a message with an id into the commit window, as enter does. A duplicate isn't put there: of a message
// that has been taken, the result is final now; of one that is in the window, it follows, for the producer and the
// ticket of the step.
func (d *duplicates) publish(a *address, id DuplicateID, records []Record, s *step) (idVerdict, error) {
	ids, err := d.lock(a)
	if err != nil {
		return idFresh, err
	}
	defer d.mu.Unlock()
	verdict, err := d.check(ids, id, s)
	if verdict != idFresh || err != nil {
		return verdict, err
	}
	c := &claim{Remembered: Remembered{Address: a.name, ID: id, Keep: ids.ring.size}, ids: ids}
	s.claim = c
	if len(records) > 0 {
		a.remembers = true
		records = append(records, Record{Kind: RecordRemember, Remembered: &c.Remembered})
	}
	if err := d.broker.committer.enter(records, s); err != nil {
		return idFresh, err
	}
	ids.claims[id] = c
	return idFresh, nil
}

// take remembers the id of a message that doesn't enter the commit window, unless it is a duplicate: as publish.
func (d *duplicates) take(a *address, id DuplicateID, s *step) (idVerdict, error) {
	ids, err := d.lock(a)
	if err != nil {
		return idFresh, err
	}
	defer d.mu.Unlock()
	verdict, err := d.check(ids, id, s)
	if verdict == idFresh && err == nil {
		d.add(ids, id)
	}
	return verdict, err
}

// idVerdict says what an id is to an address.
type idVerdict uint8

const (
	idFresh   idVerdict = iota // the message isn't a duplicate
	idTaken                    // the address has taken a message of this id
	idClaimed                  // one is in the commit window; the producer hears what becomes of it
)

// check looks for an id. Under mu.
func (d *duplicates) check(ids *addressIDs, id DuplicateID, s *step) (idVerdict, error) {
	if ids.ring.has(id) {
		d.broker.totals.duplicates.Add(1)
		return idTaken, nil
	}
	first := ids.claims[id]
	if first == nil {
		return idFresh, nil
	}
	err := d.broker.committer.enter(nil, &step{kind: stepDuplicate, producer: s.producer, ticket: s.ticket, claim: first})
	return idClaimed, err
}

// release frees the id of a message that take has remembered and no queue has.
func (d *duplicates) release(a *address, id DuplicateID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.ids != nil {
		a.ids.ring.remove(id)
	}
}

// held remembers an id whose message is committed.
func (d *duplicates) held(c *claim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(c.ids.claims, c.ID)
	d.add(c.ids, c.ID)
}

// failed frees an id whose message was given up.
func (d *duplicates) failed(c *claim, r Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(c.ids.claims, c.ID)
	c.refusal = &r
}

// verdict returns what becomes of a duplicate, once that is known of the message that came first.
func (d *duplicates) verdict(c *claim) Result {
	if c.refusal != nil {
		return *c.refusal
	}
	d.broker.totals.duplicates.Add(1)
	return Result{Verdict: Accepted}
}

// forget forgets the ids of an address that is gone, and says so to the store. The address's mu is held.
func (d *duplicates) forget(a *address) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.ids != nil {
		d.evict(a.ids)
	}
	if a.remembers {
		d.drop(a.name)
	}
}

// drop has the store forget the ids of a name. Under mu.
func (d *duplicates) drop(address string) {
	d.broker.committer.enter([]Record{{Kind: RecordForget, Remembered: &Remembered{Address: address}}}, nil)
}

// recover notes of which addresses the store has ids, and has it forget those of addresses that are no more, or don't
// want any.
func (d *duplicates) recover(remembering []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, address := range remembering {
		if a := d.broker.names.get(address); a != nil && a.settings().IDCacheSize > 0 {
			a.remembers = true
		} else {
			d.drop(address)
		}
	}
}
