package engine

import "errors"

// What the engine refuses. They come wrapped with a text that names the address or queue: test with errors.Is.
var (
	ErrNotFound   = errors.New("not found")               // the address or queue is unknown and may not be created
	ErrNotAllowed = errors.New("not allowed")             // another routing type, or somebody else's temporary queue
	ErrLimit      = errors.New("resource limit exceeded") // limits.queues is reached
	ErrInvalid    = errors.New("invalid field")           // a name or an option that can't be
	ErrDeleted    = errors.New("resource deleted")        // the queue was deleted under its consumer
	ErrInUse      = errors.New("in use")                  // it has consumers, producers or messages, and wasn't to be deleted then
	ErrLocked     = errors.New("resource locked")         // the durable subscription has an active consumer
	ErrStolen     = errors.New("link stolen")             // another consumer took the durable subscription over
	ErrClosed     = errors.New("broker closed")           // the engine is shut down
)
