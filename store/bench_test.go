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

// BenchmarkDelayed measures due times. enqueue and cycle compare with a store without, turn by turn in one run: a message
// that is sent for later with one that isn't, and a message that fails, waits and is due again before the index sees it
// with one that fails. backlog has a million wait before one that is ready, opens the store, and has all be due.
func BenchmarkDelayed(b *testing.B) {
	later := func(records []engine.Record) []engine.Record {
		for i := range records {
			if records[i].Kind == engine.RecordEnqueue {
				records[i].Due = 1_700_000_000_000 + int64(records[i].Number)
			}
		}
		return records
	}
	fail := func(waits bool) func(records []engine.Record) []engine.Record {
		return func(records []engine.Record) []engine.Record {
			n := len(records)
			for _, r := range records[:n] {
				if r.Kind != engine.RecordEnqueue {
					continue
				}
				failed := engine.Record{Kind: engine.RecordCount, Queue: 1, Number: r.Number, Priority: 4, Count: 1}
				if waits {
					failed.Due = 1_700_000_000_000
					records = append(records, failed, engine.Record{Kind: engine.RecordDue, Queue: 1, Number: r.Number, Priority: 4})
				} else {
					records = append(records, failed)
				}
			}
			return records
		}
	}
	b.Run("enqueue", func(b *testing.B) { compareCommits(b, true, nil, later) })
	b.Run("cycle", func(b *testing.B) { compareCommits(b, false, fail(false), fail(true)) })
	b.Run("backlog", benchmarkDelayedBacklog)
}

// compareCommits commits what two changes make of the same windows, turn by turn.
func compareCommits(b *testing.B, fill bool, changes ...func([]engine.Record) []engine.Record) {
	var feeders [2]*feeder
	for i := range feeders {
		s := open(b, store.Options{Dir: filepath.Join(b.TempDir(), "store"), Alarm: func(what string) { b.Log(what) }})
		defer s.Close()
		feeders[i] = &feeder{store: s, size: 256, perWindow: 100, fill: fill, change: changes[i]}
		feeders[i].commit(b, engine.Record{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "a", Name: "q"}})
	}
	var windows [2]int
	var times, cpus [2]time.Duration
	b.ResetTimer()
	for range b.N {
		for i, f := range feeders {
			n, wall, cpu := during(200*time.Millisecond, func() { f.window(b) })
			windows[i], times[i], cpus[i] = windows[i]+n, times[i]+wall, cpus[i]+cpu
		}
	}
	b.StopTimer()
	var rates, used [2]float64
	for i := range feeders {
		messages := float64(windows[i] * 100)
		rates[i], used[i] = messages/times[i].Seconds(), float64(cpus[i].Microseconds())/messages
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rates[1], "msg/s")
	b.ReportMetric(rates[1]/rates[0], "x/plain")
	b.ReportMetric(used[1], "cpu-µs/msg")
	b.ReportMetric(used[0], "plain-cpu-µs/msg")
}

func benchmarkDelayedBacklog(b *testing.B) {
	const n, perWindow = 1_000_000, 1000
	const base = 1_700_000_000_000
	for range b.N {
		o := store.Options{Dir: filepath.Join(b.TempDir(), "store"), Alarm: func(what string) { b.Log(what) }}
		s := open(b, o)
		f := &feeder{store: s, size: 64, perWindow: perWindow, fill: true, change: func(records []engine.Record) []engine.Record {
			for i := range records {
				records[i].Due = base + int64(records[i].Number*7919%n)
			}
			return records
		}}
		f.commit(b, engine.Record{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "a", Name: "q"}})
		start := time.Now()
		for range n / perWindow {
			f.window(b)
		}
		b.ReportMetric(n/time.Since(start).Seconds(), "delayed/s")
		f.change = nil
		f.window(b)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		size := int64(0)
		names, _ := filepath.Glob(filepath.Join(o.Dir, "index", "*.sst"))
		for _, name := range names {
			if info, err := os.Stat(name); err == nil {
				size += info.Size()
			}
		}
		b.ReportMetric(float64(size)/n, "index-B/entry")
		start = time.Now()
		s = open(b, o)
		if _, err := s.Recover(); err != nil {
			b.Fatal(err)
		}
		if _, next, err := s.Delayed(1, engine.Due{}, 0, 1); err != nil || next != base {
			b.Fatalf("next at %d, %v", next, err)
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "open-ms")
		start = time.Now()
		if got, err := s.Load(1, 4, 0, 10, 1<<20); err != nil || len(got) != 10 {
			b.Fatalf("%d loaded, %v", len(got), err)
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "pass-ms")
		f.store = s
		start = time.Now()
		var asking time.Duration
		fired := 0
		var records []engine.Record
		for {
			asked := time.Now()
			due, _, err := s.Delayed(1, engine.Due{}, base+n, 1024)
			asking += time.Since(asked)
			if err != nil {
				b.Fatal(err)
			}
			if len(due) == 0 {
				break
			}
			records = records[:0]
			for _, d := range due {
				records = append(records, engine.Record{Kind: engine.RecordDue, Queue: 1, Number: d.Number, Priority: 4})
			}
			f.commit(b, records...)
			fired += len(due)
		}
		if fired != n {
			b.Fatalf("%d were due, want %d", fired, n)
		}
		b.ReportMetric(n/time.Since(start).Seconds(), "fired/s")
		b.ReportMetric(float64(asking.Microseconds())/n, "asking-µs/entry")
		if got, err := s.Load(1, 4, 0, 10, 1<<20); err != nil || len(got) != 10 || got[0].Number != 1 {
			b.Fatalf("%d loaded, %v", len(got), err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
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
	change          func([]engine.Record) []engine.Record
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
	if f.change != nil {
		f.records = f.change(f.records)
	}
	f.commit(b, f.records...)
}
