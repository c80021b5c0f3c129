package engine

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Lifetime says when a dynamic node is deleted [3.5.10-13]. A dynamic node never outlives the connection that
// created it: see Broker.Disconnected.
type Lifetime uint8

const (
	DeleteOnClose             Lifetime = iota // with the link that created it
	DeleteOnNoLinks                           // when no link refers to it any more
	DeleteOnNoMessages                        // once its creating link is gone: when it is empty
	DeleteOnNoLinksOrMessages                 // when no link refers to it and it is empty
)

// temporary is what a dynamic address is beside an address. Under the address's mu.
type temporary struct {
	owner    string // connection: nobody else may consume
	lifetime Lifetime
	links    int  // producers and consumers attached
	orphan   bool // the link that created it is gone
}

// over reports whether the address's life is over.
func (t *temporary) over(a *address) bool {
	switch t.lifetime {
	case DeleteOnNoLinks:
		return t.links == 0
	case DeleteOnNoMessages:
		return t.orphan && a.empty()
	case DeleteOnNoLinksOrMessages:
		return t.links == 0 && a.empty()
	}
	return t.orphan
}

// empty reports whether no queue of the address has a message or expects one.
func (a *address) empty() bool {
	for _, q := range a.queues() {
		q.guard.enter()
		empty := q.core.Empty() && q.inflight == 0
		q.guard.leave()
		if !empty {
			return false
		}
	}
	return true
}

// temporaryPrefix begins the names of dynamic nodes.
const temporaryPrefix = "temporary."

// isTemporary reports whether a name could be a dynamic node's. It is never made on first use: a late reply to a
// requester that is gone must not leave a queue behind.
func isTemporary(address string) bool {
	return strings.HasPrefix(address, temporaryPrefix) && len(address) == len(temporaryPrefix)+32
}

// unguessable returns a name of 128 random bits behind a prefix.
func (b *Broker) unguessable(prefix string) (string, error) {
	var bits [16]byte
	b.randMu.Lock()
	_, err := io.ReadFull(b.rand, bits[:])
	b.randMu.Unlock()
	if err != nil {
		return "", fmt.Errorf("name: random source: %w", err)
	}
	return prefix + hex.EncodeToString(bits[:]), nil
}

// makeTemporary makes a dynamic address, with a queue if it is anycast. The creating link is attached to it by the
// caller. It returns with the address's mu held.
func (b *Broker) makeTemporary(routing Routing, lifetime Lifetime, by Principal) (*address, error) {
	if routing == RoutingUnset {
		routing = Anycast
	}
	generated, err := b.unguessable(temporaryPrefix)
	if err != nil {
		return nil, err
	}
	a := &address{
		broker: b, name: generated, routing: routing,
		temporary: &temporary{owner: by.Connection, lifetime: lifetime},
	}
	a.mu.Lock()
	if _, err = b.add(a); err == nil {
		b.temporaries.add(a)
		if routing == Anycast {
			if _, err = a.ensureOwnQueue(true); err != nil {
				a.deleteAll(err)
			}
		}
	}
	if err != nil {
		a.mu.Unlock()
		return nil, err
	}
	return a, nil
}

// Disconnected deletes the dynamic nodes that a connection made, whatever their lifetime policy: nobody else may
// consume from them. Call it when the connection's links are closed.
func (b *Broker) Disconnected(connection string) {
	for _, a := range b.temporaries.of(connection) {
		if a.enter() == nil {
			a.deleteAll(ErrDeleted)
			a.mu.Unlock()
		}
	}
}

// temporaries knows the dynamic addresses of each connection.
type temporaries struct {
	mu           sync.Mutex
	byConnection map[string]map[*address]struct{}
}

func (t *temporaries) add(a *address) {
	t.mu.Lock()
	defer t.mu.Unlock()
	owner := a.temporary.owner
	if t.byConnection == nil {
		t.byConnection = map[string]map[*address]struct{}{}
	}
	if t.byConnection[owner] == nil {
		t.byConnection[owner] = map[*address]struct{}{}
	}
	t.byConnection[owner][a] = struct{}{}
}

func (t *temporaries) remove(a *address) {
	t.mu.Lock()
	defer t.mu.Unlock()
	owner := a.temporary.owner
	delete(t.byConnection[owner], a)
	if len(t.byConnection[owner]) == 0 {
		delete(t.byConnection, owner)
	}
}

func (t *temporaries) of(connection string) []*address {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*address
	for a := range t.byConnection[connection] {
		all = append(all, a)
	}
	return all
}
