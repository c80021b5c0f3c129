package crash

import (
	"bytes"
	"errors"
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

const (
	resendProducers = 3
	resendKills     = 8
	resendBack      = 60   // messages that are sent once more although they were accepted
	resendRemember  = 2000 // ids; less than are sent, more than are ever sent again
	resendAddress   = "resend.queue"
	resendSize      = 300
)

// identifiedPlain makes the durable message of that name, with the name as its duplicate id.
func identifiedPlain(n name) []byte {
	return bytes.Join([][]byte{
		wire.Described(wire.SectionHeader, wire.List(wire.Bool(true))),
		wire.Described(wire.SectionProperties, wire.List(wire.String(n.String()))),
		wire.Described(wire.SectionApplicationProperties, wire.Map(
			wire.String("n"), wire.Uint(n.sequence), wire.String("_AMQ_DUPL_ID"), wire.String(n.String()))),
		wire.Described(wire.SectionData, wire.Binary(bytes.Repeat([]byte{byte(n.sequence)}, resendSize))),
	}, nil)
}

// resender is a producer that has two connections at once: each sends all that it has, so that every message is sent
// twice at least, by connections that don't know of each other.
type resender struct {
	number uint16
	mu     sync.Mutex
	known  []bool // by sequence: accepted
	first  int    // that isn't, as far as is known
	most   int    // were sent
}

func (p *resender) accepted(n name) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.known) <= int(n.sequence) {
		p.known = append(p.known, false)
	}
	p.known[n.sequence] = true
	for p.first < len(p.known) && p.known[p.first] {
		p.first++
	}
}

// run sends from some way back on: until the broker is gone, or up to a sequence.
func (p *resender) run(b *broker, twin, from, to int) error {
	s, err := newFeedFrom(b, fmt.Sprint("resender-", p.number, "-", twin), resendAddress, p.accepted)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	for i := from; i < to; i++ {
		p.mu.Lock()
		p.most = max(p.most, i+1)
		p.mu.Unlock()
		n := name{producer: p.number, sequence: uint32(i)}
		if err := s.send(n, identifiedPlain(n)); err != nil {
			return err
		}
	}
	return s.finish()
}

// takeAll takes what is in the queue and checks that of each producer it goes on where it ended.
func takeAll(b *broker, next *[resendProducers]uint32) error {
	r, err := newTaker(b, "taker", terms{name: "in", address: resendAddress, second: true}, func(name) {})
	if err != nil {
		return err
	}
	defer r.conn.Close()
	for dry := 0; dry < 2; {
		id, message, err := r.next(true)
		if err != nil {
			return err
		}
		if message == nil {
			dry++
			continue
		}
		dry = 0
		m, err := wire.Split(message)
		if err != nil {
			return err
		}
		n, err := nameOf(m.Bare)
		if err != nil {
			return err
		}
		if want := next[n.producer]; n.sequence != want {
			return fmt.Errorf("message %v, want number %d: lost, twice, or out of order", n, want)
		}
		next[n.producer]++
		r.open[id] = n
		if err := r.conn.Send(disposition(id, id, false, outcome(accept, true))); err != nil {
			return err
		}
	}
	return r.finish()
}

// TestCase241_KilledAndSentAgain kills the broker while producers send, who begin again some way back each time, with
// the same ids. In the end each message has been delivered once, in order.
func TestCase241_KilledAndSentAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts brokers")
	}
	seed := uint64(number(t, "LETO_CRASH_SEED", int(time.Now().UnixNano()&0xffffff)))
	t.Logf("LETO_CRASH_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 241))
	b, err := harness.Begin(filepath.Join(t.TempDir(), "data"), "--log-level", "warn", "--set", "limits.disk-free=192MiB",
		"--set", fmt.Sprintf("address-settings[resend.#].id-cache-size=%d", resendRemember))
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
	var all [resendProducers]resender
	var next [resendProducers]uint32
	for kill := range resendKills + 1 {
		last := kill == resendKills
		var dying atomic.Bool
		var clients sync.WaitGroup
		failed := make(chan error, 2*resendProducers)
		for i := range all {
			p := &all[i]
			p.number = uint16(i)
			from, to := max(p.first-resendBack, 0), 1<<30
			if last {
				to = p.most + 10
			}
			for twin := range 2 {
				clients.Go(func() {
					if err := p.run(b, twin, from, to); err != nil && !dying.Load() {
						failed <- err
					}
				})
			}
		}
		if !last {
			time.Sleep(time.Duration(50+rng.IntN(400)) * time.Millisecond)
			dying.Store(true)
			err = b.Again()
		}
		clients.Wait()
		select {
		case e := <-failed:
			err = errors.Join(err, e)
		default:
		}
		if err == nil && (last || rng.IntN(2) == 0) {
			err = takeAll(b, &next)
		}
		if err != nil {
			t.Fatalf("kill %d: %v\n%s", kill, err, strings.TrimSpace(b.Log()))
		}
	}
	for i := range all {
		if p := &all[i]; p.first != p.most || int(next[i]) != p.most {
			t.Errorf("producer %d: %d sent, %d accepted, %d delivered", i, p.most, p.first, next[i])
		}
		t.Logf("producer %d: %d messages", i, next[i])
	}
}
