package server

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/amqp"
)

// Config is what a server tells its peers, and the limits of a connection.
type Config struct {
	// Name is the container-id of the broker; Version goes into open's properties.
	Name, Version string

	// MaxFrameSize in bytes, ≥ 512.
	MaxFrameSize uint32
	// MaxMessageSize in bytes; 0: no limit.
	MaxMessageSize uint64
	// ChannelMax is the highest channel number: sessions per connection, less one.
	ChannelMax uint16
	// HandleMax is the highest handle: links per session, less one.
	HandleMax uint32
	// IdleTimeout is how long a peer may be silent; half of it is announced. 0: for ever.
	IdleTimeout time.Duration
	// LinkCredit is how many messages a producer may have under way, and
	// LinkCreditBytes how many bytes by the size of its last messages.
	LinkCredit      uint32
	LinkCreditBytes int64

	// MaxConnections limits connections; one more is told so. 0: no limit.
	MaxConnections int
	// MaxLinks limits the links of all connections together, and their sessions
	// likewise; one more is refused. 0: no limit.
	MaxLinks int64
	// MaxHandshakes limits the connections whose peers haven't opened; one more
	// has the oldest of them cut off. 0: no limit.
	MaxHandshakes int
	// MaxLinkBytes limits what links take together, each linkCost and its name; one
	// more is refused. 0: no limit.
	MaxLinkBytes int64
	// MaxPartialBytes limits the bytes of all messages that have arrived in part.
	MaxPartialBytes int64
	// MaxInputBytes limits what all connections have for frames that are being
	// read, and MaxOutputBytes what they hold for peers that don't read; beyond it
	// those are cut off who hold for longest.
	MaxInputBytes, MaxOutputBytes int64
	// HandshakeTimeout limits the time from accept to open.
	HandshakeTimeout time.Duration
	// TransactionTimeout is how long a transaction may take before it is rolled back; 0: for ever.
	TransactionTimeout time.Duration
	// WriteTimeout is how long a peer may leave a write unread before it is cut off.
	WriteTimeout time.Duration

	Log zerolog.Logger
	Now func() time.Time
}

// Defaults returns the limits of the contract.
func Defaults() Config {
	return Config{
		Name:             "leto",
		MaxFrameSize:     64 << 10,
		MaxMessageSize:   100 << 20,
		ChannelMax:       255,
		HandleMax:        1023,
		IdleTimeout:      60 * time.Second,
		LinkCredit:       1000,
		LinkCreditBytes:  4 << 20,
		MaxConnections:   10_000,
		MaxHandshakes:    1000,
		MaxPartialBytes:  128 << 20,
		MaxInputBytes:    32 << 20,
		MaxOutputBytes:   32 << 20,
		HandshakeTimeout: 10 * time.Second,
		WriteTimeout:     30 * time.Second,

		TransactionTimeout: 300 * time.Second,

		Log: zerolog.Nop(),
		Now: time.Now,
	}
}

// ListenerOptions are what differs from listener to listener.
type ListenerOptions struct {
	// AllowAnonymous offers SASL ANONYMOUS and, unless RequireSASL, a bare AMQP header.
	AllowAnonymous bool
	// RequireSASL refuses a bare AMQP header.
	RequireSASL bool
	// Verify decides over user and password for SASL PLAIN; nil: PLAIN isn't offered.
	Verify func(user, password string) amqp.Verdict
}

func (o ListenerOptions) mechanisms() []amqp.Mechanism {
	var m []amqp.Mechanism
	if o.Verify != nil {
		m = append(m, amqp.Plain(o.Verify))
	}
	if o.AllowAnonymous {
		m = append(m, amqp.Anonymous())
	}
	return m
}

// Limits that no option changes, each with the reason for its size.
const (
	// consumerWindow is how many deliveries a consumer is given ahead of the
	// socket: enough that a queue is visited once per half of it, few enough
	// that a consumer that doesn't read holds up little.
	consumerWindow = 512
	// browseWindow and browseBytes are the same for a browser.
	browseWindow = 64
	browseBytes  = 256 << 10
	// browseUnsettled is how many deliveries a session may leave unsettled
	// before its browsers wait.
	browseUnsettled = 16 << 10
	// readBufferMin is what an idle connection holds; readBufferMax makes one
	// system call fetch hundreds of small messages.
	readBufferMin = 1 << 10
	readBufferMax = 64 << 10
	// mailboxPause is how many deliveries may wait for a writer that waits for
	// the peer, until the peer's input is left unread: many links together may
	// have more, and links that come and go leave theirs behind.
	mailboxPause = 16 * consumerWindow
	// quietTimeout is how long a connection may be silent until its reader
	// gives a large buffer back.
	quietTimeout = 2 * time.Second
	// linkCost is what a link takes beside its name, and nodeCost a dynamic node
	// beside its link, in bytes.
	linkCost = 2 << 10
	nodeCost = 2 << 10
	// detachedCost is what a link takes that only we have detached, and
	// detachedAtLeast how many of them any connection may have.
	detachedCost    = 512
	detachedAtLeast = 64
	// refusedSessions is how many sessions beyond the limit end; one more, and
	// the connection does: what has ended stays until the peer answers.
	refusedSessions = 16
	// maxContainerID bounds a peer's container-id, in bytes.
	maxContainerID = 1 << 10
	// writePiece is how much a peer has to read within the write time-out.
	writePiece = 128 << 10
	// lingerTimeout is how long what a peer still sends is read and dropped
	// after our last byte, so that a reset doesn't destroy it.
	lingerTimeout = time.Second
	// lingeringMost is how many connections do so at once: they have a buffer and two stacks each.
	lingeringMost = 512
)
