package crash

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// bookRounds is how often the tests with books kill the broker, unless LETO_CRASH_ROUNDS says otherwise.
const bookRounds = 20

// bookChain is one data folder and the books of what is in it.
type bookChain struct {
	t       *testing.T
	rng     *rand.Rand
	books   *books
	data    string
	memory  string
	size    func(name) int
	ordered bool // messages of one worker are in order wherever they wait
}

// start starts the broker on the chain's folder.
func (c *bookChain) start() *broker {
	c.t.Helper()
	args := append([]string{"--log-level", "warn", "--set", "limits.memory=" + c.memory, "--set", "limits.disk-free=192MiB"}, bookArgs...)
	b, err := harness.Begin(c.data, args...)
	if err == nil {
		err = b.Ready()
	}
	if err != nil {
		c.t.Fatalf("round %d: start: %v", c.books.round, err)
	}
	return b
}

// look browses all places, and has the books draw conclusions.
func (c *bookChain) look(b *broker) {
	for at := range uint8(bookPlaces) {
		last := map[uint16]uint32{} // sequence, by worker
		err := eachOf(b, places[at], c.size, func(n name, count uint32, _ wire.Message) {
			c.books.look(n, at, count)
			if before, ok := last[n.producer]; ok && c.ordered && at < bookQueues && n.sequence < before {
				c.books.complain("message %v is behind number %d in %s", n, before, places[at])
			}
			last[n.producer] = n.sequence
		})
		if err != nil {
			c.books.complain("browsing %s: %v\n%s", places[at], err, b.Log())
			return
		}
	}
	c.books.endLook()
}

// load has clients work until the broker is killed.
func (c *bookChain) load(b *broker, clients []func(b *broker, rng *rand.Rand) error) {
	var dying atomic.Bool
	var all sync.WaitGroup
	failed := make(chan error, len(clients))
	for _, run := range clients {
		rng := rand.New(rand.NewPCG(c.rng.Uint64(), 3))
		all.Go(func() {
			if err := run(b, rng); !dying.Load() {
				failed <- fmt.Errorf("client: %w", err)
			}
		})
	}
	select {
	case err := <-failed:
		c.books.complain("%v\n%s", err, b.Log())
	case <-time.After(bookMoment(c.rng)):
	}
	dying.Store(true)
	if err := b.Kill(); err != nil {
		c.books.complain("%v", err)
	}
	all.Wait()
	select {
	case err := <-failed: // before it was killed
		c.books.complain("%v\n%s", err, b.Log())
	default:
	}
	c.books.restart()
}

// run kills the broker again and again while clients work, and looks at what it has left.
func (c *bookChain) run(clients ...func(b *broker, rng *rand.Rand) error) {
	c.t.Helper()
	rounds := number(c.t, "LETO_CRASH_ROUNDS", bookRounds)
	for range rounds {
		b := c.start()
		c.look(b)
		if c.books.failed() {
			_ = b.Kill()
			break
		}
		c.load(b, clients)
	}
	if !c.books.failed() {
		b := c.start()
		c.look(b)
		if err := b.Stop(); err != nil {
			c.t.Error(err)
		}
	}
	for _, fault := range c.books.faults {
		c.t.Error(fault)
	}
	c.t.Logf("%d kills: %v", rounds, &c.books.figures)
}

// TestKilledWhileTransactionsEnd, case 235: SIGKILL while transactions that post to queues and retire from others are committed,
// rolled back, and lost with their connection. Each holds as a whole or not at all, as far as it was answered as the
// answer said, and each message is in one place.
func TestKilledWhileTransactionsEnd(t *testing.T) {
	withMuchAndLittle(t, 5, func(t *testing.T, rng *rand.Rand, memory string) {
		c := &bookChain{t: t, rng: rng, books: newBooks(), data: filepath.Join(t.TempDir(), "data"), memory: memory, size: workerSize, ordered: true}
		var last atomic.Uint32
		work := func(b *broker, rng *rand.Rand) error {
			return workOn(c.books, b, func() uint16 { return uint16(last.Add(1)) }, rng)
		}
		c.run(work, work, work, work)
		if f := &c.books.figures; f.unansweredHeld == 0 || f.unanswered == f.unansweredHeld {
			t.Logf("no kill has come while transactions were being committed, or none of them held")
		}
	})
}
