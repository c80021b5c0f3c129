package hostile

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// beside runs an attack beside a good client and bounds what that notices.
func beside(t *testing.T, b *harness.Broker, attack func()) {
	t.Helper()
	g := newGood(t, b)
	time.Sleep(300 * time.Millisecond)
	before := g.mark()
	attack()
	during := g.mark()
	t.Logf("good client: p99 %v alone, %v beside (%d rounds)", before.P99, during.P99, during.Rounds)
	if limit := max(100*before.P99, time.Second); during.P99 > limit {
		t.Errorf("good client: p99 %v beside the attack, %v allowed", during.P99, limit)
	}
	g.leave()
}

// TestWideDispositions: ranges over half the number space, over deliveries that stay.
func TestWideDispositions(t *testing.T) {
	b := start(t)
	fill(t, b, "wide", 200, 10)
	p := connect(t, b)
	out, err := wire.NewSender(p, 0, "out", "wide")
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(5000) {
		if err := out.Send(volatile(i, 10)); err != nil {
			t.Fatal(err)
		}
	}
	base, _ := b.Gauges()
	c := raw(t, b)
	drop(c)
	send(t, c, begin(0, 1<<31-1), receiver(0, 0, "in", "wide", 0), credit(0, 0, 1<<31-1, 1<<30, false))
	time.Sleep(500 * time.Millisecond)
	beside(t, b, func() {
		// A state that isn't terminal, and not settled: every delivery is passed over.
		d := frame(0, wire.CodeDisposition, nil, wire.Bool(true), wire.Uint(0), wire.Uint(1<<31-1), wire.Bool(false), wire.Described(0x23, wire.List(wire.Uint(0), wire.Ulong(0))))
		w := flood(c, bytes.Repeat(d, 1000), 4, time.Second)
		t.Logf("%d bytes", w)
		time.Sleep(time.Second)
	})
	c.Close()
	p.Close()
	start := time.Now()
	b.Settled(t, base, 1<<30, 10*time.Second)
	t.Log("gone after", time.Since(start))
	depth(t, b, 5200)
}

// depth waits until n messages are ready.
func depth(t testing.TB, b *harness.Broker, n float64) {
	t.Helper()
	var now float64
	for range 100 {
		now, _ = b.Metric(`leto_queue_messages_sum{state="ready"}`)
		if now == n {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("messages: %v, want %v", now, n)
}

// TestChurn: sessions and links that come and go, echoes, dynamic nodes, and stolen links.
func TestChurn(t *testing.T) {
	b := start(t)
	base, _ := b.Gauges()
	beside(t, b, func() {
		var wg sync.WaitGroup
		for k := range 4 {
			c, err := net.Dial("tcp", b.AMQP)
			if err != nil {
				t.Fatal(err)
			}
			drop(c)
			send(t, c, wire.HeaderAMQP, wire.Open("thief", 1<<16), begin(0, 1000))
			wg.Go(func() {
				defer c.Close()
				var once []byte
				switch k {
				case 0: // begin and end with links on it
					once = bytes.Join([][]byte{begin(1, 10), receiver(1, 0, "a", "churn", 0), credit(1, 0, 10, 10, false), sender(1, 1, "a", "churn"), end(1)}, nil)
				case 1, 2: // the same link from two connections
					once = bytes.Join([][]byte{receiver(0, 0, "steal", "churn", 0), credit(0, 0, 1000, 10, false), detach(0, 0)}, nil)
				case 3: // dynamic nodes
					once = bytes.Join([][]byte{
						frame(0, wire.CodeAttach, nil, wire.String("d"), wire.Uint(0), wire.Bool(true), wire.Ubyte(0), wire.Ubyte(0),
							wire.Described(0x28, wire.List(wire.Null(), wire.Null(), wire.Null(), wire.Null(), wire.Bool(true))), wire.Described(0x29, wire.List(wire.Null()))),
						credit(0, 0, 1000, 10, true), detach(0, 0)}, nil)
				}
				for range 40 {
					flood(c, bytes.Repeat(once, 50), 1, 5*time.Second)
				}
				send(t, c, wire.Close())
				time.Sleep(300 * time.Millisecond)
			})
		}
		wg.Wait()
	})
	b.Settled(t, base, 64*mib, 10*time.Second)
	zero(t, b, "leto_connections", "leto_sessions", "leto_links", "leto_consumers", "leto_partial_bytes")
	alive(t, b)
}

// zero waits for gauges to be 0.
func zero(t testing.TB, b *harness.Broker, names ...string) {
	t.Helper()
	for _, name := range names {
		var now float64
		var err error
		for range 100 {
			if now, err = b.Metric(name); err != nil {
				t.Error(err)
				break
			}
			if now == 0 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if now != 0 {
			t.Errorf("%s: %v", name, now)
		}
	}
}

// TestGarbage: good conversations with bytes changed, cut and doubled.
func TestGarbage(t *testing.T) {
	b := start(t)
	base, _ := b.Gauges()
	talk := bytes.Join([][]byte{
		wire.HeaderAMQP, wire.Open("garbage", 1<<16), wire.Begin(), sender(0, 0, "out", "garbage"), receiver(0, 1, "in", "garbage", 0),
		credit(0, 1, 100, 10, false), wire.Transfer(0, 0, true, volatile(1, 100)[:50]), wire.Continue(0, false, volatile(1, 100)[50:]),
		wire.Settle(0, 10, wire.CodeAccepted), wire.Withdraw(1, 0, true), detach(0, 1), end(0), wire.Close(),
	}, nil)
	beside(t, b, func() {
		var wg sync.WaitGroup
		for k := range 4 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(k)))
				for range 400 {
					c, err := net.Dial("tcp", b.AMQP)
					if err != nil {
						t.Error(err)
						return
					}
					said := bytes.Clone(talk)
					for range 1 + random.IntN(4) {
						i := 8 + random.IntN(len(said)-8)
						switch random.IntN(4) {
						case 0:
							said[i] = byte(random.Uint32())
						case 1:
							said = said[:i+1]
						case 2:
							j := i + random.IntN(len(said)-i)
							said = slices.Concat(said[:j], said[i:])
						case 3:
							said = slices.Insert(said, i, []byte{0, 0, 0, 0, 255, 255, 255, 255}[random.IntN(8)])
						}
						if len(said) <= 9 {
							break
						}
					}
					_ = c.SetDeadline(time.Now().Add(5 * time.Second))
					_, _ = c.Write(said)
					if random.IntN(2) == 0 {
						_ = c.(*net.TCPConn).CloseWrite()
						_, _ = io.Copy(io.Discard, c)
					}
					_ = c.Close()
				}
			})
		}
		wg.Wait()
	})
	b.Settled(t, base, 64*mib, 15*time.Second)
	zero(t, b, "leto_connections", "leto_sessions", "leto_links", "leto_consumers", "leto_partial_bytes")
	alive(t, b)
}

