package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/letomq/leto/interop/wire"
)

// The links of a worker, by handle: to the coordinator, to each queue, and from each queue and the dead letters.
const (
	control   = 0
	firstOut  = 1
	firstIn   = firstOut + bookQueues
	handles   = firstIn + bookPlaces
	manyMoves = 8    // in a transaction, at most
	workSize  = 100  // bytes
	enough    = 2000 // messages; with more of them fewer are posted
	inCredit  = 6
)

// workerSize is the size of a message: now and then above what goes into a journal's record as a whole.
func workerSize(n name) int {
	if n.sequence%100 == 99 {
		return 300 << 10
	}
	return workSize
}

// delivery is one that a worker has.
type delivery struct {
	name
	id    uint32
	at    uint8
	count uint32
	tried bool // a rollback has left it here
}

// worker is a connection that works under transactions, one after the other, until it is cut.
type worker struct {
	books  *books
	conn   *wire.Conn
	rng    *rand.Rand
	number uint16

	sent    uint32 // deliveries, on all links
	frames  uint32 // of them
	next    [bookQueues]uint32
	lanes   [firstIn]lane
	takers  [handles]struct{ count, credit uint32 }
	drains  int
	from    map[uint64]int // our handle of a link, by the broker's
	partial []byte
	id      uint32
	held    []delivery

	txn     []byte
	asked   uint32 // delivery-id of what the coordinator was asked last
	answers uint64 // what it has answered; 0: nothing yet
	why     string
}

// workOn works until the broker is gone. Connections that are cut by us are replaced.
func workOn(k *books, b *broker, numbers func() uint16, rng *rand.Rand) error {
	for {
		w, err := newWorker(k, b, numbers(), rng)
		if err != nil {
			return err
		}
		for cut := false; !cut && err == nil; {
			cut, err = w.transact()
		}
		w.conn.Close()
		if err != nil {
			return err
		}
	}
}

func newWorker(k *books, b *broker, number uint16, rng *rand.Rand) (*worker, error) {
	w := &worker{books: k, rng: rng, number: number, from: map[uint64]int{}}
	var err error
	if w.conn, err = wire.Connect(b.AMQP, fmt.Sprint("worker-", number)); err != nil {
		return nil, err
	}
	links := [][]byte{wire.AttachControl(control, strconv.Itoa(control))}
	for q := range bookQueues {
		links = append(links, wire.AttachSender(firstOut+uint32(q), strconv.Itoa(firstOut+q), places[q]))
	}
	for q := range bookPlaces {
		links = append(links, wire.AttachReceiver(firstIn+uint32(q), strconv.Itoa(firstIn+q), places[q]))
	}
	err = w.conn.Send(links...)
	for err == nil && len(w.from) < handles {
		err = w.hear()
	}
	if err != nil {
		w.conn.Close()
		return nil, err
	}
	return w, nil
}

func (w *worker) send(frames []byte) error {
	err := w.conn.Send(frames)
	if err != nil {
		for w.hear() == nil { // what the broker has said before it went still counts
		}
	}
	return err
}

// hear reads one frame.
func (w *worker) hear() error {
	f, err := w.conn.Await(wire.CodeAttach, wire.CodeFlow, wire.CodeTransfer, wire.CodeDisposition)
	if err != nil {
		return err
	}
	switch f.Code {
	case wire.CodeAttach:
		text, _ := wire.Text(f.Field(0))
		ours, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		w.from[f.Number(1)] = ours
	case wire.CodeFlow:
		if f.Field(4) == nil {
			return nil
		}
		h := w.from[f.Number(4)]
		if h < firstIn {
			w.lanes[h].credit = int64(f.Number(6)) - int64(w.lanes[h].sent-uint32(f.Number(5)))
		} else if f.Number(6) == 0 && f.Number(8) != 0 {
			w.takers[h].count, w.takers[h].credit = uint32(f.Number(5)), 0
			w.drains--
		}
	case wire.CodeTransfer:
		return w.deliver(&f)
	case wire.CodeDisposition:
		return w.answered(&f)
	}
	return nil
}

func (w *worker) deliver(f *wire.Frame) error {
	if w.partial == nil {
		w.id, w.partial = uint32(f.Number(1)), []byte{}
	}
	w.partial = append(w.partial, f.Payload...)
	if f.Number(5) == 1 {
		return nil
	}
	message := w.partial
	w.partial = nil
	h := w.from[f.Number(0)]
	w.takers[h].count++
	w.takers[h].credit--
	d := delivery{id: w.id, at: uint8(h - firstIn)}
	var err error
	if d.name, d.count, _, err = readSized(message, workerSize); err != nil {
		return err
	}
	w.books.deliver(d.name, d.at, d.count, w.number)
	w.held = append(w.held, d)
	return nil
}

// answered is told of a disposition. The coordinator's counts; of posts it has to be that they are accepted.
func (w *worker) answered(f *wire.Frame) error {
	if f.Number(0) == 0 { // of what we have received
		return nil
	}
	code, value, err := wire.Code(f.Field(4))
	if err != nil {
		return fmt.Errorf("disposition: %w", err)
	}
	for id := range covered(f) {
		if id != w.asked {
			state := []byte(nil)
			if code == wire.CodeTransactional {
				if fields, err := wire.Items(value); err == nil && len(fields) > 1 {
					state = fields[1]
				}
			}
			if outcome, _, err := wire.Code(state); err != nil || outcome != wire.CodeAccepted {
				return fmt.Errorf("post is answered with %#x % x", code, value)
			}
			continue
		}
		w.answers = code
		w.why = fmt.Sprintf("%q", value)
		if code == wire.CodeDeclared {
			fields, err := wire.Items(value)
			if err != nil || len(fields) == 0 {
				return fmt.Errorf("declared without an id: % x", value)
			}
			id, _ := wire.Text(fields[0])
			w.txn = []byte(id)
		}
	}
	return nil
}

