package server

import (
	"context"
	"net"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/letomq/leto/engine"
)

// forgetful is a store that keeps nothing: what these tests look at is in memory.
type forgetful struct{}

func (forgetful) Recover() (engine.State, error) { return engine.State{}, nil }
func (forgetful) Commit([]engine.Record) error   { return nil }
func (forgetful) Load(engine.QueueID, uint8, uint64, int, int) ([]engine.Stored, error) {
	return nil, nil
}

func (forgetful) Room() bool                                                         { return true }
func (forgetful) Pick(engine.QueueID, uint8, []uint64, int) ([]engine.Stored, error) { return nil, nil }
func (f forgetful) Expiries() engine.Expiries                                        { return f }
func (forgetful) Remembered(string, int) ([]engine.DuplicateID, error)               { return nil, nil }
func (forgetful) Delayed(engine.QueueID, engine.Due, int64, int) ([]engine.Due, int64, error) {
	return nil, 0, nil
}
func (forgetful) Due(int64, int) ([]engine.Due, int64, error) { return nil, 0, nil }

// rig is a broker with a server on a port of its own.
type rig struct {
	t      testing.TB
	server *Server
	broker *engine.Broker
	addr   string
	listen ListenerOptions
}

func start(t testing.TB, change func(*Config, *ListenerOptions, *engine.Options)) *rig {
	t.Helper()
	return startOn(t, forgetful{}, change)
}

func startOn(t testing.TB, store engine.Store, change func(*Config, *ListenerOptions, *engine.Options)) *rig {
	t.Helper()
	cfg, listen := Defaults(), ListenerOptions{AllowAnonymous: true}
	options := engine.Options{Node: "test"}
	if change != nil {
		change(&cfg, &listen, &options)
	}
	broker, err := engine.New(options, store)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(cfg, broker)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, listen) }()
	t.Cleanup(func() {
		if g, ok := store.(*gate); ok {
			g.release()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		<-served
		if err := broker.Close(); err != nil {
			t.Errorf("broker: close: %v", err)
		}
	})
	return &rig{t: t, server: s, broker: broker, addr: l.Addr().String(), listen: listen}
}

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *rig) session() *goamqp.Session {
	r.t.Helper()
	conn, err := goamqp.Dial(r.context(), "amqp://"+r.addr, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	s, err := conn.NewSession(r.context(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func TestRoundTrip(t *testing.T) {
	r := start(t, nil)
	s := r.session()
	sender, err := s.NewSender(r.context(), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := sender.Send(r.context(), goamqp.NewMessage([]byte("hello")), nil); err != nil {
			t.Fatal(err)
		}
	}
	receiver, err := s.NewReceiver(r.context(), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		m, err := receiver.Receive(r.context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if string(m.GetData()) != "hello" {
			t.Fatalf("body is %q", m.GetData())
		}
		if err := receiver.AcceptMessage(r.context(), m); err != nil {
			t.Fatal(err)
		}
	}
}
