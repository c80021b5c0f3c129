package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store"
)

// BenchmarkCommit compares commits with a bare log that appends the same payloads and flushes, turn by turn in one
// run: x/log is how many messages a second the store commits for each one of the log, device/payload what is written to
// the device, by whoever, for each byte of payload. consumed removes every message in the window after its own; filled
// removes none.
func BenchmarkCommit(b *testing.B) {
	const perWindow = 100
	for _, size := range []int{100, 256, 1024} {
		for _, fill := range []bool{false, true} {
			name := fmt.Sprintf("%dB/consumed", size)
			if fill {
				name = fmt.Sprintf("%dB/filled", size)
			}
			b.Run(name, func(b *testing.B) {
				dir := b.TempDir()
				log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
				if err != nil {
					b.Fatal(err)
				}
				defer log.Close()
				s := open(b, store.Options{Dir: filepath.Join(dir, "store"), Alarm: func(what string) { b.Log(what) }})
				defer s.Close()
				f := &feeder{store: s, size: size, perWindow: perWindow, fill: fill}
				f.commit(b, engine.Record{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "a", Name: "q"}})
				payload := make([]byte, size*perWindow)
				bare := func() {
					if _, err := log.Write(payload); err != nil {
						b.Fatal(err)
					}
					if err := syscall.Fdatasync(int(log.Fd())); err != nil {
						b.Fatal(err)
					}
				}
				var logTime, storeTime, logCPU, storeCPU time.Duration
				var written uint64
				measured := false
				logWindows, storeWindows := 0, 0
				const turn = 200 * time.Millisecond
				b.ResetTimer()
				for range b.N {
					n, wall, cpu := during(turn, bare)
					logWindows, logTime, logCPU = logWindows+n, logTime+wall, logCPU+cpu
					before, _ := writtenBytes(dir)
					n, wall, cpu = during(turn, func() { f.window(b) })
					after, known := writtenBytes(dir)
					written, measured = written+after-before, known
					storeWindows, storeTime, storeCPU = storeWindows+n, storeTime+wall, storeCPU+cpu
				}
				b.StopTimer()
				logRate := float64(logWindows*perWindow) / logTime.Seconds()
				rate := float64(storeWindows*perWindow) / storeTime.Seconds()
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(logRate, "log-msg/s")
				b.ReportMetric(rate, "msg/s")
				b.ReportMetric(rate/logRate, "x/log")
				b.ReportMetric(float64(logCPU.Microseconds())/float64(logWindows*perWindow), "log-cpu-µs/msg")
				b.ReportMetric(float64(storeCPU.Microseconds())/float64(storeWindows*perWindow), "cpu-µs/msg")
				if measured {
					b.ReportMetric(float64(written)/float64(storeWindows*perWindow*size), "device/payload")
				}
				m := s.Metrics()
				b.Logf("applies %d in %v, indexed %d, edited %d, waited %v, checkpoints %d in %v, segments %d, freed %d, flush max %v",
					m.Applies, m.ApplyTime, m.Indexed, m.Edited, m.Waited, m.Checkpoints, m.CheckpointTime, m.Segments, m.Freed, m.FlushMax)
			})
		}
	}
}

// BenchmarkExpiry compares commits of messages that expire with such that don't, turn by turn in one run: x/plain is how
// many messages a second the one store commits for each one of the other.
func BenchmarkExpiry(b *testing.B) {
	const size, perWindow = 256, 100
	for _, fill := range []bool{false, true} {
		b.Run(map[bool]string{false: "consumed", true: "filled"}[fill], func(b *testing.B) {
			var feeders [2]*feeder
			for i, ttl := range []time.Duration{0, time.Hour} {
				s := open(b, store.Options{Dir: filepath.Join(b.TempDir(), "store"), Alarm: func(what string) { b.Log(what) }})
				defer s.Close()
				feeders[i] = &feeder{store: s, size: size, perWindow: perWindow, fill: fill, ttl: ttl}
				feeders[i].commit(b, engine.Record{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "a", Name: "q"}})
			}
			var windows [2]int
			var times, cpus [2]time.Duration
			const turn = 200 * time.Millisecond
			b.ResetTimer()
			for range b.N {
				for i, f := range feeders {
					n, wall, cpu := during(turn, func() { f.window(b) })
					windows[i], times[i], cpus[i] = windows[i]+n, times[i]+wall, cpus[i]+cpu
				}
			}
			b.StopTimer()
			var rates, used [2]float64
			for i := range feeders {
				messages := float64(windows[i] * perWindow)
				rates[i], used[i] = messages/times[i].Seconds(), float64(cpus[i].Microseconds())/messages
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rates[1], "msg/s")
			b.ReportMetric(rates[1]/rates[0], "x/plain")
			b.ReportMetric(used[1], "cpu-µs/msg")
			b.ReportMetric(used[0], "plain-cpu-µs/msg")
		})
	}
}

// during calls f for a time, and returns how often and what that took.
func during(d time.Duration, f func()) (n int, wall, cpu time.Duration) {
	start, used := time.Now(), processor()
	for time.Since(start) < d {
		f()
		n++
	}
	return n, time.Since(start), processor() - used
}

// writtenBytes returns what has been written to the device of a folder, by whoever, and false where that isn't known.
// (The counter of a process is of no use: writing to a large folio that is clean counts as all of the folio.)
func writtenBytes(dir string) (uint64, bool) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, false
	}
	device := info.Sys().(*syscall.Stat_t).Dev
	major, minor := device>>8&0xfff, device&0xff|device>>12&0xfff00
	text, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 9 && fields[0] == fmt.Sprint(major) && fields[1] == fmt.Sprint(minor) {
			sectors, err := strconv.ParseUint(fields[9], 10, 64)
			return sectors * 512, err == nil
		}
	}
	return 0, false
}

func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// feeder commits windows.
type feeder struct {
	store           *store.Store
	size, perWindow int
	fill            bool
	ttl             time.Duration // 0: none
	number          uint64
	records         []engine.Record
	messages        []queue.Message
}

func (f *feeder) commit(b *testing.B, records ...engine.Record) {
	if err := f.store.Commit(records); err != nil {
		b.Fatal(err)
	}
}

func (f *feeder) window(b *testing.B) {
	if f.messages == nil {
		f.messages = make([]queue.Message, f.perWindow)
		for i := range f.messages {
			f.messages[i] = queue.Message{
				Payload: make([]byte, f.size), Durable: true, HeaderDurable: true, Priority: 4, Arrived: 1_700_000_000_000, Address: "orders",
			}
		}
	}
	f.records = f.records[:0]
	if f.ttl != 0 {
		at := time.Now().Add(f.ttl).UnixMilli()
		for i := range f.messages {
			f.messages[i].Expiry = at
		}
	}
	for i := range f.messages {
		if !f.fill && f.number >= uint64(f.perWindow) {
			f.records = append(f.records, engine.Record{
				Kind: engine.RecordRemove, Queue: 1, Number: f.number + 1 - uint64(f.perWindow), Priority: 4,
			})
		}
		f.number++
		f.records = append(f.records, engine.Record{Kind: engine.RecordEnqueue, Queue: 1, Number: f.number, Message: &f.messages[i]})
	}
	f.commit(b, f.records...)
}
