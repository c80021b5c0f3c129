package server

import (
	"runtime"
	"time"
)

// lane is where the input of connections is worked through that move no messages, and the answers to it are made up:
// attaches, echoes, drains, settlements of nothing, deliveries that are never settled, whatever a peer may ask for as
// often as it likes. They take turns, in the order in which they came, and on half of the processors; and while messages
// move elsewhere a place rests for as long as it was worked in. Whoever moves messages finds a processor that is free,
// and leaves some to its clients, however many others have however much to say.
type lane struct {
	places chan place
	moved  func() uint64 // messages so far
}

// place is one of the lane's, while nobody has it.
type place struct {
	began  time.Time     // of who has it
	worked time.Duration // since the last rest
	rests  time.Time     // until then
	moved  uint64        // messages, when it last rested
}

const (
	// framesPerMessage is how many frames a message pays for: two links that are attached, used once, and detached
	// cost less. A connection that owes more than framesOwed frames takes the lane; framesOwedMost bounds what it has
	// to pay, so that one that has done nothing else for long leaves the lane with some hundred messages.
	framesPerMessage = 8
	framesOwed       = 64
	framesOwedMost   = 1024
	// leastMoved is how large a part of a message must be to count as one: the smallest frames that large messages
	// come in have twice as much.
	leastMoved = 256
	// laneQuantum is how much input is worked through in a turn: twenty attaches, a quarter of a millisecond.
	laneQuantum = 2 << 10
	// restBehind is how long is worked in a place until it rests: timers are no finer than a fifth of it.
	restBehind = 250 * time.Microsecond
)

func newLane(moved func() uint64) lane {
	l := lane{places: make(chan place, max(1, runtime.GOMAXPROCS(0)/2)), moved: moved}
	for range cap(l.places) {
		l.places <- place{}
	}
	return l
}

// enter waits for a place, and for the end of its rest. Nobody who has one waits for anything but the guard of a
// connection.
func (l *lane) enter() place {
	p := <-l.places
	p.began = time.Now() // processors know no other clock
	if rest := p.rests.Sub(p.began); rest > 0 {
		time.Sleep(rest)
		p.began = time.Now()
	}
	return p
}

func (l *lane) leave(p place) {
	now := time.Now()
	if p.worked += now.Sub(p.began); p.worked > restBehind {
		if moved := l.moved(); moved != p.moved {
			p.moved, p.rests = moved, now.Add(p.worked)
		}
		p.worked = 0
	}
	l.places <- p
}

// account notes what the input since the last call has cost, and what has moved. Under the guard.
func (c *connection) account() {
	frames := int(c.machine.FramesIn - c.framesPaid)
	c.framesPaid = c.machine.FramesIn
	c.owed = min(max(c.owed+frames-framesPerMessage*c.moved, 0), framesOwedMost)
	c.moved = 0
}

// owes reports whether what is done for the connection next belongs into the lane. A login doesn't: it has bounds of its
// own, and may take long. Under the guard.
func (c *connection) owes() bool { return c.owed > framesOwed && c.hasOpened }

// quantum is how much input is worked through until others get their turn, or the answers to it are looked at.
func (c *connection) quantum() int {
	if c.slow {
		return laneQuantum
	}
	return inputQuantum
}
