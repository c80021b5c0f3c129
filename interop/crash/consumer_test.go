package crash

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/letomq/leto/interop/wire"
)

// consumer is a link, the only one of its connection, that takes from a queue.
type consumer struct {
	c    *chain
	conn *wire.Conn
	link *link
	from uint8
	rng  *rand.Rand

	count   uint32 // deliveries so far
	credit  uint32 // left
	partial []byte
	id      uint32
	held    []holding        // that nothing was said of, in order
	open    map[uint32]claim // asked for, by delivery-id
	silent  []claim          // settled by us, and not confirmed until the connection is closed in order
}

// holding is a delivery that the consumer has.
type holding struct {
	id uint32
	arrival
}

// subscribed is the link's name of a subscription's queue.
func subscribed(from uint8) string { return names[from][len(container)+1:] }

// consume connects and attaches.
func consume(c *chain, b *broker, from uint8, second, browse bool, rng *rand.Rand) (*consumer, error) {
	l := c.ledger.newLink()
	o := terms{name: fmt.Sprint("in-", l.number), address: sources[from], second: second, browse: browse}
	id := fmt.Sprint("consumer-", l.number)
	if !browse && (from == queueFirst || from == queueSlow) {
		id = container // with it and the link's name the subscription is known
		o.name, o.durable, o.address = subscribed(from), true, "topic://"+topicAddress
		if c.subscribed && rng.IntN(2) == 0 {
			o.address = "" // it has to be there
		}
	}
	conn, refusal, err := attach(b, id, o)
	if o.address == "" && strings.Contains(refusal, "resource-locked") {
		// It is there, and the broker hasn't noticed yet that the connection of its last consumer was cut.
		o.address = "topic://" + topicAddress
		conn, refusal, err = attach(b, id, o)
	}
	if refusal != "" {
		err = fmt.Errorf("attach refused: %s", refusal)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sources[from], err)
	}
	return &consumer{c: c, conn: conn, link: l, from: from, rng: rng, open: map[uint32]claim{}}, nil
}

// attach opens a connection with one receiving link. When the link is refused there is none.
func attach(b *broker, id string, o terms) (conn *wire.Conn, refusal string, err error) {
	conn, err = wire.Connect(b.AMQP, id)
	if err != nil {
		return nil, "", err
	}
	if err := conn.Send(o.attach()); err != nil {
		return nil, "", errors.Join(err, conn.Close())
	}
	f, err := conn.Await(wire.CodeAttach)
	if err == nil && f.Field(5) != nil {
		return conn, "", nil
	}
	if err == nil { // a refusal [2.6.3]
		if f, err = conn.Await(wire.CodeDetach); err == nil {
			return nil, f.Condition(2), conn.Close()
		}
	}
	return nil, "", errors.Join(err, conn.Close())
}

// grant raises the credit to n.
func (r *consumer) grant(n uint32, drain bool) error {
	r.credit = n
	return r.conn.Send(flow(r.count, n, drain))
}

// step reads one frame. It returns true for the answer to a drain, and the delivery when one is whole.
func (r *consumer) step() (drained bool, got *holding, err error) {
	f, err := r.conn.Await(wire.CodeTransfer, wire.CodeDisposition, wire.CodeFlow)
	if err != nil {
		return false, nil, err
	}
	switch f.Code {
	case wire.CodeFlow:
		if f.Field(4) == nil || f.Number(6) != 0 || f.Number(8) == 0 {
			return false, nil, nil
		}
		r.count, r.credit = uint32(f.Number(5)), 0
		return true, nil, nil
	case wire.CodeDisposition:
		return false, nil, r.settled(&f)
	}
	if r.partial == nil {
		r.id = uint32(f.Number(1))
		r.partial = []byte{}
	}
	r.partial = append(r.partial, f.Payload...)
	if f.Number(5) == 1 {
		return false, nil, nil
	}
	if r.credit == 0 {
		return false, nil, errors.New("a delivery without credit")
	}
	r.count++
	r.credit--
	a, err := identify(r.c.seed, r.from, r.partial)
	r.c.bytes.Add(int64(len(r.partial)))
	r.partial = nil
	if err != nil {
		return false, nil, err
	}
	return false, &holding{r.id, a}, nil
}

