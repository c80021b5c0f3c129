package crash

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// The queues that all messages die in: by rejection, and by attempts that are used up.
const (
	rejecting = iota
	failing
	dyingQueues
)

var dyingSources = [dyingQueues]string{"mass.rejecting", "mass.failing"}

const (
	massEach     = 5_000
	massSize     = 100 // bytes
	massAttempts = 2
	massKills    = 10
)

// mass is messages that die, and which of them the broker has said to be dead.
type mass struct {
	t    *testing.T
	mu   sync.Mutex
	dead map[name]bool
	told *sync.Cond
	err  error
}

func (m *mass) die(n name) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead[n] = true
	m.told.Broadcast()
}

func (m *mass) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	m.told.Broadcast()
}

// await waits until so many are dead.
func (m *mass) await(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.dead) < n && m.err == nil {
		m.told.Wait()
	}
	return m.err
}

// consume has messages die until the broker is gone.
func (m *mass) consume(b *broker, link, from int) error {
	r, err := newTaker(b, fmt.Sprint("consumer-", link), terms{name: "in", address: dyingSources[from], second: true}, m.die)
	if err != nil {
		return err
	}
	defer r.conn.Close()
	for {
		id, message, err := r.next(false)
		if err != nil {
			return err
		}
		n, count, _, err := readPlain(message, massSize)
		if err != nil {
			return err
		}
		ask := reject
		if from == failing {
			ask = fail
		}
		if ask == reject || count+1 >= massAttempts {
			r.open[id] = n
		}
		if err := r.conn.Send(disposition(id, id, false, outcome(ask, true))); err != nil {
			r.rest()
			return err
		}
	}
}

// look wants each message to be in one place, and returns how many are not dead.
func (m *mass) look(b *broker) (alive int) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	faults := 0
	fault := func(format string, args ...any) {
		if faults++; faults <= 10 {
			m.t.Errorf(format, args...)
		}
	}
	where := map[name]string{}
	for _, address := range append(dyingSources[:], "DLQ") {
		if err := each(b, address, massSize, func(n name, count uint32, message wire.Message) {
			if other, ok := where[n]; ok {
				fault("message %v is in %s and in %s", n, other, address)
			}
			where[n] = address
			if address != "DLQ" {
				alive++
				if m.dead[n] {
					fault("message %v is in %s, though its death was confirmed", n, address)
				}
				if address != dyingSources[n.to] {
					fault("message %v, sent to %s, is in %s", n, dyingSources[n.to], address)
				}
				return
			}
			m.dead[n] = true
			reason := "rejected: crash:no: rejected in a test"
			if n.to == failing {
				reason = fmt.Sprint("max-delivery-attempts reached: ", massAttempts)
				if count != massAttempts {
					fault("message %v has died with delivery-count %d, want %d", n, count, massAttempts)
				}
			}
			for key, want := range map[string]string{
				"x-opt-ORIG-QUEUE": dyingSources[n.to], "x-opt-ORIG-ADDRESS": dyingSources[n.to], "x-opt-death-reason": reason,
			} {
				if got := annotation(message.MessageAnnotations, key); got != want {
					fault("message %v is dead with %s %q, want %q", n, key, got, want)
				}
			}
		}); err != nil {
			m.t.Fatalf("browsing %s: %v\n%s", address, err, b.Log())
		}
	}
	for to := range uint8(dyingQueues) {
		for i := range uint32(massEach) {
			if n := (name{to: to, sequence: i}); where[n] == "" {
				fault("message %v is nowhere", n)
			}
		}
	}
	if faults > 10 {
		m.t.Errorf("%d faults more", faults-10)
	}
	return alive
}

// TestCase214_KilledWhileManyDie: SIGKILL while messages are dead-lettered as fast as it goes. Each is in its queue or
// among the dead letters, never in both and never in neither; with how much memory there is differs how many wait in the
// store only.
func TestCase214_KilledWhileManyDie(t *testing.T) {
	withMuchAndLittle(t, 214, dieAll)
}

func dieAll(t *testing.T, rng *rand.Rand, memory string) {
	b, err := harness.Begin(filepath.Join(t.TempDir(), "data"), "--log-level", "warn", "--set", "limits.memory="+memory,
		"--set", "limits.disk-free=192MiB", "--set", fmt.Sprintf("address-settings[mass.#].max-delivery-attempts=%d", massAttempts))
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
	for to, address := range dyingSources {
		s, err := newFeed(b, address, func(name) {})
		for i := uint32(0); i < massEach && err == nil; i++ {
			n := name{to: uint8(to), sequence: i}
			err = s.send(n, plain(n, massSize))
		}
		if err == nil {
			err = s.finish()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m := &mass{t: t, dead: map[name]bool{}}
	m.told = sync.NewCond(&m.mu)
	kills, alive := 0, massEach*dyingQueues
	for ; alive > 0 && !t.Failed(); kills++ {
		enough := massEach*dyingQueues - alive + 1 + rng.IntN(max(alive/3, 1))
		if kills >= massKills {
			enough = massEach * dyingQueues
		}
		m.run(b, enough, time.Duration(rng.IntN(3000))*time.Microsecond)
		alive = m.look(b)
	}
	t.Logf("%d kills", kills)
}

// run has messages die until enough are dead and a moment has passed, and then kills the broker and starts it again.
func (m *mass) run(b *broker, enough int, moment time.Duration) {
	m.t.Helper()
	var dying atomic.Bool
	var clients sync.WaitGroup
	for link, from := range []int{rejecting, failing, rejecting, failing, failing} {
		clients.Go(func() {
			if err := m.consume(b, link, from); !dying.Load() {
				m.fail(fmt.Errorf("consumer of %s: %w", dyingSources[from], err))
			}
		})
	}
	err := m.await(enough)
	time.Sleep(moment)
	dying.Store(true)
	again := b.Again()
	clients.Wait()
	if err != nil || again != nil {
		m.t.Fatalf("%v, start: %v\n%s", err, again, strings.TrimSpace(b.Log()))
	}
}
