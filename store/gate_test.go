package store_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store/journal"
	"github.com/letomq/leto/store/journal/crashfs"
)

func gated(number uint64) engine.Record {
	m := &queue.Message{Payload: []byte("payload"), Durable: true, Priority: queue.DefaultPriority}
	return engine.Record{Kind: engine.RecordEnqueue, Queue: 1, Number: number, Message: m}
}

func defineGated() engine.Record {
	return engine.Record{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "a", Name: "q"}}
}

// TestGateHolds keeps a window at the gate: it is on the device, and neither confirmed nor visible.
func TestGateHolds(t *testing.T) {
	o := small(t, t.TempDir())
	at, pass := make(chan journal.Record), make(chan struct{})
	o.Gate = func(w journal.Record, flush func() error) error {
		if !bytes.Contains(w.Payload, []byte("payload")) {
			return flush()
		}
		err := flush()
		at <- w
		<-pass
		return err
	}
	s := open(t, o)
	if err := s.Commit([]engine.Record{defineGated()}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Commit([]engine.Record{gated(1)}) }()
	if w := <-at; w.Kind != journal.KindWindow || int64(len(w.Payload)) != w.Length {
		t.Errorf("window %d of kind %d, %d of %d bytes", w.Index, w.Kind, len(w.Payload), w.Length)
	}
	load := func() int {
		entries, err := s.Load(1, queue.DefaultPriority, 0, 10, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	if n := load(); n != 0 {
		t.Errorf("%d entries before the gate let them pass", n)
	}
	select {
	case err := <-done:
		t.Fatalf("commit = %v before the gate let it pass", err)
	default:
	}
	close(pass)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := load(); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestGateFails ends a store whose window doesn't pass. What is on the device comes back.
func TestGateFails(t *testing.T) {
	fenced := errors.New("fenced")
	o := small(t, t.TempDir())
	closed := false
	o.Gate = func(_ journal.Record, flush func() error) error {
		if err := flush(); err != nil || !closed {
			return err
		}
		return fenced
	}
	s := open(t, o)
	if err := s.Commit([]engine.Record{defineGated(), gated(1)}); err != nil {
		t.Fatal(err)
	}
	closed = true
	if err := s.Commit([]engine.Record{gated(2)}); !errors.Is(err, fenced) {
		t.Fatalf("commit = %v, want what the gate says", err)
	}
	if err := s.Commit([]engine.Record{gated(3)}); !errors.Is(err, fenced) {
		t.Errorf("commit = %v, want what the gate said before", err)
	}
	_ = s.Close()
	closed = false
	s = open(t, o)
	entries, err := s.Load(1, queue.DefaultPriority, 0, 10, 1000)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d entries, %v, want 1 and 2", len(entries), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestGateFull hands the error of a full device through the gate: messages are refused, and the store goes on.
func TestGateFull(t *testing.T) {
	files := crashfs.New()
	o := small(t, t.TempDir())
	o.FS, o.SegmentSize, o.Reserve, o.Inline = files, 128<<10, 1, 2000
	o.Gate = func(_ journal.Record, flush func() error) error { return flush() }
	s := open(t, o)
	if err := s.Commit([]engine.Record{defineGated()}); err != nil {
		t.Fatal(err)
	}
	files.SetCapacity(512 << 10)
	number, err := uint64(0), error(nil)
	for err == nil {
		number++
		err = s.Commit([]engine.Record{gated(number)})
	}
	if !errors.Is(err, engine.ErrStoreFull) {
		t.Fatalf("commit = %v, want ErrStoreFull", err)
	}
	files.SetCapacity(64 << 20)
	eventually(t, "not full", func() bool { return !s.Metrics().Full })
	if err := s.Commit([]engine.Record{gated(number)}); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