// take is step for a consumer that has what it gets.
func (r *consumer) take() (drained, got bool, err error) {
	drained, h, err := r.step()
	if h != nil {
		r.c.ledger.deliver(&h.arrival, r.link)
		r.held = append(r.held, *h)
	}
	return drained, h != nil, err
}

// settled is told what the broker has settled.
func (r *consumer) settled(f *wire.Frame) error {
	first, last := uint32(f.Number(1)), uint32(f.Number(1))
	if f.Field(2) != nil {
		last = uint32(f.Number(2))
	}
	if f.Number(3) != 1 {
		return nil
	}
	for id := first; id <= last; id++ {
		if c, ok := r.open[id]; ok {
			r.c.ledger.confirm(c)
			delete(r.open, id)
		}
	}
	return nil
}

// choose picks what to ask for.
func (r *consumer) choose() verb {
	k := r.rng.IntN(100)
	switch {
	case r.from >= queues: // dead letters that are rejected would be gone
		if k < 20 {
			return release
		}
		return accept
	case k < 60:
		return accept
	case k < 72:
		return release
	case k < 80:
		return reject
	}
	return fail
}

// ask asks for an outcome of held[i], and leaves it to the broker to settle.
func (r *consumer) ask(i int, v verb) error {
	h := r.held[i]
	r.held = slices.Delete(r.held, i, i+1)
	r.open[h.id] = r.c.ledger.claim(&h.arrival, v, r.link)
	return r.conn.Send(disposition(h.id, h.id, false, outcome(v, r.rng.IntN(4) > 0)))
}

// settle settles the first n of held, whose ids follow each other, with one outcome.
func (r *consumer) settle(n int, v verb) error {
	for i := range r.held[:n] {
		r.silent = append(r.silent, r.c.ledger.claim(&r.held[i].arrival, v, r.link))
	}
	first, last := r.held[0].id, r.held[n-1].id
	r.held = slices.Delete(r.held, 0, n)
	return r.conn.Send(disposition(first, last, true, outcome(v, true)))
}

// cut ends the connection without a word.
func (r *consumer) cut() error {
	r.c.ledger.lose(r.arrivals(), slices.Concat(r.silent, r.claims()), r.link)
	return r.conn.Close()
}

// hangup closes the connection in order. The broker's close confirms what was asked for before.
func (r *consumer) hangup() error {
	defer r.conn.Close()
	r.c.ledger.giveBack(r.arrivals(), r.link)
	r.held = nil
	if err := r.conn.Send(wire.Close()); err != nil {
		return err
	}
	for {
		f, err := r.conn.Await(wire.CodeClose, wire.CodeDisposition, wire.CodeTransfer)
		if err != nil {
			return err
		}
		switch f.Code {
		case wire.CodeTransfer:
			if r.credit == 0 {
				return errors.New("a delivery without credit, seen at the close")
			}
		case wire.CodeDisposition:
			if err := r.settled(&f); err != nil {
				return err
			}
		case wire.CodeClose:
			if condition := f.Condition(0); condition != "" {
				return errors.New("close: " + condition)
			}
			for _, c := range slices.Concat(r.silent, r.claims()) {
				r.c.ledger.confirm(c)
			}
			return nil
		}
	}
}

func (r *consumer) arrivals() []arrival {
	var all []arrival
	for _, h := range r.held {
		all = append(all, h.arrival)
	}
	return all
}

func (r *consumer) claims() []claim { return slices.Collect(maps.Values(r.open)) }

// eager takes all that comes and settles out of order, receiver second, a few behind.
func eager(c *chain, b *broker, from uint8, rng *rand.Rand) error {
	r, err := consume(c, b, from, true, false, rng)
	if err != nil {
		return err
	}
	defer r.conn.Close()
	behind := rng.IntN(12)
	for {
		if r.credit < 20 {
			if err := r.grant(40, false); err != nil {
				return r.rest(err)
			}
		}
		_, got, err := r.take()
		if err != nil {
			return err
		}
		for got && len(r.held) > behind {
			if err := r.ask(rng.IntN(len(r.held)), r.choose()); err != nil {
				return r.rest(err)
			}
		}
	}
}

