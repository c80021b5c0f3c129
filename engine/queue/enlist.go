package queue

// A transaction takes deliveries out of their consumers' hands until it ends: they stay acquired, whatever becomes of
// the consumer. While it commits, Decide says what each outcome comes to, and nothing of that is seen yet: when the
// commit holds, Finish and Apply carry it out, and when it is refused, Undecide takes it back. Conclude ends a delivery's
// part in a transaction that is rolled back, and Reinstate returns one to its consumer.

// Enlist takes a delivery of c for a transaction. False: it isn't c's, or not any more.
func (q *Queue) Enlist(c *Consumer, s Settlement) bool {
	e := s.Handle
	if e == nil || e.owner != c || e.acquisition != s.Acquisition {
		return false
	}
	q.disown(e)
	e.state = stateEnlisted
	q.acquired++
	return true
}

// enlisted reports whether a settlement names a delivery that is in a transaction.
func (s *Settlement) enlisted() bool {
	return s.Handle != nil && s.Handle.state == stateEnlisted && s.Handle.acquisition == s.Acquisition
}

// Conclusion is how an enlisted delivery, which was Consumer's, ends its part in a transaction.
type Conclusion struct {
	Settlement
	Consumer *Consumer
	Outcome  *Outcome
}

// Conclude carries out outcomes of enlisted deliveries, as Settle does for those that a consumer owns. All that go back
// are at their places before any is given to somebody.
func (q *Queue) Conclude(batch []Conclusion, now int64, fx []Effect) []Effect {
	back := make([]*Entry, 0, len(batch))
	for i := range batch {
		s := &batch[i]
		if !s.enlisted() {
			continue
		}
		e := s.Handle
		e.state = stateAcquired
		q.acquired--
		if fx = q.settle(s.Consumer, e, s.Outcome, now, fx); e.state == stateAcquired {
			back = append(back, e)
		}
	}
	return q.dispatch(now, q.giveBack(back, now, fx))
}

// Reinstate makes c the owner of an enlisted delivery again. With tried the attempt has failed: that is counted when the
// delivery comes back, however it does. False: c is gone, and the delivery has to be concluded.
func (q *Queue) Reinstate(c *Consumer, s Settlement, tried bool) bool {
	if !s.enlisted() {
		return true
	}
	if c.gone {
		return false
	}
	e := s.Handle
	q.acquired--
	q.own(c, e)
	e.acquisition = s.Acquisition // it is the same ownership
	e.tried = tried
	return true
}

// Discard removes an enlisted delivery of a queue that has been deleted.
func (q *Queue) Discard(s Settlement, fx []Effect) []Effect {
	if !s.enlisted() {
		return fx
	}
	q.acquired--
	return q.gone(s.Handle, CausePurged, fx)
}

// Decision is what an enlisted delivery was before Decide.
type Decision struct {
	Settlement
	annotations []Annotation
	count       uint32
	cause       Cause     // why it is leaving
	bars        *Consumer // who must not have it any more; nil: the same as before
}

// Decide carries out an outcome of an enlisted delivery, which was c's, as far as it can be taken back. It is leaving
// afterwards, as EffectRetired or EffectDead says, or still enlisted. False: it isn't enlisted.
func (q *Queue) Decide(c *Consumer, s Settlement, o *Outcome, now int64, fx []Effect) (Decision, []Effect, bool) {
	if !s.enlisted() {
		return Decision{}, fx, false
	}
	e := s.Handle
	d := Decision{Settlement: s, annotations: e.Annotations(), count: e.count}
	e.state = stateAcquired
	q.acquired--
	if o.Kind == Accepted {
		d.cause = CauseAccepted
		q.counters.Acknowledged++
		return d, q.leave(e, EffectRetired, CauseAccepted, fx), true
	}
	if o.Kind == Modified && o.UndeliverableHere && !e.bars(c) {
		d.bars = c
	}
	from := len(fx)
	fx = q.settle(c, e, o, now, fx)
	if e.state == stateLeaving {
		d.cause = fx[from].Cause
		return d, fx, true
	}
	e.state = stateEnlisted
	q.acquired++
	return d, fx, true
}

// Undecide makes a delivery what it was before Decide: enlisted.
func (q *Queue) Undecide(d *Decision) {
	e := d.Handle
	switch e.state {
	case stateLeaving:
		q.leaving--
		q.acquired++
		if d.cause == CauseAccepted {
			q.counters.Acknowledged--
		} else {
			q.counters.Killed--
		}
	case stateEnlisted:
	default:
		return
	}
	e.state, e.count = stateEnlisted, d.count
	if e.more != nil {
		e.more.annotations = d.annotations
		e.more.due, e.more.wait.until = 0, 0 // nobody waits who has an owner
		if d.bars != nil {
			e.more.barred = without(e.more.barred, d.bars)
		}
	}
}

// Apply puts deliveries that Decide has left enlisted back in their places.
func (q *Queue) Apply(batch []Settlement, now int64, fx []Effect) []Effect {
	back := make([]*Entry, 0, len(batch))
	for _, s := range batch {
		if s.enlisted() {
			s.Handle.state = stateAcquired
			q.acquired--
			back = append(back, s.Handle)
		}
	}
	return q.dispatch(now, q.giveBack(back, now, fx))
}
