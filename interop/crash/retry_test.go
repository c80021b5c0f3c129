package crash

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

const (
	retriedQueue = "retried"
	retriedCount = 1_500
	retriedSize  = 100 // bytes
	retriedKills = 8
)

// command has the broker carry out a command over a queue's messages, and returns how many were done.
func command(b *broker, queue, verb, body string) (done int, err error) {
	answer, err := http.Post(fmt.Sprintf("http://%s/api/v1/queues/%s/%s", b.HTTP, queue, verb), "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var told struct {
		Done   int
		Detail string
	}
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s %s: %d %s", verb, queue, answer.StatusCode, told.Detail)
	}
	return told.Done, nil
}

// retriedPlaces wants each message to be in one place, and as it should be there; it returns how many are in their queue.
func retriedPlaces(t *testing.T, b *broker) (back int) {
	t.Helper()
	where := map[name]string{}
	faults := 0
	for _, address := range []string{retriedQueue, "DLQ"} {
		if err := each(b, address, retriedSize, func(n name, count uint32, message wire.Message) {
			if other, ok := where[n]; ok {
				t.Errorf("message %v is in %s and in %s", n, other, address)
				faults++
			}
			where[n] = address
			origin := annotation(message.MessageAnnotations, "x-opt-ORIG-QUEUE")
			if address == retriedQueue {
				back++
				if count != 0 || origin != "" {
					t.Errorf("message %v is back with delivery-count %d and origin %q", n, count, origin)
					faults++
				}
			} else if origin != retriedQueue {
				t.Errorf("message %v is dead with origin %q", n, origin)
				faults++
			}
			if faults > 10 {
				t.FailNow()
			}
		}); err != nil {
			t.Fatalf("browsing %s: %v\n%s", address, err, b.Log())
		}
	}
	if len(where) != retriedCount {
		t.Errorf("%d messages are somewhere, want %d", len(where), retriedCount)
	}
	return back
}

// TestKilledWhileDeadLettersAreSentBack: SIGKILL while dead letters are sent back, and while messages are moved. Each is
// in one place. With little memory most of them wait in the store only.
func TestKilledWhileDeadLettersAreSentBack(t *testing.T) {
	withMuchAndLittle(t, 7, sendBack)
}

func sendBack(t *testing.T, rng *rand.Rand, memory string) {
	b, err := harness.Begin(filepath.Join(t.TempDir(), "data"), "--log-level", "warn", "--set", "limits.memory="+memory,
		"--set", "limits.disk-free=192MiB")
	if err == nil {
		err = b.Ready()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	}()
	killAll(t, b)
	if back := retriedPlaces(t, b); back != 0 {
		t.Fatalf("%d messages aren't dead", back)
	}
	some := `{"filter": "m.x-opt-death-reason LIKE 'rejected%' AND JMSMessageID LIKE '%7'", "count": 100}`
	if done, err := command(b, "DLQ", "retry", some); err != nil || done != 100 {
		t.Fatalf("%d sent back, %v", done, err)
	}
	if back := retriedPlaces(t, b); back != 100 {
		t.Errorf("%d messages are back, want 100", back)
	}
	cut, before := 0, 100
	for round := range retriedKills {
		queue, verb, body := "DLQ", "retry", "{}"
		if round%2 == 1 {
			queue, verb, body = retriedQueue, "move", `{"to": "DLQ"}`
		}
		var asked sync.WaitGroup
		asked.Go(func() { _, _ = command(b, queue, verb, body) }) // it is cut off, or not
		time.Sleep(time.Duration(rng.IntN(25_000)) * time.Microsecond)
		again := b.Again()
		asked.Wait()
		if again != nil {
			t.Fatalf("start: %v\n%s", again, b.Log())
		}
		back := retriedPlaces(t, b)
		if back != before && back != 0 && back != retriedCount {
			cut++
		}
		before = back
		if t.Failed() {
			return
		}
	}
	t.Logf("%d of %d kills came half way", cut, retriedKills)
	if _, err := command(b, "DLQ", "retry", "{}"); err != nil {
		t.Error(err)
	}
	if back := retriedPlaces(t, b); back != retriedCount {
		t.Errorf("%d messages are back in the end, want all", back)
	}
}

// killAll has all messages be rejected.
func killAll(t *testing.T, b *broker) {
	t.Helper()
	s, err := newFeed(b, retriedQueue, func(name) {})
	for i := uint32(0); i < retriedCount && err == nil; i++ {
		n := name{sequence: i}
		err = s.send(n, plain(n, retriedSize))
	}
	if err == nil {
		err = s.finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	m := &mass{t: t, dead: map[name]bool{}}
	m.told = sync.NewCond(&m.mu)
	r, err := newTaker(b, "consumer", terms{name: "in", address: retriedQueue, second: true}, m.die)
	if err != nil {
		t.Fatal(err)
	}
	for range retriedCount {
		id, message, err := r.next(false)
		if err != nil {
			t.Fatal(err)
		}
		n, _, _, err := readPlain(message, retriedSize)
		if err != nil {
			t.Fatal(err)
		}
		r.open[id] = n
		if err := r.conn.Send(disposition(id, id, false, outcome(reject, true))); err != nil {
			t.Fatal(err)
		}
	}
	for len(m.dead) < retriedCount {
		f, err := r.conn.Await(wire.CodeDisposition)
		if err != nil {
			t.Fatalf("%d deaths were confirmed: %v", len(m.dead), err)
		}
		r.hear(&f)
	}
	r.conn.Close()
}
