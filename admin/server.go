// Package admin is the broker's HTTP side: health for orchestrators, metrics for Prometheus and a JSON API
// for `leto queue` and scripts. What it shows and changes it asks of the interfaces below.
package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/letomq/leto/amqp/server"
	"github.com/letomq/leto/engine"
)

// Broker is what admin asks of the engine.
type Broker interface {
	Queues() []engine.QueueInfo
	Totals() engine.Totals
	Spill() engine.SpillInfo
	Pressure() bool

	Queue(address, queue string) (engine.QueueInfo, error)
	Addresses() []engine.AddressInfo
	Address(name string) (engine.AddressInfo, []engine.QueueInfo, error)
	EffectiveSettings(address string) []engine.EffectiveSetting

	Create(engine.QueueSpec) (made bool, err error)
	DeleteIf(address, queue string, only engine.Condition) error
	Pause(address, queue string, yes bool) error
	Browse(ctx context.Context, address, queue string, from engine.Place, sel engine.Selection, see func(*engine.Delivery) bool) (
		looked int, to engine.Place, more bool, err error)
	PurgeSome(ctx context.Context, address, queue string, sel engine.Selection, report func(engine.Progress)) (engine.Progress, error)
	Move(ctx context.Context, address, queue, to string, sel engine.Selection, report func(engine.Progress)) (engine.Progress, error)
	Retry(ctx context.Context, address, queue string, sel engine.Selection, report func(engine.Progress)) (engine.Progress, error)
	Scheduled(ctx context.Context, address, queue string, after engine.Slot, sel engine.Selection, see func(*engine.Scheduled) bool) (
		looked int, to engine.Slot, more bool, err error)
	CancelScheduled(ctx context.Context, address, queue string, sel engine.Selection, report func(engine.Progress)) (engine.Progress, error)
	DeliverScheduled(ctx context.Context, address, queue string, sel engine.Selection, report func(engine.Progress)) (engine.Progress, error)
	Sync() error
}

// Wire is what admin asks of the AMQP side.
type Wire interface {
	Stats() server.Stats
}

// Options is what the HTTP server needs to know. Broker, Wire and Ready are required.
type Options struct {
	Broker Broker
	Wire   Wire
	Store  Store        // nil: none
	Ready  func() error // nil: this node takes clients; else why not
	// Reloaded says whether the configuration that was read last is in force, and when one was taken over last; nil:
	// that is no matter here.
	Reloaded func() (ok bool, at time.Time)
	Name     string // of the node
	Version  string
	// Verify checks a user for metrics and API; nil lets everybody in. Health is always open:
	// whoever probes it rarely has a password, and it tells nothing.
	Verify func(user, password string) bool
	Hosts  []string // by which clients may name this broker beside its addresses, where Verify is nil
	Log    zerolog.Logger

	MaxConnections int           // more of them wait to be accepted
	HeaderTimeout  time.Duration // from connecting to the end of the request's header
	RequestTimeout time.Duration // from there to the end of the answer
	IdleTimeout    time.Duration // between requests
}

// Defaults returns options with every bound set.
func Defaults() Options {
	return Options{
		Log:            zerolog.Nop(),
		MaxConnections: 128,
		HeaderTimeout:  5 * time.Second,
		RequestTimeout: 30 * time.Second,
		IdleTimeout:    time.Minute,
	}
}

// Validate reports what is missing or out of range.
func (o Options) Validate() error {
	switch {
	case o.Broker == nil || o.Wire == nil || o.Ready == nil:
		return errors.New("admin: broker, wire and ready must be set")
	case o.MaxConnections < 1:
		return errors.New("admin: connections must be 1 or more")
	case o.HeaderTimeout <= 0 || o.RequestTimeout <= 0 || o.IdleTimeout <= 0:
		return errors.New("admin: time-outs must be more than 0")
	}
	return nil
}

// maxHeader and maxBody bound what a request may bring: nothing served here needs more.
const (
	maxHeader = 16 << 10
	maxBody   = 64 << 10
)

// Server answers HTTP on one listener.
type Server struct {
	http http.Server
	max  int
	end  context.CancelFunc // what may take long
}

