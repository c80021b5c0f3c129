package server

import (
	"context"
	"crypto/rand"
	"errors"
	"hash/maphash"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

// Server serves AMQP connections on any number of listeners. All methods may
// be called from any goroutine.
type Server struct {
	cfg        Config
	broker     *engine.Broker
	count      counters
	told       peerLog
	partials   partials
	inputs     inputs
	outputs    outputs
	lingering  atomic.Int64 // connections that have said all, and read what still comes
	lane       lane
	names      registry
	nodes      nodes
	buffers    pool[[]byte]
	workspaces pool[*amqp.Workspace]

	mu          sync.Mutex
	connections map[*connection]struct{}
	refusing    int // of them, those over the limit
	handshakes  handshakes
	listeners   map[net.Listener]struct{}
	closed      bool
	serial      uint64

	wg     sync.WaitGroup
	stop   chan struct{}
	relief func()
}

// New makes a server for the queues of broker. Shutdown ends it.
func New(cfg Config, broker *engine.Broker) *Server {
	s := &Server{
		cfg:         cfg,
		broker:      broker,
		connections: make(map[*connection]struct{}),
		listeners:   make(map[net.Listener]struct{}),
		stop:        make(chan struct{}),
	}
	s.told.log = cfg.Log
	s.lane = newLane(func() uint64 { return s.count.messagesIn.Load() + s.count.messagesOut.Load() })
	s.names.seed = maphash.MakeSeed()
	s.partials.limit = cfg.MaxPartialBytes
	s.handshakes.max = cfg.MaxHandshakes
	s.inputs.limit = max(cfg.MaxInputBytes, 2*int64(cfg.MaxFrameSize)) // one frame and more of the largest
	s.outputs.limit = cfg.MaxOutputBytes
	s.outputs.crowded = make(chan struct{}, 1)
	s.buffers.make = func() []byte { return make([]byte, 0, bufferInitial) }
	s.buffers.large = func(b []byte) bool { return cap(b) > largeSize }
	s.workspaces.make = func() *amqp.Workspace { return new(amqp.Workspace) }
	s.workspaces.large = func(w *amqp.Workspace) bool { return w.Size() > largeSize }
	s.relief = broker.OnRelief(s.relieved)
	s.wg.Go(s.watchWrites)
	return s
}

// Serve accepts connections until Shutdown, or until l fails for good. It
// returns net.ErrClosed after Shutdown.
func (s *Server) Serve(l net.Listener, o ListenerOptions) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		l.Close()
		return net.ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	m := s.machineConfig(o)
	var pause time.Duration
	for {
		socket, err := l.Accept()
		if err != nil {
			if s.stopping() || errors.Is(err, net.ErrClosed) {
				return net.ErrClosed
			}
			// Out of descriptors, most likely: what helps is that others close.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.cfg.Log.Warn().Err(err).Dur("pause", pause).Msg("accept failed")
			select {
			case <-time.After(pause):
				continue
			case <-s.stop:
				return net.ErrClosed
			}
		}
		pause = 0
		s.accept(socket, m)
	}
}

func (s *Server) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

func (s *Server) accept(socket net.Conn, m amqp.Config) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		socket.Close()
		return
	}
	s.serial++
	_, _ = rand.Read(m.TagPrefix[:]) // never fails: crypto/rand
	c := newConnection(s, socket, m, s.serial)
	c.refused = s.cfg.MaxConnections > 0 && len(s.connections)-s.refusing-s.handshakes.leaving >= s.cfg.MaxConnections
	if c.refused || s.handshakes.full() {
		if victim := s.handshakes.evict(); victim != nil {
			c.refused = false
			s.count.handshakesEvicted.Add(1)
			defer victim.socket.Close()
		}
	}
	if c.refused && s.refusing >= refusalsAtOnce {
		// Not even a refusal is affordable.
		s.mu.Unlock()
		s.count.connectionsRefused.Add(1)
		socket.Close()
		return
	}
	s.connections[c] = struct{}{}
	if c.refused {
		s.refusing++
	} else {
		s.handshakes.add(c)
	}
	s.count.connections.Add(1)
	s.count.connectionsTotal.Add(1)
	s.wg.Go(c.readLoop) // before Shutdown can wait
	s.mu.Unlock()
}

