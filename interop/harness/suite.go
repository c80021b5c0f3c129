package harness

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// Run is the body of a suite's TestMain: it starts one broker that all tests of the
// package share, runs them, and returns the exit code. The suite fails as a whole
// when, after its last test, goroutines or descriptors remain in the broker, or when
// the broker doesn't end cleanly. With -short nothing starts, and *shared stays nil.
func Run(m *testing.M, shared **Broker) int {
	flag.Parse()
	if testing.Short() {
		fmt.Println("interop: skipped with -short, the suites start a broker")
		return 0
	}
	defer Tidy()
	b, err := Launch()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*shared = b
	base, err := b.Gauges()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if code == 0 && !b.empties(base) {
		code = 1
	}
	if err := b.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Tidy removes the binary that was built. It is for a TestMain that doesn't use Run.
func Tidy() { os.RemoveAll(built) }

// empties reports whether goroutines and descriptors come back to base.
func (b *Broker) empties(base Gauges) bool {
	var now Gauges
	for range 100 {
		var err error
		if now, err = b.Gauges(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return false
		}
		if now.back(base) {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, "suite: broker had %v before the first test and %v after the last\n", base, now)
	return false
}
