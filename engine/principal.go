package engine

// Principal says on whose behalf a link attaches.
type Principal struct {
	Container  string // container-id of the peer: half of a durable subscription's identity
	Connection string // unique per connection: owns dynamic nodes
}
