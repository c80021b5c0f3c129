package crash

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
)

// The queues of the backlog: one that is sent to, and that of a durable subscription.
const (
	pagedQueue = iota
	pagedSubscription
	pagedQueues
)

const (
	pagedSize    = 1000   // bytes
	pagedFirst   = 15_000 // messages in each queue before the first kill: beyond what memory is there for
	pagedLeast   = 12_000 // waiting in a queue, below which consumers pause
	pagedMost    = 40_000 // beyond which producers do
	pagedKills   = 6
	pagedMemory  = 16 << 20
	pagedTopic   = "paged.topic"
	pagedLink    = "in"
	pagedContain = "paged"
)

// known is what is known of a message.
type known uint8

const (
	isSent known = 1 << iota
	isAccepted
	isAsked // somebody has asked to settle it
	isSettled
)

// backlog is more messages than there is memory for, and what is known of them.
type backlog struct {
	t    *testing.T
	data string

	mu      sync.Mutex
	all     [pagedQueues][]known // by sequence
	waiting [pagedQueues]int     // accepted and not settled
	room    *sync.Cond
	dying   bool
	faults  []string
}

// fault is called with mu held.
func (l *backlog) fault(format string, args ...any) {
	if len(l.faults) < 20 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

func (l *backlog) note(n name, what known) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.all[n.to][n.sequence]
	switch what {
	case isAccepted:
		l.waiting[n.to]++
		l.room.Broadcast()
	case isSettled:
		l.waiting[n.to]--
		l.room.Broadcast()
	}
	*k |= what
}

// produce sends until the broker is gone, or so many messages.
func (l *backlog) produce(b *broker, to uint8, most int) error {
	address := [pagedQueues]string{"paged.queue", pagedTopic}[to] // the address knows how it routes
	s, err := newFeed(b, address, func(n name) { l.note(n, isAccepted) })
	if err != nil {
		return err
	}
	defer s.conn.Close()
	for range most {
		l.mu.Lock()
		for l.waiting[to] >= pagedMost && !l.dying {
			l.room.Wait()
		}
		n := name{to: to, sequence: uint32(len(l.all[to]))}
		l.all[to] = append(l.all[to], isSent)
		l.mu.Unlock()
		if err := s.send(n, plain(n, pagedSize)); err != nil {
			return err
		}
	}
	return s.finish()
}

func (l *backlog) attach(b *broker, from uint8) (*taker, error) {
	o := terms{name: pagedLink, second: true} // without an address: the durable subscription has to be there
	if from == pagedQueue {
		o.name, o.address = "queue", "paged.queue"
	}
	return newTaker(b, pagedContain, o, func(n name) { l.note(n, isSettled) })
}

// consume accepts until the broker is gone, or with drain until there is nothing more.
func (l *backlog) consume(b *broker, from uint8, drain bool) error {
	r, err := l.attach(b, from)
	if err != nil {
		return err
	}
	defer r.conn.Close()
	before, dry := int64(-1), 0
	for {
		l.mu.Lock()
		for !drain && l.waiting[from] < pagedLeast && !l.dying {
			l.room.Wait()
		}
		l.mu.Unlock()
		id, message, err := r.next(drain)
		if err != nil {
			return err
		}
		if message == nil {
			if dry++; dry > 1 {
				return r.finish()
			}
			continue
		}
		dry = 0
		n, _, _, err := readPlain(message, pagedSize)
		if err != nil {
			return err
		}
		l.arrive(n, from, before)
		before = int64(n.sequence)
		r.open[id] = n
		if err := r.conn.Send(disposition(id, id, false, outcome(accept, true))); err != nil {
			r.rest()
			return err
		}
	}
}

// arrive notes a delivery behind another one of the same link.
func (l *backlog) arrive(n name, from uint8, before int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case n.to != from || int(n.sequence) >= len(l.all[from]):
		l.fault("message %v in queue %d was never sent there", n, from)
		return
	case l.all[from][n.sequence]&isSettled != 0:
		l.fault("message %v was settled and is back", n)
	case int64(n.sequence) <= before:
		l.fault("message %v comes behind number %d", n, before)
	}
	for i := before + 1; before >= 0 && i < int64(n.sequence); i++ {
		if k := l.all[from][i]; k&isAccepted != 0 && k&(isAsked|isSettled) == 0 {
			l.fault("message %d/%d is passed over", from, i)
		}
	}
	l.all[from][n.sequence] |= isAsked
}