// TestLedger: producers and consumers of every kind, cut off at random; each accepted message is accounted for once.
func TestLedger(t *testing.T) {
	t.Parallel()
	b := start(t, "address-settings[#].max-delivery-attempts=-1")
	base, _ := b.Gauges()
	const producers, each = 4, 1500
	var wg sync.WaitGroup
	var mu sync.Mutex
	accepted := map[uint32]bool{} // by a producer's knowledge
	taken := map[uint32]int{}     // settled by a consumer that closed in order
	unsure := map[uint32]bool{}
	for p := range producers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(p)))
			next := uint32(p * each)
			for next < uint32((p+1)*each) {
				c, err := wire.Connect(b.AMQP, fmt.Sprint("p", p))
				if err != nil {
					t.Error(err)
					return
				}
				s, err := wire.NewSender(c, 0, "out", "ledger")
				if err != nil {
					t.Error(err)
					return
				}
				for range 20 + random.IntN(300) {
					if next == uint32((p+1)*each) {
						break
					}
					m := body(next, random.IntN(3000))
					if random.IntN(2) == 0 {
						m = volatile(next, random.IntN(3000))
					}
					if random.IntN(100) == 0 { // cut in the middle
						_ = c.Send(wire.Transfer(0, 1<<20, true, m[:len(m)/2]))
						break
					}
					if err := s.Send(m); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					accepted[next] = true
					mu.Unlock()
					next++
				}
				c.Close()
			}
		})
	}
	done := make(chan struct{})
	var consumers sync.WaitGroup
	for k := range 4 {
		consumers.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(k)))
			for {
				select {
				case <-done:
					return
				default:
				}
				consume(t, b, random, &mu, taken, unsure)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		mu.Lock()
		n := 0
		for i := range accepted {
			if taken[i] > 0 || unsure[i] {
				n++
			}
		}
		whole := n == len(accepted)
		mu.Unlock()
		if whole {
			break
		}
	}
	close(done)
	consumers.Wait()
	lost, twice := 0, 0
	for i := range accepted {
		if taken[i] == 0 && !unsure[i] {
			lost++
		}
	}
	for i, n := range taken {
		if n > 1 && !unsure[i] {
			twice++
		}
		if !accepted[i] {
			t.Errorf("message %d was never accepted", i)
		}
	}
	if len(accepted) != producers*each || lost > 0 || twice > 0 {
		t.Errorf("%d accepted of %d: %d lost, %d twice; %d taken, %d unsure", len(accepted), producers*each, lost, twice, len(taken), len(unsure))
	}
	t.Logf("%d accepted, %d taken, %d unsure", len(accepted), len(taken), len(unsure))
	empty(t, b, "ledger")
	b.Settled(t, base, 128*mib, 10*time.Second)
	zero(t, b, "leto_connections", "leto_sessions", "leto_links", "leto_consumers", "leto_partial_bytes", "leto_memory_used_bytes")
}

