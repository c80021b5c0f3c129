package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store"
	"github.com/letomq/leto/store/journal"
)

// badDevice is a file system whose device fails with EIO as it is told.
type badDevice struct {
	journal.FS
	mu      sync.Mutex
	reads   func(b []byte) bool // fail, by what was read
	writes  bool                // those that bring message 2 fail
	flushes bool                // the same, of the file where it is
	victim  journal.File        // that file
	failed  bool
	after   int // its writes and flushes since
}

func (d *badDevice) Open(name string, create bool) (journal.File, error) {
	f, err := d.FS.Open(name, create)
	return badFile{f, d}, err
}

// set changes what fails.
func (d *badDevice) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// change returns what becomes of a write or a flush.
func (d *badDevice) change(f journal.File, fails bool) error {
	switch {
	case f != d.victim:
	case d.failed:
		d.after++
	case fails:
		d.failed = true
		return syscall.EIO
	}
	return nil
}

type badFile struct {
	journal.File
	device *badDevice
}

func (f badFile) ReadAt(b []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(b, offset)
	f.device.mu.Lock()
	defer f.device.mu.Unlock()
	if f.device.reads != nil && f.device.reads(b[:n]) {
		return 0, syscall.EIO
	}
	return n, err
}

func (f badFile) WriteAt(b []byte, offset int64) (int, error) {
	d := f.device
	d.mu.Lock()
	if bytes.Contains(b, []byte(text(2))) {
		d.victim = f.File
	}
	err := d.change(f.File, d.writes)
	d.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, offset)
}

func (f badFile) Sync() error {
	d := f.device
	d.mu.Lock()
	err := d.change(f.File, d.flushes)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return f.File.Sync()
}

func defined() engine.Record {
	return engine.Record{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "a", Name: "q"}}
}

// text is what only message n contains.
func text(n uint64) string { return fmt.Sprintf("<message %06d>", n) }

func enqueued(n uint64, size int) engine.Record {
	m := &queue.Message{Address: "a", Durable: true, Priority: 4, Payload: []byte(strings.Repeat(text(n), 1+size/16))}
	return engine.Record{Kind: engine.RecordEnqueue, Queue: 1, Number: n, Message: m}
}

// numbers are those of the messages that the queue has.
func numbers(t *testing.T, s *store.Store) (all []uint64) {
	t.Helper()
	found, err := s.Load(1, 4, 0, 1000, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		all = append(all, e.Number)
	}
	return all
}

// TestDeviceFails: when a write or a flush fails, nothing more is taken, written or flushed; the store ends, and what
// was committed before is there when the device is well again.
func TestDeviceFails(t *testing.T) {
	for name, breaks := range map[string]func(*badDevice){
		"write": func(d *badDevice) { d.writes = true },
		"flush": func(d *badDevice) { d.flushes = true },
	} {
		t.Run(name, func(t *testing.T) {
			o := small(t, t.TempDir())
			o.Checkpoint, o.ApplyAge = time.Hour, time.Hour // the first that finds out is a commit
			d := &badDevice{FS: journal.OS(o.Dir)}
			o.FS = d
			var mu sync.Mutex
			var alarms []string
			o.Alarm = func(what string) {
				mu.Lock()
				defer mu.Unlock()
				alarms = append(alarms, what)
			}
			s := open(t, o)
			if err := s.Commit([]engine.Record{defined(), enqueued(1, 100)}); err != nil {
				t.Fatal(err)
			}
			d.set(func() { breaks(d) })
			if err := s.Commit([]engine.Record{enqueued(2, 100)}); !errors.Is(err, syscall.EIO) {
				t.Fatalf("commit = %v, want EIO", err)
			}
			d.set(func() { d.writes, d.flushes = false, false }) // a device that seems well again
			for range 3 {
				if err := s.Commit([]engine.Record{enqueued(3, 100)}); !errors.Is(err, syscall.EIO) || errors.Is(err, engine.ErrStoreFull) {
					t.Errorf("commit after the failure = %v, want the same error", err)
				}
			}
			if err := s.Metrics().Failed; !errors.Is(err, syscall.EIO) {
				t.Errorf("failed = %v, want EIO", err)
			}
			if _, err := s.Load(1, 4, 0, 10, 1000); err == nil {
				t.Error("the failed store loads")
			}
			_ = s.Close() // it ends; that it has failed was said
			if d.after != 0 {
				t.Errorf("%d writes and flushes of a segment after one has failed", d.after)
			}
			if mu.Lock(); len(alarms) != 1 || !strings.Contains(alarms[0], "store: failed") {
				t.Errorf("alarms: %q, want one", alarms)
			}
			mu.Unlock()

			s = open(t, small(t, o.Dir))
			defer s.Close()
			if got := fmt.Sprint(numbers(t, s)); got != "[1]" && got != "[1 2]" { // what failed may be there
				t.Errorf("the queue has %s, want message 1, and no other than 2", got)
			}
		})
	}
}

