package admin

import (
	linked "container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// patience is how long an answer may take until its connection may be closed for others.
const patience = 2 * time.Second

// limitConnections returns a listener with at most n connections open. One more takes the place of the one that has
// been without a request for longest, or else of one whose answer has taken longer than patience: peers that connect
// and say nothing, or don't read, must not keep probes out. While all are being answered, the rest wait in the kernel's backlog.
func limitConnections(l net.Listener, n int) *limited {
	return &limited{Listener: l, max: n, places: make(chan struct{}, n), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	max    int
	places chan struct{}
	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex
	idle linked.List // of *limitedConn: no request is being answered; the oldest first
	busy linked.List // the others, by when the answer began
}

func (l *limited) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for {
		select {
		case l.places <- struct{}{}:
			c := &limitedConn{Conn: conn, of: l}
			l.mu.Lock()
			c.at = l.idle.PushBack(c)
			l.mu.Unlock()
			return c, nil
		case <-l.closed:
			_ = conn.Close()
			return nil, net.ErrClosed
		default:
		}
		if l.evict() {
			continue
		}
		select {
		case <-time.After(patience / 20):
		case <-l.closed:
		}
	}
}

// evict closes a connection to make room; false when all are being answered.
func (l *limited) evict() bool {
	l.mu.Lock()
	var victim *limitedConn
	if e := l.idle.Front(); e != nil {
		victim = e.Value.(*limitedConn)
	} else {
		for e := l.busy.Front(); e != nil && victim == nil; e = e.Next() {
			if c := e.Value.(*limitedConn); !c.long && time.Since(c.since) > patience {
				victim = c
			}
		}
	}
	l.mu.Unlock()
	if victim == nil {
		return false
	}
	_ = victim.Close()
	return true
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	of   *limited
	once sync.Once

	// Under of.mu:
	at    *linked.Element // in idle, or busy
	since time.Time       // busy: when the answer began
	long  bool            // the answer may take long
	gone  bool
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		l := c.of
		l.mu.Lock()
		c.gone = true
		l.idle.Remove(c.at) // does nothing where it isn't
		l.busy.Remove(c.at)
		l.mu.Unlock()
		<-l.places
	})
	return err
}

// answering moves the connection among those that are being answered, until the function it returns is called.
func (c *limitedConn) answering(now time.Time) (done func()) {
	l := c.of
	move := func(from, to *linked.List) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !c.gone {
			from.Remove(c.at)
			c.since, c.at = now, to.PushBack(c)
		}
	}
	move(&l.idle, &l.busy)
	return func() { move(&l.busy, &l.idle) }
}

type connKey struct{}

// withConn makes a request's connection known to its handlers.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// occupied says of every request's connection that it is being answered.
func occupied(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
			defer c.answering(time.Now())()
		}
		next.ServeHTTP(w, r)
	})
}

// lasting says that the answer to a request may take long: nobody else gets its place.
func lasting(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
		c.of.mu.Lock()
		c.long = true
		c.of.mu.Unlock()
	}
}

// atMost answers n requests at a time and turns others away.
func atMost(n int, next http.Handler) http.Handler {
	places := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			problem(w, http.StatusServiceUnavailable, "too many such requests at once")
		}
	})
}
