package queue

import "math"

// Queue is one queue. The zero value is ready to use, with no policy: endless attempts. It is not safe for concurrent
// use: whoever guards it calls one method at a time, carries out the effects in order, and lets the next one in.
//
// Between calls no message waits for which some consumer has credit, unless what comes before it is being loaded.
type Queue struct {
	ready    ready
	barred   *ring       // waiting entries that some present consumer must not have; nil while there never was one
	turn     *Consumer   // next in the round of those with credit
	hungry   int32       // consumers in the round
	draining int32       // consumers and browsers with a drain to be answered
	attached uint32      // consumers so far
	takers   []*Consumer // in order of attaching, as are
	browsers []*Consumer
	expiry   expiry
	delays   *delays // nil while there never was one that waited for its time
	policy   *Policy // nil: the zero one

	waiting           int
	acquired, leaving int32
	bytes             int64 // payloads of all entries
	counters          Counters
}

// Policy is what a queue does with messages that fail.
type Policy struct {
	MaxAttempts      int32 // failed attempts in this queue before an entry is dead; 0 or below: endless
	RejectRedelivers bool  // rejected counts as modified with delivery-failed
	CountOnLoss      bool  // a lost connection counts as a failed attempt

	// An entry that has failed for the n-th time waits Delay × Multiplier^(n−1) milliseconds, more or less by up to Spread
	// of that, but MaxDelay at the most.
	Delay      int64 // 0 or below: it doesn't wait
	Multiplier float64
	Spread     float64        // 0..1
	MaxDelay   int64          // 0 or below: ten times Delay
	Random     func() float64 // from 0 to below 1; nil: no spread
}

// SetPolicy replaces the policy, which may be shared and doesn't change. It takes effect with the next failure.
func (q *Queue) SetPolicy(p *Policy) { q.policy = p }

// Pause has the queue give nothing to those that take, or go on giving. Browsers see what waits; what consumers have
// stays with them.
func (q *Queue) Pause(yes bool, now int64, fx []Effect) []Effect {
	q.ready.paused = yes
	return q.dispatch(now, fx)
}

// Paused reports whether nothing is given.
func (q *Queue) Paused() bool { return q.ready.paused }

// Counters count entries over the queue's life.
type Counters struct {
	Added, Acknowledged, Expired, Killed uint64
}

// Stats is what is in a queue.
type Stats struct {
	Waiting, Acquired, Leaving int // entries
	Delayed                    int // that wait for their time, and not among Waiting
	Stored, Spilled            int // of Waiting, those that are in the store only, and in the spill only
	Consumers                  int
	Bytes                      int64 // payloads of all entries, and
	StoredBytes, SpilledBytes  int64 // of those in the store only, and in the spill only
	Counters
}

// Stats returns what is in the queue.
func (q *Queue) Stats() Stats {
	stored, storedBytes := q.ready.elsewhere(InStore)
	spilled, spilledBytes := q.ready.elsewhere(InSpill)
	return Stats{
		q.waiting, int(q.acquired), int(q.leaving), q.Delayed(), stored, spilled, q.Consumers(), q.bytes, storedBytes, spilledBytes,
		q.counters,
	}
}

// Waiting returns how many entries wait.
func (q *Queue) Waiting() int { return q.waiting }

// Empty reports whether nothing is in the queue, with a consumer or on its way out.
func (q *Queue) Empty() bool {
	return q.waiting == 0 && q.acquired == 0 && q.leaving == 0 && q.Delayed() == 0
}

// Consumers returns how many consumers and browsers are attached.
func (q *Queue) Consumers() int { return len(q.takers) + len(q.browsers) }

// Arrival is a message that comes to the queue with a past.
type Arrival struct {
	Message     *Message
	Number      uint64
	Count       uint32 // failed attempts so far
	Base        uint32 // of which these happened elsewhere and don't count towards this queue's limit
	Annotations []Annotation
	Acquired    bool // some consumer has had it
}

// Publish adds a message. Numbers are from 1 to below 2^60, unique in the queue and mostly ascending: one that comes late is put
// where it belongs.
func (q *Queue) Publish(m *Message, number uint64, now int64, fx []Effect) []Effect {
	if m.Due != 0 {
		return q.schedule(m, number, now, fx)
	}
	h := q.ready.home(m)
	if q.ready.budget(h) == nil || !q.page(h, m, number, now) {
		return q.add(&Entry{number: number, message: m, priority: m.level()}, now, fx)
	}
	if h == InSpill {
		e := &Entry{number: number, message: m, priority: m.level(), state: stateGone}
		return q.left(Effect{Kind: EffectSpill, Entry: e, Message: m}, now, fx)
	}
	return q.left(Effect{Kind: EffectStored, Cause: CausePaged, Message: m}, now, fx)
}

