//go:build linux

package powerloss

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// How a chain of power failures goes.
const (
	generations = 7
	diskSize    = 320 << 20
	longest     = 2500 * time.Millisecond // that a writer writes, unless what is waited for doesn't come
	patience    = 30 * time.Second        // until a store is open and has been looked at
)

// tally is what has happened in all chains.
type tally struct {
	cuts, during, stopped int
	works, begun          [works]int
	after                 [happenings]int
	batches, rebuilt      int64
	bad, relocated, freed int64
	saved                 int64
	opening               time.Duration // the longest
	zero                  map[string]int
	deck                  []happening // what the next power failures come after
}

// draw returns what the next power failure comes after: each in turn, the rarer ones more often.
func (s *tally) draw(rng *rand.Rand) happening {
	if len(s.deck) == 0 {
		for h := range happenings {
			s.deck = append(s.deck, h)
		}
		s.deck = append(s.deck, openingBegins, memtableMade, tableMade, compactionBegins, compactionBegins, checkpointBegins, segmentRead, segmentRead)
		rng.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
	}
	h := s.deck[0]
	s.deck = s.deck[1:]
	return h
}

// TestStore cuts the power while a store of tiny memtables and segments is written to, often while it does something
// with its files. Each copy has to open by itself and to hold what was committed, exactly; the batch that was being
// committed is there as a whole or not at all.
func TestStore(t *testing.T) {
	n := needed(t)
	s := newShelf(t)
	sum := tally{zero: map[string]int{}}
	for number := 0; sum.cuts < n && !t.Failed(); number++ {
		t.Run(fmt.Sprint("chain ", number), func(t *testing.T) {
			c := &chain{tally: &sum, shelf: s, rng: rand.New(rand.NewPCG(seed(), uint64(number))), number: number}
			c.run(t, min(generations-number%2, n-sum.cuts))
		})
	}
	sum.report(t)
	if n >= 100 && sum.during*2 < sum.cuts {
		t.Errorf("only %d of %d power failures came while something was under way", sum.during, sum.cuts)
	}
}

// count notes what was under way before and after a copy, and how often each had begun by then. What began or ended
// during the copy isn't counted.
func (s *tally) count(before, after [works]bool, begunBefore, begunAfter [works]int) {
	s.cuts++
	something := false
	for k := range works {
		if before[k] && after[k] && begunBefore[k] == begunAfter[k] {
			s.works[k]++
			something = true
		}
		s.begun[k] += begunBefore[k]
	}
	if something {
		s.during++
	}
}

func (s *tally) report(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "%d power failures, %d of them while something was under way:", s.cuts, s.during)
	for k, n := range s.works {
		fmt.Fprintf(&b, " %s %d (of %d);", workNames[k], n, max(s.begun[k], n))
	}
	fmt.Fprintf(&b, "\ncut after:")
	for h, n := range s.after {
		fmt.Fprintf(&b, " %s %d;", happeningNames[h], n)
	}
	fmt.Fprintf(&b, "\n%d with the writer stopped; %d batches; %d checkpoints, %d segments freed, %d entries relocated",
		s.stopped, s.batches, s.saved, s.freed, s.relocated)
	fmt.Fprintf(&b, "\nopened in %v at the most, %d times with the index made anew, %d bad bodies; empty files found: %v",
		s.opening.Round(time.Millisecond), s.rebuilt, s.bad, s.zero)
	t.Log(b.String())
}

// chain is a series of power failures, each after what the one before has left.
type chain struct {
	*tally
	*shelf
	rng    *rand.Rand
	number int
	order  order
	board  *board
	chaos  bool // the kernel writes back more than it has to
}

