package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// ProducerSpec says where a producer sends to.
type ProducerSpec struct {
	Address   string   // address, queue://address, topic://address or address::queue
	Routing   Routing  // from the terminus's capabilities; must not contradict a prefix
	Anonymous bool     // every message names its own address [anonymous terminus]
	Dynamic   bool     // make a new node and send to it
	Lifetime  Lifetime // of the dynamic node
	By        Principal
}

// Producer publishes to one address, or anonymously to any. It is used by one goroutine at a time.
type Producer struct {
	broker    *Broker
	confirmer Confirmer
	address   *address // nil for an anonymous producer
	name      name
	creator   bool // of the dynamic node
	closed    bool

	pending atomic.Int64 // messages in the commit window
}

// Producer attaches a producer. confirm hears of what Publish didn't decide at once.
func (b *Broker) Producer(spec ProducerSpec, confirm Confirmer) (*Producer, error) {
	if b.closed.Load() {
		return nil, ErrClosed
	}
	p := &Producer{broker: b, confirmer: confirm}
	if spec.Anonymous {
		return p, nil
	}
	if spec.Dynamic {
		a, err := b.makeTemporary(spec.Routing, spec.Lifetime, spec.By)
		if err != nil {
			return nil, err
		}
		p.address, p.creator = a, true
		p.name = name{address: a.name, routing: a.routing}
		a.attachProducer()
		a.mu.Unlock()
		return p, nil
	}
	n, err := parseName(spec.Address, spec.Routing)
	if err != nil {
		return nil, err
	}
	p.name = n
	for {
		a, err := b.destination(n)
		if err != nil {
			return nil, err
		}
		if a.enter() != nil {
			continue // deleted meanwhile
		}
		p.address = a
		a.attachProducer()
		a.mu.Unlock()
		return p, nil
	}
}

func (a *address) attachProducer() {
	a.producers++
	if a.temporary != nil {
		a.temporary.links++
	}
}

// destination returns the address that a name sends to, with a queue if messages must not be lost there.
func (b *Broker) destination(n name) (*address, error) {
	for {
		a, err := b.ensure(n, RoutingUnset, false)
		if err != nil {
			return nil, err
		}
		if a.reaches(n.queue) || n.queue == "" && a.routing == Multicast {
			return a, nil
		}
		if a.enter() != nil {
			continue // deleted meanwhile
		}
		if n.queue != "" {
			_, err = a.ensureQueue(n.queue, false)
		} else {
			_, err = a.ensureOwnQueue(false)
		}
		a.mu.Unlock()
		if err != nil {
			return nil, err
		}
		return a, nil
	}
}

// Address returns the address without prefix; generated for a dynamic node, empty for an anonymous producer.
func (p *Producer) Address() string { return p.name.address }

// Routing returns how the address routes; RoutingUnset for an anonymous producer.
func (p *Producer) Routing() Routing {
	if p.address == nil {
		return RoutingUnset
	}
	return p.address.routing
}

// Settings returns the settings in force at the producer's address; those of no address for an anonymous producer.
// The result is shared and must not be changed.
func (p *Producer) Settings() *Settings {
	if p.address == nil {
		return p.broker.Settings("")
	}
	return p.address.settings()
}

// Publish takes a message over. True: the result is final now. False: Confirmed follows with this ticket, in the
// order of publishing. It waits while the commit window is full. An anonymous producer sends to m.Address, which is
// made on first use where auto-create allows it.
func (p *Producer) Publish(m *Message, ticket uint64) (Result, bool) {
	return p.PublishOnce(m, DuplicateID{}, ticket)
}

// PublishOnce is Publish of a message that is accepted and dropped if one with the same id is among those that the
// address has taken last, or becomes one of them: how many that are is in the settings of the address. The zero id is
// none. An id is remembered with its message: also over a restart, if that is stored.
func (p *Producer) PublishOnce(m *Message, id DuplicateID, ticket uint64) (Result, bool) {
	if p.closed || p.broker.closed.Load() {
		return Result{Verdict: Released, Description: ErrClosed.Error()}, true
	}
	n, a, err := p.resolve(m)
	if err != nil {
		return p.refuse(n.address, err), true
	}
	if a.settings().IDCacheSize <= 0 {
		id = DuplicateID{}
	}
	for range 3 { // queues may be deleted between finding and reaching them
		picked := a.pick(n.queue)
		if len(picked) == 0 {
			if a.routing == Multicast && n.queue == "" && !a.gone.Load() {
				a.unrouted.Add(1)
				p.broker.totals.unrouted.Add(1)
				return Result{Verdict: Accepted}, true
			}
			if err := p.renew(&a, n); err != nil {
				return p.refuse(n.address, err), true
			}
			continue
		}
		if !p.broker.memory.take(cost(m, len(picked))) {
			return rejected(picked[0].name, reasonMemory, nil), true
		}
		if p.pending.Load() > 0 || m.Durable && durable(picked) {
			switch r, outcome := p.commit(m, a, picked, id, ticket); outcome {
			case commitEntered:
				return Result{}, false
			case commitDecided:
				return r, true
			}
			continue
		}
		if id != (DuplicateID{}) {
			verdict, err := p.identify(a, id, ticket)
			if verdict != idFresh || err != nil {
				p.broker.memory.free(cost(m, len(picked)))
			}
			switch {
			case errors.Is(err, ErrDeleted):
				if err := p.renew(&a, n); err != nil {
					return p.refuse(n.address, err), true
				}
				continue
			case err != nil:
				return p.refuse(n.address, err), true
			case verdict == idClaimed:
				return Result{}, false
			case verdict == idTaken:
				return Result{Verdict: Accepted}, true
			}
		}
		m.Hold(len(picked))
		number := p.broker.committer.numbers.Add(1)
		reached := false
		for _, q := range picked {
			if q.publish(m, number) {
				reached = true
			} else {
				p.broker.memory.release(m)
			}
		}
		if reached || a.routing == Multicast {
			return Result{Verdict: Accepted}, true
		}
		if id != (DuplicateID{}) {
			p.broker.duplicates.release(a, id)
		}
	}
	return rejected(n.address, reasonDeleted, nil), true
}

