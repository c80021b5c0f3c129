package engine

import "errors"

// errClaimed says that an id of a transaction has been taken by another message while the commit was prepared, or is
// about to be. The transaction is rolled back: when it comes again, that is known.
var errClaimed = errors.New("one of its duplicate ids is in use by a message that is sent at the same time")

// claimKey is an id of an address.
type claimKey struct {
	ids *addressIDs
	id  DuplicateID
}

// claim looks for the id of a message that the commit is to publish. It isn't fresh if the address has taken a message
// of that id, or the transaction has another one: that is the duplicate, then. The claim, which is nil for a message
// without id, is made good by enter.
func (d *discharge) claim(a *address, id DuplicateID) (c *claim, fresh bool, err error) {
	if id == (DuplicateID{}) || a.settings().IDCacheSize <= 0 {
		return nil, true, nil
	}
	b := d.transaction.broker
	for waited := false; ; waited = true {
		ids, err := b.duplicates.lock(a)
		if err != nil {
			return nil, false, err
		}
		ids.pins++
		d.pinned = append(d.pinned, ids)
		key := claimKey{ids, id}
		taken, claimed := ids.ring.has(id) || d.claims[key] != nil, ids.claims[id] != nil
		size := ids.ring.size
		b.duplicates.mu.Unlock()
		switch {
		case taken:
			b.totals.duplicates.Add(1)
			return nil, false, nil
		case claimed && waited:
			return nil, false, errClaimed
		case claimed:
			if err := b.committer.sync(); err != nil {
				return nil, false, err
			}
			continue
		}
		c = &claim{Remembered: Remembered{Address: a.name, ID: id, Keep: size}, ids: ids}
		if d.claims == nil {
			d.claims = map[claimKey]*claim{}
		}
		d.claims[key] = c
		return c, true, nil
	}
}

// disclaim takes a claim back that isn't made good.
func (d *discharge) disclaim(c *claim) {
	if c != nil {
		delete(d.claims, claimKey{c.ids, c.ID})
	}
}

// enter puts the discharge into the window and makes its claims good, or neither.
func (d *discharge) enter() error {
	b := d.transaction.broker
	if len(d.claims) == 0 {
		return b.committer.enterDischarge(d)
	}
	b.duplicates.mu.Lock()
	defer b.duplicates.mu.Unlock()
	for key := range d.claims {
		if key.ids.place == nil || key.ids.ring.has(key.id) || key.ids.claims[key.id] != nil {
			return errClaimed
		}
	}
	if err := b.committer.enterDischarge(d); err != nil {
		return err
	}
	for key, c := range d.claims {
		key.ids.claims[key.id] = c
		key.ids.address.remembers = true
	}
	return nil
}

// free frees the ids of a discharge that was given up.
func (d *discharge) free(r Result) {
	for _, c := range d.claims {
		d.transaction.broker.duplicates.failed(c, r)
	}
}

// unpin lets the ids of addresses go that had to stay in memory meanwhile.
func (d *discharge) unpin() {
	if len(d.pinned) == 0 {
		return
	}
	mu := &d.transaction.broker.duplicates.mu
	mu.Lock()
	defer mu.Unlock()
	for _, ids := range d.pinned {
		ids.pins--
	}
	d.pinned = nil
}
