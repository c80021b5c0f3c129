package thrash

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// waiting is many messages that wait for a time of their own.
type waiting struct {
	n       int
	durable bool
	failed  bool          // they have been delivered once, and are to be tried again; otherwise they were sent for later
	formula bool          // how long those that failed wait is said by redelivery-delay, not by the consumer
	atOnce  bool          // all are due at the same moment
	spread  time.Duration // else: from when the first is due to when the last is
	lead    time.Duration // until the first is due
	restart bool          // the broker is killed before that
	late    time.Duration // of a share of them, when they are spread
	share   float64

	first int64   // when the first is due, unix milliseconds
	dues  []int64 // with formula, when each is at the earliest
}

func (w *waiting) due(i int) int64 {
	if w.dues != nil {
		return w.dues[i]
	}
	return w.first + int64(i)*w.spread.Milliseconds()/int64(w.n)
}

// delay is the redelivery-delay: the first is due when all have failed and the time until then is over.
func (w *waiting) delay() time.Duration { return w.lead + w.spread }

// message is one of them: its number is in its body.
func (w *waiting) message(i int) []byte {
	body := make([]byte, 256)
	binary.BigEndian.PutUint32(body, uint32(i))
	b := wire.Described(wire.SectionHeader, wire.List(wire.Bool(w.durable)))
	if !w.failed {
		b = append(b, wire.Described(wire.SectionMessageAnnotations, wire.Map(wire.Symbol("x-opt-delivery-time"), wire.Timestamp(w.due(i))))...)
	}
	return append(b, wire.Described(wire.SectionData, wire.Binary(body))...)
}

// number reads it: bodies are 256 bytes and stand at the end.
func number(message []byte) int { return int(binary.BigEndian.Uint32(message[len(message)-256:])) }

// fail has each message wait for its time, as a consumer says that takes it and fails.
func (w *waiting) fail(broker string) error {
	if w.formula {
		return w.failSteadily(broker)
	}
	came := 0
	return eat(broker, "fails", "later", 2000, func(out []byte, delivery uint32, message []byte) ([]byte, bool) {
		came++
		state := wire.Described(wire.CodeModified, wire.List(wire.Bool(true), wire.Bool(false),
			wire.Map(wire.Symbol("x-opt-delivery-time"), wire.Timestamp(w.due(number(message))))))
		return append(out, wire.NewFrame(0, 0, wire.Described(wire.CodeDisposition,
			wire.List(wire.Bool(true), wire.Uint(delivery), wire.Null(), wire.Bool(true), state)), nil)...), came == w.n
	})
}

// failSteadily has messages fail one after the other, so that they are due one after the other.
func (w *waiting) failSteadily(broker string) error {
	begun := time.Now()
	dues := make([]int64, w.n)
	state := wire.Described(wire.CodeModified, wire.List(wire.Bool(true)))
	came := 0
	// Few are ahead of the consumer: an outcome isn't written before all have been looked at that have arrived.
	err := eat(broker, "fails", "later", 100, func(out []byte, delivery uint32, message []byte) ([]byte, bool) {
		time.Sleep(time.Until(begun.Add(time.Duration(came) * w.spread / time.Duration(w.n))))
		dues[number(message)] = time.Now().Add(w.delay()).UnixMilli()
		came++
		return append(out, wire.NewFrame(0, 0, wire.Described(wire.CodeDisposition,
			wire.List(wire.Bool(true), wire.Uint(delivery), wire.Null(), wire.Bool(true), state)), nil)...), came == w.n
	})
	w.dues, w.first = dues, slices.Min(dues)
	return err
}

// arrivals is what came when.
type arrivals struct {
	mu       sync.Mutex
	seen     []bool
	lateness []int32 // milliseconds
	slow     []int64 // the most of it, of what was due in each second
	early    int
	twice    int
	behind   int64 // milliseconds that the due time of one was before that of the one that came before it, at most
	last     time.Time
}

// take has consumers accept everything.
func (w *waiting) take(broker string, consumers int) (*arrivals, error) {
	a := &arrivals{seen: make([]bool, w.n)}
	var left atomic.Int64
	left.Store(int64(w.n))
	errs := make(chan error, consumers)
	for c := range consumers {
		go func() {
			latest := int64(0)
			errs <- eat(broker, fmt.Sprint("takes-", c), "later", 1000, func(out []byte, delivery uint32, message []byte) ([]byte, bool) {
				i := number(message)
				due, now := w.due(i), time.Now()
				a.mu.Lock()
				if a.seen[i] {
					a.twice++
				}
				a.seen[i] = true
				if now.UnixMilli() < due {
					a.early++
				}
				late := now.UnixMilli() - due
				a.lateness = append(a.lateness, int32(late))
				second := int(due-w.first) / 1000
				for len(a.slow) <= second {
					a.slow = append(a.slow, 0)
				}
				a.slow[second] = max(a.slow[second], late)
				a.behind = max(a.behind, latest-due)
				a.last = now
				a.mu.Unlock()
				latest = max(latest, due)
				out = append(out, wire.Settle(delivery, delivery, wire.CodeAccepted)...)
				return out, left.Add(-1) == 0
			})
		}()
	}
	return a, <-errs // the others end with the broker
}

