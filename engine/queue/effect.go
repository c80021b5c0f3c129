package queue

// Effect is something that the caller has to do, in the order of the slice.
type Effect struct {
	Kind        EffectKind
	Cause       Cause
	Acquisition uint32    // EffectDeliver
	Consumer    *Consumer // EffectDeliver, EffectDrained
	Entry       *Entry
	Message     *Message
}

// EffectKind says what there is to do.
type EffectKind uint8

const (
	EffectDeliver EffectKind = iota // give the consumer the delivery: see Delivery
	EffectDrained                   // tell the consumer that it has been given all there is
	EffectCounted                   // the entry's count, due time or annotations changed and it stays
	EffectDue                       // the entry's due time is over, or another one
	EffectGone                      // the entry has left the queue; Cause says why
	EffectRetired                   // the entry is leaving, for good when the transaction's commit holds: Finish then
	EffectDead                      // the entry is leaving: dead-letter or drop it, then Finish; Cause says why
	EffectExpired                   // the entry is leaving: expire it, then Finish
	EffectStored                    // the queue lets go of the message: it is elsewhere, or not needed; it has an Entry if it waits there for its time
	EffectSpill                     // the queue lets go of Entry, which isn't anywhere else: keep it for a Load
	EffectLoad                      // bring Load from where its entries are and hand it to Loaded
	EffectHeld                      // nothing is loaded for want of memory: call Resume when there is some
	EffectPurged                    // what the store or the spill has of Load, from From to Last, is gone from there
)

// Cause says why an entry leaves.
type Cause uint8

const (
	CauseNone     Cause = iota
	CauseAccepted       // settled as accepted, or taken for good
	CausePurged         // by Purge or Clear
	CauseFinished       // by Finish
	CauseAttempts       // the last allowed attempt failed
	CauseRejected       // a consumer rejected it
	CausePaged          // EffectStored: it waits from now on, in the store only
)

// loadEffect returns an effect about a part of the store or the spill. That is seldom, and an Effect is to stay small: it stands in
// for an entry.
func loadEffect(kind EffectKind, l *Load) Effect {
	return Effect{Kind: kind, Entry: &Entry{state: stateGone, more: &more{load: l}}}
}

// Load returns what an EffectLoad or EffectPurged is about.
func (fx *Effect) Load() *Load { return fx.Entry.more.load }

// Delivery returns what the consumer of an EffectDeliver is to be given. It must be called before the queue is used
// again.
func (fx *Effect) Delivery() Delivery {
	e := fx.Entry
	d := Delivery{
		Handle:        e,
		Acquisition:   fx.Acquisition,
		Message:       fx.Message,
		Number:        e.number,
		Count:         e.count,
		FirstAcquirer: fx.Acquisition == 1 || e.acquisition == 0,
	}
	if e.more != nil {
		d.Annotations = e.more.annotations
	}
	return d
}
