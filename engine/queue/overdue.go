package queue

import (
	"maps"
	"slices"
)

// Overdue is an entry of which its home says that its time has come. Where nothing is to become of its payload the message
// needn't have it.
type Overdue struct {
	Arrival
	Bytes   int  // of the payload
	Delayed bool // it waits for its time there, as Waits has reported
}

// ExpireAway makes entries of one priority leave that are at their home only, in ascending order of number, all of which
// it has and which are due. Those that are in memory come back as EffectStored: Expire sees to them. So do those that
// can't leave now; late says how many these are. From the spill they are gone at once, as EffectPurged says; the store
// lets go of them with what becomes of them. Released follows when either has.
func (q *Queue) ExpireAway(h Home, priority uint8, due []Overdue, now int64, fx []Effect) (late int, _ []Effect) {
	r := &q.ready
	priority = min(priority, 9)
	for i := range due {
		d := &due[i]
		if d.Delayed {
			fx = q.expireDelayed(h, priority, d, fx)
			continue
		}
		f := r.frontier(priority, h)
		switch {
		case f == nil || d.Number < f.from || f.gone.has(d.Number):
			fx = append(fx, Effect{Kind: EffectStored, Message: d.Message})
			continue
		case d.Number > f.last || len(f.gone) >= maxGone: // it isn't published yet, or a load hangs
			late++
			fx = append(fx, Effect{Kind: EffectStored, Message: d.Message})
			continue
		}
		e := d.entry()
		fx = q.desert(h, f, e, d.Bytes, fx)
		q.bytes -= int64(d.Bytes - d.Message.Size())
		q.waiting--
		q.expiry.live++
		fx = q.expire(e, fx)
		q.emptied(h, f, priority)
	}
	return late, q.dispatch(now, fx)
}

// desert has an entry whose payload has so many bytes leave its home while that still has it.
func (q *Queue) desert(h Home, f *frontier, e *Entry, bytes int, fx []Effect) []Effect {
	f.gone.add(e.number)
	f.count--
	if f.load != nil && e.number > f.load.Last {
		f.since--
	}
	f.bytes -= int64(bytes)
	if h == InSpill {
		fx = append(fx, loadEffect(EffectPurged, &Load{
			Priority: e.priority, Spilled: true, From: e.number, Last: e.number,
		}))
	}
	return fx
}

// emptied takes a frontier away behind which there is nothing any more.
func (q *Queue) emptied(h Home, f *frontier, priority uint8) {
	if f.count <= 0 {
		q.correct(f, 0)
		f.load, f.from = nil, f.last+1
		q.unfront(h, priority)
	}
}

// expireDelayed makes an entry leave that waits for its time at home only.
func (q *Queue) expireDelayed(h Home, priority uint8, d *Overdue, fx []Effect) []Effect {
	if q.delays == nil || !q.delays.parked[h].recalling {
		return append(fx, Effect{Kind: EffectStored, Message: d.Message})
	}
	q.unpark(h, int64(d.Bytes))
	q.bytes -= int64(d.Bytes - d.Message.Size())
	q.expiry.live++
	if h == InSpill {
		fx = append(fx, loadEffect(EffectPurged, &Load{Priority: priority, Spilled: true, From: d.Number, Last: d.Number}))
	}
	q.departs(d.Number)
	return q.expire(d.entry(), fx)
}

// Released says that a home has let go of all entries that ExpireAway and Withdraw have had leave it.
func (q *Queue) Released(h Home) {
	r := &q.ready
	for p := range uint8(10) {
		if f := r.frontier(p, h); f != nil {
			f.gone.released(f.load != nil)
		}
	}
}

// gone is a set of numbers that a load may still bring, though they have left the queue. It is small: what leaves at
// once. With true the store doesn't have the entry any more, but the load that is on its way may have met it.
type gone map[uint64]bool

// maxGone bounds what leaves while one load is on its way.
const maxGone = 4096

func (g *gone) add(number uint64) {
	if *g == nil {
		*g = gone{}
	}
	(*g)[number] = false
}

func (g gone) has(number uint64) bool {
	_, has := g[number]
	return has
}

// released notes that the store has none of them any more.
func (g *gone) released(loading bool) {
	if !loading {
		*g = nil
		return
	}
	for n := range *g {
		(*g)[n] = true
	}
}

// loaded forgets what no load can bring after one that went on to a number.
func (g *gone) loaded(from uint64) {
	if *g == nil {
		return
	}
	maps.DeleteFunc(*g, func(n uint64, released bool) bool { return released || n < from })
	if len(*g) == 0 {
		*g = nil
	}
}

// numbers returns those that the store may have, in ascending order.
func (g gone) numbers() []uint64 {
	var all []uint64
	for n, released := range g {
		if !released {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}
