package queue

import (
	"maps"
	"slices"
)

// Overdue is an entry of which the store says that its time has come. Where nothing is to become of its payload the
// message needn't have it.
type Overdue struct {
	Arrival
	Bytes int // of the payload
}

// ExpireStored makes entries of one priority leave that are in the store only, in ascending order of number, all of which
// the store has and which are due. Those that are in memory come back as EffectStored: Expire sees to them. So do those
// that can't leave now; late says how many these are. Released follows when the store has let go of all that left.
func (q *Queue) ExpireStored(priority uint8, due []Overdue, now int64, fx []Effect) (late int, _ []Effect) {
	r := &q.ready
	priority = min(priority, 9)
	for i := range due {
		d := &due[i]
		f := r.frontier(priority, homeStore)
		switch {
		case f == nil || d.Number < f.from || f.gone.has(d.Number):
			fx = append(fx, Effect{Kind: EffectStored, Message: d.Message})
			continue
		case d.Number > f.last || len(f.gone) >= maxGone: // it isn't published yet, or a load hangs
			late++
			fx = append(fx, Effect{Kind: EffectStored, Message: d.Message})
			continue
		}
		f.gone.add(d.Number)
		f.count--
		if f.load != nil && d.Number > f.load.Last {
			f.since--
		}
		f.bytes -= int64(d.Bytes)
		q.bytes -= int64(d.Bytes - d.Message.Size())
		q.waiting--
		q.expiry.live++
		e := d.entry()
		r.note(e, 1)
		fx = q.expire(e, fx)
		if f.count <= 0 {
			q.correct(f, 0)
			f.load = nil
			q.unfront(homeStore, priority)
		}
	}
	return late, q.dispatch(now, fx)
}

// Released says that the store has let go of all entries that ExpireStored has had leave.
func (q *Queue) Released() {
	r := &q.ready
	for p := range uint8(10) {
		if f := r.frontier(p, homeStore); f != nil {
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