// refusalsAtOnce is how many connections above the limit are told why they are refused.
const refusalsAtOnce = 64

func (s *Server) forget(c *connection) {
	s.mu.Lock()
	delete(s.connections, c)
	if c.refused {
		s.refusing--
	}
	if c.evicted {
		s.handshakes.leaving--
	}
	s.handshakes.remove(c)
	s.mu.Unlock()
	s.count.connections.Add(-1)
}

func (s *Server) each(f func(*connection)) {
	s.mu.Lock()
	all := make([]*connection, 0, len(s.connections))
	for c := range s.connections {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

func (s *Server) linksFull() bool {
	return s.cfg.MaxLinks > 0 && s.count.links.Load() >= s.cfg.MaxLinks
}

func (s *Server) linkBytesFull(more int64) bool {
	return s.cfg.MaxLinkBytes > 0 && s.count.linkBytes.Load()+more > s.cfg.MaxLinkBytes
}

// relieved has producers that wait for credit looked at again.
func (s *Server) relieved() {
	s.each(func(c *connection) { c.mail.notify(notice{kind: noticeRelief}) })
}

// watchWrites cuts off peers that leave a write unread for too long.
func (s *Server) watchWrites() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.outputs.crowded:
		case <-ticker.C:
		}
		now := s.cfg.Now()
		s.each(func(c *connection) {
			if since := c.writingSince.Load(); since != 0 && now.UnixNano()-since > int64(s.cfg.WriteTimeout) {
				s.count.writeTimeouts.Add(1)
				c.report(zerolog.WarnLevel, "peer doesn't read: connection cut off", nil)
				c.socket.Close()
			}
		})
		s.makeRoom(now)
		s.told.flushAll(now, false)
	}
}

// Shutdown stops accepting, closes every connection with
// amqp:connection:forced behind what was decided, and waits for them; when ctx
// ends first, the sockets are closed.
func (s *Server) Shutdown(ctx context.Context) (err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for l := range s.listeners {
		l.Close()
	}
	s.mu.Unlock()
	close(s.stop)
	s.relief()
	s.each(func(c *connection) {
		c.mail.notify(notice{kind: noticeShutdown})
		if !c.heard.Load() {
			c.socket.Close() // has no writer that would read the notice
		}
	})
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		s.each(func(c *connection) { c.socket.Close() })
		<-done
		err = ctx.Err()
	}
	s.told.flushAll(s.cfg.Now(), true)
	return err
}

// machineConfig is the protocol machine's view of the configuration.
func (s *Server) machineConfig(o ListenerOptions) amqp.Config {
	m := amqp.Defaults()
	m.Server = true
	m.Lent = true
	m.ContainerID = s.cfg.Name
	m.MaxFrameSize = s.cfg.MaxFrameSize
	m.MaxMessageSize = s.cfg.MaxMessageSize
	m.ChannelMax = s.cfg.ChannelMax
	m.HandleMax = s.cfg.HandleMax
	m.IdleTimeout = s.cfg.IdleTimeout
	m.HandshakeTimeout = s.cfg.HandshakeTimeout
	m.OfferedCapabilities = []codec.Symbol{"ANONYMOUS-RELAY", "DELAYED_DELIVERY"}
	m.Properties = codec.Map{
		{Key: codec.Symbol("product"), Value: "leto"},
		{Key: codec.Symbol("version"), Value: s.cfg.Version},
		{Key: codec.Symbol("platform"), Value: platform},
	}
	m.Mechanisms = o.mechanisms()
	m.RequireSASL = o.RequireSASL || !o.AllowAnonymous
	return m
}