// New makes a server; Serve starts it.
func New(o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	ending, end := context.WithCancel(context.Background())
	handler, err := routes(o, ending)
	if err != nil {
		end()
		return nil, err
	}
	return &Server{
		max: o.MaxConnections,
		end: end,
		http: http.Server{
			Handler:           occupied(http.MaxBytesHandler(handler, maxBody)),
			ConnContext:       withConn,
			ReadHeaderTimeout: o.HeaderTimeout,
			ReadTimeout:       o.HeaderTimeout + o.RequestTimeout,
			WriteTimeout:      o.RequestTimeout,
			IdleTimeout:       o.IdleTimeout,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          log.New(complaints{o.Log}, "", 0),
		},
	}, nil
}

// Serve answers requests on l until Shutdown, and then returns net.ErrClosed.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(limitConnections(l, s.max))
	if errors.Is(err, http.ErrServerClosed) {
		return net.ErrClosed
	}
	return err
}

// Shutdown stops accepting, cuts off what may take long and lets other requests under way finish until ctx ends; then
// it cuts them off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.end()
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close() // the time-out is the error that counts
	}
	return err
}

// routes lays out the paths.
func routes(o Options, ending context.Context) (http.Handler, error) {
	metrics, err := metricsHandler(o)
	if err != nil {
		return nil, err
	}
	all := table(o, ending, metrics)
	index, openapi := len(all), len(all)+1
	all = append(all, route{
		method: "GET", path: "/", open: true, id: "index", does: "what there is", answers: []reply{{http.StatusOK, "paths, one a line", text("text/plain")}},
	}, route{
		method: "GET", path: "/api/v1/openapi.json", id: "openapi", does: "this document", answers: []reply{{http.StatusOK, "OpenAPI 3.1", jsonOf(map[string]any{})}},
	})
	described, err := document(o, all)
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	all[index].handler = always("text/plain; charset=utf-8", indexPage(o, all))
	all[openapi].handler = always("application/json", described)
	mux := http.NewServeMux()
	for _, r := range all {
		mux.Handle(r.pattern(), r.guarded(o))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			problem(w, http.StatusMethodNotAllowed, r.Method+" is not served at "+r.URL.Path)
			return
		}
		problem(w, http.StatusNotFound, "no resource "+r.URL.Path)
	})
	return safeHeaders(mux), nil
}

// indexPage names the node and the paths that can be looked at as they are.
func indexPage(o Options, all []route) []byte {
	page := fmt.Appendf(nil, "leto %s, node %s\n\n", o.Version, o.Name)
	for _, r := range all {
		if r.method == http.MethodGet && r.path != "/" && !strings.Contains(r.path, "{") {
			page = fmt.Appendln(page, r.path)
		}
	}
	return page
}

// always answers with the same.
func always(media string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		_, _ = w.Write(body) // a peer that left needs no answer
	}
}

// requestsAtOnce is how many requests of a kind that takes work are answered at a time.
const requestsAtOnce = 4

// apart answers from memory, so that a peer which doesn't read holds no place among those that are answered at a time.
func apart(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &memo{header: w.Header(), status: http.StatusOK}
		next.ServeHTTP(answer, r)
		w.WriteHeader(answer.status)
		_, _ = w.Write(answer.body.Bytes()) // a peer that left needs no answer
	})
}

// memo is an answer that is kept.
type memo struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (m *memo) Header() http.Header         { return m.header }
func (m *memo) WriteHeader(status int)      { m.status = status }
func (m *memo) Write(b []byte) (int, error) { return m.body.Write(b) }

// safeHeaders keeps browsers from guessing types and from framing or caching what changes every moment.
func safeHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// guarded asks for a user where users are known.
func guarded(verify func(user, password string) bool, next http.Handler) http.Handler {
	if verify == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, given := r.BasicAuth()
		if !given || !verify(user, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="leto"`)
			problem(w, http.StatusUnauthorized, "user or password missing or wrong")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// complaints carries what net/http has to say into the log, at debug level: it is about the peers' slips.
type complaints struct{ log zerolog.Logger }

func (c complaints) Write(line []byte) (int, error) {
	c.log.Debug().Bytes("detail", line[:max(len(line)-1, 0)]).Msg("http")
	return len(line), nil
}
