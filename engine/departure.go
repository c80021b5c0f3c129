package engine

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/letomq/leto/engine/queue"
)

// Annotations that the broker writes on messages that it moves.
const (
	OrigAddress   = "x-opt-ORIG-ADDRESS"    // string: address of the queue that it died in
	OrigQueue     = "x-opt-ORIG-QUEUE"      // string: that queue
	OrigMessageID = "x-opt-ORIG-MESSAGE-ID" // long: its number there
	ActualExpiry  = "x-opt-ACTUAL-EXPIRY"   // long: unix milliseconds at which it was expired
	DeathReason   = "x-opt-death-reason"    // string: why it was dead-lettered
	DeathTime     = "x-opt-death-time"      // long: unix milliseconds at which it was
)

// Why a message left a queue for nowhere: Dropped.Reason.
const (
	DropExpired  = "expired: no expiry address"
	DropAttempts = "delivery attempts used up: no dead-letter address"
	DropRejected = "rejected: no dead-letter address"
	DropLoop     = "rejected on the dead-letter queue itself"
	DropNoQueue  = "no queue at the dead-letter or expiry address"
)

// departure is an entry that is leaving a queue: dead or expired.
type departure struct {
	entry   *queue.Entry
	message *queue.Message
	expired bool
	cause   queue.Cause
	reason  string // of a dead one
}

// maxReason bounds the bytes of a consumer's error that are kept.
const maxReason = 1024

// deathReason is what x-opt-death-reason says.
func deathReason(cause queue.Cause, o *Outcome, attempts uint32) string {
	used := ""
	if cause == queue.CauseAttempts {
		used = "max-delivery-attempts reached: " + strconv.FormatUint(uint64(attempts), 10)
		if o == nil || o.Kind != Rejected {
			return used
		}
		used += "; "
	}
	parts := []string{used + "rejected"}
	if o != nil && o.Condition != "" {
		parts = append(parts, o.Condition)
	}
	if o != nil && o.Description != "" {
		parts = append(parts, o.Description)
	}
	reason := strings.ToValidUTF8(strings.Join(parts, ": "), "�")
	if len(reason) <= maxReason {
		return reason
	}
	end := maxReason
	for !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end]
}

// depart moves an entry to where dead or expired messages go, or drops it. The entry stays leaving in q until the
// move holds. It must not be called under a guard.
func (q *boundQueue) depart(d departure) {
	moved, targets, drop := q.bound(d)
	if len(targets) == 0 {
		q.drop(d, drop)
		return
	}
	if q.enterMove(d, moved, targets, past{d.entry.Count(), q.obituary(d)}) {
		return
	}
	for _, t := range targets { // the broker is closing, or its store has failed: the entry stays where it is stored
		t.forgo(moved)
	}
}

// bound returns what of an entry that is leaving goes where: it is reserved there. Without targets it is to be dropped,
// and why. One that would go in a circle goes to the end of its own queue, with all its attempts before it again.
func (q *boundQueue) bound(d departure) (moved *queue.Message, targets []*boundQueue, why string) {
	settings := q.address.settings()
	to := settings.ExpiryAddress
	drop := DropExpired
	if !d.expired {
		to, drop = settings.DeadLetterAddress, DropRejected
		if d.cause == queue.CauseAttempts {
			drop = DropAttempts
		}
	}
	if to == "" {
		return nil, nil, drop
	}
	n, err := parseName(to, RoutingUnset)
	if err != nil {
		return nil, nil, DropNoQueue
	}
	if !d.expired && n.address == q.address.name {
		// It would come back to where it was rejected, and for a program that clears the queue by rejecting, for ever.
		return nil, nil, DropLoop
	}
	if q.circles(d) {
		moved = d.message.Moved(q.address.name)
		q.broker().memory.force(cost(moved, 1))
		return moved, reserve([]*boundQueue{q}, moved), DropLoop
	}
	if n.queue == "" {
		n.queue = settings.resource(q.address.name, d.expired)
	}
	moved = d.message.Moved(n.address)
	for range 3 { // a queue may be deleted between finding it and reserving it
		a, named := q.broker().departed(n)
		if a == nil {
			break
		}
		picked := a.pick(named)
		if len(picked) == 0 {
			break
		}
		q.broker().memory.force(cost(moved, len(picked)))
		if targets := reserve(picked, moved); len(targets) > 0 {
			return moved, targets, ""
		}
	}
	return nil, nil, DropNoQueue
}

// resource returns the name of the queue that dead letters of an address have for themselves, or what expires there;
// empty when they have none.
func (s *Settings) resource(address string, expired bool) string {
	made, prefix, suffix := s.AutoCreateDeadLetterResources, s.DeadLetterQueuePrefix, s.DeadLetterQueueSuffix
	if expired {
		made, prefix, suffix = s.AutoCreateExpiryResources, s.ExpiryQueuePrefix, s.ExpiryQueueSuffix
	}
	if own := prefix + address + suffix; made && validName(own) {
		return own
	}
	return ""
}

