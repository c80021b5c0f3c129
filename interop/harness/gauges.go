package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Gauges is what a broker holds at one moment.
type Gauges struct {
	Goroutines  int
	Descriptors int
	Anonymous   int64 // resident anonymous memory in bytes
}

// String names every gauge with its unit.
func (g Gauges) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %.1f MiB anonymous",
		g.Goroutines, g.Descriptors, float64(g.Anonymous)/(1<<20))
}

// Gauges reads goroutines from /metrics and the rest from the kernel.
func (b *Broker) Gauges() (Gauges, error) {
	goroutines, err := b.Metric("go_goroutines")
	if err != nil {
		return Gauges{}, err
	}
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.PID()))
	if err != nil {
		return Gauges{}, err
	}
	anonymous, err := b.Anonymous()
	if err != nil {
		return Gauges{}, err
	}
	return Gauges{Goroutines: int(goroutines), Descriptors: len(descriptors), Anonymous: anonymous}, nil
}

// back reports whether goroutines and descriptors are down to those of base. The
// connection that the reading goes by may still be counted.
func (g Gauges) back(base Gauges) bool {
	return g.Goroutines <= base.Goroutines+2 && g.Descriptors <= base.Descriptors+1
}

// Settled reads the gauges until goroutines and descriptors are at most those of
// base and memory is within slack bytes of it, and fails the test when they are not
// by the deadline. What the reading itself takes is allowed for, and ten times the
// memory under the race detector.
func (b *Broker) Settled(t testing.TB, base Gauges, slack int64, within time.Duration) {
	t.Helper()
	if os.Getenv("LETO_RACE") == "1" {
		slack *= 10
	}
	var now Gauges
	for deadline := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		var err error
		if now, err = b.Gauges(); err != nil {
			t.Fatal(err)
		}
		if now.back(base) && now.Anonymous <= base.Anonymous+slack {
			t.Logf("before: %v; after: %v", base, now)
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	t.Errorf("gauges: %v before, still %v after %v (memory slack %d MiB)", base, now, within, slack>>20)
}

// Metric is the value of an unlabelled metric.
func (b *Broker) Metric(name string) (float64, error) {
	text, err := b.Get("/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("metric: no %s", name)
}

// Get is the body of a GET of a path that was answered with 200.
func (b *Broker) Get(path string) (string, error) {
	answer, err := web.Get("http://" + b.HTTP + path)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("http: %s answered %s", path, answer.Status)
	}
	return string(body), err
}

// Anonymous reads the resident anonymous memory in bytes from the kernel; the broker notices nothing.
func (b *Broker) Anonymous() (int64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", b.PID()))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("memory: no RssAnon in %s", file.Name())
}

// CPU is the processor time that the broker's process has used, user and system, in the kernel's steps of 10 ms.
func (b *Broker) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.PID()))
	if err != nil {
		return 0, err
	}
	// the name, in parentheses, may have spaces; behind it user time is the twelfth field
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %d fields", b.PID(), len(fields))
	}
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", b.PID(), err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