// TestBodyIsUnreadable: a body that the device doesn't give back is tried a few times, and then passed over until it
// can be read.
func TestBodyIsUnreadable(t *testing.T) {
	o := small(t, t.TempDir())
	d := &badDevice{FS: journal.OS(o.Dir)}
	o.FS = d
	s := open(t, o)
	defer s.Close()
	records := []engine.Record{defined()}
	for n := uint64(1); n <= 9; n++ {
		records = append(records, enqueued(n, 100))
	}
	if err := s.Commit(records); err != nil {
		t.Fatal(err)
	}
	d.set(func() { d.reads = func([]byte) bool { return true } })
	for range 10 { // that isn't one body
		if found, err := s.Load(1, 4, 0, 1000, 1<<20); !errors.Is(err, syscall.EIO) {
			t.Fatalf("load = %d messages, %v, want EIO", len(found), err)
		}
	}
	d.set(func() { d.reads = func(b []byte) bool { return bytes.Contains(b, []byte(text(5))) } })
	for range 2 {
		if found, err := s.Load(1, 4, 0, 1000, 1<<20); !errors.Is(err, syscall.EIO) {
			t.Fatalf("load = %d messages, %v, want EIO", len(found), err)
		}
	}
	if got := fmt.Sprint(numbers(t, s)); got != "[1 2 3 4 6 7 8 9]" || s.Metrics().BadBodies != 1 {
		t.Errorf("the queue has %s, and %d bad bodies", got, s.Metrics().BadBodies)
	}
	d.set(func() { d.reads = nil })
	if got := fmt.Sprint(numbers(t, s)); got != "[1 2 3 4 5 6 7 8 9]" {
		t.Errorf("the queue has %s when all can be read", got)
	}
}

// TestSegmentIsUnreadable: a segment that can't be emptied, since part of it can't be read, doesn't end the store.
func TestSegmentIsUnreadable(t *testing.T) {
	o := small(t, t.TempDir())
	d := &badDevice{FS: journal.OS(o.Dir)}
	o.FS = d
	said := make(chan string, 1)
	o.Alarm = func(what string) {
		select {
		case said <- what:
		default:
		}
	}
	s := open(t, o)
	defer s.Close()
	if err := s.Commit([]engine.Record{defined()}); err != nil {
		t.Fatal(err)
	}
	d.set(func() { d.reads = func(b []byte) bool { return bytes.Contains(b, []byte(text(10))) } })
	const last = 400
	for n := uint64(1); n <= last; n++ {
		records := []engine.Record{enqueued(n, 10_000)}
		if n > 1 && n != 11 {
			records = append(records, engine.Record{Kind: engine.RecordRemove, Queue: 1, Number: n - 1, Priority: 4})
		}
		if err := s.Commit(records); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case what := <-said:
		if !strings.Contains(what, "can't be emptied") {
			t.Errorf("alarm: %s", what)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is said 20 s after a segment is due to be emptied")
	}
	if err := s.Commit([]engine.Record{enqueued(last+1, 100)}); err != nil {
		t.Errorf("commit = %v", err)
	}
}