// departed returns where dead or expired messages go: an address, and which queue of it, or all. They are made when they
// aren't there, whatever auto-create says: a setting names them. Of an anycast address it is the queue of its name, or one
// that somebody has made, and never one that some address has for itself. Nil when they can't be made.
func (b *Broker) departed(n name) (a *address, named string) {
	a, err := b.ensure(n, RoutingUnset, true)
	if err != nil {
		return nil, ""
	}
	switch {
	case n.queue == "" && a.routing == Multicast:
		return a, ""
	case n.queue == "":
		named = a.name
	default:
		named = n.queue
	}
	if a.find(named) != nil {
		return a, named
	}
	if a.enter() != nil {
		return nil, ""
	}
	defer a.mu.Unlock()
	if n.queue == "" {
		for _, q := range a.queues() {
			if !q.auto {
				return a, q.name
			}
		}
	}
	if _, err := a.ensureQueue(named, true); err != nil {
		return nil, ""
	}
	return a, named
}

// enterMove puts a move into the commit window: into the last target as a move, into the others as new entries.
func (q *boundQueue) enterMove(d departure, moved *queue.Message, targets []*boundQueue, p past) bool {
	s := step{
		kind: stepMove, message: moved, source: q, entry: d.entry, targets: targets,
		count: p.count, annotations: p.annotations,
	}
	var few [2]Record
	records := few[:0]
	q.guard.enter() // so that the record stands before one that deletes the queue, or isn't written
	defer q.guard.leave()
	from := q.holds(d.message) && !q.deleted
	for _, t := range targets {
		if t.holds(moved) {
			records = append(records, Record{
				Kind: RecordEnqueue, Queue: t.id, Message: moved, Count: s.count, Base: s.count, Annotations: s.annotations,
			})
		}
	}
	if last := len(records) - 1; from && last >= 0 {
		r := &records[last]
		r.Kind, r.From, r.FromNumber, r.Priority = RecordMove, q.id, d.entry.Number(), d.entry.Priority()
	} else if from {
		records = append(records, Record{
			Kind: RecordRemove, Queue: q.id, Number: d.entry.Number(), Priority: d.entry.Priority(),
		})
	}
	return q.broker().committer.enter(records, &s) == nil
}

// Obituary reports whether an annotation is one that is written on what has left a queue, and by nobody else.
func Obituary(key string) bool {
	switch key {
	case OrigAddress, OrigQueue, OrigMessageID, ActualExpiry, DeathReason, DeathTime:
		return true
	}
	return false
}

// obituary returns the annotations of a message that has left q.
func (q *boundQueue) obituary(d departure) []queue.Annotation {
	old := d.entry.Annotations()
	if q.circles(d) {
		return old // it stays
	}
	all := make([]queue.Annotation, 0, len(old)+5)
	for _, a := range old {
		if !Obituary(a.Key) {
			all = append(all, a)
		}
	}
	all = append(all,
		queue.Annotation{Key: OrigAddress, Value: q.address.name},
		queue.Annotation{Key: OrigQueue, Value: q.name},
		queue.Annotation{Key: OrigMessageID, Value: int64(d.entry.Number())})
	if d.expired {
		return append(all, queue.Annotation{Key: ActualExpiry, Value: q.broker().now()})
	}
	return append(all,
		queue.Annotation{Key: DeathReason, Value: d.reason}, queue.Annotation{Key: DeathTime, Value: q.broker().now()})
}

// drop removes an entry that is leaving and has nowhere to go.
func (q *boundQueue) drop(d departure, reason string) {
	b := q.broker()
	number := d.entry.Number()
	q.guard.enter()
	if q.holds(d.message) && !q.deleted {
		b.committer.enter([]Record{{
			Kind: RecordRemove, Queue: q.id, Number: number, Priority: d.entry.Priority(),
		}}, nil)
	}
	after := q.finish(d.entry)
	q.guard.leave()
	q.after(&after, nil)
	q.dropped(number, reason)
}

// dropped tells that an entry has left for nowhere.
func (q *boundQueue) dropped(number uint64, reason string) {
	b := q.broker()
	b.totals.dropped.Add(1)
	if b.observer.Dropped != nil {
		b.observer.Dropped(Dropped{Queue: q.name, Number: number, Reason: reason})
	}
}

// move carries out a move that holds: the message appears at its targets, then it is gone from its source.
func (s *step) move() {
	for _, t := range s.targets {
		t.arrive(queue.Arrival{
			Message: s.message, Number: s.number, Count: s.count, Base: s.count, Annotations: s.annotations, Acquired: s.entry.Had(),
		})
	}
	s.source.guard.enter()
	after := s.source.finish(s.entry)
	s.source.guard.leave()
	s.source.after(&after, nil)
}
