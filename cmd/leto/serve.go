package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/admin"
	"github.com/letomq/leto/amqp/server"
	"github.com/letomq/leto/cmd/leto/config"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store"
)

// drainTimeout is how long a stop waits for peers to answer the close before their sockets are cut.
const drainTimeout = 10 * time.Second

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "run the broker",
		Description: "Needs no configuration: AMQP on 127.0.0.1:5672 and HTTP on 127.0.0.1:8161.\n" +
			"What a flag says wins over the environment (LETO_AMQP__IDLE_TIMEOUT is amqp.idle-timeout), and that over the file.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "config", Aliases: []string{"c"}, EnvVars: []string{"LETO_CONFIG"}, Usage: "read the configuration from `FILE`"},
			&cli.StringFlag{Name: "data", Usage: "folder `DIR` of the durable store (node.data)"},
			&cli.StringSliceFlag{Name: "listen", Usage: "AMQP listener `HOST:PORT`; may be repeated; port 0 takes a free one"},
			&cli.StringFlag{Name: "http", Usage: "HTTP on `HOST:PORT`, or off (http.bind)"},
			&cli.StringFlag{Name: "name", Usage: "the node's `NAME` (node.name)"},
			&cli.StringFlag{Name: "log-level", Usage: "`L` is trace, debug, info, warn, error or off (log.level)"},
			&cli.StringFlag{Name: "log-format", Usage: "`F` is text or json (log.format)"},
			&cli.StringSliceFlag{Name: "set", Usage: "set any key: `KEY=VALUE`, such as limits.memory=1GiB or 'address-settings[orders.#].default-durable=false'"},
			&cli.BoolFlag{Name: "check", Usage: "check the configuration and exit"},
		},
		Action: serve,
	}
}

func serve(c *cli.Context) error {
	begin := time.Now()
	n := &node{from: sources(c), reload: make(chan os.Signal, 1)}
	// From the first moment, and to the last: who sends it too soon or too late wants nothing ended.
	signal.Notify(n.reload, syscall.SIGHUP)
	if err := noArgs(c); err != nil {
		return err
	}
	n.from.Check = n.unfit
	opts, known, err := n.read()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if c.Bool("check") {
		_, err := fmt.Fprintln(c.App.Writer, "configuration is valid")
		return err
	}
	tuneCollector(int64(opts.Limits.Memory))
	n.opts, n.log = opts, newLogger(opts.Log, &n.level, c.App.ErrWriter)
	n.users.Store(known)
	n.reloaded.at(begin)
	n.drops = newDropLog(n.log, time.Second)
	if err := n.start(); err != nil {
		return err
	}
	if took := time.Since(begin); opts.Log.Format == "text" {
		n.announce(c.App.ErrWriter, took)
	} else {
		n.log.Info().Dur("took", took).Str("version", buildVersion()).Str("data", n.opts.Node.Data).Msg("running")
	}
	return n.run(c.Context)
}

// sources collects what the command line, the environment and the file say.
func sources(c *cli.Context) config.Sources {
	from := config.Sources{File: c.String("config"), Environ: os.Environ(), Set: c.StringSlice("set")}
	for _, flag := range []struct{ name, key string }{
		{"data", "node.data"}, {"name", "node.name"}, {"http", "http.bind"},
		{"log-level", "log.level"}, {"log-format", "log.format"},
	} {
		if c.IsSet(flag.name) {
			from.Flags = append(from.Flags, config.Flag{Name: "--" + flag.name, Key: flag.key, Values: []string{c.String(flag.name)}})
		}
	}
	if c.IsSet("listen") {
		from.Flags = append(from.Flags, config.Flag{Name: "--listen", Key: "listeners", Values: c.StringSlice("listen")})
	}
	return from
}

// node is a running broker: the engine, and what speaks for it.
type node struct {
	from  config.Sources
	opts  config.Options        // in force
	users atomic.Pointer[users] // nil: nobody is known
	level logLevel
	log   zerolog.Logger
	drops *dropLog

	store     *store.Store
	broker    *engine.Broker
	server    *server.Server
	listeners []net.Listener // as opts.Listeners
	admin     *admin.Server  // nil: HTTP is off
	http      net.Listener
	ready     atomic.Bool

	serving sync.WaitGroup
	failed  chan error     // a listener ended that should not have
	reload  chan os.Signal // SIGHUP; one that comes while another is acted on is acted on afterwards

	reloaded reloads
}

