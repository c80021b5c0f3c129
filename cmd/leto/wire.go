package main

import (
	"errors"
	"os"
	"time"

	"github.com/letomq/leto/admin"
	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/amqp/server"
	"github.com/letomq/leto/cmd/leto/config"
	"github.com/letomq/leto/engine"
)

// What the configuration says, in the words of the packages that act on it.

func (n *node) engineOptions() engine.Options {
	o := engine.Options{
		Node:   n.opts.Node.Name,
		Limits: engine.Limits{MemoryBytes: int64(messageShare * float64(n.opts.Limits.Memory)), Queues: n.opts.Limits.Queues},
		Now:    time.Now,
		Spill:  n.openSpill,
		Observer: engine.Observer{
			QueueCreated: func(address, queue string) {
				n.log.Debug().Str("address", address).Str("queue", queue).Msg("queue created")
			},
			QueueDeleted: func(address, queue string) {
				n.log.Debug().Str("address", address).Str("queue", queue).Msg("queue deleted")
			},
			Dropped: n.drops.dropped,
			LoadFailed: func(err error) {
				n.log.Error().Err(err).Msg("messages can't be loaded: trying again")
			},
			Spilling: func(err error) {
				if err != nil {
					n.log.Error().Err(err).Msg("nothing more is spilled: messages that needn't survive stay in memory")
				} else {
					n.log.Info().Msg("messages that needn't survive are spilled again")
				}
			},
			StoreFailed: func(err error) {
				n.log.Debug().Err(err).Msg("commit failed") // the store has said so itself
			},
		},
	}
	o.Settings = settingsOf(n.opts.AddressSettings)
	return o
}

func settingsOf(all []config.AddressSettings) []engine.AddressSettings {
	var settings []engine.AddressSettings
	for _, s := range all {
		settings = append(settings, addressSettings(s))
	}
	return settings
}

func addressSettings(s config.AddressSettings) engine.AddressSettings {
	set := engine.AddressSettings{
		Match:               s.Match,
		DeadLetterAddress:   s.DeadLetterAddress,
		ExpiryAddress:       s.ExpiryAddress,
		MaxDeliveryAttempts: s.MaxDeliveryAttempts,

		RedeliveryDelay:      span(s.RedeliveryDelay),
		RedeliveryMultiplier: s.RedeliveryGrowth,
		RedeliverySpread:     s.RedeliverySpread,
		MaxRedeliveryDelay:   span(s.MaxRedeliveryDelay),

		CountOnLoss:         s.CountOnLoss,
		AutoCreateAddresses: s.AutoCreateAddresses,
		AutoCreateQueues:    s.AutoCreateQueues,
		AutoDeleteQueues:    s.AutoDeleteQueues,
		DefaultDurable:      s.DefaultDurable,
		IDCacheSize:         s.IDCacheSize,

		AutoCreateDeadLetterResources: s.AutoCreateDeadLetterResources,
		DeadLetterQueuePrefix:         s.DeadLetterQueuePrefix,
		DeadLetterQueueSuffix:         s.DeadLetterQueueSuffix,
		AutoCreateExpiryResources:     s.AutoCreateExpiryResources,
		ExpiryQueuePrefix:             s.ExpiryQueuePrefix,
		ExpiryQueueSuffix:             s.ExpiryQueueSuffix,

		ExpiryDelay:    (*int64)(s.ExpiryDelay),
		MinExpiryDelay: (*int64)(s.MinExpiryDelay),
		MaxExpiryDelay: (*int64)(s.MaxExpiryDelay),
		NoExpiry:       s.NoExpiry,
	}
	if s.RejectPolicy != nil {
		set.RejectPolicy = new(engine.RejectDeadLetter)
		if *s.RejectPolicy == config.RejectRedeliver {
			*set.RejectPolicy = engine.RejectRedeliver
		}
	}
	if s.DefaultAddressRouting != nil {
		set.DefaultAddressRouting = new(routing(*s.DefaultAddressRouting))
	}
	if s.DefaultQueueRouting != nil {
		set.DefaultQueueRouting = new(routing(*s.DefaultQueueRouting))
	}
	return set
}

func routing(r config.Routing) engine.Routing {
	switch r {
	case config.Anycast:
		return engine.Anycast
	case config.Multicast:
		return engine.Multicast
	}
	return engine.RoutingUnset
}

