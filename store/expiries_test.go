package store_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
	"github.com/letomq/leto/store"
)

// accepts is a Confirmer that counts what is accepted.
type accepts chan struct{}

func (a accepts) Confirmed(_ uint64, r engine.Result) {
	if r.Verdict == engine.Accepted {
		a <- struct{}{}
	}
}

// TestBacklogExpires has a backlog expire that only the store has, after a kill, and the broker is dropped in the midst
// of it: every message is at the expiry address, once.
func TestBacklogExpires(t *testing.T) {
	const n = 5000
	o := small(t, t.TempDir())
	o.ApplyAge = 20 * time.Millisecond
	s := open(t, o)
	opts := engine.Options{
		Limits:   engine.Limits{MemoryBytes: 1 << 20, WindowRecords: 256},
		Settings: []engine.AddressSettings{{Match: "#", ExpiryAddress: new("E")}},
	}
	begin := func() *engine.Broker {
		b, err := engine.New(opts, s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := begin()
	accepted := make(accepts, n)
	p, err := b.Producer(engine.ProducerSpec{Address: "q"}, accepted)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(time.Hour).UnixMilli()
	for i := range n {
		m := &queue.Message{Payload: binary.BigEndian.AppendUint32(nil, uint32(i)), Durable: true, Priority: 4, Expiry: at}
		if i%2 == 0 {
			m.Expiry = time.Now().UnixMilli() + int64(500+i%500)
		}
		p.Publish(m, uint64(i))
	}
	for range n {
		<-accepted
	}
	o.Dir = copyStore(t, o.Dir) // as a kill leaves it
	b.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	b = begin()
	count := func(address string) int {
		q, err := b.Queue(address, "")
		if err != nil {
			return 0
		}
		return q.Messages
	}
	eventually(t, "some have expired", func() bool { return count("E") > 0 })
	b.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	b = begin()
	eventually(t, "half has expired", func() bool { return count("q") == n/2 && count("E") == n/2 })
	b.Close()
	seen := map[uint32]bool{}
	for id, want := range map[engine.QueueID]int{1: n / 2, 2: n / 2} {
		all, err := s.Load(id, 4, 0, 2*n, 1<<30)
		if err != nil || len(all) != want {
			t.Fatalf("queue %d has %d messages, %v, want %d", id, len(all), err, want)
		}
		for _, e := range all {
			seen[binary.BigEndian.Uint32(e.Message.Payload)] = true
		}
	}
	if len(seen) != n {
		t.Errorf("%d messages, want %d", len(seen), n)
	}
	if report, err := s.Check(); err != nil || len(report.Problems) > 0 {
		t.Errorf("check: %v, %q", err, report.Problems)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOlderIndexIsMadeAnew opens a store whose position is that of an index without expiries.
func TestOlderIndexIsMadeAnew(t *testing.T) {
	o := small(t, t.TempDir())
	s := open(t, o)
	if err := s.Commit([]engine.Record{
		{Kind: engine.RecordDefine, Queue: 1, Definition: &engine.Definition{ID: 1, Address: "a", Name: "q"}},
		{Kind: engine.RecordEnqueue, Queue: 1, Number: 7, Message: &queue.Message{Payload: []byte("x"), Durable: true, Priority: 4, Expiry: 99}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	name, witness := filepath.Join(o.Dir, "position"), filepath.Join(o.Dir, "index", "witness")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint16(b[8:], 1)
	binary.BigEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)))
	for _, f := range []string{name, witness} {
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, o)
	if _, err := os.Stat(witness); err == nil {
		t.Error("the old index is still there")
	}
	due, next, err := s.Expiries().Due(100, 10)
	if want := fmt.Sprint([]engine.Due{{Queue: 1, Priority: 4, Number: 7, Bytes: 1}}); fmt.Sprint(due) != want || next != 0 || err != nil {
		t.Errorf("due %v, next %d, %v, want %s", due, next, err, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(name); err != nil || store.PositionTime(b) == 0 {
		t.Errorf("position = % x, %v, want a whole one", b, err)
	}
}
