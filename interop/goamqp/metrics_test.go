package goamqp

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/go-amqp"
)

// TestCase257_MetricsWhileConnectionsComeAndGo reads everything that shows connections, queues and messages while clients come, work and
// go: each answer is whole, and no client notices.
func TestCase257_MetricsWhileConnectionsComeAndGo(t *testing.T) {
	const workers, rounds = 4, 50
	to := address(t)
	var gone atomic.Bool
	var reader, clients sync.WaitGroup
	read := 0
	reader.Go(func() {
		for !gone.Load() {
			text, err := broker.Get("/metrics")
			if err != nil || !strings.Contains(text, "\nleto_connections ") || !strings.Contains(text, "\nleto_queue_messages_sum{") {
				t.Errorf("metrics: %v, %d bytes", err, len(text))
				return
			}
			for _, path := range []string{"/api/v1/queues", "/api/v1/addresses"} {
				if _, err := broker.Get(path); err != nil {
					t.Errorf("%s: %v", path, err)
					return
				}
			}
			read++
		}
	})
	for range workers {
		clients.Go(func() {
			for range rounds {
				if err := visit(t, to); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	gone.Store(true)
	reader.Wait()
	if read == 0 {
		t.Error("nothing was read meanwhile")
	}
}

// visit connects, sends and takes a message, and closes.
func visit(t *testing.T, address string) error {
	ctx := waiting(t)
	conn, err := amqp.Dial(ctx, broker.URL(), nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := conn.NewSession(ctx, nil)
	if err != nil {
		return err
	}
	out, err := s.NewSender(ctx, address, nil)
	if err != nil {
		return err
	}
	if err := out.Send(ctx, amqp.NewMessage([]byte("x")), nil); err != nil {
		return err
	}
	in, err := s.NewReceiver(ctx, address, nil)
	if err != nil {
		return err
	}
	m, err := in.Receive(ctx, nil)
	if err != nil {
		return err
	}
	return in.AcceptMessage(ctx, m)
}