// request asks the coordinator for something.
func (w *worker) request(message []byte) error {
	for w.lanes[control].credit <= 0 {
		if err := w.hear(); err != nil {
			return err
		}
	}
	w.asked, w.answers = w.sent, 0
	return w.transfer(control, wire.Transfer(control, w.sent, false, message))
}

func (w *worker) transfer(handle int, frames ...[]byte) error {
	w.sent++
	w.frames += uint32(len(frames))
	w.lanes[handle].sent++
	w.lanes[handle].credit--
	return w.send(bytes.Join(frames, nil))
}

// await waits for the coordinator's answer.
func (w *worker) await(want uint64) error {
	for w.answers == 0 {
		if err := w.hear(); err != nil {
			return err
		}
	}
	if w.answers != want {
		return fmt.Errorf("coordinator answers with %#x %s", w.answers, w.why)
	}
	return nil
}

// refill grants credit to all links that receive.
func (w *worker) refill() error {
	var flows []byte
	for h := firstIn; h < handles; h++ {
		if t := &w.takers[h]; t.credit < inCredit/2 && len(w.held) < 4*inCredit {
			t.credit = inCredit
			flows = append(flows, flowOf(w.frames, uint32(h), t.count, t.credit, false)...)
		}
	}
	if flows == nil {
		return nil
	}
	return w.send(flows)
}

// dry takes all credit back, and reads what has come until then.
func (w *worker) dry() error {
	var flows []byte
	for h := firstIn; h < handles; h++ {
		flows = append(flows, flowOf(w.frames, uint32(h), w.takers[h].count, max(w.takers[h].credit, 1), true)...)
		w.takers[h].credit = max(w.takers[h].credit, 1)
		w.drains++
	}
	if err := w.send(flows); err != nil {
		return err
	}
	for w.drains > 0 {
		if err := w.hear(); err != nil {
			return err
		}
	}
	return nil
}

// transact carries out a transaction. It is committed or rolled back, or the connection is cut: before it is asked for
// one of them or right behind that.
func (w *worker) transact() (cut bool, err error) {
	if err := w.refill(); err != nil {
		return false, err
	}
	if err := w.request(wire.Declare()); err != nil {
		return false, err
	}
	if err := w.await(wire.CodeDeclared); err != nil {
		return false, err
	}
	x := w.books.begin(false)
	for range 1 + w.rng.IntN(manyMoves) {
		if err := w.move(x); err != nil {
			return false, err
		}
	}
	k := w.rng.IntN(100)
	if cut = k < 6; cut {
		if err := w.dry(); err != nil {
			return false, err
		}
	}
	undo := w.rng.IntN(4) == 0
	if !cut || k >= 2 {
		if undo {
			w.books.rollback(x)
		} else {
			w.books.commit(x)
		}
		if err := w.request(wire.Discharge(w.txn, undo)); err != nil {
			return false, err
		}
	}
	if cut {
		w.books.cut(w.held, x)
		return true, nil
	}
	if err := w.await(wire.CodeAccepted); err != nil {
		return false, err
	}
	if !undo {
		w.books.told(x, holds)
		return false, nil
	}
	w.books.told(x, undone)
	for i := range x.changes {
		if c := &x.changes[i]; !c.posted && !c.settled {
			d := c.delivery
			d.tried = true
			w.books.back(&d)
			w.held = append(w.held, d)
		}
	}
	return false, nil
}

// move posts a message or gives a delivery an outcome, under a transaction.
func (w *worker) move(x *work) error {
	if len(w.held) == 0 || w.rng.IntN(5) < 2 && (!w.books.crowded(enough) || w.rng.IntN(4) == 0) {
		return w.post(x)
	}
	i := w.rng.IntN(len(w.held))
	d := w.held[i]
	w.held = slices.Delete(w.held, i, i+1)
	v := accept
	switch k := w.rng.IntN(100); {
	case k < 45:
	case k < 60:
		v = release
	case d.at == letters: // rejected ones would be gone
	case k < 75:
		v = reject
	default:
		v = fail
	}
	settled := w.rng.IntN(3) > 0
	w.books.retire(x, &d, v, settled)
	return w.send(disposition(d.id, d.id, settled, wire.Under(w.txn, outcome(v, true))))
}

func (w *worker) post(x *work) error {
	to := w.rng.IntN(bookQueues)
	h := firstOut + to
	for w.lanes[h].credit <= 0 {
		if err := w.hear(); err != nil {
			return err
		}
	}
	n := name{producer: w.number, to: uint8(to), sequence: w.next[to]}
	w.next[to]++
	w.books.post(x, n)
	message := plain(n, workerSize(n))
	first := message[:min(chunk, len(message))]
	frames := [][]byte{wire.Post(uint32(h), w.sent, len(first) < len(message), w.txn, first)}
	for message = message[len(first):]; len(message) > 0; {
		piece := message[:min(chunk, len(message))]
		message = message[len(piece):]
		frames = append(frames, wire.Continue(uint32(h), len(message) > 0, piece))
	}
	return w.transfer(h, frames...)
}

// bookMoment is how long a broker works before it is killed.
func bookMoment(rng *rand.Rand) time.Duration {
	if rng.IntN(8) == 0 {
		return time.Duration(rng.IntN(1500)) * time.Millisecond
	}
	return time.Duration(10+rng.IntN(300)) * time.Millisecond
}