// start opens everything that can fail, so that a node either runs or leaves nothing behind.
func (n *node) start() (err error) {
	defer func() {
		if err != nil {
			n.abandon()
		}
	}()
	if err := n.openStore(); err != nil {
		return err
	}
	if n.broker, err = engine.New(n.engineOptions(), n.store); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	for _, l := range n.opts.Listeners {
		socket, err := listen(l.Bind, "listen on another with --listen HOST:PORT (port 0 takes a free one)")
		if err != nil {
			return err
		}
		n.listeners = append(n.listeners, socket)
	}
	n.server = server.New(n.serverConfig(), n.broker)
	if !n.opts.HTTP.Off() {
		if n.http, err = listen(n.opts.HTTP.Bind, "choose another with --http HOST:PORT, or --http off"); err != nil {
			return err
		}
		if n.admin, err = admin.New(n.adminOptions()); err != nil {
			return err
		}
	}
	for _, a := range n.opts.Addresses {
		if err := n.declare(a); err != nil {
			return err
		}
	}

	n.warn()

	n.failed = make(chan error, len(n.listeners)+1)
	for i, socket := range n.listeners {
		options := n.listenerOptions(n.opts.Listeners[i])
		n.serve("amqp", socket, func() error { return n.server.Serve(socket, options) })
	}
	if n.admin != nil {
		n.serve("http", n.http, func() error { return n.admin.Serve(n.http) })
	}
	n.ready.Store(true)
	notify("READY=1")
	return nil
}

// warn logs what is allowed and should be known.
func (n *node) warn() {
	n.warnOfCircles(n.opts.AddressSettings)
	for i, l := range n.opts.Listeners {
		switch {
		case config.Loopback(l.Bind):
		case n.opts.AnonymousOn(l):
			n.log.Warn().Stringer("listener", n.listeners[i].Addr()).Msg("everybody who can reach this listener may do everything")
		default:
			n.log.Warn().Stringer("listener", n.listeners[i].Addr()).Msg("passwords cross the network in clear text: TLS is not supported by this version yet")
		}
	}
}

// warnOfCircles logs which dead-letter addresses lead back to themselves.
func (n *node) warnOfCircles(all []config.AddressSettings) {
	for _, way := range engine.DeadLetterCircles(settingsOf(all)) {
		n.log.Warn().Strs("way", way).Msg("dead-letter addresses form a circle: what has failed at one of them and fails at the next stays there")
	}
}

func (n *node) serve(scheme string, socket net.Listener, serve func() error) {
	n.log.Info().Str("url", scheme+"://"+socket.Addr().String()).Msg("listening")
	n.serving.Go(func() {
		if err := serve(); !errors.Is(err, net.ErrClosed) {
			n.failed <- fmt.Errorf("listener %s: %w", socket.Addr(), err)
		}
	})
}

// abandon takes back a start that failed half way.
func (n *node) abandon() {
	for _, socket := range n.listeners {
		_ = socket.Close()
	}
	if n.http != nil {
		_ = n.http.Close()
	}
	if n.server != nil {
		_ = n.server.Shutdown(context.Background()) // nobody is connected
	}
	if n.broker != nil {
		_ = n.broker.Close()
	}
	n.drops.end()
	if n.store != nil {
		_ = n.store.Close()
	}
}

// run waits for the signal to stop, or for something to fail, and then stops in good order.
func (n *node) run(ctx context.Context) error {
	quiet, end := context.WithCancel(ctx)
	defer end()
	n.serving.Go(func() { giveBack(quiet) })
	var err error
	for waiting := true; waiting; {
		select {
		case <-ctx.Done():
			n.log.Info().Msg("stopping")
			waiting = false
		case err = <-n.failed:
			n.log.Error().Err(err).Msg("stopping")
			waiting = false
		case <-n.reload:
			n.reconfigure()
		}
	}
	end()
	return errors.Join(err, n.stop())
}

// stop turns clients away, lets those connected know, and waits for all goroutines.
func (n *node) stop() error {
	n.ready.Store(false)
	notify("STOPPING=1")
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := n.server.Shutdown(ctx); err != nil {
		n.log.Warn().Err(err).Msg("some connections were cut off")
	}
	if n.admin != nil {
		if err := n.admin.Shutdown(ctx); err != nil {
			n.log.Warn().Err(err).Msg("some HTTP requests were cut off")
		}
	}
	n.serving.Wait()
	err := n.broker.Close()
	if err != nil {
		err = fmt.Errorf("engine: %w", err)
	}
	n.drops.end()
	if e := n.store.Close(); e != nil {
		err = errors.Join(err, e)
	}
	if err == nil {
		n.log.Info().Msg("stopped")
	}
	return err
}

// listen opens a socket. A taken port gets a line that says what to do.
func listen(bind, hint string) (net.Listener, error) {
	l, err := net.Listen("tcp", bind)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, exitWith(exitFailed, "%s is in use by another process: %s", bind, hint)
	case errors.Is(err, syscall.EACCES):
		return nil, exitWith(exitFailed, "%s may not be opened by this user: %s", bind, hint)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return nil, exitWith(exitFailed, "%s cannot be opened: %v", bind, err)
}
