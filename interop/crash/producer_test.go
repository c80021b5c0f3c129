package crash

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/letomq/leto/interop/wire"
)

// chunk is how much of a message goes into one transfer.
const chunk = 16 << 10

// underWay is how many messages a producer has unanswered at most. Of 600 KiB each, they stay below the frames that
// the broker's session window has at least.
const underWay = 16

// producer sends to all destinations on one connection, until the broker is gone.
type producer struct {
	c      *chain
	number uint16
	next   [destinations]uint32 // sequence; goes on from round to round
}

// lane is a producer's link to one destination.
type lane struct {
	sent   uint32
	credit int64
}

// run returns when the connection ends.
func (p *producer) run(b *broker, rng *rand.Rand) error {
	conn, err := wire.Connect(b.AMQP, fmt.Sprint("producer-", p.number))
	if err != nil {
		return err
	}
	defer conn.Close()
	var lanes [destinations]lane
	for to := range uint32(destinations) {
		if err := conn.Send(wire.AttachSender(to, fmt.Sprint("out-", to), targets[to])); err != nil {
			return err
		}
	}
	open := map[uint32]name{} // by delivery-id
	var id uint32
	for {
		to := uint8(rng.IntN(destinations))
		for len(open) >= underWay || lanes[to].credit <= 0 {
			if err := p.hear(conn, &lanes, open); err != nil {
				return err
			}
		}
		m := compose(p.c.seed, name{p.number, to, p.next[to]})
		p.next[to]++
		p.c.ledger.send(&m)
		open[id] = m.name
		lanes[to].sent++
		lanes[to].credit--
		if err := transmit(conn, uint32(to), id, m.bytes); err != nil {
			for { // what the broker has said before it went still counts
				if err := p.hear(conn, &lanes, open); err != nil {
					return err
				}
			}
		}
		id++
		if rng.IntN(16) == 0 { // so that disks and queues aren't flooded
			time.Sleep(time.Duration(rng.IntN(p.c.pause)) * time.Millisecond)
		}
	}
}

// transmit sends a message in pieces, each with a write of its own, so that a kill may come between them.
func transmit(conn *wire.Conn, handle, id uint32, b []byte) error {
	first := b[:min(chunk, len(b))]
	b = b[len(first):]
	if err := conn.Send(wire.Transfer(handle, id, len(b) > 0, first)); err != nil {
		return err
	}
	for len(b) > 0 {
		piece := b[:min(chunk, len(b))]
		b = b[len(piece):]
		if err := conn.Send(wire.Continue(handle, len(b) > 0, piece)); err != nil {
			return err
		}
	}
	return nil
}

// hear reads one frame that answers or grants credit.
func (p *producer) hear(conn *wire.Conn, lanes *[destinations]lane, open map[uint32]name) error {
	f, err := conn.Await(wire.CodeDisposition, wire.CodeFlow)
	if err != nil {
		return err
	}
	if f.Code == wire.CodeFlow {
		if f.Field(4) != nil {
			lane := &lanes[f.Number(4)]
			lane.credit = int64(f.Number(6)) - int64(lane.sent-uint32(f.Number(5)))
		}
		return nil
	}
	first, last := uint32(f.Number(1)), uint32(f.Number(1))
	if f.Field(2) != nil {
		last = uint32(f.Number(2))
	}
	code, _ := f.Outcome()
	for id := first; id <= last; id++ {
		n, ok := open[id]
		if !ok {
			return fmt.Errorf("disposition of delivery %d, which is not open", id)
		}
		delete(open, id)
		p.c.ledger.answer(n, code == wire.CodeAccepted)
		if code != wire.CodeAccepted && !p.c.tight {
			return fmt.Errorf("message %v is refused: % x", n, f.Field(4))
		}
	}
	return nil
}
