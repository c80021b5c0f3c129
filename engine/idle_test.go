package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// nullStore keeps nothing.
type nullStore struct{}

func (nullStore) Recover() (engine.State, error) { return engine.State{}, nil }
func (nullStore) Commit([]engine.Record) error   { return nil }
func (nullStore) Load(engine.QueueID, uint8, uint64, int, int) ([]engine.Stored, error) {
	return nil, nil
}

func (nullStore) Room() bool                                                         { return true }
func (nullStore) Pick(engine.QueueID, uint8, []uint64, int) ([]engine.Stored, error) { return nil, nil }
func (nullStore) Expiries() engine.Expiries                                          { return memory.New().Expiries() }
func (nullStore) Remembered(string, int) ([]engine.DuplicateID, error)               { return nil, nil }
func (nullStore) Delayed(engine.QueueID, engine.Due, int64, int) ([]engine.Due, int64, error) {
	return nil, 0, nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestIdleQueueIsSmall makes many queues, has one message go through each, and weighs them.
func TestIdleQueueIsSmall(t *testing.T) {
	const n = 50_000
	b, err := engine.New(engine.Options{}, nullStore{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	goroutines := runtime.NumGoroutine()
	before := heap()
	for i := range n {
		if err := b.Declare(engine.QueueSpec{Address: fmt.Sprintf("orders.customer.%06d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	fresh := (heap() - before) / n
	p, err := b.Producer(engine.ProducerSpec{Anonymous: true}, ignoreResults{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		m := msg("x", false)
		m.Address = fmt.Sprintf("orders.customer.%06d", i)
		p.Publish(m, 1)
		c, err := b.Consumer(engine.ConsumerSpec{Address: m.Address, Settled: true}, &sharedSink{})
		if err != nil {
			t.Fatal(err)
		}
		c.SetLimit(1)
		c.Close(engine.ClosingClean)
	}
	used := (heap() - before) / n
	t.Logf("%d bytes for a queue never used, %d after use, with its address and names", fresh, used)
	if fresh > 600 || used > 740 {
		t.Errorf("an idle queue takes %d bytes, %d after use, want at most 600 and 740", fresh, used)
	}
	if now := runtime.NumGoroutine(); now > goroutines+1 {
		t.Errorf("%d goroutines more for idle queues", now-goroutines)
	}
	runtime.KeepAlive(b)
}
