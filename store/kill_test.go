package store_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/letomq/leto/store"
)

// killEnv tells the test binary to be the process that is killed: folder, seed and how many batches are there.
const killEnv = "LETO_STORE_KILLED"

func TestMain(m *testing.M) {
	if args := os.Getenv(killEnv); args != "" {
		beKilled(args)
		return
	}
	os.Exit(m.Run())
}

// killLoad is what the process commits.
var killLoad = load{queues: 5, large: 100, largest: 50_000, keep: 97}

// beKilled commits one batch after the other and says which one holds.
func beKilled(args string) {
	var dir string
	var seed uint64
	var done int
	if _, err := fmt.Sscanf(args, "%d %d %s", &seed, &done, &dir); err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	m := newModel()
	for range done {
		m.next(rng, killLoad)
	}
	o := small(nil, dir)
	o.Alarm = func(what string) { fmt.Println("alarm", what) }
	s, err := store.Open(o)
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	if err := m.diff(s, true); err != nil {
		fmt.Println("differs", err)
		os.Exit(1)
	}
	fmt.Println("open")
	for n := done; ; n++ {
		if err := s.Commit(m.next(rng, killLoad)); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		fmt.Println("held", n+1)
	}
}

// killChain is how many rounds a chain has.
const killChain = 12

// TestKill kills a process at random moments, in chains. What it said to hold is there, exactly, with at most the
// batch more that it was committing. LETO_CRASH_ROUNDS says how many rounds there are in all.
func TestKill(t *testing.T) {
	rounds := killChain
	if testing.Short() {
		rounds = 3
	}
	if text := os.Getenv("LETO_CRASH_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for seed := uint64(7); rounds > 0; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { killAll(t, seed, min(rounds, killChain)) })
		rounds -= killChain
	}
}

func killAll(t *testing.T, seed uint64, rounds int) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(seed, 6))
	done := 0
	for round := range rounds {
		held := runAndKill(t, fmt.Sprint(seed, " ", done, " ", dir), time.Duration(rng.IntN(400))*time.Millisecond)
		done = max(done, held)
		replay := rand.New(rand.NewPCG(seed, 5))
		m := newModel()
		for range done {
			m.next(replay, killLoad)
		}
		after := m.clone()
		after.next(replay, killLoad)
		s := open(t, small(t, dir))
		err := m.diff(s, true)
		if err != nil {
			if e := after.diff(s, true); e == nil {
				done, err = done+1, nil
			}
		}
		if err != nil {
			t.Fatalf("round %d, %d batches: %v", round, done, err)
		}
		if rng.IntN(2) == 0 { // else the next process finds what this one has left
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		next := copyStore(t, dir)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		dir = next
	}
	t.Logf("%d batches", done)
	if done < rounds {
		t.Error("hardly anything was committed")
	}
}

// runAndKill returns the last batch that the process said to hold.
func runAndKill(t *testing.T, args string, after time.Duration) (held int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), killEnv+"="+args)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	timer := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	opened := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "open":
			opened = true
			timer.Reset(after)
		case len(line) > 5 && line[:5] == "held ":
			if held, err = strconv.Atoi(line[5:]); err != nil {
				t.Fatal(err)
			}
		case len(line) > 6 && line[:6] == "alarm ":
			t.Log(line)
		default:
			t.Fatalf("process: %s", line)
		}
	}
	if !opened {
		t.Fatal("the process never opened the store")
	}
	return held
}
