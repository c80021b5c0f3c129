package amqp

import (
	"time"

	"github.com/letomq/leto/codec"
)

// Config is what one end of a connection tells the other, and its limits.
// It isn't changed after New.
type Config struct {
	// Server is true for the end that waits for the protocol header.
	Server bool
	// ContainerID names this end in its open [2.7.1].
	ContainerID string
	// Hostname is what a client asks for in its open; servers leave it empty.
	Hostname string

	// MaxFrameSize is the largest frame accepted, in bytes, and the largest
	// sent even when the peer would take more; ≥ 512.
	MaxFrameSize uint32
	// HandshakeFrameSize limits frames before the peer's open has arrived, in
	// bytes. The specification says 512; tokens in SASL responses need more.
	HandshakeFrameSize uint32
	// ChannelMax is the highest channel number the peer may use.
	ChannelMax uint16
	// HandleMax is the highest link handle the peer may use in a session.
	HandleMax uint32
	// IncomingWindow is how many transfer frames the peer may send per session
	// before we widen the window again; announced anew at half.
	IncomingWindow uint32
	// MaxMessageSize limits an incoming message in bytes; 0: no limit.
	MaxMessageSize uint64

	// IdleTimeout is how long the peer may be silent; half of it is announced. 0: for ever.
	IdleTimeout time.Duration
	// MinPeerIdleTimeout is the shortest idle time-out a peer may ask of us.
	MinPeerIdleTimeout time.Duration
	// HandshakeTimeout limits the time from New to the peer's open.
	HandshakeTimeout time.Duration
	// CloseTimeout limits how long the peer's close is waited for.
	CloseTimeout time.Duration

	// OutputLimit is how many bytes of output may be encoded ahead of the
	// socket; above it transfers wait on their links, and the shell should stop reading.
	OutputLimit int

	OfferedCapabilities []codec.Symbol
	Properties          codec.Map

	// Mechanisms are the SASL mechanisms a server offers, best first; none: SASL is refused.
	Mechanisms []Mechanism
	// RequireSASL refuses a bare AMQP header.
	RequireSASL bool
	// Login is the SASL exchange a client goes through; nil: bare AMQP.
	Login *Login

	// Lent has the machine start without a Workspace: the shell lends one.
	Lent bool

	// TagPrefix are the first 8 bytes of the delivery tags this end writes;
	// a counter follows. Distinct per connection makes tags unique.
	TagPrefix [8]byte
}

// Defaults returns the limits of a broker's connection.
func Defaults() Config {
	return Config{
		MaxFrameSize:       64 << 10,
		HandshakeFrameSize: 16 << 10,
		ChannelMax:         255,
		HandleMax:          1023,
		IncomingWindow:     2048,
		MaxMessageSize:     100 << 20,
		IdleTimeout:        60 * time.Second,
		MinPeerIdleTimeout: time.Second,
		HandshakeTimeout:   10 * time.Second,
		CloseTimeout:       5 * time.Second,
		OutputLimit:        256 << 10,
	}
}

// Limits of one delivery and one connection that no option changes.
const (
	minFrameSize          = 512     // [2.4.1]
	maxTagSize            = 32      // [2.8.7]
	maxLinkName           = 2 << 10 // bytes
	maxDetaching          = 16_384  // links per connection that only we have detached
	maxFramesPerDelivery  = 262_144 // 100 MiB in frames of 512 bytes
	maxEmptyPerDelivery   = 1_024   // transfers without payload that only cost time
	maxUnsettledIncoming  = 65_536  // per session, bounded further by link credit
	announcedOutgoing     = 1<<32 - 1
	pumpQuantum           = 32 << 10 // bytes a session may send before the next one's turn
	idleTimeoutUnlimited  = time.Duration(0)
	heartbeatsPerInterval = 2
)
