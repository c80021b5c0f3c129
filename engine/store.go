package engine

// Store keeps what must survive a restart.
type Store interface{}