// Insert adds a message, maybe with a past.
func (q *Queue) Insert(a Arrival, now int64, fx []Effect) []Effect {
	m := a.Message
	if m.Due != 0 { // it has no past
		return q.schedule(m, a.Number, now, fx)
	}
	h := q.ready.home(m)
	if q.ready.budget(h) == nil || !q.page(h, m, a.Number, now) {
		return q.add(a.entry(), now, fx)
	}
	if h == InSpill {
		e := a.entry()
		e.state = stateGone
		return q.left(Effect{Kind: EffectSpill, Entry: e, Message: m}, now, fx)
	}
	return q.left(Effect{Kind: EffectStored, Cause: CausePaged, Message: m}, now, fx)
}

// entry returns a new entry for an arrival.
func (a *Arrival) entry() *Entry {
	e := &Entry{
		number: a.Number, message: a.Message, priority: a.Message.level(),
		count: a.Count, base: min(a.Base, a.Count),
	}
	if a.Acquired {
		e.acquisition = 1
	}
	if len(a.Annotations) > 0 {
		e.more = &more{annotations: a.Annotations}
	}
	return e
}

// left goes on after a message has been left to the store or the spill.
func (q *Queue) left(gone Effect, now int64, fx []Effect) []Effect {
	fx = append(fx, gone)
	if q.turn == nil && q.browsers == nil {
		return fx
	}
	return q.dispatch(now, fx)
}

func (q *Queue) add(e *Entry, now int64, fx []Effect) []Effect {
	m := e.message
	q.counters.Added++
	q.bytes += int64(m.Size())
	if m.Expiry != 0 {
		q.expiry.live++
		if m.Expiry <= now {
			return q.expire(e, fx)
		}
		q.expiry.put(e)
	}
	q.waiting++
	if q.handsOver() {
		return q.give(q.turn, e, fx)
	}
	q.ready.put(e)
	for _, b := range q.browsers {
		b.view.late(e)
	}
	if q.turn == nil && q.browsers == nil {
		return fx
	}
	return q.dispatch(now, fx)
}

// gone removes an entry for good. It must have been taken out of wherever it was.
func (q *Queue) gone(e *Entry, why Cause, fx []Effect) []Effect {
	m := e.message
	q.bytes -= int64(m.Size())
	if m.Expiry != 0 {
		q.expiry.drop()
	}
	e.state, e.message = stateGone, nil
	return append(fx, Effect{Kind: EffectGone, Cause: why, Entry: e, Message: m})
}

// leave begins an entry's way out. It must have been taken out of wherever it was.
func (q *Queue) leave(e *Entry, kind EffectKind, why Cause, fx []Effect) []Effect {
	e.state = stateLeaving
	q.leaving++
	return append(fx, Effect{Kind: kind, Cause: why, Entry: e, Message: e.message})
}

// Finish ends the way out of an entry that an EffectDead or EffectExpired named.
func (q *Queue) Finish(e *Entry, fx []Effect) []Effect {
	if e.state != stateLeaving {
		return fx
	}
	q.leaving--
	q.departed(e.number)
	return q.gone(e, CauseFinished, fx)
}

// Purge removes all entries that wait, but those that wait for their time at home only. Of these it may have some go as
// well, of which the counts then know only when the home has told that nothing is left.
func (q *Queue) Purge(fx []Effect) []Effect {
	drop := func(e *Entry) {
		q.waiting--
		fx = q.gone(e, CausePurged, fx)
	}
	fx = q.purgeElsewhere(fx)
	q.ready.drainAll(drop)
	for q.barred != nil && q.barred.n > 0 {
		drop(q.barred.popFront())
	}
	_, fx = q.purgeDelayed(math.MaxUint64, math.MaxInt, fx)
	if q.draining > 0 {
		fx = q.answer(fx)
	}
	return fx
}

// Clear removes all entries, whoever owns them, and all consumers, and returns the consumers. Entries on their way out
// stay until Finish. The queue is to be thrown away.
func (q *Queue) Clear(fx []Effect) ([]*Consumer, []Effect) {
	if d := q.delays; d != nil {
		q.bytes -= d.parked[InStore].bytes + d.parked[InSpill].bytes
		d.parked = [homes]parked{}
	}
	all := q.Members()
	for _, c := range all {
		for e := c.first; e != nil; e = c.first {
			q.disown(e)
			fx = q.gone(e, CausePurged, fx)
		}
		c.limit = c.given
		q.enlist(c)
		c.gone, c.drains = true, 0
	}
	q.takers, q.browsers, q.draining = nil, nil, 0
	return all, q.Purge(fx)
}
