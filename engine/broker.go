package engine

import (
	"crypto/rand"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/letomq/leto/engine/queue"
)

// Broker holds addresses and queues. All methods may be called from any goroutine.
type Broker struct {
	names         *nameTable
	settings      atomic.Pointer[settingsTable]
	limits        Limits
	memory        *memory
	paging        *queue.Budget  // of what the store holds
	budgets       *queue.Budgets // of durable queues
	transient     *queue.Budgets // of others
	committer     *committer
	duplicates    *duplicates
	loader        *loader
	spiller       *spiller
	keeper        *keeper
	sweeper       *sweeper
	subscriptions subscriptions
	temporaries   temporaries
	totals        totals
	reloading     sync.Mutex // held by Reload, from end to end
	observer      Observer
	clock         func() time.Time
	lastQueue     atomic.Uint64 // QueueID given last
	staged        atomic.Int64  // bytes of the memory budget that open transactions hold

	randMu sync.Mutex
	rand   io.Reader

	closed  atomic.Bool
	closing chan struct{}
	ended   chan struct{}
	running sync.WaitGroup
}

// New opens a broker over a store and brings back what the store holds.
func New(opts Options, store Store) (*Broker, error) {
	b := &Broker{
		names:    newNameTable(),
		limits:   opts.Limits,
		keeper:   newKeeper(),
		observer: opts.Observer,
		clock:    opts.Now,
		rand:     opts.Rand,
		closing:  make(chan struct{}),
		ended:    make(chan struct{}),
	}
	b.settings.Store(compileSettings(opts.Settings))
	if b.clock == nil {
		b.clock = time.Now
	}
	if b.rand == nil {
		b.rand = rand.Reader
	}
	b.spiller = newSpiller(b, b.limits.MemoryBytes, opts.Spill)
	b.paging = newBudget(b.limits.MemoryBytes)
	b.budgets = queue.NewBudgets(b.paging, b.spiller.budget)
	b.transient = queue.NewBudgets(nil, b.spiller.budget)
	b.memory = newMemory(b.limits.MemoryBytes, b.paging, b.spiller.budget)
	b.duplicates = newDuplicates(b, store, b.limits.MemoryBytes)
	b.loader = &loader{broker: b, store: store}
	b.sweeper = newSweeper(b, queue.InStore, nil)
	b.spiller.sweeper = newSweeper(b, queue.InSpill, b.spiller)
	if err := b.recover(store); err != nil {
		return nil, err
	}
	b.sweeper.store = sweptStore{store, b.committer}
	b.running.Go(b.committer.run)
	b.running.Go(b.keep)
	b.running.Go(b.sweeper.sweep)
	if b.spiller.budget != nil {
		b.running.Go(b.spiller.sweeper.sweep)
	}
	return b, nil
}

// sweeperOf returns that of a home.
func (b *Broker) sweeperOf(h queue.Home) *sweeper {
	if h == queue.InStore {
		return b.sweeper
	}
	return b.spiller.sweeper
}

// now returns the unix millisecond.
func (b *Broker) now() int64 { return b.clock().UnixMilli() }

// Close ends all consumers with ErrClosed, commits what is pending and waits for the broker's goroutines. It doesn't
// close the store, but the spill, whose content is gone. What consumers had unsettled is not counted as a failed attempt.
func (b *Broker) Close() error {
	if !b.closed.CompareAndSwap(false, true) {
		<-b.ended
		return nil
	}
	for _, a := range b.names.all() {
		a.mu.Lock()
		for _, q := range a.queues() {
			q.guard.enter()
			for _, t := range q.core.Members() {
				q.carryOut(q.core.SetLimit(t, 0, q.clock(), nil), nil)
				t.Tag.(*Consumer).end(ErrClosed)
			}
			q.guard.leave()
		}
		a.mu.Unlock()
	}
	close(b.closing)
	b.loader.close()
	b.committer.end()
	b.running.Wait()
	err := b.spiller.close()
	close(b.ended)
	return err
}

// Settings returns the settings in force at an address, which need not exist. A prefix or a queue part is ignored.
// The result is shared and must not be changed.
func (b *Broker) Settings(address string) *Settings {
	if n, err := parseName(address, RoutingUnset); err == nil {
		address = n.address
	}
	if a := b.names.get(address); a != nil {
		return a.settings()
	}
	return b.settings.Load().find(address)
}