func (a *arrivals) at(share float64) time.Duration {
	return time.Duration(a.lateness[min(int(share*float64(len(a.lateness))), len(a.lateness)-1)]) * time.Millisecond
}

// taken is what a folder takes of the device in bytes.
func taken(folder string) (n int64) {
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				n += info.Sys().(*syscall.Stat_t).Blocks * 512
			}
		}
		return nil
	})
	return n
}

// TestWaiting has many messages wait for their time. LETO_WAITING says how many, 1000000 for example: they are then due at
// some 17,000/s. Nothing is early, or comes twice, and what is due one after the other comes in time.
func TestWaiting(t *testing.T) {
	if testing.Short() {
		t.Skip("starts brokers")
	}
	all := []*waiting{
		{durable: true, restart: true},
		{durable: true, restart: true, failed: true, atOnce: true},
		{durable: true, restart: true, failed: true, formula: true},
		{},
		{failed: true, atOnce: true},
	}
	n, text := 10_000, os.Getenv("LETO_WAITING")
	if text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n <= 0 {
			t.Fatalf("LETO_WAITING=%s is no number", text)
		}
		for _, w := range all {
			if w.formula {
				continue
			}
			other := *w
			other.atOnce = !w.atOnce
			all = append(all, &other)
		}
	}
	for _, w := range all {
		w.n, w.lead = n, 7*time.Second       // beyond the time for which they would wait in memory
		w.late, w.share = 5*time.Second, 0.5 // beside other tests
		if text != "" {
			if !w.formula { // it has the time in which they fail
				w.lead += time.Duration(n) * 60 * time.Microsecond
			}
			w.late, w.share = 100*time.Millisecond, 0.99
		}
		if !w.atOnce {
			w.spread = time.Duration(n) * 60 * time.Microsecond
		}
		name := fmt.Sprintf("durable=%v,failed=%v,once=%v", w.durable, w.failed, w.atOnce)
		if w.formula {
			name += ",formula"
		}
		t.Run(name, func(t *testing.T) {
			if text == "" {
				t.Parallel()
			}
			w.run(t)
		})
	}
}

func (w *waiting) run(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	args := []string{"--log-level", "warn"}
	if w.formula {
		args = append(args, "--set", fmt.Sprint("address-settings[later].redelivery-delay=", w.delay()))
	}
	b, err := harness.Begin(data, args...)
	if err == nil {
		err = b.Ready()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop() })
	begun := time.Now()
	w.first = begun.Add(w.lead).UnixMilli()
	peak := watch(b)
	if err := feed(b.AMQP, "later", w.n, w.message); err != nil {
		t.Fatal(err)
	}
	fed := time.Since(begun)
	if w.failed {
		if err := w.fail(b.AMQP); err != nil {
			t.Fatal(err)
		}
	}
	placed := time.Since(begun)
	if until := time.Until(time.UnixMilli(w.first)); until < time.Second {
		t.Fatalf("fed in %v, all wait after %v: the first is due %v later", fed, placed, until)
	}
	most := peak()
	time.Sleep(time.Until(time.UnixMilli(w.first).Add(-w.lead / 10)))
	rest, err := b.Anonymous()
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := b.CPU()
	if err != nil {
		t.Fatal(err)
	}
	disk := taken(data)
	var ready time.Duration
	if w.restart {
		killed := time.Now()
		if err := b.Again(); err != nil {
			t.Fatal(err)
		}
		ready, cpu = time.Since(killed), 0
	}
	peak = watch(b)
	a, err := w.take(b.AMQP, 2)
	if err != nil {
		t.Fatalf("%d of %d came: %v", len(a.lateness), w.n, err)
	}
	after, err := b.CPU()
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.lateness)
	t.Logf("%d fed in %.1f s, wait after %.1f s, all delivered %.1f s after the first was due", w.n, fed.Seconds(), placed.Seconds(),
		a.last.Sub(time.UnixMilli(w.first)).Seconds())
	t.Logf("anonymous memory: %.0f MiB at most until they wait, %.0f then, %.0f at most when they are due; disk %d MiB",
		mib(most), mib(rest), mib(peak()), disk>>20)
	t.Logf("lateness: p50 %v, p99 %v, max %v; behind the latest before: %d ms; ready %v after kill; CPU %.1f µs each", a.at(0.5),
		a.at(0.99), a.at(1), a.behind, ready.Round(time.Millisecond), (after-cpu).Seconds()/float64(w.n)*1e6)
	if a.early > 0 || a.twice > 0 {
		t.Errorf("%d came early, %d twice", a.early, a.twice)
	}
	if late := a.at(w.share); w.spread > 0 && late > w.late {
		t.Errorf("%.0f %% come in %v, want %v", 100*w.share, late, w.late)
	}
	for s, late := range a.slow {
		if late > int64(w.late/time.Millisecond) && w.spread > 0 {
			t.Logf("in second %d: %d ms", s, late)
		}
	}
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// watch looks at the broker's anonymous memory until the returned function is called, which says how much it was at most.
func watch(b *harness.Broker) func() int64 {
	stop, result := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			if now, err := b.Anonymous(); err == nil {
				most = max(most, now)
			}
			select {
			case <-stop:
				result <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 { close(stop); return <-result }
}