// consume takes messages for a while, in one of many manners, and goes away in one of many ways.
func consume(t testing.TB, b *harness.Broker, random *rand.Rand, mu *sync.Mutex, taken map[uint32]int, unsure map[uint32]bool) {
	c, err := wire.Connect(b.AMQP, "consumer")
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	_ = c.Send(receiver(0, 0, fmt.Sprint("in", serial.Add(1)), "ledger", 0))
	if _, err := c.Await(wire.CodeAttach); err != nil {
		t.Error(err)
		return
	}
	if random.IntN(2) == 0 { // given, withdrawn, given again
		_ = c.Send(credit(0, 0, 1<<31-1, 30, false), credit(0, 0, 1<<31-1, 0, false))
	}
	_ = c.Send(credit(0, 0, 1<<31-1, uint32(40+random.IntN(80)), true))
	var mine []uint32
	for range 1 + random.IntN(100) {
		f, err := c.Await(wire.CodeTransfer, wire.CodeFlow)
		if err != nil {
			t.Error(err)
			return
		}
		if f.Code == wire.CodeFlow {
			break // drained
		}
		d, i := uint32(f.Number(1)), id(t, f.Payload)
		switch random.IntN(8) {
		case 0:
			_ = c.Send(wire.Settle(d, d, wire.CodeReleased))
		case 1:
			_ = c.Send(frame(0, wire.CodeDisposition, nil, wire.Bool(true), wire.Uint(d), wire.Null(), wire.Bool(true),
				wire.Described(wire.CodeModified, wire.List(wire.Bool(true), wire.Bool(random.IntN(4) == 0)))))
		case 2: // kept until the end
		case 3: // settled twice, and differently the second time; what was kept goes back with it
			_ = c.Send(wire.Settle(d, d, wire.CodeAccepted), wire.Settle(0, d, wire.CodeReleased))
			mine = append(mine, i)
		default:
			_ = c.Send(wire.Settle(d, d, wire.CodeAccepted))
			mine = append(mine, i)
		}
	}
	clean := false
	switch random.IntN(3) {
	case 0:
		clean = c.Send(detach(0, 0), wire.Close()) == nil
	case 1:
		clean = c.Send(wire.Close()) == nil
	}
	if clean { // what was settled before the close holds
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err := io.Copy(io.Discard, c)
		clean = err == nil
	}
	mu.Lock()
	defer mu.Unlock()
	for _, i := range mine {
		taken[i]++
		if !clean {
			unsure[i] = true
		}
	}
}

// TestRelief: messages beyond the memory are spilled, and producers that get no credit for want of memory get it when
// there is room again.
func TestRelief(t *testing.T) {
	t.Parallel()
	b := start(t, "limits.memory=32MiB")
	most := memory(t, b)
	c := connect(t, b)
	s, err := wire.NewSender(c, 0, "out", "relief")
	if err != nil {
		t.Fatal(err)
	}
	const n, size = 1500, 20 << 10
	full := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	wg.Go(func() {
		stuck := time.AfterFunc(time.Hour, func() { once.Do(func() { close(full) }) })
		for i := 0; i < n; {
			stuck.Reset(500 * time.Millisecond)
			answer, err := s.Deliver(volatile(uint32(i), size), 10<<10)
			if err != nil {
				t.Error(err)
				break
			}
			switch outcome, _ := answer.Outcome(); outcome {
			case wire.CodeAccepted:
				i++
			case wire.CodeRejected:
				once.Do(func() { close(full) })
			default:
				t.Errorf("message %d: frame %#x", i, answer.Code)
				return
			}
		}
		once.Do(func() { close(full) })
	})
	<-full
	alarm, err := b.Metric(`leto_alarm{kind="memory"}`)
	spilled, e := b.Metric("leto_spill_messages")
	if err != nil || e != nil || alarm != 1 && spilled == 0 {
		t.Errorf("alarm %v, %v spilled, %v, %v: where are the messages?", alarm, spilled, err, e)
	}
	r, err := wire.NewReceiver(connect(t, b), 0, "in", "relief", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(n) {
		d, err := r.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got := id(t, d.Message); got != i {
			t.Fatalf("message %d instead of %d", got, i)
		}
	}
	wg.Wait()
	within(t, most, 64*mib)
}

// TestStopUnderLoad: SIGTERM while everybody is busy, one peer doesn't read and one sends half a frame.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	b := start(t)
	fill(t, b, "block", 100, 30000)
	stuck := raw(t, b)
	send(t, stuck, begin(0, 1<<31-1), receiver(0, 0, "block", "block", 0), credit(0, 0, 1<<31-1, 1000, false))
	half := raw(t, b)
	send(t, half, begin(0, 10)[:9])
	var wg sync.WaitGroup
	for range 6 {
		c := raw(t, b)
		drop(c)
		send(t, c, begin(0, 1000), sender(0, 0, "out", "stop"), receiver(0, 1, "in", "stop", 1), credit(0, 1, 1<<31-1, 1<<30, false))
		wg.Go(func() {
			churn := bytes.Join([][]byte{begin(1, 10), receiver(1, 0, "a", "stop", 0), credit(1, 0, 10, 10, false), end(1)}, nil)
			for flood(c, churn, 1, 20*time.Second) == len(churn) {
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	begin := time.Now()
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	t.Logf("stopped after %v", time.Since(begin))
}
