package queue

// Entry is one message in one queue: the unit of ownership. It belongs to its queue; whoever else holds a pointer may
// only hand it back in a Settlement.
type Entry struct {
	number  uint64
	message *Message
}