// rest hears what the broker has said before it went.
func (r *consumer) rest(err error) error {
	for {
		if _, _, e := r.take(); e != nil {
			return errors.Join(err, e)
		}
	}
}

// coming settles ranges, receiver first, and closes its connection in order now and then.
func coming(c *chain, b *broker, from uint8, rng *rand.Rand) error {
	for {
		r, err := consume(c, b, from, false, false, rng)
		if err != nil {
			return err
		}
		if err := r.come(); err != nil {
			r.conn.Close()
			return err
		}
	}
}

func (r *consumer) come() error {
	for left := 10 + r.rng.IntN(200); left > 0; left-- {
		if r.credit < 20 {
			if err := r.grant(40, false); err != nil {
				return r.rest(err)
			}
		}
		_, got, err := r.take()
		if err != nil {
			return err
		}
		if n := len(r.held); got && n > r.rng.IntN(10) {
			if err := r.settle(1+r.rng.IntN(n), r.choose()); err != nil {
				return r.rest(err)
			}
		}
	}
	return r.hangup()
}

// drainer asks for what there is, says something of part of it, and goes: in order or not.
func drainer(c *chain, b *broker, from uint8, rng *rand.Rand) error {
	for {
		r, err := consume(c, b, from, true, false, rng)
		if err != nil {
			return err
		}
		for range 1 + rng.IntN(3) {
			if err := r.drain(); err != nil {
				r.conn.Close()
				return err
			}
		}
		if rng.IntN(2) == 0 {
			err = r.cut()
		} else {
			err = r.hangup()
		}
		if err != nil {
			return err
		}
	}
}

func (r *consumer) drain() error {
	if err := r.grant(uint32(1+r.rng.IntN(60)), true); err != nil {
		return r.rest(err)
	}
	for {
		drained, _, err := r.take()
		if err != nil {
			return err
		}
		if drained {
			break
		}
	}
	for range r.rng.IntN(1 + len(r.held)) {
		if err := r.ask(r.rng.IntN(len(r.held)), r.choose()); err != nil {
			return r.rest(err)
		}
	}
	for sure := r.rng.IntN(2) == 0; sure && len(r.open) > 0; {
		if _, _, err := r.take(); err != nil {
			return err
		}
	}
	return nil
}

// empty takes all there is out of a queue, accepts it, and waits until that is confirmed.
func empty(c *chain, b *broker, from uint8, rng *rand.Rand) (n int, err error) {
	r, err := consume(c, b, from, true, false, rng)
	if err != nil {
		return 0, err
	}
	defer r.conn.Close()
	rest := c.ledger.newLink()
	for more := true; more; {
		if err := r.grant(100, true); err != nil {
			return n, err
		}
		before := n
		for drained := false; !drained; {
			var got bool
			if drained, got, err = r.take(); err != nil {
				return n, err
			}
			if !got {
				continue
			}
			n++
			h := &r.held[0]
			c.ledger.atRest(&h.arrival, rest)
			if err := r.ask(0, accept); err != nil {
				return n, err
			}
		}
		more = n > before
	}
	for len(r.open) > 0 {
		if _, _, err := r.take(); err != nil {
			return n, err
		}
	}
	return n, r.hangup()
}

// browse looks at all there is in a queue.
func browse(c *chain, b *broker, from uint8, rng *rand.Rand) error {
	r, err := consume(c, b, from, false, true, rng)
	if err != nil {
		return err
	}
	if err := r.grant(1<<20, true); err != nil {
		return errors.Join(err, r.conn.Close())
	}
	for {
		drained, h, err := r.step()
		if err != nil {
			return errors.Join(err, r.conn.Close())
		}
		if drained {
			return r.hangup()
		}
		if h != nil {
			c.ledger.look(&h.arrival, r.link)
		}
	}
}