// TestCase245_KilledWhilePaging: SIGKILL during checkpoints, and while a backlog that is larger than memory is read and
// written. Nothing accepted is lost, nothing settled is back, and queues, subscription and routing stay.
func TestCase245_KilledWhilePaging(t *testing.T) {
	if testing.Short() {
		t.Skip("starts brokers")
	}
	t.Parallel()
	seed := number(t, "LETO_CRASH_SEED", int(time.Now().UnixNano()&0xffffff))
	t.Logf("LETO_CRASH_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 245))
	l := &backlog{t: t, data: filepath.Join(t.TempDir(), "data")}
	l.room = sync.NewCond(&l.mu)
	b, err := harness.Begin(l.data, "--log-level", "warn", "--set", fmt.Sprint("limits.memory=", pagedMemory), "--set", "limits.disk-free=192MiB",
		"--set", "store.apply-max=1MiB")
	if err == nil {
		err = b.Ready()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	}()
	conn, refusal, err := attach(b, pagedContain, terms{name: pagedLink, address: "topic://" + pagedTopic, durable: true})
	if err != nil || refusal != "" {
		t.Fatal(err, refusal)
	}
	if err := conn.Hangup(); err != nil {
		t.Fatal(err)
	}
	for to := range uint8(pagedQueues) {
		if err := l.produce(b, to, pagedFirst); err != nil {
			t.Fatal(err)
		}
	}
	catalogue := l.catalogue(b)
	checkpoints, least := 0, 1<<30
	for kill := range pagedKills {
		during, waiting := l.run(b, kill, rng)
		least = min(least, waiting)
		if during {
			checkpoints++
		}
		if now := l.catalogue(b); now != catalogue {
			t.Fatalf("the catalogue was\n%s\nand after a kill is\n%s", catalogue, now)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills, %d of them during a checkpoint; at least %d messages were waiting", pagedKills, checkpoints, least)
	if checkpoints == 0 || least*pagedSize <= pagedMemory {
		t.Errorf("%d kills during a checkpoint, with at least %d messages waiting: nothing is shown", checkpoints, least)
	}
	for from := range uint8(pagedQueues) {
		if err := l.consume(b, from, true); err != nil {
			t.Fatalf("%v\n%s", err, b.Log())
		}
	}
	l.finish()
}

// run has clients work until a moment of the kind that is its turn, kills the broker, and starts it again. It returns
// whether a checkpoint was being written, and how many messages were waiting.
func (l *backlog) run(b *broker, kill int, rng *rand.Rand) (during bool, waiting int) {
	l.t.Helper()
	var dying atomic.Bool
	var clients sync.WaitGroup
	failed := make(chan error, 2*pagedQueues)
	client := func(f func() error) {
		clients.Go(func() {
			if err := f(); !dying.Load() {
				failed <- err
			}
		})
	}
	for q := range uint8(pagedQueues) {
		client(func() error { return l.produce(b, q, 1<<30) })
		client(func() error { return l.consume(b, q, false) })
	}
	work := time.Duration(300+rng.IntN(700)) * time.Millisecond
	var err error
	select {
	case err = <-failed:
	case <-time.After(work):
	}
	if err == nil && kill%3 != 2 {
		err = l.checkpoint(failed, time.Duration(rng.IntN(1500))*time.Microsecond, kill%3 == 1)
		during = err == nil
	}
	dying.Store(true)
	l.mu.Lock()
	l.dying = true
	for _, n := range l.waiting {
		waiting += n
	}
	l.room.Broadcast()
	l.mu.Unlock()
	again := b.Again()
	clients.Wait()
	l.dying = false
	if err != nil || again != nil {
		l.t.Fatalf("%v, start: %v\n%s", err, again, strings.TrimSpace(b.Log()))
	}
	return during, waiting
}

// checkpoint waits until a checkpoint is about to end, or with after has ended just now: segments are freed then. Then
// it waits a moment.
func (l *backlog) checkpoint(failed <-chan error, moment time.Duration, after bool) error {
	position := filepath.Join(l.data, "position")
	before, err := os.Stat(position)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		select {
		case err := <-failed:
			return err
		default:
		}
		if _, err := os.Stat(position + ".tmp"); err == nil && !after {
			return nil
		}
		if now, err := os.Stat(position); err == nil && !os.SameFile(before, now) {
			time.Sleep(moment)
			return nil
		}
	}
	return fmt.Errorf("no checkpoint within 20 s")
}

// catalogue is what the broker says of its queues, but for what is in them.
func (l *backlog) catalogue(b *broker) string {
	l.t.Helper()
	text, err := b.Get("/api/v1/queues")
	if err != nil {
		l.t.Fatal(err)
	}
	var all []struct {
		Name, Address, Routing string
		Durable, Temporary     bool
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		l.t.Fatal(err)
	}
	var lines []string
	for _, q := range all {
		lines = append(lines, fmt.Sprintf("%+v", q))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// finish wants all to be settled that was accepted, or that nobody knows about.
func (l *backlog) finish() {
	sent, accepted, settled := 0, 0, 0
	for q := range l.all {
		for i, k := range l.all[q] {
			if k&isAccepted != 0 && k&isAsked == 0 {
				l.fault("message %d/%d was accepted and is lost", q, i)
			}
			sent++
			if k&isAccepted != 0 {
				accepted++
			}
			if k&isSettled != 0 {
				settled++
			}
		}
	}
	for _, fault := range l.faults {
		l.t.Error(fault)
	}
	l.t.Logf("%d sent, %d accepted, %d settled and confirmed", sent, accepted, settled)
}
