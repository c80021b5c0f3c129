package corpora

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/letomq/leto/interop/wire"
)

// TestMessages sends every recorded message as the payload of a delivery.
func TestMessages(t *testing.T) {
	all := inputs(t, "fuzz-message-decode")
	if len(all) < 300 {
		t.Fatalf("%d inputs in the archive", len(all))
	}
	feed(t, all)
}

// TestChangedMessages sends a message with all seven sections, cut off at every byte
// and with every byte changed in several ways.
func TestChangedMessages(t *testing.T) {
	whole := bytes.Join([][]byte{
		wire.Described(wire.SectionHeader, wire.List(wire.Bool(true), wire.Ubyte(4), wire.Uint(3_600_000), wire.Bool(true), wire.Uint(0))),
		wire.Described(wire.SectionDeliveryAnnotations, wire.Map(wire.Symbol("d"), wire.Null())),
		wire.Described(wire.SectionMessageAnnotations, wire.Map(wire.Symbol("m"), wire.List(wire.Ulong(1), wire.Map(wire.Ubyte(1), wire.Bool(true))))),
		wire.Described(wire.SectionProperties, wire.List(wire.String("id"), wire.Binary([]byte("user")), wire.String("to"))),
		wire.Described(wire.SectionApplicationProperties, wire.Map(wire.String("z"), wire.Timestamp(1), wire.String("a"), wire.Symbol("b"))),
		wire.Described(wire.SectionData, wire.Binary([]byte("one"))), wire.Described(wire.SectionData, wire.Binary(nil)),
		wire.Described(wire.SectionFooter, wire.Map(wire.Symbol("f"), wire.Uint(1))),
	}, nil)
	all := []input{{"whole", whole}}
	for at := range whole {
		all = append(all, input{fmt.Sprint("cut at ", at), whole[:at]})
		for _, to := range []byte{0x00, 0x40, 0x45, 0x80, 0xf0, 0xff, whole[at] ^ 1, whole[at] + 1} {
			changed := bytes.Clone(whole)
			changed[at] = to
			all = append(all, input{fmt.Sprintf("byte %d to %#02x", at, to), changed})
		}
	}
	feed(t, all)
}

// feed sends messages. The broker may take or refuse each, but has to answer, and
// what it takes has to come out as it went in.
func feed(t *testing.T, all []input) {
	t.Helper()
	witness := newWitness(t)
	witness.exchange(t, "before")
	base, err := broker.Gauges()
	if err != nil {
		t.Fatal(err)
	}

	p := &publisher{address: t.Name()}
	var taken []input
	refused := map[string]int{}
	for i, message := range all {
		why, err := p.publish(message.data)
		switch {
		case err != nil:
			t.Fatalf("%s: %v", message.name, err)
		case why == "":
			taken = append(taken, message)
		default:
			refused[why]++
		}
		if i%batch == 0 {
			witness.exchange(t, fmt.Sprint("after ", i))
		}
	}
	p.leave(t)
	t.Logf("%d messages: %d taken, refused %v", len(all), len(taken), refused)
	if len(taken) == 0 || len(refused) == 0 {
		t.Errorf("%d taken and %d refused: there are good and bad ones among them", len(taken), len(all)-len(taken))
	}
	collect(t, p.address, taken)
	witness.exchange(t, "at the end")
	broker.Settled(t, base, slack, 20*time.Second)
	witness.leave(t)
}

// publisher sends odd messages and comes back when the broker throws it out.
type publisher struct {
	address string
	conn    *wire.Conn
	sender  *wire.Sender
	links   uint32
}

// publish returns why the broker refused the message, "" when it took it, and an
// error when it did neither.
func (p *publisher) publish(message []byte) (why string, err error) {
	if p.sender == nil {
		if err := p.attach(); err != nil {
			return "", err
		}
	}
	var cuts []int
	for at := 16 << 10; at < len(message); at += 16 << 10 {
		cuts = append(cuts, at)
	}
	answer, err := p.sender.Deliver(message, cuts...)
	if err != nil {
		return "", err
	}
	if answer.Code == wire.CodeDetach {
		p.sender = nil
		return "detach " + answer.Condition(2), p.conn.Send(wire.Detach(p.links - 1))
	}
	switch outcome, _ := answer.Outcome(); outcome {
	case wire.CodeAccepted:
		return "", nil
	case wire.CodeRejected:
		_, list, err := wire.Code(answer.Field(4))
		if err != nil {
			return "", err
		}
		items, err := wire.Items(list)
		if err != nil || len(items) == 0 {
			return "", fmt.Errorf("rejected without an error: % x, %w", list, err)
		}
		condition, _ := wire.Failure(items[0])
		return "rejected " + condition, nil
	default:
		return "", fmt.Errorf("answer %#x with state % x", answer.Code, answer.Field(4))
	}
}

func (p *publisher) attach() error {
	var err error
	if p.conn == nil {
		if p.conn, err = wire.Connect(broker.AMQP, "odd-publisher"); err != nil {
			return err
		}
	}
	name := fmt.Sprint("odd-", p.links)
	p.sender, err = wire.NewSender(p.conn, p.links, name, p.address)
	p.links++
	return err
}

func (p *publisher) leave(t *testing.T) {
	t.Helper()
	if err := p.conn.Hangup(); err != nil {
		t.Errorf("publisher: %v", err)
	}
}

// collect receives what was taken and compares it with what was sent. A message may
// have said itself that it expires, and comes from ExpiryQueue then; so only what no
// intermediary may touch is compared, in any order.
func collect(t *testing.T, from string, sent []input) {
	t.Helper()
	missing := map[string]int{}
	for _, message := range sent {
		missing[untouched(t, message.data)]++
	}
	arrivals := make(chan []byte)
	failures := make(chan error, 2)
	done := make(chan struct{})
	defer close(done)
	for _, address := range []string{from, "ExpiryQueue"} {
		conn, err := wire.Connect(broker.AMQP, "odd-consumer-"+address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		receiver, err := wire.NewReceiver(conn, 0, "in", address, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				got, err := receiver.Accept()
				if err != nil {
					failures <- err
					return
				}
				select {
				case arrivals <- got.Message:
				case <-done:
					return
				}
			}
		}()
	}
	for came := range len(sent) {
		select {
		case message := <-arrivals:
			key := untouched(t, message)
			if missing[key]--; missing[key] < 0 {
				t.Errorf("a message came that nobody sent: % x", key)
			}
		case err := <-failures:
			t.Fatalf("%d of %d messages came: %v", came, len(sent), err)
		case <-time.After(15 * time.Second):
			t.Fatalf("%d of %d messages came", came, len(sent))
		}
	}
}

// untouched is the bare message and the footer.
func untouched(t *testing.T, message []byte) string {
	t.Helper()
	m, err := wire.Split(message)
	if err != nil {
		t.Fatalf("the broker took a message that has no sections: %v: % x", err, message)
	}
	return string(bytes.Join([][]byte{m.Bare, m.Footer}, []byte("|")))
}