// declare makes an address of the configuration, with its queues.
func (n *node) declare(a config.Address) error {
	for _, spec := range specs(a) {
		if err := n.broker.Declare(spec); err != nil {
			return exitWith(exitUsage, "address %s of the configuration: %w", a.Name, err)
		}
	}
	return nil
}

// specs says what has to be made for an address of the configuration.
func specs(a config.Address) []engine.QueueSpec {
	if len(a.Queues) == 0 {
		return []engine.QueueSpec{{Address: a.Name, Routing: routing(a.Routing)}}
	}
	var all []engine.QueueSpec
	for _, q := range a.Queues {
		all = append(all, engine.QueueSpec{Address: a.Name, Queue: q.Name, Routing: routing(a.Routing)})
	}
	return all
}

// Shares of limits.memory that are for what isn't messages.
const (
	// bytesPerSession is the memory that there has to be for each session, whose own size is some 700 bytes.
	bytesPerSession = 4 << 10
	// linkShare is for links, sender and receiver alike: 2 KiB each and what its name takes.
	linkShare = 5
	// bufferShare is for frames that are being read, and again for what peers don't read.
	bufferShare = 8
)

func (n *node) serverConfig() server.Config {
	c := server.Defaults()
	c.Name = n.opts.Node.Name
	c.Version = buildVersion()
	c.MaxFrameSize = uint32(n.opts.AMQP.MaxFrameSize)
	c.ChannelMax = n.opts.AMQP.ChannelMax
	c.HandleMax = n.opts.AMQP.HandleMax
	c.IdleTimeout = time.Duration(n.opts.AMQP.IdleTimeout)
	c.LinkCredit = n.opts.AMQP.LinkCredit
	c.LinkCreditBytes = int64(n.opts.AMQP.LinkCreditBytes)
	c.TransactionTimeout = time.Duration(n.opts.AMQP.TransactionTimeout)
	c.MaxConnections = n.opts.Limits.Connections
	c.MaxHandshakes = n.opts.Limits.Handshakes
	c.MaxLinks = int64(n.opts.Limits.Memory) / bytesPerSession
	c.MaxLinkBytes = int64(n.opts.Limits.Memory) / linkShare
	c.MaxInputBytes = int64(n.opts.Limits.Memory) / bufferShare
	c.MaxOutputBytes = int64(n.opts.Limits.Memory) / bufferShare
	// Messages that arrived in part are memory too; half of it leaves the other half for whole ones.
	// A larger message could never arrive, and peers are better told so when they attach.
	c.MaxPartialBytes = int64(n.opts.Limits.Memory) / 2
	c.MaxMessageSize = uint64(min(int64(n.opts.AMQP.MaxMessageSize), c.MaxPartialBytes))
	c.Log = n.log
	return c
}

func (n *node) listenerOptions(l config.Listener) server.ListenerOptions {
	anonymous := n.opts.AnonymousOn(l)
	return server.ListenerOptions{AllowAnonymous: anonymous, RequireSASL: !anonymous, Verify: n.verify()}
}

// verify is nil where nobody is known.
func (n *node) verify() func(user, password string) amqp.Verdict {
	if n.users.Load() == nil {
		return nil
	}
	return func(user, password string) amqp.Verdict { return n.users.Load().verify(user, password) }
}

var errNotReady = errors.New("starting or stopping")

func (n *node) adminOptions() admin.Options {
	o := admin.Defaults()
	o.Broker, o.Wire, o.Store = n.broker, n.server, n.store
	o.Name, o.Version = n.opts.Node.Name, buildVersion()
	o.Log = n.log
	o.Hosts = append([]string{n.opts.Node.Name}, n.opts.HTTP.Hosts...)
	if host, err := os.Hostname(); err == nil {
		o.Hosts = append(o.Hosts, host)
	}
	o.Reloaded = n.reloaded.last
	o.Ready = func() error {
		if !n.ready.Load() {
			return errNotReady
		}
		if err := n.store.Metrics().Failed; err != nil {
			return err
		}
		return nil
	}
	// The same rule as for a listener that says nothing of its own.
	if !n.opts.AnonymousOn(config.Listener{}) {
		if check := n.verify(); check != nil {
			o.Verify = func(user, password string) bool { return check(user, password) == amqp.Known }
		}
	}
	return o
}

// span returns a time span, 0 for none.
func span(d *config.Delay) *time.Duration {
	if d == nil {
		return nil
	}
	return new(time.Duration(max(*d, 0)) * time.Millisecond)
}