func (c *chain) run(t *testing.T, generations int) {
	name := filepath.Join(os.Getenv(folderEnv), fmt.Sprint("board", c.number))
	var err error
	if c.board, err = newBoard(name); err != nil {
		t.Fatal(err)
	}
	c.order = order{
		Board: name, Seed: c.rng.Uint64(), SegmentSize: []int64{128 << 10, 256 << 10, 1 << 20}[c.rng.IntN(3)],
		ApplyAge:   time.Duration(1+c.rng.IntN(10)) * time.Millisecond,
		Checkpoint: []time.Duration{10, 30, 100, 300, 1000}[c.number%5] * time.Millisecond,
	}
	c.chaos = c.number%2 == 1
	d := c.newDisk(t, diskSize)
	defer func() { d.drop(t) }()
	for generation := range generations {
		image := c.generation(t, d, generation)
		if t.Failed() {
			return
		}
		d.drop(t)
		d = c.use(t, image)
		c.look(d)
	}
	c.order.Last = true
	w := c.start(t, d)
	if err := w.wait(2 * patience); err != nil {
		t.Errorf("the end: %v\n%s", err, &w.said)
	}
	if c.board.bad.Load() > 0 || c.board.rebuilt.Load() > 0 || bytes.Contains(w.said.Bytes(), []byte("alarm:")) {
		t.Logf("the end: %s", &w.said)
	}
	c.batches += c.board.acked.Load()
	t.Logf("%d batches; segments of %d KiB, checkpoints each %v", c.board.acked.Load(), c.order.SegmentSize>>10, c.order.Checkpoint)
}

// look notes which files have nothing in them, besides those that never have.
func (c *chain) look(d *disk) {
	for _, dir := range []string{"", "index", "journal"} {
		entries, _ := os.ReadDir(filepath.Join(d.dir, "store", dir))
		for _, e := range entries {
			info, err := e.Info()
			if err == nil && info.Mode().IsRegular() && info.Size() == 0 && !strings.EqualFold(e.Name(), "lock") {
				c.zero[filepath.Ext(e.Name())]++
			}
		}
	}
}

// process is a writer.
type process struct {
	*exec.Cmd
	said  bytes.Buffer // valid when it has ended
	ended chan struct{}
	err   error // valid when it has ended
}

func (c *chain) start(t *testing.T, d *disk) *process {
	t.Helper()
	c.order.Dir = filepath.Join(d.dir, "store")
	c.board.reset(c.order.From)
	text, err := json.Marshal(c.order)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(os.Args[0], "-test.run=^$"), ended: make(chan struct{})}
	p.Env = append(os.Environ(), writerEnv+"="+string(text))
	p.Stdout, p.Stderr = &p.said, &p.said
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig is about the thread
		err := p.Start()
		started <- err
		if err == nil {
			p.err = p.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
}

// wait waits until it ends by itself.
func (p *process) wait(most time.Duration) error {
	select {
	case <-p.ended:
		return p.err
	case <-time.After(most):
		p.kill()
		return fmt.Errorf("still running after %v", most)
	}
}

// stop sends SIGSTOP and waits until no thread runs any more, unless that takes long.
func (p *process) stop() {
	_ = p.Process.Signal(syscall.SIGSTOP)
	for range 100 {
		if p.stands() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *process) stands() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Process.Pid))
	for _, name := range threads {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if _, rest, ok := bytes.Cut(b, []byte(") ")); !ok || len(rest) == 0 || rest[0] != 'T' {
			return false
		}
	}
	return true
}

