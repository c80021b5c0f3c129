package engine

import "sync"

// guard lets one goroutine at a time into a queue. Nobody who is inside one goes into another, or waits for anything
// but the committer's window, which is never held for long.
type guard struct{ mu sync.Mutex }

func (g *guard) enter() { g.mu.Lock() }

func (g *guard) leave() { g.mu.Unlock() }