// resolve returns where a message goes: the producer's address, or the message's own.
func (p *Producer) resolve(m *Message) (name, *address, error) {
	n, a := p.name, p.address
	if a == nil {
		var err error
		if n, err = parseName(m.Address, RoutingUnset); err != nil {
			return name{address: m.Address}, nil, err
		}
		if a, err = p.broker.destination(n); err != nil {
			return n, nil, err
		}
	}
	a.settings().lifetime(m, p.broker.now)
	return n, a, nil
}

// identify remembers the id of a message that becomes visible at once, or says that it is a duplicate.
func (p *Producer) identify(a *address, id DuplicateID, ticket uint64) (idVerdict, error) {
	p.pending.Add(1)
	verdict, err := p.broker.duplicates.take(a, id, &step{producer: p, ticket: ticket})
	if verdict != idClaimed || err != nil {
		p.pending.Add(-1)
	}
	return verdict, err
}

// renew finds the address again, or makes its queue again, when there is none any more.
func (p *Producer) renew(a **address, n name) error {
	renewed, err := p.broker.destination(n)
	if err != nil {
		return err
	}
	if p.address != nil && renewed != p.address {
		if err := renewed.enter(); err != nil {
			return err
		}
		renewed.attachProducer()
		renewed.mu.Unlock()
		p.address = renewed
	}
	*a = renewed
	return nil
}

func durable(queues []*boundQueue) bool {
	for _, q := range queues {
		if q.id != 0 {
			return true
		}
	}
	return false
}

// commitOutcome is what commit came to.
type commitOutcome uint8

const (
	commitEntered commitOutcome = iota
	commitDecided               // the result is final
	commitNowhere               // all queues have been deleted
)

// commit puts a message into the commit window. Its memory has been taken.
func (p *Producer) commit(m *Message, a *address, picked []*boundQueue, id DuplicateID, ticket uint64) (Result, commitOutcome) {
	c := p.broker.committer
	c.await()
	if s := p.broker.spiller; !m.Durable && s.crowded.Load() {
		s.await() // here: the committer, which makes it visible, mustn't
	}
	targets := reserve(picked, m)
	if len(targets) == 0 {
		return Result{}, commitNowhere
	}
	s := step{kind: stepPublish, producer: p, ticket: ticket, message: m}
	if len(targets) == 1 {
		s.target = targets[0]
	} else {
		s.targets = targets
	}
	var few [2]Record
	records := few[:0]
	for _, q := range targets {
		if q.holds(m) {
			records = append(records, Record{Kind: RecordEnqueue, Queue: q.id, Due: m.Due, Message: m})
		}
	}
	p.pending.Add(1)
	verdict, err := idFresh, error(nil)
	if id == (DuplicateID{}) {
		err = c.enter(records, &s)
	} else {
		verdict, err = p.broker.duplicates.publish(a, id, records, &s)
	}
	if verdict == idFresh && err == nil {
		return Result{}, commitEntered
	}
	for _, q := range targets {
		q.forgo(m)
	}
	if verdict == idClaimed && err == nil {
		return Result{}, commitEntered
	}
	p.pending.Add(-1)
	switch {
	case err == nil:
		return Result{Verdict: Accepted}, commitDecided
	case errors.Is(err, ErrDeleted):
		return Result{}, commitNowhere
	case errors.Is(err, ErrClosed):
		return Result{Verdict: Released, Description: err.Error()}, commitDecided
	}
	return rejected(targets[0].name, reasonStore, nil), commitDecided
}

// confirm says what became of a message in the commit window.
func (p *Producer) confirm(ticket uint64, r Result) {
	p.confirmer.Confirmed(ticket, r)
	p.pending.Add(-1)
}

// refuse returns the verdict for an error of finding the address.
func (p *Producer) refuse(address string, err error) Result {
	reason := reasonNotFound
	switch {
	case errors.Is(err, ErrNotAllowed):
		reason = reasonNotAllowed
	case errors.Is(err, ErrInvalid):
		reason = reasonInvalid
	case errors.Is(err, ErrLimit):
		reason = reasonQueues
	case errors.Is(err, ErrDeleted):
		reason = reasonDeleted
	case errors.Is(err, ErrClosed):
		return Result{Verdict: Released, Description: err.Error()}
	case !errors.Is(err, ErrNotFound):
		reason = reasonStore
	}
	return rejected(address, reason, fmt.Errorf("publish: %w", err))
}

// Close ends the producer. What it has published stands, and is still confirmed.
func (p *Producer) Close() {
	if p.closed {
		return
	}
	p.closed = true
	a := p.address
	if a == nil {
		return
	}
	a.mu.Lock()
	a.producers--
	if a.temporary != nil {
		a.temporary.links--
		a.temporary.orphan = a.temporary.orphan || p.creator
	}
	a.mu.Unlock()
	a.reap(nil)
}