// generation lets a writer go on from a disk, and returns the image that is left when the power fails.
func (c *chain) generation(t *testing.T, d *disk, generation int) string {
	pristine := c.name() // before anything opens it
	if err := clone(d.image, pristine); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(pristine)
	w, err := newWatcher(filepath.Join(d.dir, "store"), c.board)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	p := c.start(t, d)
	defer p.kill()

	target := c.draw(c.rng)
	if !c.await(w, p, target) {
		select {
		case <-p.ended:
		default:
			p.kill()
			p.err = fmt.Errorf("not open after %v", patience)
		}
		t.Errorf("generation %d: %v\n%s", generation, p.err, &p.said)
		keep(t, pristine, fmt.Sprintf("chain%d-generation%d.img", c.number, generation))
		return ""
	}
	stop := c.rng.IntN(2) == 0
	if stop {
		p.stop()
	}
	ignore := func(happening) {}
	_ = w.next(0, ignore)
	open, begun := w.now()
	from := c.board.acked.Load()
	image := c.name()
	if err := clone(d.image, image); err != nil {
		t.Fatal(err)
	}
	_ = w.next(0, ignore)
	stillOpen, stillBegun := w.now()
	p.kill()

	c.after[target]++
	if stop {
		c.stopped++
	}
	c.count(open, stillOpen, begun, stillBegun)
	if c.board.open.Load() == 1 {
		// Until the writer was killed it may have committed more, all of it before the copy was complete.
		c.order.To = c.board.acked.Load() + 1
	}
	c.order.From = from
	c.opening = max(c.opening, time.Duration(c.board.opening.Load()))
	c.rebuilt += c.board.rebuilt.Load()
	c.bad += c.board.bad.Load()
	c.relocated += c.board.relocated.Load()
	c.freed += c.board.freed.Load()
	c.saved += c.board.saved.Load()
	if c.board.rebuilt.Load() > 0 { // nothing is lost by it, but every checkpoint promises an index
		t.Errorf("generation %d: the index didn't open", generation)
		keep(t, pristine, fmt.Sprintf("chain%d-generation%d.img", c.number, generation))
	}
	if c.board.bad.Load() > 0 || bytes.Contains(p.said.Bytes(), []byte("alarm:")) {
		t.Logf("generation %d: %s", generation, &p.said)
	}
	return image
}

// await waits for the moment. It returns false if the writer doesn't open the store or ends.
func (c *chain) await(w *watcher, p *process, target happening) bool {
	start := time.Now()
	var ready, moment time.Time
	warm := time.Duration(100+c.rng.IntN(1200)) * time.Millisecond
	delay := time.Duration(0)
	if c.rng.IntN(2) == 0 {
		delay = time.Duration(c.rng.IntN(15_000)) * time.Microsecond
	}
	if target == openingBegins {
		delay = time.Duration(c.rng.IntN(150)) * time.Millisecond
	}
	for {
		seen := false
		err := w.next(time.Millisecond, func(h happening) {
			seen = seen || h == target
			if target == openingBegins {
				seen = true
			}
		})
		select {
		case <-p.ended:
			return false
		default:
		}
		now := time.Now()
		if ready.IsZero() && c.board.open.Load() == 1 {
			ready = now
		}
		switch {
		case err != nil || now.Sub(start) > patience && ready.IsZero():
			return false
		case target == openingBegins:
		case ready.IsZero() || now.Sub(ready) < warm:
			seen = false
		case target == anything || now.Sub(ready) > warm+longest:
			seen = true
		}
		if c.chaos && c.rng.IntN(4) == 0 {
			w.writeBack(c.rng)
		}
		if seen && moment.IsZero() {
			moment = now.Add(delay)
		}
		if !moment.IsZero() && !time.Now().Before(moment) {
			return true
		}
	}
}

// writeBack has the kernel write some part of some file, as it may do at any time.
func (w *watcher) writeBack(rng *rand.Rand) {
	n := rng.IntN(len(w.files) + 1)
	for name := range w.files {
		if n--; n > 0 {
			continue
		}
		f, err := os.Open(filepath.Join(w.folder, name))
		if err != nil {
			return
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Size() > 0 {
			const waitAndWrite = 1 | 2 | 4 // SYNC_FILE_RANGE_WAIT_BEFORE, WRITE, WAIT_AFTER
			at := rng.Int64N(info.Size()) &^ 4095
			_ = syscall.SyncFileRange(int(f.Fd()), at, 4096<<rng.IntN(8), waitAndWrite)
		}
		return
	}
}
