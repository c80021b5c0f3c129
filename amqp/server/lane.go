package server

import "runtime"

// lane is where the input of connections is worked through that move no messages: attaches, echoes, drains, settlements
// of nothing, whatever a peer may say as often as it likes. They take turns, in the order in which they came, and on half
// of the processors: whoever moves messages finds one that is free, however many others have however much to say.
type lane struct {
	places chan struct{}
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
)

func newLane() lane {
	return lane{places: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// enter waits for a place. Nobody who has one waits for anything but the guard of its connection.
func (l *lane) enter() { l.places <- struct{}{} }

func (l *lane) leave() { <-l.places }

// account notes what the input since the last call has cost and what it has moved, and reports whether what comes next
// belongs into the lane. Under the guard.
func (c *connection) account() bool {
	frames := int(c.machine.FramesIn - c.framesPaid)
	c.framesPaid = c.machine.FramesIn
	c.owed = min(max(c.owed+frames-framesPerMessage*c.moved, 0), framesOwedMost)
	c.moved = 0
	return c.owed > framesOwed
}
